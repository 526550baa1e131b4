/** The end of every scenario: counts, latency and thresholds in one JSON file, for the kit and for `merge`. */
import exec from 'k6/execution';
import { sharedRun, type LoadConfig } from './config.ts';
import { dueCount } from '../../estimate/random.ts';

/** Latency of requests from their due moment. */
export interface Latency {
  readonly requests: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface ScenarioSummary {
  readonly seconds: number;
  /** Due moments are relative to this moment, in milliseconds since the epoch. */
  readonly startAtMs?: number | undefined;
  readonly counts: Readonly<Record<string, number>>;
  /** Absent if the kit reads records. */
  readonly latency?: Latency | undefined;
  readonly thresholds: Readonly<Record<string, boolean>>;
  /** Scheduler lag of a runner that writes no records. */
  readonly schedulerLagP99Ms?: number | undefined;
  /** Present if several runners share the run. */
  readonly shared?: SharedPart | undefined;
}

/** Identifies the part of the run, and holds the limits for the merged result. */
export interface SharedPart {
  readonly runId: string;
  readonly scenario: string;
  readonly parts: number;
  /** k6's execution segment, such as `1/3:2/3`. */
  readonly segment: string;
  /** Planned duration of the load. */
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
  const { count: requests, med: p50Ms, 'p(99)': p99Ms } = data.metrics['page_ms']?.values ?? {};
  return {
    seconds: data.state.testRunDurationMs / 1000,
    startAtMs: data.setup_data?.startAtMs,
    counts,
    latency: requests ? { requests, p50Ms: p50Ms!, p99Ms: p99Ms! } : undefined,
    thresholds,
    schedulerLagP99Ms: data.metrics['scheduler_lag_ms']?.values['p(99)'],
    shared: sharedRun && partOf(sharedRun),
  };
}

const partOf = ({
  runId,
  scenario,
  parts = 1,
  seconds,
  p99Ms,
  errorRate,
  ...config
}: LoadConfig): SharedPart => ({
  ...{ runId: runId!, scenario, parts, seconds, p99Ms, errorRate },
  due: dueCount({ ...config, parts, seconds }),
  segment: String(exec.test.options.executionSegment ?? '0:1'),
});

/**
 * The kit exports it next to a script; k6 calls it by this name. Without SUMMARY (on a cluster) it prints to standard
 * output, for `merge`.
 */
export function handleSummary(data: SummaryData): Record<string, string> {
  return { [__ENV['SUMMARY'] || 'stdout']: `${JSON.stringify(summarise(data))}\n` };
}
