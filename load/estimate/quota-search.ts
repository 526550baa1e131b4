/** A quota needs no queue: what it lets through in the long run is the figure. */
import { atOnceOf } from './other-limits.ts';
import { type Figure, type HowToRun, ordered, type Prediction, type SearchSettings } from './figures.ts';
import { createLimiter, LIMITER_KINDS } from './limiter-models.ts';
import { largest, smallest, sum } from './numbers.ts';
import { type Quota, quotaOf } from './quota.ts';
import { judgeStep, type Sample, type Step } from './step.ts';

/** A quota's windows are watched for so long at most, in confirmations. */
const LONGEST_QUOTA = 3;
const ATTEMPTS = 4;
/** As many waits hold two releases: a wait is a window's rest, when its requests are used up. */
const WAITS = 3;
/** A quota lets through no more where twice as much is asked: less than this, unless it allows no burst to speak of. */
const GROWS = 1.04;
/** What lets through so much more refuses a share of whatever is asked. */
const A_SHARE = 1.7;
const DOUBLINGS = 5;

/** Runs at a rate for some seconds, counting answers only. */
type Watch = (rate: number, seconds: number) => Promise<{ step: Step; samples: readonly Sample[] }>;

/**
 * Watches from release to release; rate: more than it lets through; samples: the answers that showed the quota. Nothing
 * where 429 follows from how many requests are under way, or is a share of whatever is asked.
 */
async function searchQuota(
  watch: Watch,
  settings: SearchSettings,
  first: { readonly rate: number; readonly samples: readonly Sample[] },
): Promise<Figure | undefined> {
  const { confirmSeconds, stepSeconds, maxRate } = settings;
  const longest = LONGEST_QUOTA * confirmSeconds;
  let samples = [...first.samples];
  const longEnough = (): number => {
    const wait = samples.reduce((longest, one) => Math.max(longest, one.retryAfterSeconds ?? 0), 0);
    const window = declaredBy(samples)?.windowSeconds ?? 0;
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
      // Asked for less than it lets through.
      rate = Math.min(maxRate, rate * 2);
      continue;
    }
    if (atOnceOf(run.samples) !== undefined) return undefined;
    samples = [...samples, ...run.samples];
    quota = quotaOf(run.samples, seconds);
    if (run.step.limitedRate >= OVERLOADED) overloaded = { samples: run.samples, seconds };
    if (!quota.settled) quota = declared(samples, run.samples, seconds) ?? quota;
    seconds = Math.min(longest, Math.max(longEnough(), seconds * 1.3));
  }
  // What it admits is known from windows, or has to be regular.
  let grew = 1;
  for (let more = 0; more < DOUBLINGS && paced(quota) && rate < maxRate; more += 1) {
    rate = Math.min(maxRate, rate * 2);
    const run = await watch(rate, stepSeconds);
    if (atOnceOf(run.samples) !== undefined) return undefined;
    const again = quotaOf(run.samples, stepSeconds);
    if (run.step.limitedRate >= OVERLOADED) overloaded ??= { samples: run.samples, seconds: stepSeconds };
    if (!again.settled) break;
    grew = again.perSecond / quota.perSecond;
    quota = again;
    if (grew < GROWS) break;
  }
  if (grew > A_SHARE) return undefined;
  if (paced(quota) && overloaded && irregular(overloaded)) return undefined;
  const { perSecond, error, settled } = quota;
  return {
    ...ordered(perSecond, perSecond * (1 - error), perSecond * (1 + error)),
    limitedBy: 'quota',
    basis: 'quota',
    quota,
    confirmed: settled,
    ...(settled
      ? {}
      : {
          unconfirmed: `${quota.releases} of the quota's releases were seen: its window is longer than the run${restWords(declaredBy(samples))}`,
        }),
  };
}

const restWords = (policy: Sample['policy']): string =>
  policy
    ? ` (its headers declare ${policy.limit} requests, given anew after ${policy.windowSeconds} s at least)`
    : '';

/** Lets through evenly, as far as can be seen. */
const paced = (quota: Quota): boolean => quota.settled && quota.windowSeconds === undefined;

/** The window that headers declare; where they tell what is left of it, the longest rest that was seen. */
export function declaredBy(samples: readonly Pick<Sample, 'policy'>[]): Sample['policy'] {
  const policies = samples.flatMap(({ policy }) => policy ?? []);
  return (
    policies.findLast(({ atLeast }) => !atLeast) ??
    policies.reduce<Sample['policy']>(
      (longest, one) => (longest && longest.windowSeconds >= one.windowSeconds ? longest : one),
      undefined,
    )
  );
}

/** What the headers declare, where nothing that was seen contradicts it: waits and counts that are too great. */
function declared(all: readonly Sample[], run: readonly Sample[], seconds: number): Quota | undefined {
  const policy = declaredBy(all);
  if (!policy || policy.atLeast) return undefined;
  const { limit, windowSeconds } = policy;
  const longestWait = all.reduce((longest, one) => Math.max(longest, one.retryAfterSeconds ?? 0), 0);
  const passed = run.filter(({ status }) => status === 200).length;
  if (longestWait > windowSeconds * 1.05 + 1 || passed > limit * (2 + seconds / windowSeconds))
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

/** A quota admits the same again and again; what depends on how long answers take varies as those do. */
const IRREGULAR = 0.3;
const WIDTHS_SECONDS = Array.from({ length: 75 }, (_, index) => 0.4 * 1.05 ** index);
const LEAST_WIDTHS = 6;
const ENOUGH_ADMITTED = 10;
const OVERLOADED = 0.4;

/** Whether the numbers admitted under overload vary, in stretches of any length, about as much as independent events do. */
function irregular({ samples, seconds }: Watched): boolean {
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
 * How many of a run from rest such a quota rejects, at least and at most: of windows neither kind nor phase is known,
 * and of a burst not more than about how many.
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

/** How far above what was predicted, or above an interval, something has to lie to contradict it. */
export const ABOVE = 1.06;
/** Just below a quota, and as far above it as a limiter that counts rejected requests shows. */
const BELOW = 0.95;
const BEYOND = 1.5;
/** The share of requests that may become of otherwise than a quota predicts. */
const UNPREDICTED = 0.04;
/** What a limiter remembers is waited for, at most so long. */
export const LONGEST_PAUSE_SECONDS = 45;

/** A search in which 429 broke a step, and how it goes on. */
interface Underway {
  readonly settings: SearchSettings;
  readonly evidence: readonly Step[];
  /** Of the last step. */
  readonly samples: readonly Sample[];
  readonly left: () => number;
  readonly run: (rate: number, seconds: number, how: HowToRun) => ReturnType<Watch>;
}

interface Confirmed {
  /** Absent where no quota is what stops it first. */
  readonly figure?: Figure;
  readonly prediction?: Prediction;
  readonly atOnce?: number | undefined;
}

/** Asks for about twice of what passed so far; then for a minute just below it, which it has to predict. */
export async function confirmQuota(search: Underway, first: Step): Promise<Confirmed> {
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
  if (!figure) return { atOnce: atOnceOf(samples) };
  if (!figure.confirmed) return { figure };
  // Two windows' requests may pass in one, and as many a second as it says.
  const { perSecond, limit } = figure.quota!;
  const bound = (step: Step): number => (2 * (limit ?? Infinity) + perSecond * step.seconds) * ABOVE;
  const more = evidence.find((step) => step.accepted * step.seconds > bound(step));
  let prediction: Prediction | undefined;
  const unsure = (unconfirmed: string): Confirmed => ({
    figure: { ...figure, confirmed: false, unconfirmed },
    ...(prediction ? { prediction } : {}),
  });
  if (more)
    return unsure(
      `${more.accepted.toFixed(1)}/s were admitted for ${more.seconds.toFixed(0)} s before: rejected requests may count against it`,
    );
  // A minute that is not asked for more than the figure, from rest; then one that is.
  const below = figure.requestsPerSecond * BELOW;
  const settle = Math.min(
    LONGEST_PAUSE_SECONDS,
    largest(
      samples.map((one) => one.retryAfterSeconds ?? 0),
      0,
    ),
  );
  if (left() < confirmSeconds + settle) return unsure('its time was over before a minute was predicted');
  const { step: under } = await run(below, confirmSeconds, { pauseSeconds: settle });
  if (under.void) return unsure(under.void);
  const waits = samples.flatMap(({ retryAfterSeconds }) => retryAfterSeconds ?? []);
  if (figure.quota!.declared && smallest(waits) > confirmSeconds) {
    const asPredicted = samples.filter(({ status }) => status === 429).length;
    const requests = samples.length;
    const what = 'rejected, as Retry-After said and its RateLimit headers declare';
    prediction = { requestsPerSecond: below, seconds: confirmSeconds, what, asPredicted, requests };
    return asPredicted === requests
      ? { figure, prediction }
      : unsure('some were admitted before the wait that it named was over');
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
  // Beyond it, a part has to be rejected: what is banned for a rejection is not, while none was.
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
