/**
 * The capacity search: runs independent steps of Poisson arrivals, chooses each rate from the verdicts so far, and
 * confirms the figure with a longer run. Independent of k6: a step is a function, so that tests can simulate targets.
 */
import { atOneRate, confirmedUnless, Evidence, FIGURES, ordered, secondsOf } from './figures.ts';
import type { Figure, Found, HowToRun, Prediction, RunStep, SearchSettings } from './figures.ts';
import { sum } from './numbers.ts';
import { concurrencyLimitOf } from './other-limits.ts';
import { longestWait, QUOTA } from './quota.ts';
import { QuotaConfirmation } from './quota-confirmation.ts';
import { judgeStep, pacesOf, STEP } from './step.ts';
import type { Pace, Sample, Step, Verdict } from './step.ts';

export const SEARCH = {
  /** The overload, relative to the saturation. */
  overload: 1.5,
  /** Ratio of high to low at which the bracket is narrow enough, and by which a rate is raised at least. */
  narrow: 1.06,
  /** Requests in a doubling step that suffice to show a growing queue. */
  leastDoubling: 60,
  /** A queue typically meets a p99 up to this share of its saturation rate; the bisection starts there. */
  ofSaturation: 0.95,
  /** Factor on STEP.leastSamples, as the warm-up does not count. */
  enough: 1.4,
  /** A queue that is served at less than this share of a rate that held shows that the target is slower at times. */
  slowed: 0.88,
};
/** Seconds until a step at this rate has enough samples. */
const secondsAt = (rate: number): number => (STEP.leastSamples * SEARCH.enough) / rate;
/** A safety limit: at very low rates a step would take minutes. */
const LONGEST_DOUBLING_SECONDS = 40;

/** Ends the search: the time is over, or a quota is the limiting factor. */
class Ended extends Error {
  constructor(readonly figure: Figure) {
    super();
  }
}

export class Search {
  readonly #steps: Step[] = [];
  #samples: readonly Sample[] = [];
  readonly #paces: Pace[] = [];
  /** The target got faster before this step: earlier ones that broke the SLO do not count. */
  #fasterSince = 0;
  /** 429 is treated as an error: this target has no quota. */
  #noQuota = false;
  #concurrencyLimit: number | undefined;
  #banSeconds: number | undefined;
  /** From confirmation runs: the highest rate that held, and the lowest that did not. */
  #held = 0;
  /** The number of paces before the run of that rate. */
  #pacesBefore = 0;
  #top = Infinity;
  #predicted: Prediction | undefined;
  #seconds = 0;

  readonly #settings;
  readonly #timeLimit: string;

  constructor(
    private readonly runStep: RunStep,
    settings: SearchSettings,
  ) {
    this.#settings = { ...settings, ...secondsOf(settings) };
    this.#timeLimit = `the time limit of ${Math.round(this.#settings.maxSeconds)} s`;
  }

  /** Finds the capacity of runStep's target, within settings.maxSeconds. */
  async find(): Promise<Found> {
    try {
      return this.#found(await this.#search());
    } catch (error) {
      if (!(error instanceof Ended)) throw error;
      return this.#found(error.figure);
    }
  }

  /** Whether the SLO holds at one rate: yes (the rate), no (0), or undecided (not confirmed). */
  async check(rate: number): Promise<Found> {
    this.#noQuota = true;
    const step = await this.#run(rate, this.#settings.checkSeconds);
    this.#predict(step);
    const isOpen = step.verdict === 'holds' && !this.#evidence().excludesErrors();
    return this.#found(atOneRate(isOpen ? { ...step, verdict: 'undecided' } : step));
  }

  #evidence(): Evidence {
    const counts = this.#steps.filter(({ verdict }, at) => at >= this.#fasterSince || verdict !== 'breaks');
    return new Evidence(counts, this.#settings.slo);
  }
  #left = (): number => this.#settings.maxSeconds - this.#seconds;
  #heldFigure(): Figure {
    const figure = this.#evidence().atHeldRate(this.#held);
    const slow = this.#slowAtTimes(this.#held);
    if (!slow || !figure.confirmed) return figure;
    const why = `at times the target answered only ${slow.perSecond.toFixed(1)}/s`;
    return { ...figure, ...confirmedUnless(why) };
  }
  /**
   * A pace below a rate that held, if a pace before it was faster although as many requests waited, and one after it
   * too, or the rate held after it.
   */
  #slowAtTimes(rate: number): Pace | undefined {
    const isFast = (slow: Pace, some: readonly Pace[]): boolean =>
      some.some(({ perSecond, queue }) => perSecond >= rate && queue >= slow.queue);
    return this.#paces.find(
      (one, at) =>
        one.perSecond < SEARCH.slowed * rate &&
        isFast(one, this.#paces.slice(0, at)) &&
        (at < this.#pacesBefore || isFast(one, this.#paces.slice(at))),
    );
  }
  /** From all steps. Confirmation runs take precedence: short steps end before a queue near its limit settles. */
  #bracket() {
    const { low, high } = this.#evidence().bracket();
    return { low, high: Math.min(high, this.#top) };
  }

  async #search(): Promise<Figure> {
    const { slo, startRate, maxRate, stepSeconds } = this.#settings;
    let rate = startRate;
    for (let isSeenAbove = false; ;) {
      if (this.#bracket().high === Infinity) {
        isSeenAbove = await this.#double(rate);
        if (this.#banSeconds !== undefined) return this.#besideBan();
        if (!isSeenAbove && this.#bracket().low === 0 && !(await this.#holdsLow())) {
          // A target that only started slowly, or that fails at higher rates only, holds its lowest rate now.
          if (!(await this.#confirm(Math.min(startRate, maxRate)))) return this.#evidence().atNoRate();
          if (this.#bracket().high <= startRate) {
            this.#fasterSince = this.#steps.length - 1;
            rate = startRate * 2;
            continue;
          }
        }
        rate = isSeenAbove ? maxRate : await this.#narrow();
      }
      if (!(await this.#confirm(rate))) {
        const { failures, late, limitedRate } = this.#steps.at(-1)!;
        const below = this.#evidence().where(({ offered }) => offered < 0.9 * rate);
        // Errors at lower rates too may be independent of the rate.
        if (failures * 2 > late && limitedRate <= slo.errorRate && below.failures() > 0)
          return (await this.#confirm(rate / 4)) ? this.#heldFigure() : this.#evidence().atNoRate();
        isSeenAbove &&= rate < maxRate;
      } else if (rate >= maxRate) {
        const limitedBy = 'none-found';
        return { ...ordered(rate, rate, Infinity), limitedBy, basis: 'highest-tried', confirmed: true };
      } else if (!isSeenAbove || !this.#next()) {
        // The target may have become faster: looks above the first rate that held, and above the last.
        const above = Math.min(maxRate, this.#limit() * SEARCH.narrow ** 2);
        const seconds = Math.max(stepSeconds, secondsAt(above));
        const why = `${this.#timeLimit} was reached before a slightly higher rate was tried`;
        if (this.#left() >= seconds) await this.#lookAbove(above, seconds);
        else return { ...this.#heldFigure(), ...(isSeenAbove ? {} : confirmedUnless(why)) };
        isSeenAbove = true;
      }
      if (this.#bracket().high === Infinity) rate = 2 * this.#steps.at(-1)!.offered;
      else if (this.#held === 0) rate = await this.#narrow();
      else {
        const next = this.#next();
        if (!next) return this.#heldFigure();
        rate = next;
      }
    }
  }

  /** The lowest rate that broke, or the throughput of a growing queue. */
  #limit = (): number => Math.min(this.#bracket().high, this.#evidence().saturation() ?? Infinity);
  /** The rate between the highest that held and the limit; undefined if they are close, or time is short. */
  #next(): number | undefined {
    const rate = this.#held + (this.#limit() - this.#held) * 0.6;
    const isEnough = rate < this.#held * SEARCH.narrow || this.#left() < this.#settings.confirmSeconds;
    return isEnough ? undefined : rate;
  }

  /** Every rate beyond a limit that bans costs a ban: the figure is the rate that surely held, with a wide interval. */
  async #besideBan(): Promise<Figure> {
    const admitted = (): Step => this.#steps.findLast(({ limitedRate }) => limitedRate === 0)!;
    const { offered } = admitted();
    // Longer, as a burst allowance may have admitted the first run.
    const seconds = Math.min(this.#settings.confirmSeconds, this.#left());
    const { limitedRate } = await this.#run(offered, seconds, { pauseSeconds: 0 });
    const holds = limitedRate === 0 && this.#evidence().between(offered) === 'holds';
    this.#predict(admitted());
    return {
      ...ordered(offered, offered * FIGURES.unsettled, this.#bracket().high),
      ...{ limitedBy: 'quota', basis: 'bisection' },
      ...confirmedUnless(!holds && `${offered.toFixed(1)}/s did not hold for long enough`),
    };
  }

  /** Runs a step; the verdict pools all steps at its rate. Throws Ended. */
  async #run(offered: number, seconds: number, how: HowToRun = {}): Promise<Step & { verdict: Verdict }> {
    if (!Number.isFinite(offered) || offered <= 0) throw new RangeError(`no rate to run at: ${offered}`);
    // The previous step must not influence this one through a limiter or a ban.
    const wait = longestWait(this.#samples);
    const pauseSeconds = how.pauseSeconds ?? (this.#noQuota && wait <= QUOTA.longestPauseSeconds ? wait : 0);
    if (seconds + pauseSeconds > this.#left())
      throw new Ended(
        this.#held > 0 ? this.#heldFigure() : this.#evidence().openEnded(`${this.#timeLimit} was reached`),
      );
    const run = await this.runStep(offered, seconds, { ...how, pauseSeconds });
    const judged = judgeStep(offered, seconds, run.samples, this.#settings.slo);
    this.#seconds += seconds + pauseSeconds;
    this.#samples = run.samples;
    // An overloaded generator only adds latency, so a step that holds counts in spite of it.
    const step = judged.verdict === 'holds' ? judged : { ...judged, void: run.void };
    this.#steps.push(step);
    if (!step.void) this.#paces.push(...pacesOf(run.samples, offered, this.#steps[0]!.p50Ms));
    this.#settings.tell?.(`${Math.round(this.#seconds)} of at most ${this.#settings.maxSeconds} s of load`);
    if (step.void) return { ...step, verdict: 'undecided' };
    const pool = this.#evidence().between(offered);
    const verdict = pool === 'holds' && judged.growing ? 'undecided' : pool;
    const isLimited = step.limitedRate > this.#settings.slo.errorRate && verdict !== 'holds';
    if (isLimited && !this.#noQuota) await this.#quotaIn(step);
    return { ...judged, verdict };
  }

  /**
   * Runs a step at a rate that should break, and again if it does not: a rate beyond the limit may hold once by chance.
   * If it holds, judged by these runs alone, the target got faster.
   */
  async #lookAbove(offered: number, seconds: number): Promise<void> {
    const limit = this.#limit();
    const from = this.#steps.length;
    const runs = (): readonly Step[] => this.#steps.slice(from);
    const verdict = (): Verdict => new Evidence(runs(), this.#settings.slo).verdict();
    await this.#run(offered, seconds);
    if (verdict() !== 'breaks' && this.#left() >= seconds) await this.#run(offered, seconds);
    if (verdict() !== 'holds' || runs().every(({ growing }) => growing) || offered <= limit) return;
    this.#fasterSince = this.#steps.length - 1;
    [this.#held, this.#top, this.#predicted] = [0, Infinity, undefined];
  }

  /** Doubles the rate until the SLO breaks, then overloads the target. Returns whether the SLO never broke. */
  async #double(from: number): Promise<boolean> {
    const { maxRate, bracketSeconds, overloadSeconds } = this.#settings;
    let voids = 0;
    for (let rate = Math.min(from, maxRate); ; rate = Math.min(rate * 2, maxRate)) {
      const enough = Math.min(LONGEST_DOUBLING_SECONDS, SEARCH.leastDoubling / rate);
      const step = await this.#run(rate, Math.max(bracketSeconds, enough));
      if (step.void) {
        voids += 1;
        if (voids > 1 || rate >= maxRate) throw new Ended(this.#evidence().openEnded(step.void));
        continue;
      }
      if (step.verdict !== 'breaks') {
        if (rate < maxRate) continue;
        return true;
      }
      // Far above: without a queue throughout the step, the throughput is not yet the target's limit.
      const { low } = this.#bracket();
      if (this.#banSeconds !== undefined || (low === 0 && rate <= from)) return false;
      const beyond = Math.max(low * 1.2, (step.saturatedAt ?? rate) * SEARCH.overload);
      await this.#lookAbove(Math.min(maxRate, Math.max(beyond, rate * SEARCH.narrow)), overloadSeconds);
      rate = this.#steps.at(-1)!.offered;
      if (this.#bracket().high < Infinity) return false;
      if (rate >= maxRate) return true;
    }
  }

  /** Whether the SLO holds at rates far below those that broke it, by up to three long steps. */
  async #holdsLow(): Promise<boolean> {
    const { stepSeconds } = this.#settings;
    const { high } = this.#bracket();
    const lowest = this.#evidence().lowest();
    const isAnyLower = lowest < high;
    let rate = isAnyLower ? Math.max(lowest, Math.min(lowest * 8, high / 4)) : lowest / 3;
    const verdict = (): Verdict => this.#evidence().between(0, rate);
    for (let attempt = 0; attempt < 3 && verdict() !== 'holds'; attempt += 1) {
      if (verdict() === 'breaks' && isAnyLower) return false;
      if (verdict() === 'breaks') rate /= 3;
      const seconds = Math.min(LONGEST_DOUBLING_SECONDS * 1.5, secondsAt(rate));
      await this.#run(rate, Math.max(2 * stepSeconds, seconds));
    }
    return verdict() === 'holds';
  }

  /** Narrows the bracket by short steps; returns the rate for the next confirmation run. */
  async #narrow(): Promise<number> {
    const { stepSeconds, confirmSeconds } = this.#settings;
    for (let voids = 0; voids < 2 && this.#left() > stepSeconds + confirmSeconds;) {
      const { low, high } = this.#bracket();
      if (low >= high || high / low <= SEARCH.narrow) break;
      const saturated = (this.#evidence().saturation() ?? Infinity) * SEARCH.ofSaturation;
      const middle = low < high / 4 ? high / 2 : (low + high) / 2;
      const rate = [saturated, this.#top * FIGURES.unsettled].find((at) => at > low && at < high) ?? middle;
      let step = await this.#run(rate, stepSeconds);
      if (step.verdict === 'undecided' && !step.void) step = await this.#run(rate, stepSeconds);
      if (step.void) voids += 1;
      // A queue that grew twice in short steps grows in a long one.
      else if (step.verdict === 'undecided') return step.growing ? rate * FIGURES.unsettled : rate;
    }
    const { low, high } = this.#bracket();
    // A short step held a rate that a confirmation run did not.
    if (low >= high) return high * (this.#evidence().collapse() ? 0.85 : FIGURES.unsettled);
    return low > 0 ? low : high * FIGURES.unsettled;
  }

  /** Runs a confirmation, which must hold by its own samples; extended once if undecided. */
  async #confirm(rate: number): Promise<boolean> {
    const { slo, confirmSeconds } = this.#settings;
    const seconds = Math.max(confirmSeconds, Math.min(secondsAt(rate), this.#left()));
    const [from, pacesBefore] = [this.#steps.length, this.#paces.length];
    const verdict = (): Verdict => {
      const own = new Evidence(this.#steps.slice(from), slo);
      const isOpen = this.#steps.at(-1)!.growing || !own.excludesErrors();
      return own.verdict() === 'holds' && isOpen ? 'undecided' : own.verdict();
    };
    await this.#run(rate, seconds);
    const isOpen = verdict() === 'undecided' || (verdict() === 'holds' && this.#breaksByFailures());
    if (isOpen && this.#left() >= seconds) await this.#run(rate, seconds);
    const holds = verdict() === 'holds';
    if (!holds) this.#top = rate;
    else {
      [this.#held, this.#pacesBefore] = [rate, pacesBefore];
      this.#predict(this.#steps.at(-1)!);
    }
    return holds;
  }

  /** Whether failed answers, not late ones, break the SLO at higher rates. They come in bursts, which a run may miss. */
  #breaksByFailures(): boolean {
    const broken = this.#evidence().where(
      ({ offered, verdict }) => offered < 2 * this.#limit() && verdict === 'breaks',
    );
    return broken.failures() * 2 > broken.late();
  }

  #predict({ offered, seconds, counted, late }: Step): void {
    this.#predicted = {
      requestsPerSecond: offered,
      seconds: Math.round(seconds),
      what: `answered without an error within ${this.#settings.slo.p99Ms} ms`,
      asPredicted: counted - late,
      requests: counted,
    };
  }

  /** Handles a step broken by 429. Throws Ended if a quota explains it. */
  async #quotaIn(step: Step): Promise<void> {
    const evidence = this.#evidence();
    // Quota runs provoke rejections on purpose; they say nothing about lower rates.
    this.#noQuota = true;
    const offer: RunStep = async (rate, seconds, how) => {
      const { void: why } = await this.#run(rate, seconds, how);
      this.#concurrencyLimit ??= concurrencyLimitOf(this.#samples);
      return { samples: this.#samples, void: why };
    };
    const accepted = evidence.sum((one) => one.accepted * one.seconds);
    const acceptedPerSecond = accepted / evidence.sum(({ seconds }) => seconds);
    const quiet = { accepted, acceptedPerSecond, idleMs: this.#steps[0]!.p50Ms };
    const of = new QuotaConfirmation(this.#settings, offer, this.#left, step, this.#samples, quiet);
    const { figure, prediction, banSeconds } = await of.confirm();
    this.#predicted = prediction;
    this.#banSeconds = banSeconds;
    if (!figure) return;
    this.#concurrencyLimit = undefined;
    throw new Ended(figure);
  }

  #found(figure: Figure): Found {
    return {
      limitedBy: 'saturation',
      ...figure,
      prediction: this.#predicted,
      collapse: this.#evidence().collapse(),
      concurrencyLimit: this.#concurrencyLimit,
      banSeconds: this.#banSeconds,
      ...(this.#concurrencyLimit === undefined ? {} : { limitedBy: 'quota' as const }),
      gotFaster: this.#fasterSince > 0,
      watchedSeconds: Math.round(sum(this.#steps.map((step) => step.seconds))),
      samples: sum(this.#steps.map((step) => step.counted)),
      steps: this.#steps,
    };
  }
}
