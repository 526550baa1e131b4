/** What a search for a capacity is given, and gives. */
import type { Quota } from './quota.ts';
import type { Sample, Slo, Step } from './step.ts';

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
