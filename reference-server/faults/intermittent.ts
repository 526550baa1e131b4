/** Mistakes of one answer in many. */
import { errorAnswer } from '../http/http.ts';
import { isScreenings, middleware, pages } from '../run/alter.ts';
import type { Fault } from './fault.ts';
import { dying } from './rest-errors.ts';

const WALK = [
  '2.4-next',
  '4.2-success',
  '4.2-window',
  '4.2-from-inclusive',
  '4.2-to-exclusive',
  '4.2-from_id',
  '4.2-offsets',
  '4.2-fractions',
  '4.2-pageSize-bounds',
  '4.2-pageSize-default',
  '4.2-r1-zero-width',
  '4.2-r4-order',
  '4.2-r5-exactly-once',
  '4.2-r6-next-from',
  '4.2-r6-next-from_id',
  '4.2-repeatable',
  '7.2-body',
  '7.2-server-error',
] as const;

export const intermittent: readonly Fault[] = [
  {
    name: 'one page in fifty with its first two items changed round',
    trips: { '4.2-r4-order': /ascending/ },
    mayTrip: WALK,
    server: pages((page, _, number) => {
      const [first, second] = page.items;
      if (number % 50 === 17 && first && second) page.items.splice(0, 2, second, first);
    }),
  },
  {
    name: 'one page in fifty without its Link header',
    trips: { '4.2-r7-link': /Link header/ },
    mayTrip: WALK,
    server: everyFiftieth(
      (page) => (page.headers = page.headers.filter(([name]) => name !== 'link')),
      (items) => items > 0,
    ),
  },
  {
    name: 'one answer in twenty-five is 503',
    trips: { '7.2-no-unprovoked-5xx': /no 5xx.*503/ },
    mayTrip: WALK,
    needsNeighbours: true,
    server: middleware(() => {
      let asked = 0;
      return (request, next) =>
        isScreenings(request) && (asked += 1) % 25 === 15
          ? errorAnswer(503, 'service_unavailable', 'try again')
          : next(request);
    }),
  },
  {
    name: 'one answer in twenty-five breaks off in its middle',
    trips: { '7.2-no-unprovoked-5xx': /broken connection/ },
    mayTrip: WALK,
    needsNeighbours: true,
    server: middleware(() => {
      let asked = 0;
      return (request, next) =>
        isScreenings(request) && (asked += 1) % 25 === 15
          ? { status: 200, headers: [['content-type', 'application/json']], body: dying() }
          : next(request);
    }),
  },
];

/** Alters one in fifty of the pages with more than three items and a next. */
function everyFiftieth(
  alter: Parameters<typeof pages>[0],
  counts: (items: number) => boolean = (items) => items > 3,
): NonNullable<Fault['server']> {
  let seen = 0;
  return pages((page, ...rest) => {
    if (!(page.links as { next?: string }).next || !counts(page.items.length)) return;
    seen += 1;
    if (seen % 50 === 21) alter(page, ...rest);
  });
}
