/** Section 4.2: faults in which screenings a window selects. */
import { parseScreening } from '../../engine/data/dataset.ts';
import {
  cutInstant,
  compareInstants,
  formatInstant,
  instant,
  shift,
  type Instant,
} from '../../engine/data/instant.ts';
import {
  answering,
  answers,
  both,
  defaulting,
  emptyPage,
  isScreenings,
  onPages,
  accepting,
  windowOf,
  withHeader,
} from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { TENANTS } from '../run/provisioning.ts';
import { PAGES, pageFaults, tripping, type Fault } from './fault.ts';
import { alterStored, RULES, rows, screening, withAdded, type Asked, type Row, type Rules } from './rows.ts';

const respell = (pattern: RegExp, to: string | ((sign: string) => string)): ServerOptions =>
  rows({ read: (text) => instant(text.replace(pattern, to as string)) });

const parse = (change: Rules['read']): ServerOptions => rows({ read: change });

/** Parses times that have exactly six digits differently. */
const micros = (parameter: 'from' | 'to', change: (at: Instant) => Instant): ServerOptions =>
  parse((text, name) =>
    name === parameter && /\.\d{6}(?!\d)/.test(text) ? change(instant(text)) : instant(text),
  );

/** Includes items up to `to` where `most` is 0, and before it where `most` is -1. */
const endsBy = (most: (asked: Asked) => 0 | -1): ServerOptions =>
  rows({ ends: (row, asked) => compareInstants(row.at, asked.to) <= most(asked) });

const firstBegins = (begins: (row: Row, asked: Asked) => boolean): Pick<Rules, 'begins'> => ({
  begins: (row, asked) => (asked.fromId === undefined ? begins(row, asked) : RULES.begins(row, asked)),
});

const isAfter = (row: Row, { from }: Asked): boolean => compareInstants(row.at, from) > 0;

const isNewYear = ({ from, fromId }: Asked): boolean =>
  fromId === undefined && /-01-01T00:00:00Z$/.test(formatInstant(from));

const isMidnight = (at: Instant): boolean => /T00:00:00Z$/.test(formatInstant(at));

const isInverted = (query: URLSearchParams): boolean => {
  const [from, to] = windowOf(query);
  return from !== undefined && to !== undefined && compareInstants(from, to) > 0;
};

/** Both are valid, and one ends in Z. */
const hasOneOffset = (query: URLSearchParams): boolean =>
  windowOf(query).every(Boolean) && /Z$/.test(query.get('from')!) !== /Z$/.test(query.get('to')!);

const UNFINISHED = screening(TENANTS.primary, 4_400_001n, instant('2024-06-15T12:00:00.5Z'));

export const window: readonly Fault[] = [
  {
    name: 'unfinished screenings are returned as well',
    trips: { '4.2-window': /completed screenings only.*unfinished/ },
    mayTrip: PAGES,
    bare: false,
    server: withAdded(
      () =>
        ({ tenantId }) =>
          tenantId === TENANTS.primary ? [UNFINISHED] : [],
    ),
    target: ({ dataset: _, ...target }) => ({ ...target, unfinished: [parseScreening(UNFINISHED.json)] }),
  },
  ...pageFaults({ '4.2-success': /200.*204/ })({
    'an empty window is 204': answers((answer, request) =>
      isScreenings(request) && String(answer.body).startsWith('{"items":[]')
        ? { ...answer, status: 204, body: '' }
        : answer,
    ),
  }),
  ...pageFaults(
    { '4.2-success': /200.*206/ },
    { large: true },
  )({
    'a page with next is 206 Partial Content': answers((answer, request) =>
      isScreenings(request) && answer.headers.some(([name]) => name === 'link')
        ? { ...answer, status: 206 }
        : answer,
    ),
  }),
  ...tripping({ '4.2-content-type': /application\/json.*text\/plain/ })({
    'pages are text/plain': onPages((page) => withHeader(page, 'content-type', 'text/plain; charset=utf-8')),
  }),
  ...tripping({ '4.2-content-type': /application\/json.*no Content-Type/ })({
    'pages without a Content-Type': onPages((page) => withHeader(page, 'content-type', undefined)),
  }),
  ...tripping({ '4.2-from-required': /400/ })({
    'from defaults to the epoch': defaulting('from', () => '1970-01-01T00:00:00Z'),
  }),
  ...tripping({ '4.2-to-required': /400/ })({
    'to defaults to now': defaulting('to', () => new Date().toISOString()),
  }),
  ...pageFaults({ '4.2-from-inclusive': /item \d+ at/ })({
    'from compared with >': rows(firstBegins(isAfter)),
    'from compared with > where it has a fraction': rows(
      firstBegins((row, asked) =>
        asked.from.fraction === '' ? RULES.begins(row, asked) : isAfter(row, asked),
      ),
    ),
    'from compared with > in pages of fewer than ten': rows(
      firstBegins((row, asked) => (asked.pageSize < 10 ? isAfter : RULES.begins)(row, asked)),
    ),
  }),
  ...pageFaults({ '4.2-from-inclusive': /item \d+/ })({
    'stored instants cut to milliseconds': rows({ at: (text) => cutInstant(instant(text), 3) }),
    'a window that begins on a fraction of a millisecond begins a millisecond late': parse((text, name) => {
      const at = instant(text);
      return name === 'from' && at.fraction.length > 3 ? shift(cutInstant(at, 3), 1n, 3) : at;
    }),
  }),
  ...pageFaults({ '4.2-to-exclusive': /no item at/ })({
    'to compared with <=': endsBy(() => 0),
    'to compared with <= in pages of fewer than eight': endsBy(({ pageSize }) => (pageSize < 8 ? 0 : -1)),
    'to compared with <= in pages of more than a hundred': endsBy(({ pageSize }) =>
      pageSize > 100 ? 0 : -1,
    ),
  }),
  ...pageFaults({ '4.2-to-exclusive': /no item at/, '4.2-window': /only items in \[/ })({
    'to compared with <= on the pages after the first': endsBy(({ fromId }) =>
      fromId === undefined ? -1 : 0,
    ),
  }),
  ...pageFaults({ '4.2-to-exclusive': /no item at or after/, '4.2-window': /only items in \[/ })({
    'to is ignored': rows({ ends: () => true }),
  }),
  ...pageFaults({ '4.2-window': /only items in \[/, '4.2-fractions': /not item/ })({
    'a from in microseconds is cut to milliseconds': micros('from', (at) => cutInstant(at, 3)),
  }),
  ...pageFaults({ '4.2-window': /on the page|number \d+/, '4.2-fractions': /item/ })({
    'a fraction of more than nine digits is left out': parse((text) => {
      const at = instant(text);
      return at.fraction.length > 9 ? cutInstant(at, 0) : at;
    }),
    'a to one microsecond after a second is that second': micros('to', (at) =>
      at.fraction === '000001' ? cutInstant(at, 0) : at,
    ),
    'to is a millisecond early, as a way to make <= out of <': rows({
      ends: (row, { to }) => compareInstants(row.at, shift(to, -1n, 3)) <= 0,
    }),
  }),
  ...pageFaults({ '4.2-to-exclusive': /no item at/, '4.2-window': /only items in \[/ })({
    'a window from one midnight to another includes the day that follows': rows({
      ends: (row, { from, to }) => {
        const isOfDays = isMidnight(from) && isMidnight(to) && compareInstants(from, to) < 0;
        return compareInstants(row.at, isOfDays ? shift(to, 86_400n, 0) : to) < 0;
      },
    }),
  }),
  ...pageFaults({ '4.2-window': /only items in \[|on the page/ })({
    'only the date of from counts': parse((text, name) =>
      instant(name === 'from' ? `${text.slice(0, 10)}T00:00:00Z` : text),
    ),
  }),
  ...pageFaults({ '4.2-window': /on the page|invented/ })({
    'the screening in the middle of a page of more than ten is left out': alterStored((page) => ({
      ...page,
      items: page.items.filter((_, i) => i === 0 || page.items.length < 11 || i !== page.items.length >> 1),
    })),
  }),
  ...tripping(
    { '4.2-window': /only items that the dataset holds/ },
    { mayTrip: [...PAGES, '6-same-object'], bare: false },
  )({
    'screenings that were never recorded': alterStored((page, { pageSize }) => {
      const last = page.items.at(-1);
      // Far from every id in the dataset.
      const id = (last?.id ?? 0n) + 3_000_000_000_000n;
      if (!last || page.items.length > 3 || page.items.length === pageSize) return page;
      const json = last.json.replace(/"id":\d+/, `"id":${id}`);
      return { ...page, items: [...page.items, { ...last, id, json }] };
    }),
  }),
  ...pageFaults(
    { '4.2-window': /the dataset holds it/ },
    { bare: false },
  )({
    'a screening that was deleted in one replica of the store': rows({ exists: ({ id }) => id !== 21n }),
  }),
  ...pageFaults({ '4.2-window': /items in \[|on the page/ })({
    'timestamps compared as text': rows({
      ...firstBegins((row, { raw }) => row.testTime >= (raw.get('from') ?? '')),
      ends: (row, { raw }) => row.testTime < (raw.get('to') ?? ''),
    }),
  }),
  ...pageFaults({ '4.2-offsets': /item/ })({
    'the sign of hour 00 is lost': respell(/-(00:\d\d)$/, '+$1'),
  }),
  ...pageFaults({ '4.2-offsets': /items|item \d+/ })({
    'the offset of from and to is ignored': respell(/[+-]\d\d:\d\d$/, 'Z'),
    'the sign of an offset is turned round': respell(/[+-](?=\d\d:\d\d$)/, (sign) =>
      sign === '+' ? '-' : '+',
    ),
    'the minutes of an offset are ignored': respell(/([+-]\d\d):\d\d$/, '$1:00'),
    'the minutes of a negative offset are added instead of taken away': parse((text) => {
      const minutes = /-\d\d:(\d\d)$/.exec(text)?.[1] ?? 0;
      return shift(instant(text), BigInt(-2 * 60 * Number(minutes)), 0);
    }),
    'the offset of from is taken for the one of to': rows({
      ends: (row, { raw }) => {
        const [from, to] = [raw.get('from') ?? '', raw.get('to') ?? ''];
        const offset = /[+-]\d\d:\d\d$/;
        const read = offset.test(from) && offset.test(to) ? to.replace(offset, offset.exec(from)![0]) : to;
        return compareInstants(row.at, instant(read)) < 0;
      },
    }),
    'an offset of five hours is taken for four': respell(/\+05:(\d\d)$/, '+04:$1'),
  }),
  ...pageFaults(
    { '4.2-from-inclusive': /item \d+ at/ },
    { bare: false },
  )({
    'a window that begins with a year leaves its first instant out': rows({
      begins: (row, asked) => RULES.begins(row, asked) && !(isNewYear(asked) && !isAfter(row, asked)),
    }),
  }),
  ...pageFaults(
    { '4.2-from-inclusive': /item \d+ at/ },
    { bare: false, needsNeighbours: true },
  )({
    'from compared with > for the second tenant': rows(
      firstBegins((row, asked) =>
        asked.tenantId === TENANTS.secondTenant ? isAfter(row, asked) : RULES.begins(row, asked),
      ),
    ),
  }),
  ...pageFaults(
    { '4.2-offsets': /item \d+/ },
    { bare: false },
  )({
    'months that are over where from is spelled are not looked at': rows({
      begins: (row, asked) =>
        RULES.begins(row, asked) && formatInstant(row.at) >= (asked.raw.get('from') ?? '').slice(0, 7),
    }),
  }),
  ...pageFaults({ '4.2-offsets': /200.*400/ })({
    'offsets beyond twelve hours are refused': answering('400 invalid_time_range', (query) =>
      ['from', 'to'].some((name) => /\+1[34]:\d\d$/.test(query.get(name) ?? '')),
    ),
  }),
  ...pageFaults({ '4.2-fractions': /not item|item \d+/ })({
    'from and to cut to milliseconds': parse((text) => cutInstant(instant(text), 3)),
    'from and to cut to seconds': parse((text) => cutInstant(instant(text), 0)),
  }),
  ...pageFaults({ '4.2-fractions': /item \d+/ })({
    'only to is cut to milliseconds': parse((text, name) =>
      cutInstant(instant(text), name === 'to' ? 3 : 99),
    ),
    'from and to rounded to milliseconds': parse((text) => {
      const at = instant(text);
      return at.fraction.length > 3 ? cutInstant(shift(at, 500n), 3) : at;
    }),
    'stored instants and parameters cut to milliseconds': rows({
      at: (text) => cutInstant(instant(text), 3),
      read: (text) => cutInstant(instant(text), 3),
    }),
  }),
  ...pageFaults({ '4.2-r1-zero-width': /200.*400 invalid_time_range/ })({
    'from equal to to is refused': answering('400 invalid_time_range', (query) => {
      const [from, to] = windowOf(query);
      return from !== undefined && to !== undefined && compareInstants(from, to) === 0;
    }),
  }),
  ...pageFaults({ '4.2-r1-zero-width': /no items and no next/ })({
    'a window of no width holds the items of its instant': endsBy(({ from, to }) =>
      compareInstants(from, to) === 0 ? 0 : -1,
    ),
    'a window of no width holds the items of its instant where pageSize is given': endsBy(
      ({ from, to, raw }) => (raw.has('pageSize') && compareInstants(from, to) === 0 ? 0 : -1),
    ),
    'a window of no width, spelled with two offsets, holds the items of its instant': endsBy(
      ({ from, to, raw }) => (raw.get('from') !== raw.get('to') && compareInstants(from, to) === 0 ? 0 : -1),
    ),
  }),
  ...tripping({ '4.2-r2-inverted': /400 invalid_time_range.*200/ })({
    'to earlier than from is an empty page after a cursor': accepting('invalid_time_range', (query) =>
      query.has('from_id'),
    ),
  }),
  ...tripping({ '4.2-r2-inverted': /400 invalid_time_range/ })({
    'to earlier than from is an empty page': answering(emptyPage, isInverted),
  }),
  ...tripping({ '4.2-r2-inverted': /400 invalid_time_range.*invalid_request/ })({
    'to earlier than from is invalid_request': answering('400 invalid_request', isInverted),
  }),
  ...pageFaults({ '4.2-r2-inverted': /400 invalid_time_range/ })({
    'from and to compared as text to see which is earlier, where one of them has an offset': both(
      answering(emptyPage, (query) => hasOneOffset(query) && isInverted(query)),
      answering(
        '400 invalid_time_range',
        (query) => hasOneOffset(query) && query.get('to')! < query.get('from')!,
      ),
    ),
  }),
];
