/**
 * The search for a capacity: independent steps of Poisson arrivals, doubling, bisection, a minute that the figure has
 * to predict, a look above. Knows nothing of k6: a step is a function, so that the search is tried on simulated servers.
 */
import { bracketOf, pooled, totals, type Bracket } from './bracket.ts';
import {
  atNoRate,
  atOneRate,
  checked,
  collapseOf,
  openEnded,
  ordered,
  saturationOf,
  UNSETTLED,
  type Figure,
} from './figures.ts';
import { smallest, sum } from './numbers.ts';
import { ABOVE, confirmQuota, LONGEST_PAUSE_SECONDS } from './quota-search.ts';
import type { Found, HowToRun, Prediction, RunStep, SearchSettings } from './search.ts';
import { judgeStep, type Sample, type Step } from './step.ts';
import { LEAST_SAMPLES } from './verdict.ts';

const OVERLOAD = 1.5;
/** The bracket is narrow enough. */
const NARROW = 1.06;
/** So much higher a rate is worth a minute of its own. */
const RAISED = 1.05;
/** Beyond the lowest rate that broke the interval goes on by so much. */
const ROUNDED_UP = 1.03;
/** How often a target may turn out faster than it was. */
const REOPENINGS = 3;
/** How often an undecided step goes on. */
const EXTENSIONS = 1;
/** Requests that show a backlog. */
const LEAST_DOUBLING = 60;
const LONGEST_BRACKET_SECONDS = 40;
/** So many failures have to be due at the SLO's share before it is told from twice as many. */
const ENOUGH_FAILURES = 6;
/** An interval whose ends lie further apart than this says too little to be confirmed. */
const WIDE = 1.5;
/** A queue keeps a p99 up to about this part of what it can answer: where the bisection begins. */
const OF_SATURATION = 0.95;

class TimeOver extends Error {}

/** Finds the capacity of whatever runStep runs against. It comes to an end in maxSeconds. */
export const searchCapacity = async (runStep: RunStep, settings: SearchSettings): Promise<Found> =>
  new Search(runStep, settings).find();

/** Whether the SLO holds at one rate: yes (the rate), no (0), or undecided (not confirmed). */
export const checkRate = async (
  runStep: RunStep,
  settings: SearchSettings,
  rate: number,
  seconds: number,
): Promise<Found> => new Search(runStep, settings).check(rate, seconds);

class Search {
  readonly #steps: Step[] = [];
  #samples: readonly Sample[] = [];
  /** Steps before this one speak of the target as it was before it got faster. */
  #since = 0;
  #gotFaster = false;
  /** 429 is treated as an error: this target has no quota. */
  #noQuota = false;
  #atOnce: number | undefined;
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
      if (!(error instanceof TimeOver)) throw error;
      return this.#found(this.#atTheEnd());
    }
  }

  async check(rate: number, seconds: number): Promise<Found> {
    const step = await this.#run(rate, seconds);
    this.#predict(step, seconds);
    return this.#found(atOneRate(step));
  }

  async #search(): Promise<Figure> {
    let from = this.settings.startRate;
    let figure: Figure | undefined;
    for (let round = 0; round <= REOPENINGS; round += 1) {
      figure = (await this.#double(from)) ?? (await this.#bisect());
      if (figure.basis !== 'bisection' || !Number.isFinite(figure.interval[1])) return figure;
      const above = Math.min(this.settings.maxRate, figure.interval[1] * ABOVE);
      const seconds = Math.max(this.settings.stepSeconds, (LEAST_SAMPLES * 1.4) / above);
      if (this.#left() < seconds)
        return {
          ...figure,
          confirmed: false,
          unconfirmed: 'its time was over before a higher rate was seen to break',
        };
      const { verdict } = await this.#run(above, seconds);
      // By itself: what broke at this rate before was another target, if it got faster.
      const last = this.#steps.at(-1)!;
      if (verdict !== 'holds' && !(last.verdict === 'holds' && !last.void && !last.growing))
        return figure.confirmed || this.#predicted ? this.#raise(figure) : figure;
      this.#reopen();
      from = above;
    }
    return { ...figure!, confirmed: false, unconfirmed: 'it went on getting faster while it was watched' };
  }

  #evidence = (): Step[] => this.#steps.slice(this.#since);
  #bracket = (): Bracket => bracketOf(this.#evidence(), this.settings.slo);
  #left = (): number => this.settings.maxSeconds - this.#seconds;

  /** What broke before, the target carries by now: only the last step and those to come count. */
  #reopen(): void {
    this.#gotFaster = true;
    this.#predicted = undefined;
    this.#since = this.#steps.length - 1;
  }

  /** Runs a step; where it is undecided, it goes on for a multiple of its length. Throws TimeOver. */
  async #run(offered: number, seconds: number, extensions = 0, how: HowToRun = {}): Promise<Step> {
    if (!Number.isFinite(offered) || offered <= 0) throw new RangeError(`no rate to run at: ${offered}`);
    for (let extension = 0; ; extension += 1) {
      // What a limiter or a ban remembers of the step before is no answer to this one.
      const wait = this.#samples.reduce((longest, one) => Math.max(longest, one.retryAfterSeconds ?? 0), 0);
      const pauseSeconds = how.pauseSeconds ?? (this.#noQuota && wait <= LONGEST_PAUSE_SECONDS ? wait : 0);
      if (seconds + pauseSeconds > this.#left()) throw new TimeOver();
      const run = await this.runStep(offered, seconds, { ...how, pauseSeconds });
      const judged = judgeStep(offered, seconds, run.samples, this.settings.slo);
      this.#seconds += seconds + pauseSeconds;
      this.#load += seconds;
      this.#samples = run.samples;
      const step = run.void && judged.verdict !== 'holds' ? { ...judged, void: run.void } : judged;
      this.#steps.push(step);
      this.settings.tell?.(`${Math.round(this.#seconds)} of at most ${this.settings.maxSeconds} s of load`);
      // A step that held in spite of its machine held.
      if (step.void) return { ...step, verdict: 'undecided' };
      const pool = pooled(this.#evidence(), offered, offered, this.settings.slo);
      const verdict = pool === 'holds' && judged.growing ? 'undecided' : pool;
      if (verdict !== 'undecided' || extension >= extensions) return { ...judged, verdict };
    }
  }

  /** Doubles the rate until the SLO breaks, and goes beyond. A figure where that says all, else none. */
  async #double(from: number): Promise<Figure | undefined> {
    const { slo, bracketSeconds, overloadSeconds, maxRate } = this.settings;
    let voids = 0;
    for (let rate = Math.min(from, maxRate); ; rate = Math.min(rate * 2, maxRate)) {
      const enough = Math.min(LONGEST_BRACKET_SECONDS, LEAST_DOUBLING / rate);
      const step = await this.#run(rate, Math.max(bracketSeconds, enough));
      if (step.void) {
        voids += 1;
        if (voids > 1 || rate >= maxRate) return openEnded(this.#evidence(), slo, step.void);
        continue;
      }
      const quota = await this.#quotaIn(step);
      if (quota) return quota;
      if (step.verdict !== 'breaks') {
        if (rate < maxRate) continue;
        return this.#highest(rate);
      }
      const { low } = this.#bracket();
      if (low === 0 && rate <= from && !(await this.#descend(rate))) return atNoRate(this.#evidence(), slo);
      // Far beyond: there has to be a backlog throughout, or the rate of answers is not yet the target's limit.
      const beyond = Math.min(
        maxRate,
        Math.max(this.#bracket().low * 1.2, (step.saturatedAt ?? rate) * OVERLOAD),
      );
      let overload = await this.#run(beyond, overloadSeconds);
      if (overload.verdict === 'holds' && beyond < rate)
        overload = await this.#run(Math.min(maxRate, rate * OVERLOAD), overloadSeconds);
      if (overload.verdict !== 'holds') return undefined;
      this.#reopen();
      if (overload.offered >= maxRate) return this.#highest(overload.offered);
      rate = overload.offered;
    }
  }

  /** Nothing stopped it up to the highest rate, if a minute there says so as well. */
  async #highest(rate: number): Promise<Figure | undefined> {
    const confirmed = await this.#confirm(rate);
    const quota = await this.#quotaIn(this.#steps.at(-1)!);
    if (quota || !confirmed) return quota;
    return {
      requestsPerSecond: rate,
      interval: [rate, Infinity],
      limitedBy: 'none-found',
      basis: 'highest-tried',
      confirmed: true,
    };
  }

  /** Below a first rate that broke: whether the SLO may hold at a lower one. */
  async #descend(from: number): Promise<boolean> {
    const { slo } = this.settings;
    for (let rate = from / 3; rate >= Math.min(1, from / 9); rate /= 3) {
      const seconds = Math.min(LONGEST_BRACKET_SECONDS * 1.5, (LEAST_SAMPLES * 1.3) / rate);
      const { verdict } = await this.#run(rate, seconds);
      if (verdict !== 'breaks' && pooled(this.#evidence(), 0, rate, slo) !== 'breaks') return true;
    }
    return false;
  }

  /** A minute at a rate, which has to hold by itself; undecided, and where errors broke the SLO above, it goes on. */
  async #confirm(rate: number): Promise<boolean> {
    const { confirmSeconds, slo } = this.settings;
    const seconds = Math.max(confirmSeconds, Math.min((LEAST_SAMPLES * 1.3) / rate, this.#left()));
    const from = this.#steps.length;
    await this.#run(rate, seconds);
    const own = (): Step[] => this.#steps.slice(from);
    const verdict = () => {
      const pool = pooled(own(), rate, rate, slo);
      return pool === 'holds' && own().at(-1)!.growing ? 'undecided' : pool;
    };
    const broke = this.#evidence().some(
      (step) => step.verdict === 'breaks' && step.failures > 0 && step.late === step.failures,
    );
    const enough = ENOUGH_FAILURES / slo.errorRate;
    const goesOn = (): boolean => {
      if (this.#left() < seconds || own().at(-1)!.limitedRate > slo.errorRate) return false;
      if (verdict() === 'undecided') return own().length <= EXTENSIONS;
      return broke && verdict() === 'holds' && totals(own()).counted < enough;
    };
    while (goesOn()) await this.#run(rate, seconds);
    const holds = verdict() === 'holds';
    if (holds) this.#predict(own().at(-1)!, seconds);
    return holds;
  }

  #predict(step: Step, seconds: number): void {
    const { slo } = this.settings;
    this.#predicted = {
      requestsPerSecond: step.offered,
      seconds: Math.round(seconds),
      what: `answered without an error within ${slo.p99Ms} ms`,
      asPredicted: step.counted - step.late,
      requests: step.counted,
    };
  }

  async #bisect(): Promise<Figure> {
    const { slo, stepSeconds, confirmSeconds } = this.settings;
    const { low: least, high: most } = this.#bracket();
    const lower = this.#evidence().some((step) => step.offered < most && step.verdict !== 'breaks');
    if (least === 0 && !lower && !(await this.#descend(most))) return atNoRate(this.#evidence(), slo);
    if (this.#bracket().low === 0 && !(await this.#holdsLow())) return atNoRate(this.#evidence(), slo);
    let tooHigh = Infinity;
    let guess = (saturationOf(this.#evidence(), slo) ?? Infinity) * OF_SATURATION;
    for (;;) {
      // Steps are short: a queue near its limit has not settled. A minute decides, and what it says stands above them.
      let undecided = Infinity;
      for (let voids = 0; voids < 2 && this.#left() > stepSeconds + confirmSeconds;) {
        const { low, high: broke } = this.#bracket();
        const high = Math.min(broke, tooHigh);
        if (low >= high || high / Math.max(low, 1e-9) <= NARROW) break;
        const middle = low < high / 4 ? high / 2 : (low + high) / 2;
        const rate = guess > low && guess < high ? guess : middle;
        guess = Infinity;
        const step = await this.#run(rate, stepSeconds, EXTENSIONS);
        const quota = await this.#quotaIn(step);
        if (quota) return quota;
        if (step.void) voids += 1;
        else if (step.verdict === 'undecided') {
          undecided = rate;
          break;
        }
      }
      const { low, high } = this.#bracket();
      const top = Math.min(high, tooHigh);
      const between = Math.min(undecided, top) * (undecided < top ? 1 : UNSETTLED);
      const rate = low > 0 && low < top && !(undecided < top) ? low : between;
      if (await this.#confirm(rate)) return this.#bisected(rate, Math.min(this.#bracket().high, tooHigh));
      const quota = await this.#quotaIn(this.#steps.at(-1)!);
      if (quota) return quota;
      tooHigh = rate;
      // A short step held what a minute did not: the next minute is a little below.
      const { failures, late, limitedRate } = this.#steps.at(-1)!;
      const byErrors = failures * 2 > late && limitedRate <= slo.errorRate;
      for (const lower of byErrors
        ? [0.25]
        : low >= rate * 0.999
          ? collapseOf(this.#evidence(), slo)
            ? [0.85, 0.75]
            : [0.93, 0.85]
          : []) {
        if (await this.#confirm(rate * lower)) return this.#bisected(rate * lower, tooHigh);
        tooHigh = rate * lower;
      }
      if (byErrors) return atNoRate(this.#evidence(), slo);
      if (tooHigh < rate)
        return { ...this.#open(), unconfirmed: `it held ${low.toFixed(1)}/s once and not again` };
      guess = rate * UNSETTLED;
      if (this.#left() < confirmSeconds) return this.#open();
    }
  }

  /** A minute held; where much lies between it and what broke, there is one more at a higher rate. */
  async #raise(figure: Figure): Promise<Figure> {
    const rate = figure.requestsPerSecond;
    const top = figure.interval[1] / ROUNDED_UP;
    const higher = rate + (top - rate) * 0.6;
    if (higher < rate * RAISED || this.#left() < this.settings.confirmSeconds) return figure;
    const predicted = this.#predicted;
    if (await this.#confirm(higher)) return this.#raise(this.#bisected(higher, top));
    this.#predicted = predicted;
    return this.#bisected(rate, higher);
  }

  #bisected(rate: number, top: number): Figure {
    const high = Number.isFinite(top) ? Math.max(top, rate) : rate;
    const { low, high: broke } = this.#bracket();
    const bounds = ordered(rate, rate * UNSETTLED, Math.max(high, Math.min(low, broke)) * ROUNDED_UP);
    const wide = bounds.interval[1] > WIDE * bounds.interval[0];
    return {
      ...bounds,
      basis: 'bisection',
      confirmed: !wide,
      ...(wide ? { unconfirmed: 'too few answers came to decide between the ends of its interval' } : {}),
    };
  }

  #open = (): Figure =>
    openEnded(this.#evidence(), this.settings.slo, 'no minute was answered as the steps predicted');

  /** Its time is over: what was confirmed until then stands, and what is open is said. */
  #atTheEnd(): Figure {
    const { low, high } = this.#bracket();
    const held = this.#predicted?.requestsPerSecond;
    if (held !== undefined && held <= high) return this.#bisected(held, high);
    // A target that changes may hold more than it broke at before.
    const [less, more] = [Math.min(low, high), Math.max(low, high)];
    const rates = Number.isFinite(more)
      ? `${less.toFixed(1)} and ${more.toFixed(1)}/s`
      : `${less.toFixed(1)}/s and any more`;
    return openEnded(
      this.#evidence(),
      this.settings.slo,
      `its ${Math.round(this.settings.maxSeconds)} s are over; open is which rate between ${rates} a minute holds`,
    );
  }

  /** Whether the SLO holds at rates far below those that broke, as far as long steps can tell. */
  async #holdsLow(): Promise<boolean> {
    const { slo, stepSeconds } = this.settings;
    const { high } = this.#bracket();
    const lowest = smallest(this.#evidence().map((step) => step.offered));
    const rate = Math.max(lowest, Math.min(lowest * 8, high / 4));
    for (let attempt = 0; attempt <= 2; attempt += 1) {
      const verdict = pooled(this.#evidence(), 0, rate, slo);
      if (verdict !== 'undecided') return verdict === 'holds';
      await this.#run(rate, 2 * stepSeconds);
    }
    return pooled(this.#evidence(), 0, rate, slo) === 'holds';
  }

  /** A quota, where 429 is what broke a step. */
  async #quotaIn(step: Step): Promise<Figure | undefined> {
    if (this.#noQuota || step.limitedRate <= this.settings.slo.errorRate || step.verdict === 'holds')
      return undefined;
    const { figure, prediction, atOnce } = await confirmQuota(
      {
        settings: this.settings,
        evidence: this.#evidence(),
        samples: this.#samples,
        left: this.#left,
        run: async (rate, seconds, how) => ({
          step: await this.#run(rate, seconds, 0, how),
          samples: this.#samples,
        }),
      },
      step,
    );
    this.#atOnce = atOnce ?? this.#atOnce;
    // Rejections that a quota's watch met on purpose say nothing of lower rates.
    this.#noQuota = !figure;
    this.#predicted = figure ? (prediction ?? this.#predicted) : undefined;
    return figure;
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
      gotFaster: this.#gotFaster,
      watchedSeconds: Math.round(this.#load),
      samples: sum(this.#steps.map((step) => step.counted)),
      steps: this.#steps,
    };
  }
}
