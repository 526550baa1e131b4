/** What a search for a capacity is given, and what it finds. */
import type { QueueFit } from './queue-fit.ts';
import type { Quota } from './quota.ts';
import type { Sample, Slo, Step } from './step.ts';

export interface StepRun {
  readonly samples: readonly Sample[];
  /** Why the generator or its machine may have shaped what it shows. */
  readonly void?: string;
}

/** Runs one step at a rate for some seconds; countsOnly: how late answers are does not matter. */
export type RunStep = (requestsPerSecond: number, seconds: number, countsOnly?: boolean) => Promise<StepRun>;

export interface SearchSettings {
  readonly slo: Slo;
  readonly startRate: number;
  readonly maxRate: number;
  /** Length of the doubling steps, of the overload that measures saturation, of the bisection's steps, of the confirmation. */
  readonly bracketSeconds: number;
  readonly overloadSeconds: number;
  readonly stepSeconds: number;
  readonly confirmSeconds: number;
  /** Of load in all; then the search ends with what it knows. */
  readonly maxSeconds: number;
  readonly seed: number;
  /** A quota that is expected, requests a second and its window: it is looked for before anything else. */
  readonly expected?: { readonly perSecond: number; readonly windowSeconds: number };
}

export interface Found {
  /** The highest rate that is held, by the evidence of all steps; 0 where the SLO holds at none. */
  readonly requestsPerSecond: number;
  readonly interval: readonly [low: number, high: number];
  readonly limitedBy: 'quota' | 'saturation' | 'none-found';
  /** How the figure came about: a queue that explains every step, or the bisection alone. */
  readonly basis: 'queue-model' | 'bisection' | 'quota' | 'highest-tried' | 'no-rate';
  readonly confirmed: boolean;
  /** Why it is not confirmed. */
  readonly unconfirmed?: string;
  readonly model?: Pick<QueueFit, 'workers' | 'discipline' | 'serviceMs' | 'saturation'>;
  /** From how many requests a second on fewer are answered than it carried before, and how many. */
  readonly collapse?: { readonly from: number; readonly answersPerSecond: number };
  readonly gotFaster: boolean;
  readonly quota?: Quota;
  /** So many requests at once are let through; the next one is answered 429. */
  readonly atOnce?: number;
  /** Seconds of load, and answers counted. */
  readonly watchedSeconds: number;
  readonly samples: number;
  readonly steps: readonly Step[];
}
