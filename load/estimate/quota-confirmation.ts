/**
 * Confirms a quota: an overload measures it, and it must predict how many requests are rejected just below it and far
 * above it.
 */
import { confirmedUnless, ordered } from './figures.ts';
import type { Figure, Prediction, Quota, RunStep, SearchSettings, secondsOf } from './figures.ts';
import { createLimiter, LIMITER_KINDS, type LimiterSettings } from './limiter-models.ts';
import { ascending, bisect, largest, smallest } from './numbers.ts';
import { concurrencyLimitOf } from './other-limits.ts';
import { areBans, banOf, declaredBy, declaredQuota, followsLatency } from './quota.ts';
import { countsRejected, isPaced, isRejected, longestWait, QUOTA, quotaOfRun } from './quota.ts';
import { poissonArrivals } from './random.ts';
import { judgeStep, type RatePolicy, type Sample, sentMsOf, type Step } from './step.ts';

/** Rate of the prediction run below the quota, and the share of requests that may deviate from a prediction. */
const [BELOW, UNPREDICTED] = [0.95, 0.02];
/** A safety limit: attempts to measure. */
const ATTEMPTS = 4;
/** Precision of simulations: phases of windows, and arrivals. */
const [PHASES, ARRIVALS] = [Array.from({ length: 12 }, (_, index) => index / 12), 20_000];

const COUNTS_ONLY = { countsOnly: true, pauseSeconds: 0 };

/** The figure of a quota, or the length of the ban that a rejection starts; neither if 429 follows no quota. */
interface Confirmed {
  readonly figure?: Figure;
  readonly prediction?: Prediction | undefined;
  readonly banSeconds?: number | undefined;
}
const NO_QUOTA: Confirmed = {};

/** The samples of a run, or what ends the confirmation instead. */
interface PredictionRun extends Pick<Prediction, 'requestsPerSecond' | 'seconds'> {
  readonly samples: readonly Sample[];
  readonly ended?: Confirmed;
}

type Settings = SearchSettings & ReturnType<typeof secondsOf>;

/** For the quota that rejected requests of a step. Each phase returns what it decides, or undefined: the next one decides. */
export class QuotaConfirmation {
  #seen: readonly Sample[];
  /** Of the overload: requests per second, the share of them that is rejected, and the length of bans. */
  #rate: number;
  #rejectedShare = 0;
  #banSeconds: number | undefined;
  #quota: Quota = { perSecond: 0, error: 1, settled: false, releases: 0 };
  /** Whether requests at random times are rejected as rarely as a token bucket rejects them. */
  #isBucket = false;
  #prediction: Prediction | undefined;

  /** `quiet`: requests that were admitted so far, also per second, and the latency of the first step. */
  constructor(
    private readonly settings: Settings,
    private readonly offer: RunStep,
    private readonly left: () => number,
    first: Step,
    samples: readonly Sample[],
    private readonly quiet: Readonly<Record<'accepted' | 'acceptedPerSecond' | 'idleMs', number>>,
  ) {
    const lowest = Math.max(4, 2 * quiet.acceptedPerSecond, Math.min(first.offered, first.accepted * 1.5));
    this.#rate = Math.min(settings.maxRate, lowest);
    this.#seen = samples;
  }

  async confirm(): Promise<Confirmed> {
    return (
      (await this.#overload()) ??
      (await this.#raise()) ??
      this.#leaveOpen() ??
      (await this.#predictAllRejected()) ??
      (await this.#predictBelowAndBeyond())
    );
  }

  /** Offers about twice the rate admitted so far, until a run is long enough to show the quota. */
  async #overload(): Promise<Confirmed | undefined> {
    let seconds = this.#secondsNeeded();
    let { accepted } = this.quiet;
    for (let attempt = 0; attempt < ATTEMPTS && !this.#quota.settled; attempt += 1) {
      const lasts = Math.min(seconds, this.left());
      const { samples: run } = await this.offer(this.#rate, lasts, COUNTS_ONLY);
      if (concurrencyLimitOf(run) !== undefined) return NO_QUOTA;
      const rejected = run.filter(isRejected).length;
      if (rejected === 0) {
        this.#rate = Math.min(this.settings.maxRate, this.#rate * 2);
        continue;
      }
      this.#seen = [...this.#seen, ...run];
      accepted += run.length - rejected;
      if (countsRejected(run, lasts)) return NO_QUOTA;
      this.#rejectedShare = rejected / run.length;
      this.#banSeconds = banOf(run);
      this.#quota = quotaOfRun(run, lasts);
      if (followsLatency(run, this.#quota, this.quiet.idleMs)) return NO_QUOTA;
      if (!this.#quota.settled) {
        const wait = longestWait(this.#seen);
        const admitted = { inRun: run.length - rejected, inAll: accepted };
        this.#quota = declaredQuota(this.#policy(), wait, admitted, lasts) ?? this.#quota;
      }
      seconds = Math.min(this.#longestSeconds(), Math.max(this.#secondsNeeded(), seconds * 1.3));
    }
    return undefined;
  }

  #policy = (): RatePolicy | undefined => declaredBy(this.#seen.flatMap((one) => one.policy ?? []));
  #longestSeconds = (): number => QUOTA.longestRun * this.settings.confirmSeconds;

  /** Until a run contains two resets, as far as waits and headers tell. */
  #secondsNeeded(): number {
    const { confirmSeconds, stepSeconds } = this.settings;
    const longest = this.#longestSeconds();
    const wait = longestWait(this.#seen);
    const window = this.#policy()?.windowSeconds ?? 0;
    const declared = window <= longest / 2.2 ? 2.2 * window : 0;
    const needed = Math.max(declared, wait > stepSeconds ? QUOTA.waits * wait : 0);
    return Math.min(longest, Math.max(confirmSeconds, needed && needed + stepSeconds));
  }

  /** Without visible windows, the admitted rate must stay constant under a higher load. */
  async #raise(): Promise<Confirmed | undefined> {
    const { maxRate, confirmSeconds } = this.settings;
    const lasts = confirmSeconds / 2;
    let grew = isPaced(this.#quota) ? Infinity : 1;
    for (let more = 0; more < QUOTA.raises && grew > QUOTA.mostGrowth && this.#rate < maxRate; more += 1) {
      this.#rate = Math.min(maxRate, this.#rate * QUOTA.raise);
      const { samples: run } = await this.offer(this.#rate, lasts, COUNTS_ONLY);
      if (countsRejected(run, lasts)) return NO_QUOTA;
      const again = quotaOfRun(run, lasts);
      if (followsLatency(run, again, this.quiet.idleMs)) return NO_QUOTA;
      if (!again.settled) break;
      grew = again.perSecond / this.#quota.perSecond;
      // A share of the requests is rejected at any rate, or rejected requests count too.
      if (grew > QUOTA.raise / QUOTA.mostGrowth || grew < 1 / QUOTA.mostGrowth) return NO_QUOTA;
      this.#quota = again;
    }
    return grew > QUOTA.mostGrowth && grew < Infinity ? NO_QUOTA : undefined;
  }

  /** A quota that no run was long enough to show is not confirmed. */
  #leaveOpen(): Confirmed | undefined {
    const { settled, releases } = this.#quota;
    if (settled) return undefined;
    const policy = this.#policy();
    const why = this.#seen.every(isRejected)
      ? 'every request was rejected with 429: repeat it once the limit has reset'
      : `the window is longer than the run (${releases} resets)${releases === 0 ? ', or rejected requests count too' : ''}`;
    const headers = `; RateLimit headers declare ${policy?.limit} requests, and a reset after at least ${policy?.windowSeconds} s`;
    return this.#found(`${why}${policy ? headers : ''}`);
  }

  /** A quota that headers declare, and that resets after the prediction runs, admits nothing more. */
  async #predictAllRejected(): Promise<Confirmed | undefined> {
    const resetSeconds = this.#seen.findLast((one) => one.retryAfterSeconds)?.retryAfterSeconds ?? 0;
    if (!this.#quota.declared || resetSeconds <= this.#pauseSeconds() + this.settings.confirmSeconds)
      return undefined;
    const run = await this.#runAt(QUOTA.beyond, this.#beyondSeconds());
    if (run.ended) return run.ended;
    const rejected = run.samples.filter(isRejected).length;
    this.#predict(run, 'rejected, as Retry-After and the RateLimit headers declare', rejected);
    const isReset = rejected < run.samples.length;
    return this.#found(isReset && 'requests were admitted before Retry-After had passed');
  }

  async #predictBelowAndBeyond(): Promise<Confirmed> {
    const { windowSeconds = 0 } = this.#quota;
    const runs = [() => this.#predictBeyond(), () => this.#predictBelow()];
    // The run beyond also shows that a quota was raised, so it comes last if the time suffices for both.
    const seconds = this.#beyondSeconds() + this.settings.confirmSeconds + 2 * this.#pauseSeconds();
    for (const predict of this.left() > seconds + windowSeconds ? runs.toReversed() : runs) {
      const ended = await predict();
      if (ended) return ended;
    }
    return this.#found();
  }

  async #predictBelow(): Promise<Confirmed | undefined> {
    const { slo, confirmSeconds } = this.settings;
    const run = await this.#runAt(BELOW, confirmSeconds);
    if (run.ended) return run.ended;
    const admitted = run.samples.filter((one) => !isRejected(one));
    // Late answers: the target is slower than its quota.
    if (judgeStep(run.requestsPerSecond, confirmSeconds, admitted, slo).verdict === 'breaks') return NO_QUOTA;
    const sentMs = sentAt(run);
    const rejected = run.samples.length - admitted.length;
    this.#isBucket = this.#quota.limit === undefined && rejected <= rejectedBy(bucketOf(this.#quota), sentMs);
    return this.#compare(run, predictedRejections(this.#quota, sentMs));
  }

  /** Reveals bans, and limiters that count rejected requests. */
  async #predictBeyond(): Promise<Confirmed | undefined> {
    const { perSecond, limit } = this.#quota;
    const run = await this.#runAt(QUOTA.beyond, this.#beyondSeconds());
    if (run.ended) return run.ended;
    const { samples, requestsPerSecond } = run;
    const banSeconds = this.#banSeconds;
    if (banSeconds !== undefined && areBans(banSeconds, this.#quota, requestsPerSecond, samples))
      return { banSeconds };
    const lasts = this.#beyondSeconds();
    const { least, most } = predictedRejections(this.#quota, sentAt(run));
    // Something is rejected; how much, is known only with windows. At least the quota is admitted, also not from rest.
    const some = requestsPerSecond * lasts > 1.1 * (limit ?? 0) ? 1 : 0;
    return this.#compare(run, {
      least: limit === undefined ? some : Math.max(some, least),
      most: Math.max(most, Math.ceil(samples.length - perSecond * lasts + (limit ?? 0))),
    });
  }

  /** A pause in which the limiter resets. */
  #pauseSeconds = (): number => Math.min(QUOTA.longestPauseSeconds, longestWait(this.#seen));
  /** Long enough for a rejection in every window. */
  #beyondSeconds = (): number =>
    Math.max(24 + 2 * this.#pauseSeconds(), Math.min(1.2 * (this.#quota.windowSeconds ?? 0), 80));

  /** A run from rest, at a share of the quota. */
  async #runAt(share: number, lasts: number): Promise<PredictionRun> {
    const requestsPerSecond = share * this.#quota.perSecond;
    const of = { requestsPerSecond, seconds: Math.round(lasts), samples: [] };
    const pauseSeconds = this.#pauseSeconds();
    const isLate = !this.#prediction && 'the time limit was reached before the prediction run';
    if (this.left() < lasts + pauseSeconds) return { ...of, ended: this.#found(isLate) };
    const how = { pauseSeconds, countsOnly: share > 1 };
    const { samples, void: why } = await this.offer(requestsPerSecond, lasts, how);
    return why ? { ...of, ended: this.#found(why) } : { ...of, samples };
  }

  async #compare(
    run: PredictionRun,
    { least, most }: ReturnType<typeof predictedRejections>,
  ): Promise<Confirmed | undefined> {
    const requests = run.samples.length;
    const rejected = run.samples.filter(isRejected).length;
    const off = Math.max(0, rejected - most, least - rejected);
    // Rejections before the first admission are those of an earlier window or ban.
    const first = run.samples.findIndex((one) => !isRejected(one));
    const isNew = run.samples.slice(first).some(isRejected);
    if (off > UNPREDICTED * requests || (least > 0 && !isNew))
      return isNew && rejected >= least ? NO_QUOTA : this.#overloadAgain();
    this.#predict(run, `${least} to ${most} rejected, the others admitted`, requests - off);
    return undefined;
  }

  /** Of several prediction runs, the first is reported. */
  #predict({ samples, requestsPerSecond, seconds }: PredictionRun, what: string, asPredicted: number): void {
    this.#prediction ??= { requestsPerSecond, seconds, requests: samples.length, what, asPredicted };
  }

  /** Fewer requests were rejected than predicted: the measured load is rejected as before, unless the limit has changed. */
  async #overloadAgain(): Promise<Confirmed> {
    const { windowSeconds = this.settings.confirmSeconds / 5 } = this.#quota;
    const { samples } = await this.offer(this.#rate, windowSeconds, COUNTS_ONLY);
    const isSame = samples.filter(isRejected).length >= (this.#rejectedShare / 2) * samples.length;
    return isSame
      ? { banSeconds: this.#banSeconds }
      : this.#found('the rate limit was raised during the search');
  }

  #found(unconfirmed: string | false = false): Confirmed {
    const quota = this.#quota;
    const { perSecond, error, settled } = quota;
    const limiter = (this.#isBucket ? bucketOf : slidingOf)(quota);
    const share = this.settings.slo.errorRate;
    const figure: Figure = {
      // Without an admitted request, nothing bounds the quota.
      ...ordered(perSecond, perSecond * (1 - error), perSecond * (1 + error) || Infinity),
      ...{ limitedBy: 'quota', basis: 'quota' },
      quota: settled ? { ...quota, withinSlo: rateWithin(limiter, perSecond, share) } : quota,
      ...confirmedUnless(unconfirmed),
    };
    return { figure, prediction: this.#prediction };
  }
}

const sentAt = ({ samples }: PredictionRun): number[] => ascending(samples.map(sentMsOf));

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
