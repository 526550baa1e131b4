/** Capacity of a target that a rate limit stops first: the rate admitted in the long run is the figure. */
import { concurrencyLimitOf } from './other-limits.ts';
import { type Figure, type HowToRun, ordered, type Prediction, type SearchSettings } from './figures.ts';
import { createLimiter, LIMITER_KINDS } from './limiter-models.ts';
import { largest, smallest, sum } from './numbers.ts';
import type { RatePolicy } from '../k6/lib/judge.ts';
import { type Quota, quotaOf } from './quota.ts';
import { judgeStep, type Sample, type Step } from './step.ts';

/** Maximum length of a quota run, in multiples of confirmSeconds. */
const LONGEST_RUN = 3;
const ATTEMPTS = 4;
/** Retry-After waits that contain two window resets: a wait is the rest of a window whose limit is used up. */
const WAITS = 3;
/**
 * The admitted rate is final once doubling the offered rate raises it by less than this factor. With almost no burst
 * capacity that takes several doublings.
 */
const MOST_GROWTH = 1.04;
/** If the admitted rate still grows by this factor, 429 rejects a share of the requests at any rate: no quota. */
const UNLIMITED_GROWTH = 1.7;
const DOUBLINGS = 5;

/** Runs a step in which only statuses count, not latencies. */
type Watch = (rate: number, seconds: number) => Promise<{ step: Step; samples: readonly Sample[] }>;

/**
 * Measures a quota. `first.rate`: above its limit; `first.samples`: the answers that revealed it. Returns undefined if
 * 429 depends on the number of requests in flight, or rejects a share of the requests at any rate.
 */
async function searchQuota(
  watch: Watch,
  settings: SearchSettings,
  first: { readonly rate: number; readonly samples: readonly Sample[] },
): Promise<Figure | undefined> {
  const { confirmSeconds, stepSeconds, maxRate } = settings;
  const longest = LONGEST_RUN * confirmSeconds;
  let samples = [...first.samples];
  const longEnough = (): number => {
    const wait = longestWait(samples);
    const window = declaredBy(policiesOf(samples))?.windowSeconds ?? 0;
    const needed = Math.max(
      window <= longest / 2.2 ? 2.2 * window : 0,
      wait > stepSeconds ? WAITS * wait : 0,
    );
    return Math.min(longest, Math.max(confirmSeconds, needed + (needed > 0 ? stepSeconds : 0)));
  };
  let overloaded: Watched | undefined;
  let { rate } = first;
  let seconds = longEnough();
  let quota: Quota = { perSecond: 0, error: 1, settled: false, releases: 0 };
  for (let attempt = 0; attempt < ATTEMPTS && !quota.settled; attempt += 1) {
    const run = await watch(rate, seconds);
    if (run.step.limitedRate === 0) {
      // The offered rate was below the limit.
      rate = Math.min(maxRate, rate * 2);
      continue;
    }
    if (concurrencyLimitOf(run.samples) !== undefined) return undefined;
    samples = [...samples, ...run.samples];
    quota = quotaOf(run.samples, seconds);
    if (run.step.limitedRate >= OVERLOADED) overloaded = { samples: run.samples, seconds };
    if (!quota.settled) quota = declared(samples, run.samples, seconds) ?? quota;
    seconds = Math.min(longest, Math.max(longEnough(), seconds * 1.3));
  }
  // Without visible windows, the admitted rate must stay constant under a higher load, and be regular.
  let grew = 1;
  for (let more = 0; more < DOUBLINGS && isPaced(quota) && rate < maxRate; more += 1) {
    rate = Math.min(maxRate, rate * 2);
    const run = await watch(rate, stepSeconds);
    if (concurrencyLimitOf(run.samples) !== undefined) return undefined;
    const again = quotaOf(run.samples, stepSeconds);
    if (run.step.limitedRate >= OVERLOADED) overloaded ??= { samples: run.samples, seconds: stepSeconds };
    if (!again.settled) break;
    grew = again.perSecond / quota.perSecond;
    quota = again;
    if (grew < MOST_GROWTH) break;
  }
  if (grew > UNLIMITED_GROWTH) return undefined;
  if (isPaced(quota) && overloaded && isIrregular(overloaded)) return undefined;
  const { perSecond, error, settled } = quota;
  const policy = declaredBy(policiesOf(samples));
  return {
    ...ordered(perSecond, perSecond * (1 - error), perSecond * (1 + error)),
    limitedBy: 'quota',
    basis: 'quota',
    quota,
    confirmed: settled,
    ...(settled
      ? {}
      : {
          unconfirmed: `the window is longer than the run (${quota.releases} resets)${policy ? `; RateLimit headers declare ${policy.limit} requests, and a reset after at least ${policy.windowSeconds} s` : ''}`,
        }),
  };
}

/** Admits at an even pace: no window resets were visible. */
const isPaced = (quota: Quota): boolean => quota.settled && quota.windowSeconds === undefined;

/** The policy that RateLimit headers declare; if they only declare the time to the reset, the longest one seen. */
export const declaredBy = (policies: readonly RatePolicy[]): RatePolicy | undefined =>
  policies.findLast(({ atLeast }) => !atLeast) ??
  policies.reduce<RatePolicy | undefined>(
    (longest, one) => (longest && longest.windowSeconds >= one.windowSeconds ? longest : one),
    undefined,
  );

const policiesOf = (samples: readonly Sample[]): RatePolicy[] =>
  samples.flatMap(({ policy }) => policy ?? []);

export const longestWait = (samples: readonly Sample[]): number =>
  largest(
    samples.map((one) => one.retryAfterSeconds ?? 0),
    0,
  );

/** The quota that headers declare; undefined if an observed wait or count is too large for it. */
function declared(all: readonly Sample[], run: readonly Sample[], seconds: number): Quota | undefined {
  const policy = declaredBy(policiesOf(all));
  if (!policy || policy.atLeast) return undefined;
  const { limit, windowSeconds } = policy;
  const passed = run.filter(({ status }) => status === 200).length;
  if (longestWait(all) > windowSeconds * 1.05 + 1 || passed > limit * (2 + seconds / windowSeconds))
    return undefined;
  return {
    perSecond: limit / windowSeconds,
    error: 0.02,
    settled: true,
    releases: 0,
    limit,
    windowSeconds,
    declared: true,
  };
}

/** Variance-to-mean ratio of admitted counts above which 429 depends on response times, not on a quota. */
const IRREGULAR = 0.3;
const WIDTHS_SECONDS = Array.from({ length: 75 }, (_, index) => 0.4 * 1.05 ** index);
const LEAST_WIDTHS = 6;
const ENOUGH_ADMITTED = 10;
const OVERLOADED = 0.4;

/** Whether admitted counts under overload vary, at every interval length, about as much as independent events do. */
function isIrregular({ samples, seconds }: Watched): boolean {
  const from = samples.find(({ status }) => status === 429)?.dueMs ?? Infinity;
  const admitted = samples.flatMap(({ status, dueMs }) => (status !== 429 && dueMs > from ? [dueMs] : []));
  const span = seconds * 1000 - from;
  const spreads = WIDTHS_SECONDS.flatMap((width) => {
    const mean = (admitted.length * width * 1000) / span;
    const steps = Math.floor((span / 1000 / width - 1) * 4);
    if (span < LEAST_WIDTHS * width * 1000 || mean < ENOUGH_ADMITTED) return [];
    const counts = Array.from({ length: steps + 1 }, (_, step) => {
      const start = from + step * width * 250;
      return admitted.filter((dueMs) => dueMs >= start && dueMs < start + width * 1000).length;
    });
    const own = sum(counts) / counts.length;
    return [sum(counts.map((count) => (count - own) ** 2)) / counts.length / own];
  });
  return spreads.length > 0 && smallest(spreads) > IRREGULAR;
}

interface Watched {
  readonly samples: readonly Sample[];
  readonly seconds: number;
}

const PHASES = 12;

/**
 * Bounds of the number of requests that the quota rejects in a run from rest. Simulates every kind and phase of window,
 * and half to twice the measured burst, as these are not known exactly.
 */
function predictedRejections(
  { perSecond, limit, windowSeconds, burst = 1 }: Quota,
  samples: readonly Sample[],
): { readonly least: number; readonly most: number } {
  const sentMs = samples.map((one) => one.dueMs + one.latencyMs - one.serviceMs).sort((a, b) => a - b);
  const windowMs = (windowSeconds ?? 0) * 1000;
  const limiters =
    limit === undefined || windowMs === 0
      ? [burst * 2 + 2, burst, Math.max(1, burst / 2)].flatMap((held) => [
          createLimiter({ kind: 'token-bucket', limit: perSecond, windowMs: 1000, burst: held }),
          createLimiter({
            kind: 'sliding-log',
            limit: Math.round(held),
            windowMs: (held * 1000) / perSecond,
          }),
        ])
      : LIMITER_KINDS.flatMap((kind) =>
          Array.from({ length: PHASES }, (_, phase) =>
            createLimiter({ kind, limit, windowMs, phaseMs: (phase * windowMs) / PHASES }),
          ),
        );
  const rejected = limiters.map(
    (limiter) => sentMs.filter((atMs) => limiter.ask(1e7 * windowMs + atMs) > 0).length,
  );
  return { least: smallest(rejected), most: largest(rejected) };
}

/** A value above a prediction or an interval by this factor contradicts it. */
export const ABOVE = 1.06;
/** Rates of the prediction runs, relative to the quota; BEYOND reveals a limiter that counts rejected requests. */
const BELOW = 0.95;
const BEYOND = 1.5;
/** Share of requests that may deviate from the prediction. */
const UNPREDICTED = 0.04;
/** Longest pause before a step, in which the limiter resets. */
export const LONGEST_PAUSE_SECONDS = 45;

/** A search in which 429 broke a step, and the callbacks to continue it. */
interface SearchInProgress {
  readonly settings: SearchSettings;
  readonly evidence: readonly Step[];
  /** Samples of the last step. */
  readonly samples: readonly Sample[];
  readonly left: () => number;
  readonly run: (rate: number, seconds: number, how: HowToRun) => ReturnType<Watch>;
}

interface Confirmed {
  /** Absent if a quota is not the limiting factor. */
  readonly figure?: Figure;
  readonly prediction?: Prediction;
  readonly atOnce?: number | undefined;
}

/** Measures the quota at about twice the rate admitted so far; it must then predict a run below and one above it. */
export async function confirmQuota(search: SearchInProgress, first: Step): Promise<Confirmed> {
  const { settings, evidence, left } = search;
  const { maxRate, confirmSeconds, slo } = settings;
  let { samples } = search;
  const run = async (rate: number, seconds: number, how: HowToRun): ReturnType<Watch> => {
    const ran = await search.run(rate, seconds, how);
    samples = ran.samples;
    return ran;
  };
  const accepted =
    sum(evidence.map((step) => step.accepted * step.seconds)) / sum(evidence.map(({ seconds }) => seconds));
  const asked = Math.max(2 * accepted, 4);
  const rate = Math.max(asked, Math.min(first.offered, first.accepted * 1.5));
  const figure = await searchQuota(
    (offered, seconds) => run(offered, Math.min(seconds, left()), { countsOnly: true, pauseSeconds: 0 }),
    settings,
    { rate: Math.min(maxRate, rate), samples },
  );
  if (!figure) return { atOnce: concurrencyLimitOf(samples) };
  if (!figure.confirmed) return { figure };
  // Depending on the phase, a step may admit two limits in addition to the long-run rate.
  const { perSecond, limit } = figure.quota!;
  const bound = (step: Step): number => (2 * (limit ?? Infinity) + perSecond * step.seconds) * ABOVE;
  const more = evidence.find((step) => step.accepted * step.seconds > bound(step));
  let prediction: Prediction | undefined;
  const withoutConfirmation = (unconfirmed: string): Confirmed => ({
    figure: { ...figure, confirmed: false, unconfirmed },
    ...(prediction ? { prediction } : {}),
  });
  if (more)
    return withoutConfirmation(
      `an earlier step of ${more.seconds.toFixed(0)} s admitted ${more.accepted.toFixed(1)}/s: rejected requests may count towards the limit`,
    );
  // First below the quota, from rest; then above it.
  const below = figure.requestsPerSecond * BELOW;
  const settle = Math.min(LONGEST_PAUSE_SECONDS, longestWait(samples));
  if (left() < confirmSeconds + settle)
    return withoutConfirmation('the time limit was reached before the prediction run');
  const { step: under } = await run(below, confirmSeconds, { pauseSeconds: settle });
  if (under.void) return withoutConfirmation(under.void);
  const waits = samples.flatMap(({ retryAfterSeconds }) => retryAfterSeconds ?? []);
  if (figure.quota!.declared && smallest(waits) > confirmSeconds) {
    const asPredicted = samples.filter(({ status }) => status === 429).length;
    const requests = samples.length;
    const what = 'rejected, as Retry-After and the RateLimit headers declare';
    prediction = { requestsPerSecond: below, seconds: confirmSeconds, what, asPredicted, requests };
    return asPredicted === requests
      ? { figure, prediction }
      : withoutConfirmation('requests were admitted before Retry-After had passed');
  }
  const admitted = samples.filter(({ status }) => status !== 429);
  if (judgeStep(below, confirmSeconds, admitted, slo).verdict === 'breaks') return {};
  const rejected = samples.length - admitted.length;
  const expected = predictedRejections(figure.quota!, samples);
  const off = Math.round(largest([rejected - expected.most, expected.least - rejected, 0]));
  prediction = {
    requestsPerSecond: below,
    seconds: confirmSeconds,
    what: `${Math.round(expected.least)} to ${Math.round(expected.most)} rejected, the others admitted`,
    asPredicted: samples.length - off,
    requests: samples.length,
  };
  if (off > UNPREDICTED * samples.length) return {};
  const quota = { ...figure.quota!, refusedBelow: rejected / Math.max(1, samples.length) };
  // The run below cannot show a ban that only a rejection triggers; above the quota, some requests must be rejected.
  const { windowSeconds = 0 } = quota;
  const beyondSeconds = Math.max(24 + 2 * settle, Math.min(1.2 * windowSeconds, 80));
  if (left() < beyondSeconds + settle) return { figure: { ...figure, quota }, prediction };
  const { step: over } = await run(figure.requestsPerSecond * BEYOND, beyondSeconds, {
    countsOnly: true,
    pauseSeconds: settle,
  });
  const rejections = over.limitedRate > slo.errorRate || beyondSeconds * over.offered < (limit ?? 0) * 1.1;
  return rejections ? { figure: { ...figure, quota }, prediction } : {};
}
