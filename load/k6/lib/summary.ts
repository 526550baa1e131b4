/** The end of every scenario: counts, latency and thresholds in one JSON file, for the kit and for `merge`. */
import exec from 'k6/execution';
import { sharedRun, type LoadConfig } from './config.ts';
import { dueMoments } from '../../estimate/random.ts';

/** Latency of requests from their due moment. */
export type Latency = Readonly<Record<'requests' | 'p50Ms' | 'p99Ms', number>>;

type Summary = ReturnType<typeof summarise>;
/** As it is read again: the other members may be absent. */
export type ScenarioSummary = Partial<Summary> & Pick<Summary, 'seconds' | 'counts' | 'thresholds'>;
export type SharedPart = ReturnType<typeof partOf>;

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

function summarise(data: SummaryData) {
  const counts: Record<string, number> = {};
  const thresholds: Record<string, boolean> = {};
  for (const [name, metric] of Object.entries(data.metrics)) {
    if (metric.type === 'counter') counts[name] = metric.values['count'] ?? 0;
    for (const [rule, { ok }] of Object.entries(metric.thresholds ?? {})) thresholds[`${name} ${rule}`] = ok;
  }
  counts['pages'] ??= (counts['http_reqs'] ?? 0) - (counts['token_calls'] ?? 0);
  const { count: requests, med: p50Ms, 'p(99)': p99Ms } = data.metrics['page_ms']?.values ?? {};
  const latency: Latency | undefined = requests ? { requests, p50Ms: p50Ms!, p99Ms: p99Ms! } : undefined;
  return {
    seconds: data.state.testRunDurationMs / 1000,
    /** Due moments are relative to this moment, in milliseconds since the epoch. */
    startAtMs: data.setup_data?.startAtMs,
    counts,
    /** Absent if the kit reads records. */
    latency,
    thresholds,
    /** Scheduler lag of a runner that writes no records. */
    schedulerLagP99Ms: data.metrics['scheduler_lag_ms']?.values['p(99)'],
    /** Present if several runners share the run. */
    shared: sharedRun && partOf(sharedRun),
  };
}

/** Identifies the part of the run, and holds the limits for the merged result. */
const partOf = (config: LoadConfig) => ({
  runId: config.runId!,
  parts: config.parts!,
  seconds: config.seconds,
  p99Ms: config.p99Ms,
  errorRate: config.errorRate,
  due: dueMoments(config).length,
  /** k6's execution segment, such as `1/3:2/3`. */
  segment: String(exec.test.options.executionSegment ?? '0:1'),
});

/** k6 calls it by this name. Without SUMMARY (on a cluster) it prints to standard output, for `merge`. */
export function handleSummary(data: SummaryData): Record<string, string> {
  return { [__ENV['SUMMARY'] || 'stdout']: `${JSON.stringify(summarise(data))}\n` };
}
