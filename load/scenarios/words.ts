/** Figures as people read them. */
import { quantile } from '../estimate/numbers.ts';
import { VoidRun } from '../run/session.ts';

export const perSecond = (rate: number): string => `${rate >= 100 ? rate.toFixed(0) : rate.toFixed(1)}/s`;

export function quantiles(valuesMs: readonly number[]): string {
  const sorted = [...valuesMs].sort((a, b) => a - b);
  return `p50 ${quantile(sorted, 0.5).toFixed(1)} ms, p99 ${quantile(sorted, 0.99).toFixed(1)} ms`;
}

/** A part of the run, of which something is to be said, has no answer. */
export const tooFew = (answers: number, seconds: number): VoidRun =>
  new VoidRun(
    `${answers} answers in ${seconds} s leave a part of the run without one: raise --rate or --duration`,
  );

/** A table of text; numbers stand to the right. */
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
