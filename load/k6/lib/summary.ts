/** The end of every scenario: counts, histogram and thresholds as one JSON file that the runner reads and merge adds up. */
import { byKit } from './config.ts';
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
  readonly root_group?: {
    readonly checks: readonly { readonly name: string; readonly passes: number; readonly fails: number }[];
  };
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
  if (!byKit) return { stdout: textOf(data) };
  const text = `${JSON.stringify(summarise(data))}\n`;
  return { [__ENV['SUMMARY'] || 'stdout']: text };
}

/** By hand: checks, metrics, and under each its thresholds. k6 gives its own text to nobody who has a handleSummary. */
function textOf({ metrics, root_group, state }: SummaryData): string {
  const mark = (ok: boolean): string => (ok ? '✓' : '✗');
  const round = (value: number): string => String(Number(value.toPrecision(4)));
  const lines = (root_group?.checks ?? []).map(
    ({ name, passes, fails }) => `  ${mark(fails === 0)} ${name}: ${passes} of ${passes + fails}`,
  );
  for (const name of Object.keys(metrics).sort()) {
    const { type, values, thresholds = {} } = metrics[name]!;
    // What a trend has no value for has no quantiles either.
    if (values['count'] === 0 && type === 'trend') continue;
    const shown = Object.entries(values).map(([stat, value]) => `${stat}=${round(value ?? 0)}`);
    lines.push(`  ${name.padEnd(26, '.')} ${shown.join(' ')}`);
    for (const [rule, { ok }] of Object.entries(thresholds)) lines.push(`    ${mark(ok)} ${rule}`);
  }
  return `${lines.join('\n')}\n  ${round(state.testRunDurationMs / 1000)} s\n`;
}
