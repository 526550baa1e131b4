/** Where screenings lie; runs in k6 and in Node alike. */
import { msOf } from './instant.ts';

export interface Window {
  readonly from: string;
  readonly to: string;
}

export const FAR_END = '2100-01-01T00:00:00Z';
const CLOSE_MS = 60_000;

/**
 * Yields moments, and is answered with the testTime of the first screening from there on; null where there is none. The
 * first one of all is on the first page of all time, the end is closed in on by halving. Undefined without screenings.
 */
export function* searchWindow(): Generator<string, Window | undefined, unknown> {
  const firstFrom = function* (from: string): Generator<string, number | undefined, unknown> {
    const testTime = yield from;
    if (testTime === null) return undefined;
    const atMs = msOf(testTime);
    if (Number.isNaN(atMs)) throw new Error('a screening has no testTime that can be read');
    return atMs;
  };
  const firstMs = yield* firstFrom('1970-01-01T00:00:00Z');
  if (firstMs === undefined) return undefined;
  let [lowMs, highMs] = [firstMs, Date.parse(FAR_END)];
  while (highMs - lowMs > CLOSE_MS) {
    const middleMs = Math.floor((lowMs + highMs) / 2);
    const foundMs = yield* firstFrom(new Date(middleMs).toISOString());
    if (foundMs === undefined) highMs = middleMs;
    else lowMs = Math.max(middleMs, foundMs);
  }
  const iso = (ms: number): string => new Date(Math.floor(ms)).toISOString();
  return { from: iso(firstMs), to: iso(highMs + 1000) };
}
