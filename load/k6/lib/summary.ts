/** The end of every scenario: counts, histogram and thresholds as one JSON file that the runner reads and merge adds up. */
import type { Histogram } from './histogram.ts';

export interface ScenarioSummary {
  readonly seconds: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly histogram: Histogram;
  readonly thresholds: Readonly<Record<string, boolean>>;
}

interface Metric {
  readonly type: string;
  readonly values: Readonly<Record<string, number>>;
  readonly thresholds?: Readonly<Record<string, { readonly ok: boolean }>>;
}
export interface SummaryData {
  readonly metrics: Readonly<Record<string, Metric>>;
  readonly state: { readonly testRunDurationMs: number };
}

const PREFIX = 'latency_bucket_';

export function summarise(data: SummaryData): ScenarioSummary {
  const counts: Record<string, number> = {};
  const histogram: Record<string, number> = {};
  const thresholds: Record<string, boolean> = {};
  for (const [name, metric] of Object.entries(data.metrics)) {
    if (metric.type === 'counter' && name.startsWith(PREFIX))
      histogram[name.slice(PREFIX.length)] = metric.values['count'] ?? 0;
    else if (metric.type === 'counter') counts[name] = metric.values['count'] ?? 0;
    for (const [rule, { ok }] of Object.entries(metric.thresholds ?? {})) thresholds[`${name} ${rule}`] = ok;
  }
  return { seconds: data.state.testRunDurationMs / 1000, counts, histogram, thresholds };
}

/** k6 calls it by this name. Without SUMMARY (on a cluster) it goes to standard output, for `merge` to read. */
export function handleSummary(data: SummaryData): Record<string, string> {
  const text = `${JSON.stringify(summarise(data))}\n`;
  return { [__ENV['SUMMARY'] || 'stdout']: text };
}
