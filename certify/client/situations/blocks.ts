/** Building blocks of situations: screenings, each set of which tests one property, and servers. */
import type { Clock } from '../../../engine/clock.ts';
import { formatInstant, instant, isInside, shift, type Instant } from '../../../engine/data/instant.ts';
import { compareKeys } from '../../../engine/data/oracle.ts';
import type { Screening } from '../../../engine/data/dataset.ts';
import type { Handler, ServiceAnswer, ServiceRequest } from '../../../reference-server/http/http.ts';
import { isScreenings, middleware, queryOf } from '../../../reference-server/run/alter.ts';
import type { ServerOptions } from '../../../reference-server/run/start.ts';
import { TENANT, type StageOptions, type Window } from '../stage.ts';

export const WINDOW: Window = { from: '2026-03-01T00:00:00Z', to: '2026-04-01T00:00:00Z' };

const PEOPLE = ['Zoë Ångström', '山田 太郎', 'أمينة', 'O\'Brien "Bo" \\ Co', ''];

/** A screening with further members, as real ones have. */
export function screening(id: bigint, testTime: string): Screening {
  const person = JSON.stringify(PEOPLE[Number(id % 5n)]);
  const further = `"device":{"serial":"SN-${id % 97n}"},"person":${person},"temperature":36.${id % 10n}0`;
  return {
    id,
    tenantId: TENANT,
    testTime,
    json: `{"id":${id},"tenantId":"${TENANT}","testTime":"${testTime}",${further}}`,
  };
}

const START = instant('2026-03-02T08:00:00Z');
const at = (seconds: number, digits = 0, units = 0): string =>
  formatInstant(shift(shift(START, BigInt(seconds), 0), BigInt(units), digits));

/** Screenings just outside the window: at its end, and before its beginning. */
const BESIDE = [screening(900_001n, WINDOW.to), screening(900_002n, '2026-02-28T23:59:59Z')];

/** One screening per minute, with ids in another order than the times. */
export const plain = (count: number): Screening[] => [
  ...Array.from({ length: count }, (_, index) =>
    screening(BigInt(1000 + ((index * 7919) % 10_007)), at(60 * index)),
  ),
  ...BESIDE,
];

/** Ties of several sizes, one of them longer than three pages of 10. */
export function tied(): Screening[] {
  const sizes = [1, 2, 3, 36, 1, 12, 2];
  return sizes.flatMap((size, tie) =>
    Array.from({ length: size }, (_, place) =>
      screening(BigInt(10_000 + 100 * tie + ((place * 31) % 97)), at(3600 * tie)),
    ),
  );
}

/** Consecutive ids that are equal as doubles, in ties; the last one of the first page is rounded up. */
export const large = (): Screening[] =>
  Array.from({ length: 24 }, (_, index) =>
    screening(9_007_199_254_740_994n + BigInt(index), at(60 * Math.floor(index / 8))),
  );

const OFFSETS_MINUTES = [120, -420, 330, undefined, 765];

/** To the microsecond, and no finer: many languages have no finer times. */
export const FRACTIONAL_WINDOW: Window = {
  from: '2026-02-28T19:00:00.000001-05:00',
  to: '2026-04-01T05:30:00.500001+05:30',
};

/** A screening at `from`, one just before it, one just before `to`, one at `to`, and one some minutes later. */
const AT_EDGES = [
  screening(600n, '2026-03-01T00:00:00.000001Z'),
  screening(900_003n, '2026-03-01T00:00:00Z'),
  screening(601n, '2026-04-01T00:00:00.5Z'),
  screening(900_004n, '2026-04-01T00:00:00.500001Z'),
  screening(900_005n, '2026-04-01T00:10:00Z'),
];

/** Neighbours a nanosecond apart, the last of each page of ten too, with different offsets. */
export function fractional(): Screening[] {
  const neighbours = Array.from({ length: 30 }, (_, index) => {
    const time = instant(at(600 * Math.floor(index / 10), index % 10 === 9 ? 6 : 9, 1 + (index % 10)));
    return screening(BigInt(500 - index), spelt(time, OFFSETS_MINUTES[index % OFFSETS_MINUTES.length]));
  });
  return [...neighbours, ...AT_EDGES];
}

/** Before and after the end of summer time: local times that occur twice, some of them written in UTC. */
export const twiceShown = (): Screening[] =>
  [120, 60].flatMap((offset, hour) =>
    Array.from({ length: 20 }, (_, minute) => {
      const time = shift(instant('2026-10-25T00:31:00Z'), BigInt(3600 * hour + 60 * minute), 0);
      const id = BigInt(300 + 20 * hour + ((minute * 7) % 20));
      return screening(id, spelt(time, minute % 7 === 3 ? undefined : offset));
    }),
  );

/** In UTC, with Z, if there is no offset. */
const spelt = (time: Instant, offsetMinutes: number | undefined): string =>
  formatInstant(time, offsetMinutes === undefined ? {} : { offsetMinutes });

/** The screenings of a window, sorted by testTime and id (section 4.2, rule 4). */
export function within(screenings: readonly Screening[], window: Window): Screening[] {
  const [from, to] = [instant(window.from), instant(window.to)];
  return screenings
    .map((one) => ({ ...one, at: instant(one.testTime) }))
    .filter(({ at }) => isInside(at, { from, to }))
    .sort(compareKeys);
}

// -- servers -----------------------------------------------------------------------------------------

const PAGE_SIZE = 10;

export const usual = (server: StageOptions['server'] = {}, pages = 5): StageOptions => ({
  screenings: plain(pages * PAGE_SIZE - 4),
  window: WINDOW,
  pageSize: PAGE_SIZE,
  server,
});

/** `page`: the number of the page in the walk; `attempt`: the number of requests for it. Both start at 1. */
export type PageStep = (
  place: { readonly page: number; readonly attempt: number },
  request: ServiceRequest,
  next: Handler,
) => Promise<ServiceAnswer> | ServiceAnswer;

export const atPage = (wanted: number, step: PageStep, attempts = Infinity): ServerOptions =>
  pageStep(
    () => (place, request, next) =>
      place.page === wanted && place.attempt <= attempts ? step(place, request, next) : next(request),
  );

export const atFirst = (wanted: number, step: PageStep): ServerOptions => atPage(wanted, step, 1);

/** Calls a step for every GET of a page. `make` is called once per server. */
export const pageStep = (make: () => PageStep): ServerOptions =>
  middleware(() => {
    const step = make();
    const attempts = new Map<string, number>();
    return (request, next) => {
      if (!isScreenings(request) || request.method !== 'GET') return next(request);
      const query = queryOf(request);
      const place = `${query.get('from')} ${query.get('from_id')}`;
      const attempt = (attempts.get(place) ?? 0) + 1;
      attempts.set(place, attempt);
      return step({ page: [...attempts.keys()].indexOf(place) + 1, attempt }, request, next);
    };
  });

export const waiting =
  (ms: number, clock: Clock): PageStep =>
  async (_place, request, next) => {
    await clock.sleep(ms);
    return next(request);
  };

export const slowPages = (ms: number, clock: Clock): ServerOptions => pageStep(() => waiting(ms, clock));
