/** What runs of open arrivals show: latency over time, and thresholds that broke. */
import { quantile } from '../estimate/numbers.ts';
import { failed, type Sample } from '../estimate/step.ts';

const BINS = 40;

/** Median and p99 over time, for the plots. */
export function overTime(samples: readonly Sample[]) {
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
