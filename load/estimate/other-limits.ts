/**
 * Limits that are no rate limits. A concurrency limit answers 429 as a quota does, but what it admits depends on how long
 * answers take: rejections follow from the number of requests in flight. A shaper delays requests instead of rejecting
 * them: what it holds back comes out at an even pace.
 */
import { largest, quantile, smallest } from './numbers.ts';
import type { Sample } from './step.ts';
import type { Observation } from './limiter-probe.ts';

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

export interface Shaper {
  readonly ratePerSecond: number;
  /** As many were held back at once, at most; where more are refused, that is its queue. */
  readonly heldBack: number;
  /** A server that works on one request at a time would look the same after so long a way; or it is one. */
  readonly orOneWorker: boolean | 'rather';
}

/** Held back is what took so much longer than the quickest. */
const HELD_MS = 40;
const LEAST_HELD = 12;
/** Faster paces are not told from the work of answering. */
const LEAST_PACE_MS = 5;
/** How much the pace may vary, as a share: a queue of random work varies more. */
const EVEN = 0.35;

export function shaperOf(seen: readonly Observation[]): Shaper | undefined {
  const times = seen.flatMap(({ ok, rttMs, sentMs }) =>
    ok && rttMs !== undefined && sentMs !== undefined ? [{ rttMs, sentMs, doneMs: sentMs + rttMs }] : [],
  );
  const quickest = smallest(times.map(({ rttMs }) => rttMs));
  const left = times
    .filter(({ rttMs }) => rttMs > quickest + HELD_MS)
    .map(({ doneMs }) => doneMs)
    .sort((a, b) => a - b);
  if (left.length < LEAST_HELD || left.length < times.length * 0.3) return undefined;
  const gaps = left
    .slice(1)
    .map((doneMs, index) => doneMs - left[index]!)
    .sort((a, b) => a - b);
  const paceMs = gaps[gaps.length >> 1]!;
  const spreadMs = (gaps[Math.floor(gaps.length * 0.8)]! - gaps[Math.floor(gaps.length * 0.2)]!) / 2;
  if (paceMs < LEAST_PACE_MS || spreadMs > EVEN * paceMs) return undefined;
  // A server that works on one request at a time is as even; but then each answer takes the pace at least. Where the
  // way is longer than the pace, two at once tell: a server with several workers answers both alike.
  const apart = times
    .slice(1)
    .map((one, index) => ({ one, before: times[index]! }))
    .filter(({ one, before }) => one.sentMs - before.sentMs <= 3)
    .map(({ one, before }) => Math.abs(one.rttMs - before.rttMs))
    .slice(0, 3);
  const soon = apart.some((ms) => Math.abs(ms / paceMs - 1) < EVEN);
  const orOneWorker = quickest >= paceMs * 0.95 && (quickest > paceMs * 1.15 && soon ? true : 'rather');
  const held = largest(times.map(({ rttMs }) => (rttMs - quickest) / paceMs));
  return { ratePerSecond: Number((1000 / paceMs).toPrecision(3)), heldBack: Math.round(held), orOneWorker };
}
