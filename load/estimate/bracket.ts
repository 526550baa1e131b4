/**
 * What all steps say together: the highest rate that surely holds and the lowest that surely breaks. More load is
 * never kinder, so a step speaks for lower rates where it holds, and for higher ones where it breaks.
 */
import { verdictOf, type Slo, type Step } from './step.ts';
import type { Verdict } from './verdict.ts';

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
