/** Section 4.2: which screenings a window selects. */
import { parseScreening } from '../../engine/data/dataset.ts';
import {
  cutInstant,
  compareInstants,
  instant,
  parseInstant,
  shift,
  type Instant,
} from '../../engine/data/instant.ts';
import { jsonAnswer } from '../http/http.ts';
import { answers, instead, isScreenings, queryOf, requests, withHeader, withQuery } from '../run/alter.ts';
import { TENANTS } from '../run/tenants.ts';
import type { Fault } from './fault.ts';
import { onTheirWay, RULES, rows, screening, withFurther } from './rows.ts';

/** Other requirements that a moved or widened window breaks. */
const WINDOW = [
  '4.2-window',
  '4.2-from-inclusive',
  '4.2-to-exclusive',
  '4.2-offsets',
  '4.2-fractions',
  '4.2-from_id',
  '4.2-r1-zero-width',
  '4.2-r5-exactly-once',
  '4.2-repeatable',
  '2.4-next',
] as const;

const emptyPage = () => jsonAnswer(200, { items: [], links: {} });
const before = (text: string | null): Instant | undefined => (text ? parseInstant(text) : undefined);
const always = (text: string): Instant => parseInstant(text) as Instant;

/** An offset dropped, turned round or cut before the instant is taken. */
const respelt = (change: (text: string) => string): NonNullable<Fault['server']> =>
  rows({ read: (text) => always(change(text)) });

/** Stored, and not completed. */
const UNFINISHED = screening(TENANTS.primary, 4_400_001n, instant('2024-06-15T12:00:00.5Z'));

export const window: readonly Fault[] = [
  {
    name: 'unfinished screenings are returned as well',
    trips: { '4.2-window': /completed screenings only.*unfinished/ },
    mayTrip: WINDOW,
    bare: false,
    server: withFurther(
      () =>
        ({ tenantId }) =>
          tenantId === TENANTS.primary ? [UNFINISHED] : [],
    ),
    target: ({ dataset: _, ...target }) => ({ ...target, unfinished: [parseScreening(UNFINISHED.json)] }),
  },
  {
    name: 'to earlier than from is an empty page after a cursor',
    trips: { '4.2-r2-inverted': /400 invalid_time_range.*200/ },
    server: answers((answer, request) =>
      isScreenings(request) &&
      String(answer.body).includes('invalid_time_range') &&
      queryOf(request).has('from_id')
        ? jsonAnswer(200, { items: [], links: {} })
        : answer,
    ),
  },
  {
    name: 'the sign of hour 00 is lost',
    trips: { '4.2-offsets': /item/ },
    mayTrip: WINDOW,
    server: respelt((text) => text.replace(/-(00:\d\d)$/, '+$1')),
  },
  {
    name: 'an empty window is 204',
    trips: { '4.2-success': /200.*204/ },
    mayTrip: ['4.2-r1-zero-width', '4.2-fractions', '4.2-window', '4.2-from_id'],
    server: answers((answer, request) =>
      isScreenings(request) && String(answer.body).startsWith('{"items":[]')
        ? { ...answer, status: 204, body: '' }
        : answer,
    ),
  },
  {
    name: 'a page with next is 206 Partial Content',
    trips: { '4.2-success': /200.*206/ },
    mayTrip: ['4.2-r5-exactly-once', '4.2-pageSize-bounds', '4.2-pageSize-default'],
    large: true,
    server: answers((answer, request) =>
      isScreenings(request) && answer.headers.some(([name]) => name === 'link')
        ? { ...answer, status: 206 }
        : answer,
    ),
  },
  {
    name: 'pages are text/plain',
    trips: { '4.2-content-type': /application\/json.*text\/plain/ },
    server: answers((answer, request) =>
      isScreenings(request) && answer.status === 200
        ? withHeader(answer, 'content-type', 'text/plain; charset=utf-8')
        : answer,
    ),
  },
  {
    name: 'pages without a Content-Type',
    trips: { '4.2-content-type': /application\/json.*no Content-Type/ },
    server: answers((answer, request) =>
      isScreenings(request) && answer.status === 200 ? withHeader(answer, 'content-type', undefined) : answer,
    ),
  },
  {
    name: 'from defaults to the epoch',
    trips: { '4.2-from-required': /400/ },
    server: requests((request) =>
      isScreenings(request) && !queryOf(request).has('from')
        ? withQuery(request, (query) => query.set('from', '1970-01-01T00:00:00Z'))
        : request,
    ),
  },
  {
    name: 'to defaults to now',
    trips: { '4.2-to-required': /400/ },
    server: requests((request) =>
      isScreenings(request) && !queryOf(request).has('to')
        ? withQuery(request, (query) => query.set('to', new Date().toISOString()))
        : request,
    ),
  },
  {
    name: 'from compared with >',
    trips: { '4.2-from-inclusive': /item \d+ at/ },
    mayTrip: WINDOW,
    server: rows({
      begins: (row, asked) =>
        asked.fromId === undefined ? compareInstants(row.at, asked.from) > 0 : RULES.begins(row, asked),
    }),
  },
  {
    name: 'from compared with > where it has a fraction',
    trips: { '4.2-from-inclusive': /item \d+ at/ },
    mayTrip: WINDOW,
    server: rows({
      begins: (row, asked) =>
        asked.fromId === undefined && asked.from.fraction !== ''
          ? compareInstants(row.at, asked.from) > 0
          : RULES.begins(row, asked),
    }),
  },
  {
    name: 'to compared with <=',
    trips: { '4.2-to-exclusive': /no item at or after/ },
    mayTrip: WINDOW,
    server: rows({ ends: (row, { to }) => compareInstants(row.at, to) <= 0 }),
  },
  {
    name: 'to compared with <= on the pages after the first',
    trips: { '4.2-to-exclusive': /no item at/, '4.2-window': /only items in \[/ },
    mayTrip: WINDOW,
    server: rows({
      ends: (row, { to, fromId }) => compareInstants(row.at, to) <= (fromId === undefined ? -1 : 0),
    }),
  },
  {
    name: 'to is a millisecond early, as a way to make <= out of <',
    trips: { '4.2-window': /on the page|number \d+/, '4.2-fractions': /item/ },
    mayTrip: WINDOW,
    server: rows({ ends: (row, { to }) => compareInstants(row.at, shift(to, -1n, 3)) <= 0 }),
  },
  {
    name: 'to is ignored',
    trips: { '4.2-to-exclusive': /no item at or after/, '4.2-window': /only items in \[/ },
    mayTrip: [...WINDOW, '4.2-success'],
    server: rows({ ends: () => true }),
  },
  {
    name: 'only the date of from counts',
    trips: { '4.2-window': /only items in \[|on the page/ },
    mayTrip: WINDOW,
    server: rows({
      read: (text, name) => (name === 'from' ? instant(`${text.slice(0, 10)}T00:00:00Z`) : always(text)),
    }),
  },
  {
    name: 'the screening in the middle of a page of more than ten is left out',
    trips: { '4.2-window': /on the page|invented/ },
    mayTrip: [...WINDOW, '2.4-items'],
    server: onTheirWay((page) => ({
      ...page,
      items: page.items.filter((_, i) => i === 0 || page.items.length < 11 || i !== page.items.length >> 1),
    })),
  },
  {
    name: 'screenings that were never recorded',
    trips: { '4.2-window': /only items that the dataset holds/ },
    mayTrip: ['4.2-r5-exactly-once', '4.2-from_id', '4.2-offsets', '4.2-repeatable', '6-same-object'],
    bare: false,
    server: onTheirWay((page, { pageSize }) => {
      const last = page.items.at(-1);
      // Far from every id that the dataset gives.
      const id = (last?.id ?? 0n) + 3_000_000_000_000n;
      if (!last || page.items.length > 3 || page.items.length === pageSize) return page;
      return {
        ...page,
        items: [...page.items, { ...last, id, json: last.json.replace(/"id":\d+/, `"id":${id}`) }],
      };
    }),
  },
  {
    name: 'a screening that was deleted in one replica of the store',
    trips: { '4.2-window': /the dataset holds it/ },
    mayTrip: ['4.2-from_id', '4.2-from-inclusive', '4.2-r5-exactly-once', '4.2-offsets', '2.4-next'],
    bare: false,
    server: rows({ exists: ({ id }) => id !== 21n }),
  },
  {
    name: 'the offset of from and to is ignored',
    trips: { '4.2-offsets': /items|item \d+/ },
    mayTrip: WINDOW,
    server: respelt((text) => text.replace(/[+-]\d\d:\d\d$/, 'Z')),
  },
  {
    name: 'the sign of an offset is turned round',
    trips: { '4.2-offsets': /items|item \d+/ },
    mayTrip: WINDOW,
    server: respelt((text) => text.replace(/[+-](?=\d\d:\d\d$)/, (sign) => (sign === '+' ? '-' : '+'))),
  },
  {
    name: 'the minutes of an offset are ignored',
    trips: { '4.2-offsets': /items|item \d+/ },
    mayTrip: WINDOW,
    server: respelt((text) => text.replace(/([+-]\d\d):\d\d$/, '$1:00')),
  },
  {
    name: 'the minutes of a negative offset are added instead of taken away',
    trips: { '4.2-offsets': /items|item \d+/ },
    mayTrip: WINDOW,
    server: rows({
      read: (text) => {
        const minutes = /-\d\d:(\d\d)$/.exec(text)?.[1];
        return minutes ? shift(always(text), BigInt(-2 * 60 * Number(minutes)), 0) : always(text);
      },
    }),
  },
  {
    name: 'an offset of five hours is taken for four',
    trips: { '4.2-offsets': /items|item \d+/ },
    mayTrip: WINDOW,
    server: respelt((text) => text.replace(/\+05:(\d\d)$/, '+04:$1')),
  },
  {
    name: 'offsets beyond twelve hours are refused',
    trips: { '4.2-offsets': /200.*400/ },
    mayTrip: [...WINDOW, '4.2-r2-inverted'],
    server: instead((request) =>
      [queryOf(request).get('from'), queryOf(request).get('to')].some((text) =>
        /\+1[34]:\d\d$/.test(text ?? ''),
      )
        ? jsonAnswer(400, { code: 'invalid_time_range' })
        : undefined,
    ),
  },
  {
    name: 'timestamps compared as text',
    trips: { '4.2-window': /items in \[|on the page/ },
    mayTrip: [...WINDOW, '4.2-r4-order', '4.2-r6-next-from'],
    server: rows({
      begins: (row, asked) =>
        asked.fromId === undefined ? row.testTime >= (asked.raw.get('from') ?? '') : RULES.begins(row, asked),
      ends: (row, asked) => row.testTime < (asked.raw.get('to') ?? ''),
    }),
  },
  {
    name: 'from and to cut to milliseconds',
    trips: { '4.2-fractions': /not item|item \d+/ },
    mayTrip: WINDOW,
    server: rows({ read: (text) => cutInstant(always(text), 3) }),
  },
  {
    name: 'from and to cut to seconds',
    trips: { '4.2-fractions': /not item|item \d+/ },
    mayTrip: WINDOW,
    server: rows({ read: (text) => cutInstant(always(text), 0) }),
  },
  {
    name: 'only to is cut to milliseconds',
    trips: { '4.2-fractions': /item \d+/ },
    mayTrip: WINDOW,
    server: rows({ read: (text, name) => (name === 'to' ? cutInstant(always(text), 3) : always(text)) }),
  },
  {
    name: 'from and to rounded to milliseconds',
    trips: { '4.2-fractions': /item \d+/ },
    mayTrip: WINDOW,
    server: rows({
      read: (text) => {
        const at = always(text);
        return at.fraction.length > 3 ? cutInstant(shift(at, 500n), 3) : at;
      },
    }),
  },
  {
    name: 'stored instants cut to milliseconds',
    trips: { '4.2-from-inclusive': /item \d+/ },
    mayTrip: [...WINDOW, '4.2-r4-order'],
    server: rows({ at: (text) => cutInstant(instant(text), 3) }),
  },
  {
    name: 'stored instants and parameters cut to milliseconds',
    trips: { '4.2-fractions': /item \d+/ },
    mayTrip: [...WINDOW, '4.2-r4-order'],
    server: rows({ at: (text) => cutInstant(instant(text), 3), read: (text) => cutInstant(always(text), 3) }),
  },
  {
    name: 'a window that begins on a fraction of a millisecond begins a millisecond late',
    trips: { '4.2-from-inclusive': /item \d+/ },
    mayTrip: WINDOW,
    server: rows({
      read: (text, name) => {
        const at = always(text);
        return name === 'from' && at.fraction.length > 3 ? shift(cutInstant(at, 3), 1n, 3) : at;
      },
    }),
  },
  {
    name: 'from equal to to is refused',
    mayTrip: ['4.2-success'],
    trips: { '4.2-r1-zero-width': /200.*400 invalid_time_range/ },
    server: instead((request) => {
      const [from, to] = ['from', 'to'].map((name) => before(queryOf(request).get(name)));
      return from && to && compareInstants(from, to) === 0
        ? jsonAnswer(400, { code: 'invalid_time_range' })
        : undefined;
    }),
  },
  {
    name: 'a window of no width holds the items of its instant',
    trips: { '4.2-r1-zero-width': /no items and no next/ },
    mayTrip: ['4.2-window', '4.2-to-exclusive'],
    server: rows({
      ends: (row, asked) =>
        compareInstants(asked.from, asked.to) === 0
          ? compareInstants(row.at, asked.to) <= 0
          : RULES.ends(row, asked),
    }),
  },
  {
    name: 'to earlier than from is an empty page',
    trips: { '4.2-r2-inverted': /400 invalid_time_range/ },
    server: instead((request) => {
      const [from, to] = ['from', 'to'].map((name) => before(queryOf(request).get(name)));
      return from && to && compareInstants(from, to) > 0 ? emptyPage() : undefined;
    }),
  },
  {
    name: 'to earlier than from is invalid_request',
    trips: { '4.2-r2-inverted': /400 invalid_time_range.*invalid_request/ },
    server: instead((request) => {
      const [from, to] = ['from', 'to'].map((name) => before(queryOf(request).get(name)));
      return from && to && compareInstants(from, to) > 0
        ? jsonAnswer(400, { code: 'invalid_request' })
        : undefined;
    }),
  },
  {
    name: 'from and to compared as text to see which is earlier',
    trips: { '4.2-r2-inverted': /400 invalid_time_range/ },
    mayTrip: ['4.2-success', '4.2-r1-zero-width', '4.2-offsets', '4.2-fractions'],
    server: instead((request) => {
      const [from, to] = ['from', 'to'].map((name) => queryOf(request).get(name));
      if (!before(from ?? null) || !before(to ?? null)) return undefined;
      if (to! < from!) return jsonAnswer(400, { code: 'invalid_time_range' });
      return compareInstants(instant(from!), instant(to!)) > 0 ? emptyPage() : undefined;
    }),
  },
  {
    name: 'the window is at most a year wide',
    trips: { '4.2-success': /200.*400/ },
    mayTrip: [...WINDOW, '4.2-pageSize-bounds', '4.2-pageSize-default'],
    bare: false,
    server: instead((request) => {
      const [from, to] = ['from', 'to'].map((name) => before(queryOf(request).get(name)));
      return from && to && to.seconds - from.seconds > 300n * 86_400n
        ? jsonAnswer(400, { code: 'invalid_time_range' })
        : undefined;
    }),
  },
];
