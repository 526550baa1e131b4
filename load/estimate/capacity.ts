/**
 * The capacity search: runs independent steps of Poisson arrivals, chooses each rate from the verdicts so far, and
 * confirms the figure with a longer run. Independent of k6: a step is a function, so that tests can simulate targets.
 */
import {
  atNoRate,
  atOneRate,
  type Bracket,
  bracketOf,
  checked,
  collapseOf,
  type Figure,
  type Found,
  type HowToRun,
  openEnded,
  ordered,
  pooled,
  type Prediction,
  type RunStep,
  saturationOf,
  type SearchSettings,
  totals,
  UNSETTLED,
} from './figures.ts';
import { smallest, sum } from './numbers.ts';
import { ABOVE, confirmQuota, LONGEST_PAUSE_SECONDS, longestWait } from './quota-search.ts';
import { judgeStep, LEAST_SAMPLES, type Sample, type Step, type Verdict } from './step.ts';

const OVERLOAD = 1.5;
/** Ratio of high to low at which the bracket is narrow enough. */
const NARROW = 1.06;
/** Smallest increase that justifies another confirmation run. */
const RAISED = 1.05;
/** The interval extends above the lowest rate that broke the SLO by this factor. */
const ROUNDED_UP = 1.03;
/** Requests in a doubling step that suffice to show a backlog. */
const LEAST_DOUBLING = 60;
const LONGEST_BRACKET_SECONDS = 40;
/** An interval with a larger ratio of high to low is too wide to be confirmed. */
const WIDE = 1.5;
/** A queue typically meets a p99 up to this share of its saturation rate; the bisection starts there. */
const OF_SATURATION = 0.95;
/** At this factor above a rate that broke the SLO, even a short step shows a backlog. */
const CLEARLY = 1.2;

/** Finds the capacity of runStep's target, within settings.maxSeconds. */
export const searchCapacity = async (runStep: RunStep, settings: SearchSettings): Promise<Found> =>
  new Search(runStep, settings).find();

/** Whether the SLO holds at one rate: yes (the rate), no (0), or undecided (not confirmed). */
export const checkRate = async (
  runStep: RunStep,
  settings: SearchSettings,
  rate: number,
  seconds: number,
): Promise<Found> => new Search(runStep, settings).check(rate, seconds);

/** Ends the search: the time is over, or a quota is the limiting factor. */
class Ended extends Error {
  constructor(readonly figure: Figure) {
    super();
  }
}

class Search {
  readonly #steps: Step[] = [];
  #samples: readonly Sample[] = [];
  /** Index of the first valid step: the target got faster after the ones before it. */
  #since = 0;
  /** 429 is treated as an error: this target has no quota. */
  #noQuota = false;
  #atOnce: number | undefined;
  /** From confirmation runs: the highest rate that held, and the lowest that did not. */
  #held = 0;
  #top = Infinity;
  #predicted: Prediction | undefined;
  #seconds = 0;
  #load = 0;

  constructor(
    private readonly runStep: RunStep,
    private readonly settings: SearchSettings,
  ) {}

  async find(): Promise<Found> {
    try {
      return this.#found(await this.#search());
    } catch (error) {
      if (!(error instanceof Ended)) throw error;
      return this.#found(error.figure);
    }
  }

  async check(rate: number, seconds: number): Promise<Found> {
    this.#noQuota = true;
    const step = await this.#run(rate, seconds);
    this.#predict(step, seconds);
    return this.#found(atOneRate(step));
  }

  #evidence = (): Step[] => this.#steps.slice(this.#since);
  #left = (): number => this.settings.maxSeconds - this.#seconds;
  /** From all steps. Confirmation runs take precedence: short steps end before a queue near its limit settles. */
  #bracket(): Bracket {
    const { low, high } = bracketOf(this.#evidence(), this.settings.slo);
    return { low, high: Math.min(high, this.#top) };
  }

  async #search(): Promise<Figure> {
    const { slo, startRate, maxRate, stepSeconds } = this.settings;
    let rate = startRate;
    for (let isSeenAbove = false; ;) {
      if (this.#bracket().high === Infinity) {
        isSeenAbove = await this.#double(rate);
        if (!isSeenAbove && this.#bracket().low === 0 && !(await this.#holdsLow()))
          return atNoRate(this.#evidence(), slo);
        rate = isSeenAbove ? maxRate : await this.#narrow();
      }
      if (!(await this.#confirm(rate))) {
        const { failures, late, limitedRate } = this.#steps.at(-1)!;
        const below = totals(this.#evidence().filter(({ offered }) => offered < 0.9 * rate));
        // Errors at lower rates too may be independent of the rate.
        if (failures * 2 > late && limitedRate <= slo.errorRate && below.failures > 0) {
          const held = await this.#confirm(rate / 4);
          return held ? this.#bisected() : atNoRate(this.#evidence(), slo);
        }
        isSeenAbove &&= rate < maxRate;
      } else if (rate >= maxRate) {
        const limitedBy = 'none-found';
        return { ...ordered(rate, rate, Infinity), limitedBy, basis: 'highest-tried', confirmed: true };
      } else if (!isSeenAbove) {
        const above = this.#above();
        const seconds = Math.max(stepSeconds, (LEAST_SAMPLES * 1.4) / above);
        if (this.#left() < seconds)
          return {
            ...this.#bisected(),
            confirmed: false,
            unconfirmed: 'the time limit was reached before a higher rate broke the SLO',
          };
        await this.#lookAbove(above, seconds);
        isSeenAbove = true;
      }
      if (this.#bracket().high === Infinity) rate = this.#steps.at(-1)!.offered;
      else if (this.#held === 0) rate = await this.#narrow();
      else {
        rate = this.#held + (this.#bracket().high - this.#held) * 0.6;
        if (rate < this.#held * RAISED || this.#left() < this.settings.confirmSeconds)
          return this.#bisected();
      }
    }
  }

  /** Runs a step; the verdict pools all steps at its rate. Throws Ended. */
  async #run(offered: number, seconds: number, how: HowToRun = {}): Promise<Step & { verdict: Verdict }> {
    if (!Number.isFinite(offered) || offered <= 0) throw new RangeError(`no rate to run at: ${offered}`);
    // The previous step must not influence this one through a limiter or a ban.
    const wait = longestWait(this.#samples);
    const pauseSeconds = how.pauseSeconds ?? (this.#noQuota && wait <= LONGEST_PAUSE_SECONDS ? wait : 0);
    if (seconds + pauseSeconds > this.#left()) throw new Ended(this.#atTheEnd());
    const run = await this.runStep(offered, seconds, { ...how, pauseSeconds });
    const judged = judgeStep(offered, seconds, run.samples, this.settings.slo);
    this.#seconds += seconds + pauseSeconds;
    this.#load += seconds;
    this.#samples = run.samples;
    // An overloaded generator only adds latency, so a step that holds counts in spite of it.
    const step = run.void && judged.verdict !== 'holds' ? { ...judged, void: run.void } : judged;
    this.#steps.push(step);
    this.settings.tell?.(`${Math.round(this.#seconds)} of at most ${this.settings.maxSeconds} s of load`);
    if (step.void) return { ...step, verdict: 'undecided' };
    const pool = pooled(this.#evidence(), offered, offered, this.settings.slo);
    const verdict = pool === 'holds' && judged.growing ? 'undecided' : pool;
    const isLimited = step.limitedRate > this.settings.slo.errorRate && verdict !== 'holds';
    if (isLimited && !this.#noQuota && how.pauseSeconds === undefined) await this.#quotaIn(step);
    return { ...judged, verdict };
  }

  /** A rate that should break clearly in a short step, unless the target got faster. */
  #above(): number {
    const { confirmSeconds, maxRate } = this.settings;
    const short = this.#evidence().filter(
      (step) => step.seconds < confirmSeconds && step.verdict === 'breaks',
    );
    const broke = smallest(short.map(({ offered }) => offered));
    const rate = Math.max(this.#bisected().interval[1] * ABOVE, Number.isFinite(broke) ? broke * CLEARLY : 0);
    return Math.min(maxRate, rate);
  }

  /** Runs a step at a rate that should break. If it holds, the target got faster, and earlier steps are discarded. */
  async #lookAbove(offered: number, seconds: number): Promise<void> {
    const { high } = this.#bracket();
    await this.#run(offered, seconds);
    const last = this.#steps.at(-1)!;
    if (last.verdict !== 'holds' || last.void || offered <= high) return;
    this.#since = this.#steps.length - 1;
    [this.#held, this.#top, this.#predicted] = [0, Infinity, undefined];
  }

  /** Doubles the rate until the SLO breaks, then overloads the target. Returns whether the SLO never broke. */
  async #double(from: number): Promise<boolean> {
    const { slo, bracketSeconds, overloadSeconds, maxRate } = this.settings;
    let voids = 0;
    for (let rate = Math.min(from, maxRate); ; rate = Math.min(rate * 2, maxRate)) {
      const enough = Math.min(LONGEST_BRACKET_SECONDS, LEAST_DOUBLING / rate);
      const step = await this.#run(rate, Math.max(bracketSeconds, enough));
      if (step.void) {
        voids += 1;
        if (voids > 1 || rate >= maxRate) throw new Ended(openEnded(this.#evidence(), slo, step.void));
        continue;
      }
      if (step.verdict !== 'breaks') {
        if (rate < maxRate) continue;
        return true;
      }
      // Far above: without a backlog throughout the step, the throughput is not yet the target's limit.
      const { low } = this.#bracket();
      if (low === 0 && rate <= from) return false;
      const beyond = Math.max(low * 1.2, (step.saturatedAt ?? rate) * OVERLOAD);
      await this.#lookAbove(Math.min(maxRate, Math.max(beyond, rate * NARROW)), overloadSeconds);
      rate = this.#steps.at(-1)!.offered;
      if (this.#bracket().high < Infinity) return false;
      if (rate >= maxRate) return true;
    }
  }

  /** Whether the SLO holds at rates far below those that broke it, by up to three long steps. */
  async #holdsLow(): Promise<boolean> {
    const { slo, stepSeconds } = this.settings;
    const { high } = this.#bracket();
    const lowest = smallest(this.#evidence().map((step) => step.offered));
    const isAnyLower = lowest < high;
    let rate = isAnyLower ? Math.max(lowest, Math.min(lowest * 8, high / 4)) : lowest / 3;
    const verdict = (): Verdict => pooled(this.#evidence(), 0, rate, slo);
    for (let attempt = 0; attempt < 3 && verdict() !== 'holds'; attempt += 1) {
      if (verdict() === 'breaks' && isAnyLower) return false;
      if (verdict() === 'breaks') rate /= 3;
      const seconds = Math.min(LONGEST_BRACKET_SECONDS * 1.5, (LEAST_SAMPLES * 1.3) / rate);
      await this.#run(rate, Math.max(2 * stepSeconds, seconds));
    }
    return verdict() === 'holds';
  }

  /** Narrows the bracket by short steps; returns the rate for the next confirmation run. */
  async #narrow(): Promise<number> {
    const { slo, stepSeconds, confirmSeconds } = this.settings;
    for (let voids = 0; voids < 2 && this.#left() > stepSeconds + confirmSeconds;) {
      const { low, high } = this.#bracket();
      if (low >= high || high / low <= NARROW) break;
      const saturated = (saturationOf(this.#evidence(), slo) ?? Infinity) * OF_SATURATION;
      const middle = low < high / 4 ? high / 2 : (low + high) / 2;
      const rate = [saturated, this.#top * UNSETTLED].find((one) => one > low && one < high) ?? middle;
      let step = await this.#run(rate, stepSeconds);
      if (step.verdict === 'undecided' && !step.void) step = await this.#run(rate, stepSeconds);
      if (step.void) voids += 1;
      else if (step.verdict === 'undecided') return rate;
    }
    const { low, high } = this.#bracket();
    // A short step held a rate that a confirmation run did not.
    if (low >= high) return high * (collapseOf(this.#evidence(), slo) ? 0.85 : UNSETTLED);
    return low > 0 ? low : high * UNSETTLED;
  }

  /** Runs a confirmation, which must hold by its own samples; extended once if undecided. */
  async #confirm(rate: number): Promise<boolean> {
    const { confirmSeconds, slo } = this.settings;
    const seconds = Math.max(confirmSeconds, Math.min((LEAST_SAMPLES * 1.3) / rate, this.#left()));
    const from = this.#steps.length;
    await this.#run(rate, seconds);
    const own = (): Step[] => this.#steps.slice(from);
    const verdict = (): Verdict => {
      const pool = pooled(own(), rate, rate, slo);
      return pool === 'holds' && own().at(-1)!.growing ? 'undecided' : pool;
    };
    const isLimited = this.#steps.at(-1)!.limitedRate > slo.errorRate;
    if (verdict() === 'undecided' && !isLimited && this.#left() >= seconds) await this.#run(rate, seconds);
    const holds = verdict() === 'holds';
    if (!holds) this.#top = rate;
    else {
      this.#held = rate;
      this.#predict(own().at(-1)!, seconds);
    }
    return holds;
  }

  #predict(step: Step, seconds: number): void {
    this.#predicted = {
      requestsPerSecond: step.offered,
      seconds: Math.round(seconds),
      what: `answered without an error within ${this.settings.slo.p99Ms} ms`,
      asPredicted: step.counted - step.late,
      requests: step.counted,
    };
  }

  /** The highest rate that held in a confirmation run, with its interval. */
  #bisected(): Figure {
    const [rate, { high }] = [this.#held, this.#bracket()];
    const { low, high: broke } = bracketOf(this.#evidence(), this.settings.slo);
    const top = Number.isFinite(high) ? Math.max(high, rate) : rate;
    const bounds = ordered(rate, rate * UNSETTLED, Math.max(top, Math.min(low, broke)) * ROUNDED_UP);
    const wide = bounds.interval[1] > WIDE * bounds.interval[0];
    return {
      ...bounds,
      basis: 'bisection',
      confirmed: !wide,
      ...(wide ? { unconfirmed: 'too few answers to narrow the interval' } : {}),
    };
  }

  /** Figure at the end of the time: the confirmed rate, or an unconfirmed interval. */
  #atTheEnd(): Figure {
    if (this.#held > 0) return this.#bisected();
    const { low, high } = this.#bracket();
    // If the target changed, low may exceed high.
    const [less, more] = [Math.min(low, high), Math.max(low, high)];
    const rates = Number.isFinite(more)
      ? `between ${less.toFixed(1)} and ${more.toFixed(1)}/s`
      : `${less.toFixed(1)}/s or more`;
    return openEnded(
      this.#evidence(),
      this.settings.slo,
      `the time limit of ${Math.round(this.settings.maxSeconds)} s was reached; the highest rate that holds is ${rates}`,
    );
  }

  /** Handles a step broken by 429. Throws Ended if a quota explains it. */
  async #quotaIn(step: Step): Promise<void> {
    const { figure, prediction, atOnce } = await confirmQuota(
      {
        settings: this.settings,
        evidence: this.#evidence(),
        samples: this.#samples,
        left: this.#left,
        run: async (rate, seconds, how) => ({
          step: await this.#run(rate, seconds, how),
          samples: this.#samples,
        }),
      },
      step,
    );
    this.#atOnce = atOnce ?? this.#atOnce;
    // Quota runs provoke rejections on purpose; they say nothing about lower rates.
    this.#noQuota = true;
    this.#predicted = figure ? (prediction ?? this.#predicted) : undefined;
    if (figure) throw new Ended(figure);
  }

  #found(unchecked: Figure): Found {
    const figure = checked(unchecked, this.#evidence(), this.settings.slo);
    const collapse = collapseOf(this.#evidence(), this.settings.slo);
    return {
      limitedBy: 'saturation',
      ...figure,
      ...(this.#predicted ? { prediction: this.#predicted } : {}),
      ...(collapse ? { collapse } : {}),
      ...(this.#atOnce === undefined ? {} : { atOnce: this.#atOnce, limitedBy: 'quota' as const }),
      gotFaster: this.#since > 0,
      watchedSeconds: Math.round(this.#load),
      samples: sum(this.#steps.map((step) => step.counted)),
      steps: this.#steps,
    };
  }
}
