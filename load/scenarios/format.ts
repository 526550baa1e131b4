/** Formats figures for the summary, the tables and the plots. */
import { number } from '../../certify/render/results.ts';
import type { Prediction } from '../estimate/figures.ts';
import { ascending, quantile, rounded } from '../estimate/numbers.ts';
import { failed, type Sample } from '../estimate/step.ts';
import { VoidRun } from '../run/session.ts';

export const perSecond = (rate: number): string => `${rate >= 100 ? rate.toFixed(0) : rate.toFixed(1)}/s`;

/** Such as `0.1 %`, without the digits of a binary fraction. */
export const percentOf = (share: number): string => `${rounded(share * 100)} %`;

/** The median and the p99, whose 95 % interval lies between order statistics; few answers give it no upper end. */
export function quantiles(valuesMs: readonly number[]): string {
  const sorted = ascending(valuesMs);
  const [rank, off] = [0.99 * sorted.length, 1.96 * Math.sqrt(0.99 * 0.01 * sorted.length)];
  const [low, high] = [sorted[Math.max(0, Math.floor(rank - off) - 1)], sorted[Math.ceil(rank + off)]];
  const interval = `${(low ?? NaN).toFixed(1)} ${high === undefined ? 'or more' : `to ${high.toFixed(1)}`}`;
  return `p50 ${quantile(sorted, 0.5).toFixed(1)} ms, p99 ${quantile(sorted, 0.99).toFixed(1)} ms (${interval})`;
}

/** The failed answers by status, such as `429 × 42, no answer × 3`; empty without failures. */
export function failuresText(samples: readonly Pick<Sample, 'status'>[]): string {
  const counts = new Map<number, number>();
  for (const { status } of samples) if (failed(status)) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].map(([status, count]) => `${status || 'no answer'} × ${count}`).join(', ');
}

/** `between 3 and 5`; without an upper end `at least 3; higher rates were not measured`. */
export const between = ([low, high]: readonly [number, number], show: (end: number) => string): string =>
  Number.isFinite(high)
    ? `between ${show(low)} and ${show(high)}`
    : `at least ${show(low)}; higher rates were not measured`;

export const confirmation = ({ confirmed, unconfirmed }: { confirmed: boolean; unconfirmed?: string }) =>
  confirmed ? 'confirmed' : `NOT confirmed: ${unconfirmed}`;

export const predictionText = ({ asPredicted, requests, seconds, what, ...of }: Prediction): string =>
  `${number(asPredicted)} of ${number(requests)} as predicted in ${seconds} s at ${perSecond(of.requestsPerSecond)}: ${what}; a restart or a pause that is rarer is not excluded`;

/** A part of the run that the verdict needs has no answers. */
export const tooFew = (answers: number, seconds: number): VoidRun =>
  new VoidRun(`too few answers (${answers} in ${seconds.toFixed(0)} s): raise --rate or --duration`);

const BINS = 40;

export function timeSeries(samples: readonly Sample[]) {
  const endMs = samples.reduce((last, one) => Math.max(last, one.dueMs), 1);
  return Array.from({ length: BINS }, (_, bin) => {
    const some = samples.filter((one) => Math.min(BINS - 1, Math.floor((BINS * one.dueMs) / endMs)) === bin);
    const sorted = ascending(some.map((one) => one.latencyMs));
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
  Object.entries(all).flatMap(([rule, ok]) => (ok ? [] : [`threshold broken: ${rule}`]));
