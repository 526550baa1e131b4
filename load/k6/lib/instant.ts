/** Instants in k6, which has neither the kit's own reader nor its npm modules: enough to compare them exactly. */

/** A text that sorts as the instant does: seconds in a fixed width, then the fraction. Undefined if not RFC 3339. */
export function instantKey(text: string): string | undefined {
  const [, minute, second, fraction = '', zone] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d):(\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/i.exec(text) ?? [];
  const ms = Date.parse(`${minute}:00${zone}`.toUpperCase());
  if (Number.isNaN(ms)) return undefined;
  // Shifted so that years before 1970 sort too.
  const seconds = ms / 1000 + Number(second) + 1e11;
  return `${String(seconds).padStart(12, '0')}.${fraction.replace(/0+$/, '')}`;
}

/** The moment of such a text, in milliseconds since the epoch; NaN if it is not RFC 3339. */
export const msOf = (text: unknown): number => (Number(instantKey(String(text))) - 1e11) * 1000;

/** Negative, zero or positive; ids are decimal texts, so that 64 bits stay exact. */
export function compareIds(a: string, b: string): number {
  const [negative, other] = [a.startsWith('-'), b.startsWith('-')];
  if (negative !== other) return negative ? -1 : 1;
  const bySize = a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
  return negative ? -bySize : bySize;
}
