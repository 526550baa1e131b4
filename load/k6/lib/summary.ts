/** The end of every scenario: counts, histogram and thresholds as one JSON file that the runner reads and merge adds up. */
import exec from 'k6/execution';
import { sharedRun, type LoadConfig } from './config.ts';
import { fromQuantiles, type Histogram } from './histogram.ts';
import { dueCount } from './random.ts';

export interface ScenarioSummary {
  readonly seconds: number;
  /** The moment that due moments count from, in milliseconds since the epoch. */
  readonly startAtMs?: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly histogram: Histogram;
  readonly thresholds: Readonly<Record<string, boolean>>;
  /** How late free VUs woke: the runner's own lateness; only of runners that write no records. */
  readonly schedulerLagP99Ms?: number;
  /** Of a run that several runners share. */
  readonly shared?: SharedPart;
}

/** Which part of which run it is, and what the sum is held against. */
export interface SharedPart {
  readonly runId: string;
  readonly scenario: string;
  readonly parts: number;
  /** k6's execution segment, such as `1/3:2/3`. */
  readonly segment: string;
  /** Of the load, as it was meant to be. */
  readonly seconds: number;
  /** Requests of all runners together. */
  readonly due?: number;
  readonly p99Ms: number;
  readonly errorRate: number;
}

interface Metric {
  readonly type: string;
  readonly values: Readonly<Record<string, number>>;
  readonly thresholds?: Readonly<Record<string, { readonly ok: boolean }>>;
}
interface SummaryData {
  readonly metrics: Readonly<Record<string, Metric>>;
  readonly state: { readonly testRunDurationMs: number };
  readonly setup_data?: { readonly startAtMs?: number };
}

function summarise(data: SummaryData): ScenarioSummary {
  const counts: Record<string, number> = {};
  const thresholds: Record<string, boolean> = {};
  for (const [name, metric] of Object.entries(data.metrics)) {
    if (metric.type === 'counter') counts[name] = metric.values['count'] ?? 0;
    for (const [rule, { ok }] of Object.entries(metric.thresholds ?? {})) thresholds[`${name} ${rule}`] = ok;
  }
  counts['pages'] ??= (counts['http_reqs'] ?? 0) - (counts['token_calls'] ?? 0);
  const lag = data.metrics['scheduler_lag_ms']?.values['p(99)'];
  return {
    seconds: data.state.testRunDurationMs / 1000,
    ...(data.setup_data?.startAtMs === undefined ? {} : { startAtMs: data.setup_data.startAtMs }),
    counts,
    histogram: fromQuantiles(data.metrics['page_ms']?.values ?? {}),
    thresholds,
    ...(lag === undefined ? {} : { schedulerLagP99Ms: lag }),
    ...(sharedRun ? { shared: partOf(sharedRun) } : {}),
  };
}

const partOf = (config: LoadConfig): SharedPart => {
  const { runId, scenario, parts, seconds, p99Ms, errorRate } = config;
  return {
    due: dueCount(config),
    runId: runId!,
    scenario,
    parts: parts ?? 1,
    segment: String(exec.test.options.executionSegment ?? '0:1'),
    seconds,
    p99Ms,
    errorRate,
  };
};

/**
 * k6 calls it by this name, where the kit put it next to a script. Without SUMMARY (on a cluster) it goes to standard
 * output, for `merge` to read.
 */
export function handleSummary(data: SummaryData): Record<string, string> {
  return { [__ENV['SUMMARY'] || 'stdout']: `${JSON.stringify(summarise(data))}\n` };
}
