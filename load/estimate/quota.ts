/** Quotas: the rate that a limiter admits in the long run, and its windows or bans, from the answers of an overload. */
import type { Quota } from './figures.ts';
import type { Observation } from './limiter-probe.ts';
import { largest, median, smallest, sum } from './numbers.ts';
import { type RatePolicy, type Sample, sentMsOf } from './step.ts';

export const QUOTA = {
  /** A series of rejections of this share of the longest ends with a reset. */
  long: 0.5,
  /** If every series of rejections is shorter than this share of the run, there are no windows: admission is even. */
  even: 0.06,
  /** Initial share of a run that a burst allowance may distort. */
  burstShare: 0.4,
  /** Factor on the latency of a quiet target from which admitted requests were queued. */
  queued: 1.5,
  /** Maximum length of a run, in multiples of confirmSeconds. */
  longestRun: 3,
  /** Retry-After waits that contain two window resets: a wait is the rest of a window whose limit is used up. */
  waits: 3,
  /**
   * The admitted rate is final once `raise` times the offered rate raises it by less than `mostGrowth`. With almost no
   * burst capacity that takes several raises; if it never is, a share of the requests is rejected at any rate.
   */
  raise: 4,
  mostGrowth: 1.15,
  raises: 4,
  /** Rate of the prediction run above the quota, relative to it. */
  beyond: 1.5,
  /** Longest pause before a step, in which the limiter resets. */
  longestPauseSeconds: 45,
  /** Standard deviations by which a ban exceeds the rest of a window. */
  banDeviations: 3,
};
/** Requests in flight, as a share of the burst, from which 429 may depend on them; fewer than the least are chance. */
const [IN_FLIGHT, LEAST_IN_FLIGHT] = [0.5, 3];
/** A safety limit: fewer admitted requests are chance. */
const LEAST_PASSED = 30;
/** Bans of one length vary less than this, as a share. */
const SAME_BAN = 0.15;

/** A refill or reset, which lies between the last rejection and the next admission. */
export interface Release {
  readonly refusedMs: number;
  readonly passedMs: number;
  /** Time since the first of the rejections before it. */
  readonly waitedMs: number;
}

type Decision = Pick<Observation, 'ok' | 'atMs'>;

export function releasesOf(seen: readonly Decision[]): Release[] {
  const releases: Release[] = [];
  let since: number | undefined;
  for (const [index, { ok, atMs }] of seen.entries()) {
    if (ok && since !== undefined)
      releases.push({ waitedMs: atMs - since, refusedMs: seen[index - 1]!.atMs, passedMs: atMs });
    since = ok ? undefined : (since ?? atMs);
  }
  return releases;
}

/**
 * Estimates the quota from one run that offers more. If it has windows, only whole ones count, from one reset to
 * another, so that the phase does not matter. `sent`: in the order of time, since the start of the run.
 */
export function quotaOf(sent: readonly Decision[], endMs: number): Quota {
  const waits = releasesOf(sent);
  // A series of rejections cut short by the end of the run also counts.
  const cut = sent[sent.findLastIndex(({ ok }) => ok) + 1];
  const cutMs = cut === undefined ? 0 : endMs - cut.atMs;
  const longest = Math.max(cutMs, largest(waits.map(({ waitedMs }) => waitedMs)));
  const passed = (fromMs: number, toMs: number): number =>
    sent.filter(({ ok, atMs }) => ok && atMs >= fromMs && atMs < toMs).length;
  const releases = waits.flatMap((one) => (one.waitedMs >= QUOTA.long * longest ? [one.passedMs] : []));
  const [first, last] = [releases[0] ?? 0, releases.at(-1) ?? 0];

  if (longest < QUOTA.even * endMs) {
    const refusedMs = sent.find(({ ok }) => !ok)?.atMs ?? endMs;
    const fromMs = Math.max(refusedMs, QUOTA.burstShare * endMs);
    const count = passed(fromMs, endMs);
    const perSecond = (count * 1000) / Math.max(1, endMs - fromMs);
    return {
      perSecond,
      error: 0.03 + 1 / Math.sqrt(Math.max(1, count)) / 4,
      settled: count >= LEAST_PASSED && endMs - fromMs >= 0.3 * endMs,
      burst: Math.max(1, passed(0, refusedMs) - (perSecond * refusedMs) / 1000),
      releases: waits.length,
    };
  }
  // Without a whole window, this is only the rate of this run.
  if (last === first) {
    const perSecond = (passed(0, endMs) * 1000) / endMs;
    return { perSecond, error: 1, settled: false, releases: releases.length };
  }
  const count = passed(first, last);
  const perSecond = (count * 1000) / (last - first);
  const perMs = (toMs: number, index: number): number => {
    const fromMs = releases[index]!;
    return passed(fromMs, toMs) / (toMs - fromMs);
  };
  const rates = releases.slice(1).map(perMs);
  const unequal = largest(rates.map((rate) => Math.abs((rate * 1000) / perSecond - 1)));
  // Each reset is seen up to one interval between arrivals too late.
  const paceMs = endMs / sent.length;
  const windows = releases.length - 1;
  return {
    perSecond,
    error: 0.01 + (2 * paceMs) / (last - first) + unequal / 2,
    settled: unequal < 0.25,
    releases: releases.length,
    limit: Math.round(count / windows),
    windowSeconds: Number(((last - first) / windows / 1000).toPrecision(3)),
  };
}

export const isRejected = ({ status }: Sample): boolean => status === 429;
const decisionsOf = (samples: readonly Sample[]): Decision[] =>
  samples
    .filter(({ status }) => status !== 0)
    .map((one) => ({ atMs: sentMsOf(one), ok: !isRejected(one) }))
    .sort((a, b) => a.atMs - b.atMs);
export const quotaOfRun = (run: readonly Sample[], seconds: number): Quota =>
  quotaOf(decisionsOf(run), seconds * 1000);

/** The policy that RateLimit headers declare; if they only declare the time to the reset, the longest one seen. */
export const declaredBy = (policies: readonly RatePolicy[]): RatePolicy | undefined =>
  policies.findLast(({ atLeast }) => !atLeast) ??
  [...policies].sort((a, b) => b.windowSeconds - a.windowSeconds)[0];

export const longestWait = (samples: readonly Sample[]): number =>
  Math.max(0, largest(samples.map(({ retryAfterSeconds = 0 }) => retryAfterSeconds)));

/**
 * The quota that headers declare; undefined if a wait, or the number of requests that a run of this length admitted, is
 * too large for it, or if far fewer were admitted in all: another limit may reject them.
 */
export function declaredQuota(
  policy: RatePolicy | undefined,
  waitSeconds: number,
  admitted: Readonly<Record<'inRun' | 'inAll', number>>,
  seconds: number,
): Quota | undefined {
  if (!policy || policy.atLeast) return undefined;
  const { limit, windowSeconds } = policy;
  const isOther = admitted.inRun > limit * (2 + seconds / windowSeconds) || admitted.inAll < limit * 0.9;
  if (isOther || waitSeconds > windowSeconds * 1.05 + 1) return undefined;
  const perSecond = limit / windowSeconds;
  return { perSecond, error: 0.02, settled: true, releases: 0, limit, windowSeconds, declared: true };
}

/** Admits at an even pace: no window resets were visible. */
export const isPaced = ({ settled, windowSeconds }: Quota): boolean => settled && windowSeconds === undefined;

/**
 * Whether 429 may depend on how long answers take: admitted requests were queued, or at least half as many are in
 * flight as a burst from rest has, as with the concurrency limits of several processes.
 */
export function followsLatency(run: readonly Sample[], quota: Quota, idleMs: number): boolean {
  if (!isPaced(quota)) return false;
  const latenciesMs = run.flatMap((one) => (isRejected(one) ? [] : [one.latencyMs]));
  if (median(latenciesMs) > QUOTA.queued * idleMs) return true;
  const inFlight = (quota.perSecond * sum(latenciesMs)) / latenciesMs.length / 1000;
  return inFlight >= Math.max(LEAST_IN_FLIGHT, IN_FLIGHT * quota.burst!);
}

/** Whether rejected requests count too: most of the run is rejected in one series, for longer than Retry-After declares. */
export function countsRejected(run: readonly Sample[], seconds: number): boolean {
  const wait = longestWait(run);
  const admittedMs = run.findLast((one) => !isRejected(one))?.dueMs ?? 0;
  return wait > 0 && seconds > 2 * wait && admittedMs < (seconds * 1000) / 4;
}

/** The seconds of the series of rejections; a run that begins with a rejection shows only the rest of the first. */
function waitsOf(run: readonly Sample[]): number[] {
  const sent = decisionsOf(run);
  return releasesOf(sent)
    .slice(sent[0]?.ok === false ? 1 : 0)
    .map(({ waitedMs }) => waitedMs / 1000);
}

/** The length of the bans in an overload run; undefined unless there were several of the same length. */
export function banOf(run: readonly Sample[]): number | undefined {
  const waits = waitsOf(run);
  const longest = largest(waits, 0);
  return waits.length > 1 && smallest(waits) > (1 - SAME_BAN) * longest ? longest : undefined;
}

/** Whether the waits of a run are bans: at a lower rate, a window is used up later, so that its rest is shorter. */
export function areBans(banSeconds: number, quota: Quota, offered: number, run: readonly Sample[]): boolean {
  const { limit = NaN, windowSeconds = NaN } = quota;
  const restSeconds = windowSeconds - limit / offered;
  const waits = waitsOf(run);
  const isDecided = banSeconds - restSeconds > (QUOTA.banDeviations * Math.sqrt(limit)) / offered;
  return isDecided && sum(waits) / waits.length > (restSeconds + banSeconds) / 2;
}
