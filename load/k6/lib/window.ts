/** Finds the window with screenings, in k6 and in Node. */
import { msOf } from './instant.ts';

export interface Window {
  readonly from: string;
  readonly to: string;
}

export const FAR_END = '2100-01-01T00:00:00Z';
const PRECISION_MS = 60_000;

/**
 * Yields an instant and expects the testTime of the first screening from there on, or null. The first screening is on
 * the first page of all time; the end is found by bisection. Returns undefined without screenings.
 */
export function* searchWindow(): Generator<string, Window | undefined, unknown> {
  const firstFrom = function* (from: string): Generator<string, number | undefined, unknown> {
    const testTime = yield from;
    if (testTime === null) return undefined;
    const atMs = msOf(testTime);
    if (Number.isNaN(atMs)) throw new Error('a screening has no valid testTime');
    return atMs;
  };
  const firstMs = yield* firstFrom('1970-01-01T00:00:00Z');
  if (firstMs === undefined) return undefined;
  let [lowMs, highMs] = [firstMs, Date.parse(FAR_END)];
  while (highMs - lowMs > PRECISION_MS) {
    const middleMs = Math.floor((lowMs + highMs) / 2);
    const foundMs = yield* firstFrom(new Date(middleMs).toISOString());
    if (foundMs === undefined) highMs = middleMs;
    else lowMs = Math.max(middleMs, foundMs);
  }
  const iso = (ms: number): string => new Date(Math.floor(ms)).toISOString();
  return { from: iso(firstMs), to: iso(highMs + 1000) };
}
