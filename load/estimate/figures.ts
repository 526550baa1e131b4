/**
 * What a search for a capacity is given, and what all of its steps say together: the highest rate that surely holds and
 * the lowest that surely breaks, figures with their intervals, and what is told with them. More load is never kinder, so
 * a step speaks for lower rates where it holds, and for higher ones where it breaks.
 */
import { largest, smallest } from './numbers.ts';
import {
  LEAST_SAMPLES,
  moreThanChance,
  type Sample,
  type Slo,
  type Step,
  type Verdict,
  verdictOf,
} from './step.ts';
import type { Quota } from './quota.ts';

export interface Bracket {
  /** 0 where none surely holds, Infinity where none surely breaks. */
  readonly low: number;
  readonly high: number;
}

/** Steps at rates this close are one. */
const SAME = 0.005;

/** What was counted in all of them; void ones say nothing. */
export function totals(steps: readonly Step[]): Pick<Step, 'late' | 'failures' | 'counted'> {
  const told = steps.filter((step) => !step.void);
  const sum = (of: (step: Step) => number): number => told.reduce((all, step) => all + of(step), 0);
  return {
    late: sum(({ late }) => late),
    failures: sum(({ failures }) => failures),
    counted: sum(({ counted }) => counted),
  };
}

/** The verdict of all steps at rates from one to another. */
export function pooled(steps: readonly Step[], from: number, to: number, slo: Slo): Verdict {
  const between = steps.filter(({ offered }) => offered >= from * (1 - SAME) && offered <= to * (1 + SAME));
  const { late, failures, counted } = totals(between);
  return verdictOf(late, failures, counted, slo);
}

export function bracketOf(steps: readonly Step[], slo: Slo): Bracket {
  const rates = [...new Set(steps.filter((step) => !step.void).map((step) => step.offered))].sort(
    (a, b) => a - b,
  );
  const steady = steps.filter((step) => !step.growing);
  const holds = rates.filter((rate, index) =>
    rates.slice(index).some((above) => pooled(steady, rate, above, slo) === 'holds'),
  );
  const breaks = rates.filter((rate, index) =>
    rates.slice(0, index + 1).some((below) => pooled(steps, below, rate, slo) === 'breaks'),
  );
  return { low: holds.at(-1) ?? 0, high: breaks[0] ?? Infinity };
}

export type Figure = Pick<Found, 'requestsPerSecond' | 'interval' | 'basis' | 'confirmed'> &
  Partial<Pick<Found, 'unconfirmed' | 'limitedBy' | 'quota'>>;

/** Steps end before a queue near its limit has settled, so what held may hold by some percent too much. */
export const UNSETTLED = 0.94;
/** A rate of answers this far below one that held is no limit but a collapse. */
const COLLAPSED = 0.7;
/** The part of a figure below which no queue makes answers late. */
const FAR_BELOW = 0.85;

/** A figure and an interval that holds it, whatever they were computed from. */
export function ordered(figure: number, low: number, high: number) {
  const interval = [Math.max(0, Math.min(low, figure)), Math.max(high, figure)] as const;
  return { requestsPerSecond: figure, interval };
}

/** Answers a second while there was a backlog, where that is the target's limit. */
export function saturationOf(evidence: readonly Step[], slo: Slo): number | undefined {
  const { low } = bracketOf(evidence, slo);
  const rates = evidence.flatMap((step) => (step.void ? [] : (step.saturatedAt ?? [])));
  return rates.filter((rate) => rate > low).sort((a, b) => a - b)[0];
}

/** From which rate on fewer are answered than it carried before. */
export function collapseOf(evidence: readonly Step[], slo: Slo): Found['collapse'] {
  const { low } = bracketOf(evidence, slo);
  const collapsed = evidence
    .filter((step) => !step.void && step.saturatedAt !== undefined && step.saturatedAt < COLLAPSED * low)
    .sort((a, b) => a.offered - b.offered);
  const answersPerSecond = smallest(collapsed.map((step) => step.saturatedAt!));
  return collapsed[0] && { from: collapsed[0].offered, answersPerSecond };
}

/** Ends where more can't be asked: what surely held stands. */
export function openEnded(evidence: readonly Step[], slo: Slo, why: string): Figure {
  const { low, high } = bracketOf(evidence, slo);
  const top = Math.max(low, high);
  return {
    requestsPerSecond: low,
    interval: [low * UNSETTLED, top],
    limitedBy: Number.isFinite(top) ? 'saturation' : 'none-found',
    basis: 'bisection',
    confirmed: false,
    unconfirmed: why,
  };
}

/** Whether the SLO holds at the rate of a step: yes (the rate), no (0), or undecided. */
export function atOneRate({ offered, verdict, limitedRate, errorRate, counted, ...step }: Step): Figure {
  const [low, high] =
    verdict === 'holds' ? [offered, Infinity] : verdict === 'breaks' ? [0, offered] : [0, Infinity];
  return {
    ...ordered(low, low, high),
    basis: 'one-rate',
    limitedBy: verdict === 'holds' ? 'none-found' : limitedRate > errorRate / 2 ? 'quota' : 'saturation',
    confirmed: verdict !== 'undecided',
    ...(verdict === 'undecided' ? { unconfirmed: step.void ?? `${counted} answers do not decide` } : {}),
  };
}

/** The part of what a target can answer at which no queue makes one in a hundred late, and how far that goes. */
const SLIGHT = 0.3;
const ALIKE = 4;

/** The SLO holds at none of the rates. */
export function atNoRate(evidence: readonly Step[], slo: Slo): Figure {
  const rates = evidence.map((step) => step.offered);
  const lowest = smallest(rates);
  const high = Math.min(bracketOf(evidence, slo).high, largest(rates));
  // Where the load shows, late answers may be its doing, and there may be fewer at a lower rate.
  const quiet = evidence.filter(({ offered }) => offered <= lowest * ALIKE);
  const confirmed =
    pooled(quiet, 0, Infinity, slo) === 'breaks' &&
    totals(quiet).counted >= LEAST_SAMPLES / 2 &&
    lowest <= SLIGHT * (saturationOf(evidence, slo) ?? Infinity);
  const figure = { ...ordered(0, 0, high), basis: 'no-rate' } as const;
  if (evidence.some(({ limitedRate }) => limitedRate > slo.errorRate))
    return {
      ...figure,
      confirmed: false,
      unconfirmed: 'it answers 429 at every rate that was tried, and no quota predicts when',
    };
  return confirmed
    ? { ...figure, confirmed }
    : {
        ...figure,
        confirmed,
        unconfirmed: 'the SLO surely held at no rate, and surely broke at none so low',
      };
}

/** What is late at rates far below the figure, whatever the rate, was let pass by chance more than once; so were errors. */
export function checked(figure: Figure, evidence: readonly Step[], slo: Slo): Figure {
  const { requestsPerSecond: rate, basis, confirmed } = figure;
  if (!confirmed || basis !== 'bisection') return figure;
  const unsure = (unconfirmed: string): Figure => ({ ...figure, confirmed: false, unconfirmed });
  if (pooled(evidence, 0, rate * FAR_BELOW, slo) !== 'holds')
    return unsure('answers are late or fail at rates far below it as well');
  const below = totals(evidence.filter((step) => step.offered <= rate));
  if (moreThanChance(below.failures, below.counted, slo.errorRate))
    return unsure(`${below.failures} of ${below.counted} answers failed at rates up to it`);
  return figure;
}

export interface StepRun {
  readonly samples: readonly Sample[];
  /** Why the generator or its machine may have shaped what it shows. */
  readonly void?: string;
}

export interface HowToRun {
  /** How late answers are does not matter: nothing is repeated for it. */
  readonly countsOnly?: boolean;
  /** Before it, for what a limiter remembers. */
  readonly pauseSeconds?: number;
}

/** Runs one step at a rate for some seconds. */
export type RunStep = (requestsPerSecond: number, seconds: number, how?: HowToRun) => Promise<StepRun>;

export interface SearchSettings {
  readonly slo: Slo;
  readonly startRate: number;
  readonly maxRate: number;
  /** Length of the doubling steps, of the overload that measures saturation, of the bisection's steps, of the confirmation. */
  readonly bracketSeconds: number;
  readonly overloadSeconds: number;
  readonly stepSeconds: number;
  readonly confirmSeconds: number;
  /** Of load and pauses in all; then the search ends with what it knows. */
  readonly maxSeconds: number;
  /** Progress: what is tried next, and how much of the time is used. */
  readonly tell?: (line: string) => void;
}

export const SEARCH_DEFAULTS = {
  startRate: 10,
  maxRate: 3000,
  bracketSeconds: 4,
  overloadSeconds: 10,
  stepSeconds: 12,
  confirmSeconds: 60,
  maxSeconds: 345,
} as const;

/** A minute that the figure was not made from, and what became of each of its requests. */
export interface Prediction {
  readonly requestsPerSecond: number;
  readonly seconds: number;
  /** What was predicted, in words. */
  readonly what: string;
  readonly asPredicted: number;
  readonly requests: number;
}

export interface Found {
  /** The highest rate that is held, by the evidence of all steps; 0 where the SLO holds at none. */
  readonly requestsPerSecond: number;
  readonly interval: readonly [low: number, high: number];
  readonly limitedBy: 'quota' | 'saturation' | 'none-found';
  /** How the figure came about. */
  readonly basis: 'bisection' | 'quota' | 'highest-tried' | 'no-rate' | 'one-rate';
  /** It predicted a minute that it was not made from. */
  readonly confirmed: boolean;
  /** Why it is not confirmed. */
  readonly unconfirmed?: string;
  readonly prediction?: Prediction;
  /** From how many requests a second on fewer are answered than it carried before, and how many. */
  readonly collapse?: { readonly from: number; readonly answersPerSecond: number };
  readonly gotFaster: boolean;
  readonly quota?: Quota;
  /** So many requests at the same time are admitted; the next one is answered 429. */
  readonly atOnce?: number;
  /** Seconds of load, and answers counted. */
  readonly watchedSeconds: number;
  readonly samples: number;
  readonly steps: readonly Step[];
}
