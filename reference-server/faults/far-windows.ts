/** Section 4.2: windows beyond what a store or a language can count, and the ends of fractions. */
import { compareInstants, instant, parseInstant, shift, type Instant } from '../../engine/data/instant.ts';
import { errorAnswer, jsonAnswer } from '../http/http.ts';
import { instead, isScreenings, middleware, nextUrls, queryOf, withQuery } from '../run/alter.ts';
import type { Fault } from './fault.ts';
import { rows } from './rows.ts';

const WINDOW = [
  '4.2-window',
  '4.2-success',
  '4.2-from-inclusive',
  '4.2-to-exclusive',
  '4.2-r1-zero-width',
  '4.2-r2-inverted',
  '4.2-r5-exactly-once',
  '4.2-r6-next-to',
  '2.4-next',
] as const;

/** Counted in this many bits, with a sign. */
const wrapped =
  (bits: bigint, digits: number) =>
  (text: string): Instant => {
    const at = parseInstant(text) as Instant;
    const count =
      at.seconds * 10n ** BigInt(digits) + BigInt(at.fraction.padEnd(digits, '0').slice(0, digits) || '0');
    return shift({ seconds: 0n, fraction: '' }, BigInt.asIntN(Number(bits), count), digits);
  };

const windowOf = (query: URLSearchParams): [Instant | undefined, Instant | undefined] => [
  parseInstant(query.get('from') ?? ''),
  parseInstant(query.get('to') ?? ''),
];

const refusedWhere = (where: (from: Instant, to: Instant) => boolean): NonNullable<Fault['server']> =>
  instead((request) => {
    const [from, to] = windowOf(queryOf(request));
    const valid = from && to && compareInstants(from, to) < 0;
    return valid && where(from, to) ? jsonAnswer(400, { code: 'invalid_time_range' }) : undefined;
  });

const digitsOf = (query: URLSearchParams): number =>
  Math.max(...['from', 'to'].map((name) => /\.(\d+)/.exec(query.get(name) ?? '')?.[1]?.length ?? 0));

export const farWindows: readonly Fault[] = [
  {
    name: 'instants are counted in 64 bits of nanoseconds',
    trips: { '4.2-window': /items in \[|on the page/ },
    mayTrip: WINDOW,
    server: rows({ read: wrapped(64n, 9) }),
  },
  {
    name: 'a to in the last year that can be written is a crash: 500',
    trips: { '7.2-no-unprovoked-5xx': /no 5xx/ },
    mayTrip: [...WINDOW, '7.2-body'],
    server: instead((request) =>
      queryOf(request).get('to')?.startsWith('9999') ? errorAnswer(500, 'internal_error', 'oops') : undefined,
    ),
  },
  {
    name: 'instants are counted in 32 bits of seconds',
    trips: { '4.2-window': /items in \[|on the page/ },
    mayTrip: [...WINDOW, '4.2-fractions', '4.2-offsets', '4.2-from_id'],
    server: rows({
      read: (text) => ({ ...wrapped(32n, 0)(text), fraction: (parseInstant(text) as Instant).fraction }),
    }),
  },
  {
    name: 'years below 100 are years of our time',
    trips: { '4.2-window': /items in \[/ },
    mayTrip: WINDOW,
    server: rows({ read: (text) => instant(text.replace(/^00(?=\d\d-)/, '20')) }),
  },
  {
    name: 'windows of more than ten years are refused',
    trips: { '4.2-success': /200.*400/ },
    mayTrip: WINDOW,
    bare: false,
    server: refusedWhere((from, to) => to.seconds - from.seconds > 315_576_000n),
  },
  {
    name: 'years before 1678 are refused',
    trips: { '4.2-success': /200.*400/ },
    mayTrip: WINDOW,
    server: refusedWhere((from) => from.seconds < instant('1678-01-01T00:00:00Z').seconds),
  },
  {
    name: 'a year of a whole century never has a 29 February',
    trips: { '4.2-success': /200.*400/ },
    mayTrip: WINDOW,
    server: instead((request) =>
      /[?&](from|to)=\d\d00-02-29/.test(request.path)
        ? jsonAnswer(400, { code: 'invalid_time_range' })
        : undefined,
    ),
  },
  {
    name: 'a window that lies in the future is 404',
    trips: { '4.2-success': /200.*404/ },
    mayTrip: ['4.2-r1-zero-width'],
    server: instead((request) => {
      const [from, to] = windowOf(queryOf(request));
      const future = from && to && from.seconds > BigInt(Math.floor(Date.now() / 1000));
      return future && compareInstants(from, to) < 0 && request.headers['authorization']
        ? errorAnswer(404, 'not_found', 'there is nothing yet')
        : undefined;
    }),
  },
  {
    name: 'a to in the future is now in next',
    trips: { '4.2-r6-next-to': /next with the request's to=/ },
    mayTrip: ['4.2-window'],
    server: nextUrls((next) => {
      const to = parseInstant(next.searchParams.get('to') ?? '');
      if (to && to.seconds > BigInt(Math.floor(Date.now() / 1000)))
        next.searchParams.set('to', new Date().toISOString());
      return next;
    }),
  },
  {
    name: 'the default page size is 99',
    trips: { '4.2-pageSize-default': /the 100 items that pageSize=100 gives.*99 items/ },
    mayTrip: ['4.2-r6-next-pageSize', '2.4-full-pages'],
    server: middleware(
      () => (request, next) =>
        next(
          isScreenings(request) && !queryOf(request).has('pageSize')
            ? withQuery(request, (query) => query.set('pageSize', '99'))
            : request,
        ),
    ),
  },
  {
    name: 'times of more than nine digits are refused',
    trips: { '4.2-fractions': /200.*400/ },
    server: instead((request) =>
      digitsOf(queryOf(request)) > 9 ? jsonAnswer(400, { code: 'invalid_time_range' }) : undefined,
    ),
  },
  {
    name: 'times of two digits are refused',
    trips: { '4.2-fractions': /200.*400/ },
    mayTrip: WINDOW,
    server: instead((request) =>
      ['from', 'to'].some((name) => /\.\d\d(Z|[+-])/.test(queryOf(request).get(name) ?? ''))
        ? jsonAnswer(400, { code: 'invalid_time_range' })
        : undefined,
    ),
  },
  {
    name: 'a fraction is a number of microseconds, however many digits it has',
    trips: { '4.2-fractions': /item \d+/ },
    mayTrip: [...WINDOW, '4.2-offsets', '4.2-from_id', '4.2-repeatable', '4.2-r4-order'],
    server: rows({
      read: (text) => {
        const at = parseInstant(text) as Instant;
        const digits = /\.(\d+)/.exec(text)?.[1] ?? '';
        return shift({ ...at, fraction: '' }, BigInt(digits || '0'), 6);
      },
    }),
  },
];
