/** What steps say in the end: figures with their intervals, and what stands beside them. */
import { bracketOf, pooled } from './bracket.ts';
import type { Found } from './search.ts';
import type { Slo, Step } from './step.ts';

export type Figure = Pick<Found, 'requestsPerSecond' | 'interval' | 'basis' | 'confirmed'> &
  Partial<Pick<Found, 'unconfirmed' | 'model' | 'limitedBy' | 'quota'>>;

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
  const answersPerSecond = Math.min(...collapsed.map((step) => step.saturatedAt!));
  return collapsed[0] && { from: collapsed[0].offered, answersPerSecond };
}

/** Nothing stopped it up to the highest rate. */
export function highest(evidence: readonly Step[], slo: Slo, offered: number): Figure {
  const holds = pooled(evidence, offered, offered, slo) === 'holds';
  const figure = holds ? offered : bracketOf(evidence, slo).low;
  return {
    requestsPerSecond: figure,
    interval: [figure, Infinity],
    limitedBy: 'none-found',
    basis: 'highest-tried',
    confirmed: holds,
    ...(holds ? {} : { unconfirmed: 'at the highest rate too few answers decide' }),
  };
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

/** The SLO holds at none of the rates. */
export function atNoRate(evidence: readonly Step[], slo: Slo): Figure {
  const rates = evidence.map((step) => step.offered);
  const lowest = Math.min(...rates);
  const high = Math.min(bracketOf(evidence, slo).high, Math.max(...rates));
  const sure = [1, 2, 4, 8].some((times) => pooled(evidence, 0, lowest * times, slo) === 'breaks');
  return {
    ...ordered(0, 0, high),
    basis: 'no-rate',
    confirmed: sure,
    ...(sure ? {} : { unconfirmed: 'the SLO surely held at no rate, and surely broke at none so low' }),
  };
}

/** What is late at rates far below the figure, whatever the rate, was let pass by chance more than once. */
export function checked(figure: Figure, evidence: readonly Step[], slo: Slo): Figure {
  const { requestsPerSecond: rate, basis, confirmed } = figure;
  if (!confirmed || (basis !== 'queue-model' && basis !== 'bisection')) return figure;
  if (pooled(evidence, 0, rate * FAR_BELOW, slo) === 'holds') return figure;
  return {
    ...figure,
    confirmed: false,
    unconfirmed: 'answers are late or fail at rates far below it as well',
  };
}
