/** Screenings by formula: any number of them, none in memory. Two share each testTime; times have microseconds. */

const BASE_SECONDS = Date.UTC(2026, 0, 1) / 1000;

export interface Screenings {
  readonly count: number;
  /** The window that holds all of them. */
  readonly window: { readonly from: string; readonly to: string };
  /** Microseconds since 2026-01-01T00:00:00Z at which the place begins. */
  microsAt(place: number): number;
  id(place: number): number;
  /** The first place whose (testTime, id) is not before the instant, or is after (instant, id) where an id is given. */
  placeOf(micros: number, afterId?: number): number;
  item(place: number, tenantId: string): string;
}

/** Each pair of screenings lies so far from the next: never a whole millisecond, so that a cut cursor shows. */
const STEP_MICROS = 350_370;
const TIED = 2;

export function createScreenings(count: number): Screenings {
  const microsAt = (place: number): number => Math.floor(place / TIED) * STEP_MICROS;
  const id = (place: number): number => 1000 + place;
  return {
    count,
    window: { from: timeText(0), to: timeText(microsAt(count - 1) + STEP_MICROS) },
    microsAt,
    id,
    placeOf(micros, afterId) {
      const exact = micros / STEP_MICROS;
      const first = Math.ceil(exact) * TIED;
      if (afterId === undefined || Math.ceil(exact) !== exact) return clamp(first, count);
      let place = first;
      while (place < first + TIED && id(place) <= afterId) place += 1;
      return clamp(place, count);
    },
    item: (place, tenantId) =>
      `{"id":${id(place)},"tenantId":"${tenantId}","testTime":"${timeText(microsAt(place))}","device":"d${place % 7}","outcome":"completed"}`,
  };
}

const clamp = (place: number, count: number): number => Math.max(0, Math.min(count, place));

export function timeText(micros: number): string {
  const seconds = Math.floor(micros / 1e6);
  const fraction = String(micros - seconds * 1e6).padStart(6, '0');
  return `${new Date((BASE_SECONDS + seconds) * 1000).toISOString().slice(0, 19)}.${fraction}Z`;
}

/** Microseconds since the base of an RFC 3339 text in UTC or with an offset; NaN for anything else. */
export function microsOf(text: string): number {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/.exec(text);
  if (!match) return NaN;
  const seconds = Date.parse(`${match[1]}${match[3]}`) / 1000 - BASE_SECONDS;
  return seconds * 1e6 + Number((match[2] ?? '').padEnd(6, '0').slice(0, 6));
}
