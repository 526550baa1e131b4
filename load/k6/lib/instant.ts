/** Exact comparison of instants in k6, which cannot load the kit's parser or its npm modules. */

/**
 * Returns a text that sorts like the instant: seconds with fixed width, then the fraction. Undefined if not RFC 3339.
 */
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
export const msOf = (text: unknown): number => (Number(instantKey(String(text))) - 1e11) * 1000;

/** Returns a negative, zero or positive number; ids are decimal texts, so that 64 bits stay exact. */
export function compareIds(a: string, b: string): number {
  const [negative, other] = [a.startsWith('-'), b.startsWith('-')];
  if (negative !== other) return negative ? -1 : 1;
  const bySize = a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
  return negative ? -bySize : bySize;
}
