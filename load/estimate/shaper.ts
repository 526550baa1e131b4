/** Limiters that delay instead of refusing: what they hold back comes out at an even pace. */
import { largest, smallest } from './numbers.ts';
import type { Observation } from './limiter-probe.ts';

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
