/**
 * A limit of requests at once answers 429 as a quota does, and is none: what it lets through depends on how long answers
 * take. Where refusals follow from how many requests are under way, they do not follow from how many were let through.
 */
import { quantile } from './queue.ts';
import type { Sample } from './step.ts';

/** Fewer refusals tell nothing. */
const LEAST_REFUSED = 30;
/** The share of refusals, and of answers, that has to lie on its side of the limit, give or take a tenth of it. */
const CLEAR = 0.95;
const BLUR = 0.1;

/** How many requests at once are let through, where that is what 429 depends on. */
export function atOnceOf(samples: readonly Sample[]): number | undefined {
  const sent = samples
    .map((one) => ({ ...one, sentMs: one.dueMs + one.latencyMs - one.serviceMs }))
    .sort((a, b) => a.sentMs - b.sentMs);
  const refused: number[] = [];
  const passed: number[] = [];
  let open: number[] = [];
  for (const { sentMs, serviceMs, status } of sent) {
    open = open.filter((doneMs) => doneMs > sentMs);
    (status === 429 ? refused : passed).push(open.length);
    if (status !== 429) open.push(sentMs + serviceMs);
  }
  if (refused.length < LEAST_REFUSED || passed.length < LEAST_REFUSED) return undefined;
  refused.sort((a, b) => a - b);
  const limit = quantile(refused, 0.5);
  const give = Math.max(1, BLUR * limit);
  const share = (counts: readonly number[], test: (count: number) => boolean): number =>
    counts.filter(test).length / counts.length;
  // Of a limit of one or two, a count beside it is on the other side already.
  const below = share(passed, (count) => count < limit);
  const around = share(refused, (count) => Math.abs(count - limit) <= give);
  return limit >= 1 && below >= CLEAR && around >= CLEAR ? limit : undefined;
}
