/**
 * Settings and results of a capacity search, and the evidence of all its steps: the bracket between the highest rate
 * that surely holds and the lowest that surely breaks, and figures with intervals. Assumes monotonicity: a step that
 * holds also counts for lower rates, and one that breaks for higher rates.
 */
import { ascending, largest, median, smallest, sum } from './numbers.ts';
import { binomialAtMost, excludesErrors, meetsSlo, STEP, verdictOf } from './step.ts';
import type { Sample, Slo, Step, Verdict } from './step.ts';

export const FIGURES = {
  /** Steps end before a queue near its limit settles, so the capacity may be this factor of a rate that held. */
  unsettled: 0.94,
  /** The interval extends above the lowest rate that broke the SLO by this factor. */
  roundedUp: 1.03,
  /** An interval with a larger ratio of high to low is too wide to be confirmed. */
  wide: 1.3,
  /** Throughput below this share of a rate that held is a congestion collapse, not a limit. */
  collapsed: 0.7,
  /** Factor within which the lowest rates are pooled. */
  alike: 4,
};
/** Relative difference up to which two rates count as the same: half and twice as much decide alike. */
const SAME = 0.005;
/** A safety limit: share of saturation up to which queueing delays less than 1 % of the answers. */
const SLIGHT = 0.3;
/** Significance of an answer that the target changed. */
const CHANGED = 0.001;

export type Figure = Pick<Found, 'requestsPerSecond' | 'interval' | 'basis' | 'confirmed'> &
  Partial<Pick<Found, 'unconfirmed' | 'limitedBy' | 'quota'>>;

/** A figure and its interval, widened to contain the figure. */
export function ordered(figure: number, low: number, high: number) {
  const interval = [Math.max(0, Math.min(low, figure)), Math.max(high, figure)] as const;
  return { requestsPerSecond: figure, interval };
}

/** Confirmed unless there is a reason why not. */
export const confirmedUnless = (why: string | false = false): Pick<Figure, 'confirmed' | 'unconfirmed'> => ({
  confirmed: why === false,
  unconfirmed: why || undefined,
});

/** What steps show together. Void steps do not count. */
export class Evidence {
  readonly #steps: readonly Step[];

  constructor(
    steps: readonly Step[],
    private readonly slo: Slo,
  ) {
    this.#steps = steps.filter((step) => !step.void);
  }

  where(holds: (step: Step) => boolean): Evidence {
    return new Evidence(this.#steps.filter(holds), this.slo);
  }

  sum(of: (step: Step) => number): number {
    return sum(this.#steps.map(of));
  }

  late = (): number => this.sum((step) => step.late);
  failures = (): number => this.sum((step) => step.failures);
  counted = (): number => this.sum((step) => step.counted);
  lowest = (): number => smallest(this.#steps.map((step) => step.offered));

  verdict(): Verdict {
    return verdictOf(this.late(), this.failures(), this.counted(), this.slo);
  }

  /** The joint verdict of all steps at rates in [from, to]. */
  between(from: number, to = from): Verdict {
    return this.where(({ offered }) => offered >= from * (1 - SAME) && offered <= to * (1 + SAME)).verdict();
  }

  excludesErrors = (): boolean => excludesErrors(this.failures(), this.counted(), this.slo);

  /** The highest rate that surely holds, or 0, and the lowest that surely breaks, or Infinity. */
  bracket() {
    const rates = ascending([...new Set(this.#steps.map((step) => step.offered))]);
    const steady = this.where((step) => !step.growing);
    const holds = rates.filter((rate, index) =>
      rates.slice(index).some((above) => steady.between(rate, above) === 'holds'),
    );
    const breaks = rates.filter((rate, index) =>
      rates.slice(0, index + 1).some((below) => this.between(below, rate) === 'breaks'),
    );
    return { low: holds.at(-1) ?? 0, high: breaks[0] ?? Infinity };
  }

  /** The lowest throughput with a growing queue; only values above the rate that held are the target's limit. */
  saturation(): number | undefined {
    const { low } = this.bracket();
    return ascending(this.#steps.flatMap((step) => step.saturatedAt ?? [])).find((rate) => rate > low);
  }

  /** The lowest offered rate at which throughput collapses below the rate that held. */
  collapse(): Found['collapse'] {
    const most = FIGURES.collapsed * this.bracket().low;
    const collapsed = this.where(({ saturatedAt = Infinity }) => saturatedAt < most);
    const answersPerSecond = smallest(collapsed.#steps.map((step) => step.saturatedAt!));
    return answersPerSecond < most ? { from: collapsed.lowest(), answersPerSecond } : undefined;
  }

  /**
   * The figure for a rate that held for a minute. Its interval ends at the lowest rate that surely broke; unconfirmed if
   * that is far away, or if answers failed or were late at lower rates, so that the SLO held only by chance.
   */
  atHeldRate(rate: number): Figure {
    const { low, high } = this.bracket();
    // If the target changed, low may exceed high.
    const bounds = ordered(rate, rate * FIGURES.unsettled, Math.max(low, high) * FIGURES.roundedUp);
    const below = this.where((step) => step.offered <= rate);
    const why =
      (bounds.interval[1] > FIGURES.wide * bounds.interval[0] && 'too few answers to narrow the interval') ||
      (this.between(0, rate * 0.9) !== 'holds' && 'answers are also late or fail at much lower rates') ||
      (!below.excludesErrors() &&
        `${below.failures()} of ${below.counted()} answers failed at rates up to this one`);
    return { ...bounds, basis: 'bisection', ...confirmedUnless(why) };
  }

  /** Unconfirmed figure of a search that cannot continue: the rate that surely held. */
  openEnded(why: string): Figure {
    const { low, high } = this.bracket();
    const top = Math.max(low, high);
    const limitedBy = Number.isFinite(top) ? 'saturation' : 'none-found';
    const bounds = ordered(low, low * FIGURES.unsettled, top);
    return { ...bounds, limitedBy, basis: 'bisection', ...confirmedUnless(why) };
  }

  /** Figure if the SLO holds at no rate. */
  atNoRate(): Figure {
    const lowest = this.lowest();
    const high = Math.min(this.bracket().high, largest(this.#steps.map((step) => step.offered)));
    // Near saturation, the load may cause the late answers, and a lower rate might hold.
    const quiet = this.where(({ offered }) => offered <= lowest * FIGURES.alike);
    // So may a slow start, after which the answers are in time.
    const later = quiet.where((step) => step !== this.#steps[0]);
    const isStillBad = !meetsSlo(later.late(), later.failures(), later.counted(), this.slo);
    const isSure =
      quiet.verdict() === 'breaks' &&
      isStillBad &&
      quiet.counted() >= STEP.leastSamples / 2 &&
      lowest <= SLIGHT * (this.saturation() ?? Infinity);
    const changed = quiet.#steps.some((after, index) =>
      quiet.#steps
        .slice(0, index)
        .some(
          ({ offered, late, counted }) =>
            offered >= after.offered && binomialAtMost(late, counted, after.late / after.counted) < CHANGED,
        ),
    );
    const why = this.#steps.some(({ limitedRate }) => limitedRate > this.slo.errorRate)
      ? 'the target answers 429 at every tested rate, and no quota predicts which requests'
      : changed
        ? 'at first, the target answered such rates better: an allowance may be used up'
        : !isSure && 'the SLO held at no tested rate, but too few answers exclude a lower one';
    return { ...ordered(0, 0, high), basis: 'no-rate', ...confirmedUnless(why) };
  }
}

/** Figure for a single rate: the rate if the SLO holds, 0 if it breaks, unconfirmed if undecided. */
export function atOneRate({ offered, verdict, limitedRate, errorRate, counted, ...step }: Step): Figure {
  const [low, high] =
    verdict === 'holds' ? [offered, Infinity] : verdict === 'breaks' ? [0, offered] : [0, Infinity];
  return {
    ...ordered(low, low, high),
    basis: 'one-rate',
    limitedBy: verdict === 'holds' ? 'none-found' : limitedRate > errorRate / 2 ? 'quota' : 'saturation',
    ...confirmedUnless(verdict === 'undecided' && (step.void ?? `${counted} answers are too few to decide`)),
  };
}

/** Up to this share of the rate that is carried, requests wait for few others. */
const QUIET = 0.25;

/** Of all steps: latency without waiting, up to which rate it was measured, and the throughput of a growing queue, or 0. */
export function extremesOf({ steps, requestsPerSecond }: Pick<Found, 'steps' | 'requestsPerSecond'>) {
  const usable = steps.filter((step) => !step.void && step.p50Ms > 0);
  // At higher rates, most of the latency is waiting, which says nothing about the work.
  const quietRate = Math.max(smallest(usable.map((step) => step.offered)), requestsPerSecond * QUIET);
  const quiet = usable.filter((step) => step.offered <= quietRate);
  return {
    quietRate,
    quietMs: median(quiet.map((step) => step.p50Ms)),
    saturatedAt: Math.max(0, ...usable.map((step) => step.saturatedAt ?? 0)),
  };
}

export interface HowToRun {
  /** Latency does not matter: the step is not repeated for generator lag. */
  readonly countsOnly?: boolean;
  /** Pause before the step, in which a limiter resets. */
  readonly pauseSeconds?: number;
}

export type RunStep = (
  requestsPerSecond: number,
  seconds: number,
  how?: HowToRun,
) => Promise<Pick<Step, 'void'> & { readonly samples: readonly Sample[] }>;

export interface SearchSettings {
  readonly slo: Slo;
  readonly startRate: number;
  readonly maxRate: number;
  /** Factor of the length of all steps. */
  readonly thoroughness: number;
  readonly tell?: (line: string) => void;
}

export const SEARCH_DEFAULTS = { startRate: 10, maxRate: 3000, thoroughness: 1 } as const;

/** Seconds of steps: that double the rate, that measures saturation, of the bisection, of confirmations, of one rate. */
export const secondsOf = ({ thoroughness }: SearchSettings) => ({
  bracketSeconds: 4 * thoroughness,
  overloadSeconds: 10 * thoroughness,
  stepSeconds: 12 * thoroughness,
  confirmSeconds: 60 * thoroughness,
  checkSeconds: 180 * thoroughness,
  /** Of load and pauses together; the search then ends with its evidence so far. */
  maxSeconds: 345 * thoroughness,
});

export interface Quota {
  readonly perSecond: number;
  /** Half the relative width of the interval. */
  readonly error: number;
  /** Whether the run was long enough: it contained two resets, or there are no windows. */
  readonly settled: boolean;
  /** Resets observed; requests admitted from one to the next, and the time between them. */
  readonly releases: number;
  readonly limit?: number;
  readonly windowSeconds?: number;
  /** Requests admitted from rest in addition to the long-run rate. */
  readonly burst?: number;
  /** The highest rate of requests at random times of which at most the SLO's share is rejected. */
  readonly withinSlo?: number;
  /** Taken from the headers, as the window is too long to measure. */
  readonly declared?: true;
}

/** A run that the figure was not computed from, and how many of its requests met the prediction. */
export interface Prediction {
  readonly requestsPerSecond: number;
  readonly seconds: number;
  readonly what: string;
  readonly asPredicted: number;
  readonly requests: number;
}

export interface Found {
  /** The highest rate at which the SLO holds, by the evidence of all steps; 0 if it holds at none. */
  readonly requestsPerSecond: number;
  readonly interval: readonly [low: number, high: number];
  readonly limitedBy: 'quota' | 'saturation' | 'none-found';
  readonly basis: 'bisection' | 'quota' | 'highest-tried' | 'no-rate' | 'one-rate';
  /** Whether the figure predicted a run that it was not computed from. */
  readonly confirmed: boolean;
  readonly unconfirmed?: string | undefined;
  readonly prediction?: Prediction | undefined;
  /** Offered rate from which throughput drops below the rate that held, and that throughput. */
  readonly collapse?: { readonly from: number; readonly answersPerSecond: number } | undefined;
  readonly gotFaster: boolean;
  readonly quota?: Quota;
  /** Concurrency limit: the next concurrent request is answered 429. */
  readonly concurrencyLimit?: number | undefined;
  /** After a rejection, everything is rejected for about this long. */
  readonly banSeconds?: number | undefined;
  /** Seconds of load, and answers counted. */
  readonly watchedSeconds: number;
  readonly samples: number;
  readonly steps: readonly Step[];
}
