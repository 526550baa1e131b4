/** Instants in k6, which has neither the kit's own reader nor its npm modules: enough to compare them exactly. */

/** A text that sorts as the instant does: seconds in a fixed width, then the fraction. Undefined if not RFC 3339. */
export function instantKey(text: string): string | undefined {
  const match =
    /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/.exec(text);
  if (!match) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const east =
    match[8] === undefined ? 0 : (match[8] === '-' ? -1 : 1) * (Number(match[9]) * 60 + Number(match[10]));
  const at = new Date(0);
  at.setUTCFullYear(year, month - 1, day);
  at.setUTCHours(hour, minute - east, second);
  const seconds = at.getTime() / 1000;
  if (Number.isNaN(seconds)) return undefined;
  // Shifted so that years before 1970 sort too.
  return `${String(seconds + 1e11).padStart(12, '0')}.${(match[7] ?? '').replace(/0+$/, '')}`;
}

/** Negative, zero or positive; ids are decimal texts, so that 64 bits stay exact. */
export function compareIds(a: string, b: string): number {
  const [negative, other] = [a.startsWith('-'), b.startsWith('-')];
  if (negative !== other) return negative ? -1 : 1;
  const bySize = a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
  return negative ? -bySize : bySize;
}
