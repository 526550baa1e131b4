/**
 * A limit of requests at once answers 429 as a quota does, and is none: what it lets through depends on how long answers
 * take. Where refusals follow from how many requests are under way, they do not follow from how many were let through.
 */
import { quantile, smallest } from './numbers.ts';
import type { Sample } from './step.ts';

/** Fewer tell nothing of arrivals by chance. */
const LEAST_REFUSED = 30;
const LEAST_PASSED = 30;
/** The share of refusals, and of answers, that has to lie on its side of the limit, give or take a tenth of it. */
const CLEAR = 0.95;
const BLUR = 0.1;

/** A request that was sent then, answered so much later, and let through or refused. */
interface Sent {
  readonly sentMs: number;
  readonly rttMs: number;
  readonly ok: boolean;
}

/** How many requests at once are let through, where that is what 429 depends on. */
export const atOnceOf = (samples: readonly Sample[]): number | undefined =>
  mostAtOnce(
    samples
      .map(({ dueMs, latencyMs, serviceMs, status }) => ({
        sentMs: dueMs + latencyMs - serviceMs,
        rttMs: serviceMs,
        ok: status !== 429,
      }))
      .sort((a, b) => a.sentMs - b.sentMs || Number(b.ok) - Number(a.ok)),
    LEAST_REFUSED,
  );

/** The same of requests in the order in which they were decided, and refusals enough. */
export function mostAtOnce(sent: readonly Sent[], leastRefused: number): number | undefined {
  const refusals = sent.flatMap(({ ok, rttMs }) => (ok ? [] : [rttMs]));
  if (refusals.length < leastRefused || sent.length - refusals.length < LEAST_PASSED) return undefined;
  // On its way a request is not at the target; a refusal takes no longer than the way, and maybe some work.
  const mostMs = smallest(refusals);
  return [mostMs, mostMs / 2, 0].map((wayMs) => separating(sent, wayMs)).find((limit) => limit !== undefined);
}

/** The number under way that keeps refusals and answers apart. */
function separating(sent: readonly Sent[], wayMs: number): number | undefined {
  const refused: number[] = [];
  const passed: number[] = [];
  let open: number[] = [];
  for (const { sentMs, rttMs, ok } of sent) {
    open = open.filter((doneMs) => doneMs > sentMs);
    (ok ? passed : refused).push(open.length);
    if (ok) open.push(sentMs + rttMs - wayMs);
  }
  refused.sort((a, b) => a - b);
  const limit = quantile(refused, 0.5);
  const give = Math.max(1, BLUR * limit);
  const share = (counts: readonly number[], test: (count: number) => boolean): number =>
    counts.filter(test).length / counts.length;
  // Of a limit of one or two, the next count is on the other side already.
  const below = share(passed, (count) => count < limit);
  const around = share(refused, (count) => Math.abs(count - limit) <= give);
  return limit >= 1 && below >= CLEAR && around >= CLEAR ? limit : undefined;
}
