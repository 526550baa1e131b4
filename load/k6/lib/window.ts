/** Instants and durations in k6, which cannot load the kit's parsers or npm modules, and the window; also in Node. */
import { sum } from '../../estimate/numbers.ts';

export type Window = Readonly<Record<'from' | 'to', string>>;

/** Before and after all screenings. */
export const FIRST = '1970-01-01T00:00:00Z';
export const FAR_END = '2100-01-01T00:00:00Z';
const PRECISION_MS = 60_000;

/**
 * Yields an instant and expects the testTime of the first screening from there on, or null. The first screening is on
 * the first page of all time; the end is found by bisection. Returns undefined without screenings.
 */
export function* searchWindow(): Generator<string, Window | undefined, unknown> {
  const iso = (ms: number): string => new Date(Math.floor(ms)).toISOString();
  let firstMs: number | undefined;
  let [lowMs, highMs] = [Date.parse(FIRST), Date.parse(FAR_END)];
  for (let fromMs = lowMs; highMs - lowMs > PRECISION_MS; fromMs = Math.floor((lowMs + highMs) / 2)) {
    const testTime = yield iso(fromMs);
    const foundMs = testTime === null ? undefined : msOf(testTime);
    if (Number.isNaN(foundMs)) throw new Error('a screening has no valid testTime');
    firstMs ??= foundMs;
    if (foundMs === undefined) highMs = fromMs;
    else lowMs = Math.max(fromMs, foundMs);
  }
  return firstMs === undefined ? undefined : { from: iso(firstMs), to: iso(highMs + 1000) };
}

/** A text that sorts like the instant: seconds with fixed width, then the fraction. Undefined if not RFC 3339. */
export function instantKey(text: string): string | undefined {
  const [, minute, second, fraction = '', zone] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d):(\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/i.exec(text) ?? [];
  const ms = Date.parse(`${minute}:00${zone}`.toUpperCase());
  if (Number.isNaN(ms)) return undefined;
  // Shifted to be positive, so that years before 1970 sort correctly.
  const seconds = ms / 1000 + Number(second) + 1e11;
  return `${String(seconds).padStart(12, '0')}.${fraction.replace(/0+$/, '')}`;
}

/** The instant in milliseconds since the epoch; NaN if not RFC 3339. */
const msOf = (text: unknown): number => (Number(instantKey(String(text))) - 1e11) * 1000;

/** The instant at this share (0 to 1) of the second before `ms`, to the microsecond: other URLs, so no cache answers. */
export function shortlyBefore(ms: number, share: number): string {
  const micros = Math.round(share * 1e6) % 1e6;
  const text = new Date(ms - 1000 + Math.floor(micros / 1000)).toISOString();
  return text.replace('Z', `${String(micros % 1000).padStart(3, '0')}Z`);
}

/** Returns a negative, zero or positive number; ids are decimal texts, so that 64 bits stay exact. */
export function compareIds(a: string, b: string): number {
  const [negative, other] = [a.startsWith('-'), b.startsWith('-')];
  if (negative !== other) return negative ? -1 : 1;
  const bySize = a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
  return negative ? -bySize : bySize;
}

const UNITS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, '': 1 };

/** Parses `90`, `90s`, `5m` or `1h30m` to seconds; undefined for anything else. */
export function secondsOf(text: string): number | undefined {
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$|^\d+(?:\.\d+)?$/.test(text)) return undefined;
  const parts = [...text.matchAll(/([\d.]+)(ms|s|m|h|)/g)];
  return sum(parts.map(([, count, unit]) => Number(count) * UNITS[unit!]!));
}
