/** Formats figures for the summary and the tables. */
import { quantile } from '../estimate/numbers.ts';
import { failed, type Sample } from '../estimate/step.ts';
import { VoidRun } from '../run/session.ts';

export const perSecond = (rate: number): string => `${rate >= 100 ? rate.toFixed(0) : rate.toFixed(1)}/s`;

export function quantiles(valuesMs: readonly number[]): string {
  const sorted = [...valuesMs].sort((a, b) => a - b);
  return `p50 ${quantile(sorted, 0.5).toFixed(1)} ms, p99 ${quantile(sorted, 0.99).toFixed(1)} ms`;
}

/** A part of the run that the verdict needs has no answers. */
export const tooFew = (answers: number, seconds: number): VoidRun =>
  new VoidRun(
    `${answers} answers in ${seconds} s leave a part of the run without one: raise --rate or --duration`,
  );

/** Formats a text table; numeric columns are right-aligned. */
export function textTable(
  header: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  const all = [header, ...rows.map((row) => row.map(String))];
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const numeric = header.map((_, column) =>
    rows.every((row) => /^[-+\d.,%×]*$/.test(String(row[column] ?? ''))),
  );
  return all
    .map((row) =>
      row
        .map((cell, column) =>
          numeric[column] ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

const BINS = 40;

/** Latency time series for the plots. */
export function timeSeries(samples: readonly Sample[]) {
  const endMs = samples.reduce((last, one) => Math.max(last, one.dueMs), 1);
  return Array.from({ length: BINS }, (_, bin) => {
    const some = samples.filter((one) => Math.min(BINS - 1, Math.floor((BINS * one.dueMs) / endMs)) === bin);
    const sorted = some.map((one) => one.latencyMs).sort((a, b) => a - b);
    return {
      seconds: Number((((bin + 0.5) * endMs) / BINS / 1000).toFixed(2)),
      requests: some.length,
      p50Ms: Number((quantile(sorted, 0.5) || 0).toFixed(2)),
      p99Ms: Number((quantile(sorted, 0.99) || 0).toFixed(2)),
      failed: some.filter((one) => failed(one.status)).length,
    };
  }).filter(({ requests }) => requests > 0);
}

export const brokenThresholds = (all: Readonly<Record<string, boolean>> = {}): string[] =>
  Object.entries(all)
    .filter(([, ok]) => !ok)
    .map(([rule]) => `threshold broken: ${rule}`);
