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

/** The verdict of all steps at rates from one to another; void ones say nothing. */
export function pooled(steps: readonly Step[], from: number, to: number, slo: Slo): Verdict {
  let [late, failures, counted] = [0, 0, 0];
  for (const step of steps) {
    if (step.void || step.offered < from * (1 - SAME) || step.offered > to * (1 + SAME)) continue;
    late += step.late;
    failures += step.failures;
    counted += step.counted;
  }
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
