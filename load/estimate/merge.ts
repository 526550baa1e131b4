/** Several generators' results as one: counts and histograms add up, quantiles are read from the sum. */
import {
  bucketEndMs,
  countOf,
  mergeHistograms,
  quantileBucket,
  type Histogram,
} from '../k6/lib/histogram.ts';
import { LATE_SHARE } from './step.ts';
import { neverBegun } from '../k6/lib/random.ts';
import type { SharedPart } from '../k6/lib/summary.ts';

export interface Part {
  readonly seconds: number;
  readonly histogram: Histogram;
  readonly counts: Readonly<Record<string, number>>;
  /** Of runners of one run. */
  readonly shared?: SharedPart;
  readonly schedulerLagP99Ms?: number;
  /** Why it says nothing about the target. */
  readonly void?: string;
}

export interface Merged extends Omit<Part, 'shared'> {
  readonly parts: number;
  readonly requests: number;
  readonly requestsPerSecond: number;
  /** The upper ends of the buckets that hold the quantiles. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly errorRate: number;
  /** Against the SLO of the run; absent where the parts name none. */
  readonly held?: boolean;
}

/** The share of the SLO that a runner may be late by itself. */
const LATE = 0.5;
/** The share of the requests that runners may not have begun when the load ends. */
const SHORT = 0.01;

/** The parts ran side by side: the longest gives the length. Throws a RangeError for parts that are not of one run. */
export function mergeParts(parts: readonly Part[]): Merged {
  const histogram = mergeHistograms(parts.map((part) => part.histogram));
  const counts: Record<string, number> = {};
  for (const part of parts) {
    for (const [name, count] of Object.entries(part.counts)) counts[name] = (counts[name] ?? 0) + count;
  }
  const shared = runOf(parts);
  // Of a shared run the load's own length: setup and the last answers are no load.
  const seconds = shared?.seconds ?? Math.max(0, ...parts.map((part) => part.seconds));
  const requests = countOf(histogram);
  const p99Ms = bucketEndMs(quantileBucket(histogram, 0.99));
  // What was due and never sent failed.
  const due = Math.max(requests, shared?.due ?? 0);
  const failures = (counts['errors'] ?? 0) + (counts['limited'] ?? 0) + due - requests;
  const errorRate = due === 0 ? 1 : failures / due;
  const lateShare = ((counts['late'] ?? 0) + due - requests) / Math.max(1, due);
  const why =
    parts.find((part) => part.void)?.void ?? missing(parts, shared) ?? lateRunner(parts, shared, counts);
  return {
    parts: parts.length,
    seconds,
    histogram,
    counts,
    requests,
    requestsPerSecond: seconds > 0 ? requests / seconds : 0,
    p50Ms: bucketEndMs(quantileBucket(histogram, 0.5)),
    p99Ms,
    errorRate,
    ...(shared ? { held: lateShare <= LATE_SHARE && errorRate <= shared.errorRate } : {}),
    ...(why ? { void: why } : {}),
  };
}

/** The run that all are parts of; undefined where none says. */
function runOf(parts: readonly Part[]): SharedPart | undefined {
  const shared = parts.flatMap((part) => part.shared ?? []);
  if (shared.length === 0) return undefined;
  if (shared.length < parts.length || new Set(shared.map(({ runId }) => runId)).size > 1)
    throw new RangeError('the parts are not of one run');
  const twice = shared.find(({ segment }, index) =>
    shared.slice(index + 1).some((other) => other.segment === segment),
  );
  if (twice) throw new RangeError(`segment ${twice.segment} is there twice`);
  return shared[0];
}

const missing = (parts: readonly Part[], shared: SharedPart | undefined): string | undefined =>
  shared && parts.length < shared.parts ? `${parts.length} of ${shared.parts} parts are there` : undefined;

function lateRunner(
  parts: readonly Part[],
  shared: SharedPart | undefined,
  counts: Part['counts'],
): string | undefined {
  const lag = Math.max(0, ...parts.map((part) => part.schedulerLagP99Ms ?? 0));
  if (shared && lag > shared.p99Ms * LATE)
    return `a runner started requests up to ${lag.toFixed(0)} ms late (p99): it fell behind`;
  const short = neverBegun(shared?.due ?? 0, counts);
  return short > SHORT * (shared?.due ?? 0)
    ? `the runners never began ${short} of ${shared!.due} requests: they fell behind`
    : undefined;
}
