/**
 * Quotas: the rate that a limiter admits in the long run, measured under overload. A quota is confirmed only if it
 * predicts which share of the requests is rejected just below it and far above it.
 */
import { confirmedUnless, ordered } from './figures.ts';
import type { Figure, Prediction, Quota, RunStep, SearchSettings, secondsOf } from './figures.ts';
import { poissonArrivals } from './random.ts';
import { createLimiter, LIMITER_KINDS, type LimiterSettings } from './limiter-models.ts';
import type { Observation } from './limiter-probe.ts';
import { ascending, bisect, largest, median, smallest, sum } from './numbers.ts';
import { concurrencyLimitOf } from './other-limits.ts';
import { judgeStep, type RatePolicy, type Sample, sentMsOf, type Step } from './step.ts';

export const QUOTA = {
  /** A series of rejections of this share of the longest ends with a reset. */
  long: 0.5,
  /** If every series of rejections is shorter than this share of the run, there are no windows: admission is even. */
  even: 0.06,
  /** Initial share of a run that a burst allowance may distort. */
  burstShare: 0.4,
  /** Share of rejections that shows an overload. */
  overloaded: 0.4,
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
/** Rate of the prediction run below the quota, and the share of requests that may deviate from the prediction. */
const [BELOW, UNPREDICTED] = [0.95, 0.02];
/** Variance-to-mean ratio of admitted counts above which 429 depends on response times: 0.15 and 0.6 decide alike. */
const IRREGULAR = 0.3;
/** Safety limits: fewer intervals, or admitted requests per interval or in all, are chance; attempts to measure. */
const [LEAST_INTERVALS, LEAST_ADMITTED, LEAST_PASSED, ATTEMPTS] = [5, 10, 30, 4];
/** Precision of simulations: phases of windows, and arrivals. */
const [PHASES, ARRIVALS] = [Array.from({ length: 12 }, (_, index) => index / 12), 20_000];
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

const isRejected = ({ status }: Sample): boolean => status === 429;
const decisionsOf = (samples: readonly Sample[]): Decision[] =>
  samples
    .filter(({ status }) => status !== 0)
    .map((one) => ({ atMs: sentMsOf(one), ok: !isRejected(one) }))
    .sort((a, b) => a.atMs - b.atMs);
const quotaOfRun = (run: readonly Sample[], seconds: number): Quota =>
  quotaOf(decisionsOf(run), seconds * 1000);

/** The policy that RateLimit headers declare; if they only declare the time to the reset, the longest one seen. */
export const declaredBy = (policies: readonly RatePolicy[]): RatePolicy | undefined =>
  policies.findLast(({ atLeast }) => !atLeast) ??
  [...policies].sort((a, b) => b.windowSeconds - a.windowSeconds)[0];

export const longestWait = (samples: readonly Sample[]): number =>
  Math.max(0, largest(samples.map(({ retryAfterSeconds = 0 }) => retryAfterSeconds)));

/** The quota that headers declare; undefined if an observed wait or count is too large for it. */
function declaredQuota(policy: RatePolicy | undefined, waitSeconds: number, used: number): Quota | undefined {
  if (!policy || policy.atLeast || used > 1) return undefined;
  if (waitSeconds > policy.windowSeconds * 1.05 + 1) return undefined;
  const { limit, windowSeconds } = policy;
  const perSecond = limit / windowSeconds;
  return { perSecond, error: 0.02, settled: true, releases: 0, limit, windowSeconds, declared: true };
}

const WIDTHS_SECONDS = Array.from({ length: 75 }, (_, index) => 0.4 * 1.05 ** index);

/** Admits at an even pace: no window resets were visible. */
const isPaced = ({ settled, windowSeconds }: Quota): boolean => settled && windowSeconds === undefined;

/** Whether 429 may depend on how long answers take: admitted requests were queued, or their number is irregular. */
const followsLatency = (run: readonly Sample[], seconds: number, idleMs: number): boolean =>
  median(run.flatMap((one) => (isRejected(one) ? [] : [one.latencyMs]))) > QUOTA.queued * idleMs ||
  isIrregular(run, seconds);

/** Whether admitted counts under overload vary, at every interval length, about as much as independent events do. */
function isIrregular(samples: readonly Sample[], seconds: number): boolean {
  const fromMs = samples.find(isRejected)?.dueMs ?? 0;
  const spanMs = seconds * 1000 - fromMs;
  const admitted = samples.filter((one) => !isRejected(one) && one.dueMs > fromMs);
  const ratios = WIDTHS_SECONDS.flatMap((width) => {
    const intervals = spanMs / 1000 / width;
    if (intervals < LEAST_INTERVALS || admitted.length < LEAST_ADMITTED * intervals) return [];
    // Intervals overlap: each consists of four quarters.
    const quarters = Array.from({ length: Math.floor(4 * intervals) }, () => 0);
    for (const { dueMs } of admitted) {
      const quarter = Math.floor((4 * (dueMs - fromMs)) / 1000 / width);
      if (quarter < quarters.length) quarters[quarter]! += 1;
    }
    const counts = quarters.slice(3).map((_, from) => sum(quarters.slice(from, from + 4)));
    const mean = sum(counts) / counts.length;
    return [sum(counts.map((count) => (count - mean) ** 2)) / counts.length / mean];
  });
  return ratios.length > 0 && smallest(ratios) > IRREGULAR;
}

/**
 * The number of requests that the quota rejects in a run from rest: at least and at most. Simulates every kind and phase
 * of window, and half to twice the measured burst, as these are not known exactly.
 */
function predictedRejections(quota: Quota, sentMs: readonly number[]) {
  const { limit, windowSeconds = 0, burst = 1 } = quota;
  const windowMs = windowSeconds * 1000;
  const limiters =
    limit === undefined
      ? [burst * 2 + 2, burst, Math.max(1, burst / 2)].flatMap((held) =>
          [bucketOf, slidingOf].map((of) => of({ ...quota, burst: held })),
        )
      : LIMITER_KINDS.flatMap((kind) =>
          PHASES.map((phase): LimiterSettings => ({ kind, limit, windowMs, phaseMs: phase * windowMs })),
        );
  const rejected = limiters.map((settings) => rejectedBy(settings, sentMs));
  return { least: smallest(rejected), most: largest(rejected) };
}

/** The number of requests at these times that a limiter rejects, which was at rest before. */
function rejectedBy(settings: LimiterSettings, sentMs: readonly number[]): number {
  const limiter = createLimiter(settings);
  return sentMs.filter((atMs) => limiter(1e7 * settings.windowMs + atMs) > 0).length;
}

function bucketOf({ perSecond, burst = 1 }: Quota): LimiterSettings {
  return { kind: 'token-bucket', limit: perSecond, windowMs: 1000, burst };
}

/** No other limiter with the figures of a quota rejects more than a sliding window. */
function slidingOf({ perSecond, limit, windowSeconds, burst = 1 }: Quota): LimiterSettings {
  const held = limit ?? Math.max(1, Math.round(burst));
  return { kind: 'sliding-log', limit: held, windowMs: (windowSeconds ?? held / perSecond) * 1000 };
}

/** The rate below a quota up to which such a limiter rejects at most the SLO's share. */
function rateWithin(settings: LimiterSettings, perSecond: number, share: number): number {
  const keeps = (rate: number): boolean =>
    rejectedBy(settings, poissonArrivals(1, rate, ARRIVALS / rate)) <= share * ARRIVALS;
  return bisect(perSecond, 8, keeps)[0];
}

const COUNTS_ONLY = { countsOnly: true, pauseSeconds: 0 };

/** The quota; or, if a higher rate than the quota is admitted unless requests are rejected, the length of the ban. */
interface Confirmed {
  readonly figure?: Figure;
  readonly prediction?: Prediction | undefined;
  readonly banSeconds?: number | undefined;
}

/** The seconds of the series of rejections; a run that begins with a rejection shows only the rest of the first. */
const waitsOf = (sent: readonly Decision[]): number[] =>
  releasesOf(sent)
    .slice(sent[0]?.ok === false ? 1 : 0)
    .map(({ waitedMs }) => waitedMs / 1000);

/** The length of the bans in an overload run; undefined unless there were several of the same length. */
function banOf(sent: readonly Decision[]): number | undefined {
  const waits = waitsOf(sent);
  const longest = largest(waits, 0);
  return waits.length > 1 && smallest(waits) > (1 - SAME_BAN) * longest ? longest : undefined;
}

/** Whether the waits of a run are bans: at a lower rate, a window is used up later, so that its rest is shorter. */
function areBans(banSeconds: number, quota: Quota, offered: number, run: readonly Sample[]): boolean {
  const { limit = NaN, windowSeconds = NaN } = quota;
  const restSeconds = windowSeconds - limit / offered;
  const waits = waitsOf(decisionsOf(run));
  const isDecided = banSeconds - restSeconds > (QUOTA.banDeviations * Math.sqrt(limit)) / offered;
  return isDecided && sum(waits) / waits.length > (restSeconds + banSeconds) / 2;
}

/**
 * Measures the quota that rejected requests of a step, at about twice the rate admitted so far, and lets it predict a run
 * below and one above it. Returns undefined if 429 does not follow a quota.
 */
export async function confirmQuota(
  { confirmSeconds, stepSeconds, maxRate, slo }: SearchSettings & ReturnType<typeof secondsOf>,
  offer: RunStep,
  left: () => number,
  first: Step,
  samples: readonly Sample[],
  quiet: { readonly acceptedPerSecond: number; readonly idleMs: number },
): Promise<Confirmed | undefined> {
  const { acceptedPerSecond, idleMs } = quiet;
  const longest = QUOTA.longestRun * confirmSeconds;
  let seen = [...samples];
  const policy = (): RatePolicy | undefined => declaredBy(seen.flatMap((one) => one.policy ?? []));
  const secondsNeeded = (): number => {
    const wait = longestWait(seen);
    const window = policy()?.windowSeconds ?? 0;
    const declared = window <= longest / 2.2 ? 2.2 * window : 0;
    const needed = Math.max(declared, wait > stepSeconds ? QUOTA.waits * wait : 0);
    return Math.min(longest, Math.max(confirmSeconds, needed && needed + stepSeconds));
  };
  const lowest = Math.max(4, 2 * acceptedPerSecond, Math.min(first.offered, first.accepted * 1.5));
  let rate = Math.min(maxRate, lowest);
  let seconds = secondsNeeded();
  let rejectedShare = 0;
  let banSeconds: number | undefined;
  let quota: Quota = { perSecond: 0, error: 1, settled: false, releases: 0 };
  for (let attempt = 0; attempt < ATTEMPTS && !quota.settled; attempt += 1) {
    const { samples: run } = await offer(rate, Math.min(seconds, left()), COUNTS_ONLY);
    if (concurrencyLimitOf(run) !== undefined) return undefined;
    if (!run.some(isRejected)) {
      rate = Math.min(maxRate, rate * 2);
      continue;
    }
    seen = [...seen, ...run];
    quota = quotaOfRun(run, seconds);
    banSeconds = banOf(decisionsOf(run));
    rejectedShare = run.filter(isRejected).length / run.length;
    if (isPaced(quota) && rejectedShare >= QUOTA.overloaded && followsLatency(run, seconds, idleMs))
      return undefined;
    if (!quota.settled) {
      const { limit = 1, windowSeconds = 1 } = policy() ?? {};
      const perLimit = run.filter((one) => !isRejected(one)).length / limit / (2 + seconds / windowSeconds);
      quota = declaredQuota(policy(), longestWait(seen), perLimit) ?? quota;
    }
    seconds = Math.min(longest, Math.max(secondsNeeded(), seconds * 1.3));
  }
  // Without visible windows, the admitted rate must stay constant under a higher load.
  let grew = isPaced(quota) ? Infinity : 1;
  for (let more = 0; more < QUOTA.raises && grew > QUOTA.mostGrowth && rate < maxRate; more += 1) {
    rate = Math.min(maxRate, rate * QUOTA.raise);
    const lasts = confirmSeconds / 2;
    const { samples: run } = await offer(rate, lasts, COUNTS_ONLY);
    if (rejectedShare < QUOTA.overloaded && followsLatency(run, lasts, idleMs)) return undefined;
    const again = quotaOfRun(run, lasts);
    if (!again.settled) break;
    grew = again.perSecond / quota.perSecond;
    quota = again;
  }
  if (grew > QUOTA.mostGrowth && grew < Infinity) return undefined;

  const { perSecond, error, settled, windowSeconds = 0 } = quota;
  if (settled) quota = { ...quota, withinSlo: rateWithin(slidingOf(quota), perSecond, slo.errorRate) };
  const figureOf = (unconfirmed?: string): Figure => ({
    // Without an admitted request, nothing bounds the quota.
    ...ordered(perSecond, perSecond * (1 - error), perSecond * (1 + error) || Infinity),
    ...{ limitedBy: 'quota', basis: 'quota', quota },
    ...confirmedUnless(unconfirmed),
  });
  if (!settled) {
    const { limit: declared, windowSeconds: atLeast } = policy() ?? {};
    const headers = `; RateLimit headers declare ${declared} requests, and a reset after at least ${atLeast} s`;
    const why = seen.every(isRejected)
      ? 'every request was rejected with 429: repeat it once the limit has reset'
      : `the window is longer than the run (${quota.releases} resets)${quota.releases === 0 ? ', or rejected requests count too' : ''}`;
    return { figure: figureOf(`${why}${declared === undefined ? '' : headers}`) };
  }
  const pauseSeconds = Math.min(QUOTA.longestPauseSeconds, longestWait(seen));
  const resetSeconds = seen.findLast((one) => one.retryAfterSeconds)?.retryAfterSeconds ?? 0;
  let prediction: Prediction | undefined;
  // Long enough for a rejection in every window. Reveals bans, and limiters that count rejected requests.
  const beyondSeconds = Math.max(24 + 2 * pauseSeconds, Math.min(1.2 * windowSeconds, 80));
  const runs = [
    [QUOTA.beyond, beyondSeconds],
    [BELOW, confirmSeconds],
  ] as const;
  // It also shows that a quota was raised, so it comes last if the time suffices for both.
  const bothSeconds = beyondSeconds + confirmSeconds + 2 * pauseSeconds;
  for (const [share, lasts] of left() > bothSeconds + windowSeconds ? runs.toReversed() : runs) {
    const offered = share * perSecond;
    const open = prediction ? undefined : 'the time limit was reached before the prediction run';
    if (left() < lasts + pauseSeconds) return { figure: figureOf(open), prediction };
    const how = { pauseSeconds, countsOnly: share > 1 };
    const { samples: run, void: why } = await offer(offered, lasts, how);
    if (why) return { figure: figureOf(why) };
    const rejected = run.filter(isRejected);
    const predicted = { requestsPerSecond: offered, seconds: Math.round(lasts), requests: run.length };
    if (quota.declared && resetSeconds > pauseSeconds + confirmSeconds) {
      const what = 'rejected, as Retry-After and the RateLimit headers declare';
      prediction = { ...predicted, what, asPredicted: rejected.length };
      const early = 'requests were admitted before Retry-After had passed';
      return { figure: figureOf(rejected.length < run.length ? early : undefined), prediction };
    }
    // Late answers: the target is slower than its quota.
    const admitted = run.filter((one) => !isRejected(one));
    if (share === BELOW && judgeStep(offered, lasts, admitted, slo).verdict === 'breaks') return undefined;
    if (share > 1 && banSeconds !== undefined && areBans(banSeconds, quota, offered, run))
      return { banSeconds };
    const sentMs = ascending(run.map(sentMsOf));
    // A token bucket rejects less at random times than a sliding window: which one it is, shows below the quota.
    if (
      share === BELOW &&
      quota.limit === undefined &&
      rejected.length <= rejectedBy(bucketOf(quota), sentMs)
    )
      quota = { ...quota, withinSlo: rateWithin(bucketOf(quota), perSecond, slo.errorRate) };
    let { least, most } = predictedRejections(quota, sentMs);
    if (share > 1) {
      // Something is rejected; how much, is known only with windows. At least the quota is admitted, also not from rest.
      const some = offered * lasts > 1.1 * (quota.limit ?? 0) ? 1 : 0;
      least = quota.limit === undefined ? some : Math.max(some, least);
      most = Math.max(most, run.length - perSecond * lasts + (quota.limit ?? 0));
    }
    const off = Math.max(0, rejected.length - most, least - rejected.length);
    if (off > UNPREDICTED * run.length || (least > 0 && rejected.length === 0)) {
      if (rejected.length >= least) return undefined;
      // The load that was measured is rejected as before, unless the limit has changed.
      const { samples: again } = await offer(rate, windowSeconds || confirmSeconds / 5, COUNTS_ONLY);
      const isSame = again.filter(isRejected).length >= (rejectedShare / 2) * again.length;
      return isSame ? { banSeconds } : { figure: figureOf('the rate limit was raised during the search') };
    }
    const what = `${least} to ${most} rejected, the others admitted`;
    prediction ??= { ...predicted, what, asPredicted: run.length - off };
  }
  return { figure: figureOf(), prediction };
}
