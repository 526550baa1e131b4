/**
 * The search for a capacity: independent steps of Poisson arrivals, a bracket, a bisection, a long confirmation, a look
 * above. Knows nothing of k6: a step is a function, so that the search is tried on simulated servers.
 */
import { atOnceOf } from './at-once.ts';
import { bracketOf, pooled, totals, type Bracket } from './bracket.ts';
import { fitQueue, type MeasuredStep, type QueueFit } from './queue-fit.ts';
import {
  atNoRate,
  checked,
  collapseOf,
  highest,
  openEnded,
  ordered,
  saturationOf,
  UNSETTLED,
  type Figure,
} from './figures.ts';
import { searchQuota } from './quota-search.ts';
import type { Found, RunStep, SearchSettings } from './search.ts';
import { judgeStep, type Step } from './step.ts';
import { LEAST_SAMPLES } from './verdict.ts';

const OVERLOAD = 1.5;
/** The bracket is narrow enough. */
const NARROW = 1.04;
/** How far above the interval it has to break, and how often a target may turn out faster than it was. */
const ABOVE = 1.06;
const REOPENINGS = 3;
const MOST_STEPS = 45;
/** How often an undecided step goes on. */
const EXTENSIONS = 2;
const LONGEST_BRACKET_SECONDS = 40;
/** So many failures have to be due at the SLO's share before it is told from twice as many. */
const ENOUGH_FAILURES = 6;
const LONGEST_CONFIRMATION = 4;
/** The last look is so many confirmations long: what happens once a minute, and collapses by chance, is in it. */
const EVERY_MINUTE = 2;
/** An interval whose ends lie further apart than this says too little to be confirmed. */
const WIDE = 1.5;
/** Just below a quota. */
const BELOW = 0.95;

class BudgetSpent extends Error {}

/** Finds the capacity of whatever runStep runs against. It comes to an end in maxSeconds and a step. */
export async function searchCapacity(runStep: RunStep, settings: SearchSettings): Promise<Found> {
  return new Search(runStep, settings).find();
}

class Search {
  readonly #runStep: RunStep;
  readonly #settings: SearchSettings;
  readonly #steps: Step[] = [];
  readonly #runs: MeasuredStep[] = [];
  /** Steps before this one speak of the target as it was before it got faster. */
  #since = 0;
  #gotFaster = false;
  /** 429 is no quota's here: refusals are failures as any other. */
  #noQuota = false;
  #atOnce: number | undefined;
  #seconds = 0;

  constructor(runStep: RunStep, settings: SearchSettings) {
    this.#runStep = runStep;
    this.#settings = settings;
  }

  async find(): Promise<Found> {
    try {
      return this.#found(await this.#search());
    } catch (error) {
      if (!(error instanceof BudgetSpent)) throw error;
      return this.#found(
        openEnded(
          this.#evidence(),
          this.#settings.slo,
          'the steps or the time that a search may take were spent',
        ),
      );
    }
  }

  async #search(): Promise<Figure> {
    let from = this.#settings.startRate;
    let figure: Figure | undefined;
    for (let round = 0; round <= REOPENINGS; round += 1) {
      figure = (await this.#climb(from)) ?? (await this.#narrow());
      if (figure.basis !== 'queue-model' && figure.basis !== 'bisection') return figure;
      // Nothing broke: there is nothing to look above of, and no rate that is known to be kind.
      if (!Number.isFinite(figure.interval[1])) return figure;
      let above = 0;
      for (;;) {
        above = Math.min(this.#settings.maxRate, figure.interval[1] * ABOVE);
        const broke = this.#bracket().high;
        const { verdict } = await this.#run(above, this.#settings.stepSeconds);
        // By itself: what broke at this rate before was another target, if it got faster.
        const last = this.#steps.at(-1)!;
        const heldNow = last.verdict === 'holds' && !last.void && !last.growing;
        if (verdict !== 'holds' && !heldNow) return figure;
        if (above >= broke * 0.97 || figure.basis !== 'queue-model') break;
        // Nothing got faster: the queue was another than it looked.
        figure = await this.#bisect();
      }
      this.#reopen();
      from = above;
    }
    return { ...figure!, confirmed: false, unconfirmed: 'it went on getting faster while it was watched' };
  }

  #evidence = (): Step[] => this.#steps.slice(this.#since);
  #bracket = (): Bracket => bracketOf(this.#evidence(), this.#settings.slo);

  #isSpent = (): boolean => this.#steps.length >= MOST_STEPS || this.#seconds >= this.#settings.maxSeconds;

  /** What broke before, the target carries by now: only the last step and those to come count. */
  #reopen(): void {
    this.#gotFaster = true;
    this.#since = this.#steps.length - 1;
  }

  /** Runs a step; where it is undecided, it goes on for so many times its length. */
  async #run(offered: number, seconds: number, extensions = 0, countsOnly = false): Promise<Step> {
    for (let extension = 0; ; extension += 1) {
      if (this.#isSpent()) throw new BudgetSpent();
      if (!Number.isFinite(offered) || offered <= 0) throw new RangeError(`no rate to run at: ${offered}`);
      const run = await this.#runStep(offered, seconds, countsOnly);
      const judged = judgeStep(offered, seconds, run.samples, this.#settings.slo);
      this.#seconds += seconds;
      this.#steps.push(run.void ? { ...judged, void: run.void } : judged);
      this.#runs.push({ offered, seconds, samples: run.samples });
      const step = this.#steps.at(-1)!;
      // A step that held in spite of its machine held.
      if (step.void && step.verdict === 'holds') this.#steps[this.#steps.length - 1] = judged;
      else if (step.void) return { ...step, verdict: 'undecided' };
      const pool = pooled(this.#evidence(), offered, offered, this.#settings.slo);
      const verdict = pool === 'holds' && judged.growing ? 'undecided' : pool;
      if (verdict !== 'undecided' || extension >= extensions) return { ...judged, verdict };
    }
  }

  /** Doubles the rate until the SLO breaks, and goes beyond. A figure where that says all, else none. */
  async #climb(from: number): Promise<Figure | undefined> {
    const { slo, bracketSeconds, overloadSeconds, maxRate } = this.#settings;
    let voids = 0;
    for (let rate = Math.min(from, maxRate); ; rate = Math.min(rate * 2, maxRate)) {
      const enough = Math.min(LONGEST_BRACKET_SECONDS, (LEAST_SAMPLES * 1.3) / rate);
      const step = await this.#run(rate, Math.max(bracketSeconds, enough), rate >= maxRate ? EXTENSIONS : 0);
      if (step.void) {
        voids += 1;
        if (voids > 1 || rate >= maxRate) return openEnded(this.#evidence(), this.#settings.slo, step.void);
        continue;
      }
      if (step.limitedRate > slo.errorRate && step.verdict !== 'holds' && !this.#noQuota) {
        const quota = await this.#quota(step);
        if (quota) return quota;
        this.#noQuota = true;
      }
      if (step.verdict !== 'breaks') {
        if (rate >= maxRate) return highest(this.#evidence(), slo, step.offered);
        continue;
      }
      const { low } = this.#bracket();
      if (low === 0 && !(await this.#descend(rate))) return atNoRate(this.#evidence(), this.#settings.slo);
      // Far beyond: there has to be a backlog throughout, or the rate of answers is not yet the target's limit.
      const atLeast = this.#bracket().low * 1.2;
      const beyond = Math.min(maxRate, Math.max(atLeast, (step.saturatedAt ?? rate) * OVERLOAD));
      let overload = await this.#run(beyond, overloadSeconds);
      if (overload.verdict === 'holds' && beyond < rate)
        overload = await this.#run(Math.min(maxRate, rate * OVERLOAD), overloadSeconds);
      if (overload.verdict !== 'holds') return undefined;
      this.#reopen();
      if (overload.offered >= maxRate) return highest(this.#evidence(), slo, overload.offered);
      rate = overload.offered;
    }
  }

  /** Below a first rate that broke: whether the SLO may hold at a lower one. */
  async #descend(from: number): Promise<boolean> {
    const { slo } = this.#settings;
    for (let rate = from / 3; rate >= Math.min(1, from / 9); rate /= 3) {
      const seconds = Math.min(LONGEST_BRACKET_SECONDS * 1.5, (LEAST_SAMPLES * 1.3) / rate);
      const { verdict } = await this.#run(rate, seconds);
      if (verdict !== 'breaks' && pooled(this.#evidence(), 0, rate, slo) !== 'breaks') return true;
    }
    return false;
  }

  async #narrow(): Promise<Figure> {
    const { slo, stepSeconds, seed } = this.#settings;
    const start = this.#bracket();
    const saturated = saturationOf(this.#evidence(), this.#settings.slo);
    if (start.low === 0 && !(await this.#holdsLow())) return atNoRate(this.#evidence(), this.#settings.slo);
    const fastest = Math.max(...this.#evidence().map((step) => step.offered));
    const ceiling = Math.min(start.high, fastest, saturated === undefined ? Infinity : saturated * 1.02);
    await this.#run(ceiling * 0.25, Math.min(stepSeconds, 12));

    const fit = (): QueueFit | undefined => {
      const runs = this.#runs.filter((_, index) => index >= this.#since && !this.#steps[index]!.void);
      // What is slow at times whatever the rate is may hold a worker meanwhile, or not: no queue is known then.
      const { low } = this.#bracket();
      const tail = this.#evidence().some((step) => !step.void && step.late > 0 && step.offered < low * 0.6);
      const fitted =
        collapseOf(this.#evidence(), this.#settings.slo) || tail ? undefined : fitQueue(runs, slo, seed);
      return fitted && fitted.interval[0] > 0 ? fitted : undefined;
    };
    const model = fit();
    const guess = model?.requestsPerSecond ?? (start.low + ceiling) / 2;
    for (const rate of [guess * 0.93, guess * 1.03]) {
      const { low, high } = this.#bracket();
      if (rate > low && rate < high) await this.#run(rate, stepSeconds);
    }
    const refined = model && fit();
    if (refined?.explains) {
      // A long run is chance too: where it does not hold, one a little below has to.
      let confirmed = false;
      let lowest = refined.interval[0];
      for (const rate of [lowest, lowest * 0.95, lowest * 0.9]) {
        if (confirmed) break;
        lowest = rate;
        confirmed = await this.#confirm(rate);
      }
      const final = fit() ?? refined;
      const { low, high } = this.#bracket();
      const inside = final.requestsPerSecond >= low * 0.97 && final.requestsPerSecond <= high * 1.03;
      if (final.explains && confirmed && inside && final.interval[1] <= WIDE * final.interval[0]) {
        const { workers, discipline, serviceMs, saturation } = final;
        return {
          ...ordered(final.requestsPerSecond, Math.min(lowest, final.interval[0]), final.interval[1]),
          basis: 'queue-model',
          confirmed,
          model: { workers, discipline, serviceMs, saturation },
        };
      }
    }
    return this.#bisect();
  }

  /** Whether a long run holds; where errors are what broke the SLO above, with as many answers as their share takes. */
  async #confirm(rate: number): Promise<boolean> {
    const seconds = EVERY_MINUTE * this.#settings.confirmSeconds;
    let { verdict } = await this.#run(rate, seconds, EXTENSIONS - 1);
    const broke = this.#evidence().some(
      (step) => step.verdict === 'breaks' && step.failures > 0 && step.late === step.failures,
    );
    const enough = ENOUGH_FAILURES / this.#settings.slo.errorRate;
    const counted = (): number => totals(this.#evidence().filter(({ offered }) => offered === rate)).counted;
    const goesOn = (): boolean => broke && verdict === 'holds' && counted() < enough;
    for (let more = 0; more < LONGEST_CONFIRMATION && goesOn(); more += 1)
      ({ verdict } = await this.#run(rate, seconds));
    return verdict === 'holds';
  }

  async #bisect(): Promise<Figure> {
    const { stepSeconds } = this.#settings;
    let undecided: number | undefined;
    for (let voids = 0; ;) {
      const { low, high } = this.#bracket();
      if (low >= high || high / Math.max(low, 1e-9) <= NARROW) break;
      const rate = low < high / 4 ? high / 2 : (low + high) / 2;
      const step = await this.#run(rate, stepSeconds, EXTENSIONS);
      if (step.void) {
        voids += 1;
        if (voids > 1) break;
      } else if (step.verdict === 'undecided') {
        undecided = rate;
        break;
      }
    }
    const { low, high } = this.#bracket();
    let rate = low > 0 && low < high ? low : (undecided ?? high) * 0.93;
    const collapse = collapseOf(this.#evidence(), this.#settings.slo) !== undefined;
    let confirmed = false;
    for (let retry = 0; retry < 4 && !confirmed; retry += 1) {
      if (retry > 0) rate *= 0.94;
      confirmed = await this.#confirm(rate);
    }
    // Rates below one that held are carried: where a long run there breaks, the target is not steady.
    const long = this.#evidence().filter((step) => step.seconds >= stepSeconds);
    const unsteady = rate < bracketOf(long, this.#settings.slo).low * 0.9;
    const top = Number.isFinite(high) ? Math.max(high, rate) : rate;
    // Beyond a rate that stayed undecided, and where overload lowers the throughput, nothing is promised.
    const nothingAbove = undecided !== undefined || collapse;
    const figure = confirmed && !nothingAbove && rate >= low * 0.99 ? (Math.max(rate, low) + top) / 2 : rate;
    const bounds = ordered(figure, Math.min(rate, low || rate) * UNSETTLED, Math.max(top, low) * 1.03);
    const why = unsteady
      ? `it held ${low.toFixed(1)}/s once and not again`
      : !confirmed
        ? 'no long run held'
        : bounds.interval[1] > WIDE * bounds.interval[0]
          ? 'too few answers came to decide between the ends of its interval'
          : undefined;
    return {
      ...bounds,
      basis: 'bisection',
      confirmed: why === undefined,
      ...(why === undefined ? {} : { unconfirmed: why }),
    };
  }

  /** Whether the SLO holds at rates far below those that broke, as far as long steps can tell. */
  async #holdsLow(): Promise<boolean> {
    const { slo, confirmSeconds } = this.#settings;
    const { high } = this.#bracket();
    const lowest = Math.min(...this.#evidence().map((step) => step.offered));
    const rate = Math.max(lowest, Math.min(lowest * 8, high / 4));
    for (let attempt = 0; attempt <= EXTENSIONS; attempt += 1) {
      const verdict = pooled(this.#evidence(), 0, rate, slo);
      if (verdict !== 'undecided') return verdict === 'holds';
      await this.#run(rate, confirmSeconds);
    }
    return pooled(this.#evidence(), 0, rate, slo) === 'holds';
  }

  /** Asks for about twice of what passed so far. Nothing where no quota is what stops it first. */
  async #quota(first: Step): Promise<Figure | undefined> {
    const { slo, maxRate, stepSeconds } = this.#settings;
    const evidence = this.#evidence();
    const accepted = evidence.reduce((sum, step) => sum + step.accepted * step.seconds, 0);
    const asked = Math.max((2 * accepted) / evidence.reduce((sum, one) => sum + one.seconds, 0), 4);
    const rate = Math.max(asked, Math.min(first.offered, first.accepted * 1.5));
    const figure = await searchQuota(
      async (offered, seconds) => {
        const step = await this.#run(offered, seconds, 0, true);
        return { step, samples: this.#runs.at(-1)!.samples };
      },
      this.#settings,
      { rate: Math.min(maxRate, rate), samples: this.#runs.at(-1)!.samples },
    );
    if (!figure) {
      this.#atOnce = atOnceOf(this.#runs.at(-1)!.samples);
      return undefined;
    }
    if (!figure.confirmed) return figure;
    // Two windows' requests may pass in one, and as many a second as it says.
    const { perSecond, limit } = figure.quota!;
    const most = (step: Step): number => (2 * (limit ?? Infinity) + perSecond * step.seconds) * ABOVE;
    const more = evidence.find((step) => step.accepted * step.seconds > most(step));
    if (more)
      return {
        ...figure,
        confirmed: false,
        unconfirmed: `${more.accepted.toFixed(1)}/s were let through for ${more.seconds.toFixed(0)} s before: refused requests may count against it`,
      };
    // What it lets through has to be answered in time as well; a figure is not lost for want of this look.
    if (this.#isSpent()) return figure;
    const below = figure.requestsPerSecond * BELOW;
    const { void: spoiled } = await this.#run(below, stepSeconds);
    if (spoiled) return figure;
    const { samples } = this.#runs.at(-1)!;
    const passed = samples.filter(({ status }) => status !== 429);
    if (judgeStep(below, stepSeconds, passed, slo).verdict === 'breaks') return undefined;
    const refusedBelow = 1 - passed.length / Math.max(1, samples.length);
    return { ...figure, quota: { ...figure.quota!, refusedBelow } };
  }

  #found(unchecked: Figure): Found {
    const figure = checked(unchecked, this.#evidence(), this.#settings.slo);
    const collapse = collapseOf(this.#evidence(), this.#settings.slo);
    return {
      limitedBy: 'saturation',
      ...figure,
      ...(collapse ? { collapse } : {}),
      ...(this.#atOnce === undefined ? {} : { atOnce: this.#atOnce, limitedBy: 'quota' as const }),
      gotFaster: this.#gotFaster,
      watchedSeconds: Math.round(this.#seconds),
      samples: this.#steps.reduce((sum, step) => sum + step.counted, 0),
      steps: this.#steps,
    };
  }
}
