/** Section 4.2, rules 4 and 5: faults in order, cursors and page sizes. */
import { compareInstants, cutInstant } from '../../engine/data/instant.ts';
import {
  answering,
  defaulting,
  isScreenings,
  middleware,
  queryOf,
  refusal,
  storedPages,
  withQuery,
} from '../run/alter.ts';
import { hasParameter } from '../run/conditions.ts';
import type { ServerOptions } from '../run/start.ts';
import { PAGES, theme, type Fault } from './fault.ts';
import { alterStored, byDepth, byId, byInstant, RULES, rows, without } from './rows.ts';
import type { Asked, Row } from './rows.ts';
import type { PageQuery, StoredPage } from '../parts.ts';

const { fails, failsLater } = theme(PAGES);

/** A pseudo-random number that is the same on every start. */
const placeOf = ({ id }: Row): number => Number((id * 2654435761n) % 65_521n);

const starts = (rule: (row: Row, asked: Asked, side: number) => boolean): ServerOptions =>
  rows({ begins: (row, asked) => rule(row, asked, compareInstants(row.at, asked.from)) });

/** The rest of the cursor's tie on a page after a cursor. */
const atCursor = ({ items }: StoredPage, { fromId, from }: PageQuery): StoredPage['items'] =>
  fromId === undefined ? [] : items.filter(({ testTime }) => compareInstants(RULES.at(testTime), from) === 0);

const losingFirst = (size: number): ServerOptions =>
  alterStored((page, { pageSize, fromId }) =>
    pageSize === size && fromId !== undefined ? without(page) : page,
  );

const refusedSizes = (from: number, to: number): ServerOptions =>
  answering('400 page_size_out_of_range', (_, query) => {
    const pageSize = Number(query.get('pageSize') ?? 0);
    return pageSize >= from && pageSize <= to;
  });

const defaultSize = (pageSize: string): ServerOptions =>
  defaulting('pageSize', () => pageSize, hasParameter('from'));

export const paging: readonly Fault[] = [
  ...fails({ '4.2-r4-order': /smaller id comes first/ })({
    'ties are in the order of storage': rows({
      order: (a, b) => byInstant(a, b) || placeOf(a) - placeOf(b),
    }),
  }),
  ...fails({ '4.2-r4-order': /smaller id comes first/, '4.2-from_id': /items|item \d+/ })({
    'ids of a tie are sorted and compared as text': rows({
      order: (a, b) => byInstant(a, b) || (String(a.id) < String(b.id) ? -1 : 1),
      begins: (row, { from, fromId = '' }) => {
        const side = compareInstants(row.at, from);
        return side > 0 || (side === 0 && String(row.id) > String(fromId));
      },
    }),
  }),
  ...fails({ '4.2-r4-order': /testTime ascending/ })({
    'screenings are sorted newest first': rows({ order: (a, b) => byInstant(b, a) || byId(b, a) }),
    'timestamps are sorted as text': rows({
      order: (a, b) => (a.testTime < b.testTime ? -1 : a.testTime > b.testTime ? 1 : byId(a, b)),
    }),
    'timestamps are sorted by millisecond': rows({
      order: (a, b) => compareInstants(cutInstant(a.at, 3), cutInstant(b.at, 3)) || byId(a, b),
    }),
  }),
  ...fails({ '4.2-r4-order': /after item/ })({
    'two items are swapped after the fifth page of size 7': byDepth((page, depth, { pageSize }) => {
      const [first, second, a, b, ...others] = page.items;
      return depth > 5 && pageSize === 7 && b
        ? { ...page, items: [first!, second!, b, a!, ...others] }
        : page;
    }),
  }),
  ...fails({ '4.2-r5-exactly-once': /is missing/ })({
    'a single item after a page of a hundred and more has no next': storedPages(() => async (query, ask) => {
      const { pageSize } = query;
      const { more } = await ask({ ...query, pageSize: pageSize < 100 ? pageSize : pageSize + 1 });
      return { ...(await ask(query)), more };
    }),
    'a last page that a hundred items and more fill lacks one of them': alterStored((page, { pageSize }) =>
      pageSize > 100 && page.items.length === pageSize && !page.more ? without(page, pageSize - 1) : page,
    ),
    'the second of three ties across a page boundary is lost': alterStored((page, query) =>
      atCursor(page, query).length === 2 ? without(page) : page,
    ),
    'pages use an OFFSET that is too great by one': storedPages(() => async (query, ask) => {
      if (query.fromId === undefined || query.pageSize < 4) return ask(query);
      return without(await ask({ ...query, pageSize: query.pageSize + 1 }));
    }),
  }),
  ...fails({ '4.2-r5-exactly-once': /is missing/, '4.2-from_id': /items|item \d+/ })({
    'the cursor is the testTime alone, compared with >': starts((_, { fromId }, side) =>
      fromId === undefined ? side >= 0 : side > 0,
    ),
  }),
  ...fails({
    '4.2-from_id': /strictly after|items/,
    '4.2-r5-exactly-once': /each screening once|leads back|repeats/,
  })({
    'the cursor compares the id with >=': starts(
      (row, { fromId }, side) => side > 0 || (side === 0 && row.id >= (fromId ?? row.id)),
    ),
  }),
  ...failsLater({ '4.2-from_id': /on the page/ })({
    'pages of 200 after a cursor lose their first item': losingFirst(200),
  }),
  ...failsLater({ '4.2-window': /on the page/ })({
    'pages of 30 after a cursor lose their first item': losingFirst(30),
  }),
  ...fails({ '4.2-from_id': /strictly after|items/ })({
    'the first item at the instant of the cursor is missing where pageSize is 1000': alterStored(
      (page, query) => (query.pageSize === 1000 && atCursor(page, query).length > 0 ? without(page) : page),
    ),
    'the cursor compares testTime and id separately': starts(
      (row, { fromId }, side) => side >= 0 && (fromId === undefined || row.id > fromId),
    ),
  }),
  ...fails({ '4.2-from_id': /200.*400/ })({ 'a from_id of no screening is refused': unknownIdRefused() }),
  ...fails({ '2.4-next': /on the page.*no next/ })({
    'a traversal ends after 64 pages': {
      large: true,
      server: byDepth((page, depth) => (depth < 64 ? page : { ...page, more: false })),
    },
    'next is missing where the page size is a multiple of 64': alterStored((page, { pageSize }) => ({
      ...page,
      more: page.more && pageSize % 64 !== 0,
    })),
  }),
  ...fails({ '4.2-pageSize-default': /at most 100 items/ })({
    'pageSize defaults to 1000': defaultSize('1000'),
  }),
  ...fails({ '4.2-pageSize-default': /the 100 items that pageSize=100 gives.*99 items/ })({
    'pageSize defaults to 99': defaultSize('99'),
  }),
  ...fails({ '4.2-pageSize-bounds': /200.*page_size_out_of_range/ })({
    'pageSize 1000 is refused': refusedSizes(1000, 1000),
  }),
  ...failsLater({ '4.2-repeatable': /(number \d+|items) again/ })({
    'one of two replicas lacks a screening of seven': storedPages(() => {
      let asked = 0;
      return async (query, ask) => {
        asked += 1;
        const page = await ask(query);
        return asked % 2 === 0 ? { ...page, items: page.items.filter(({ id }) => id % 7n !== 3n) } : page;
      };
    }),
  }),
  ...fails({ '4.2-repeatable': /(number \d+|items) again/ })({
    'ties come in a random order': alterStored((page) => ({ ...page, items: withTiesAtRandom(page.items) })),
  }),
];

function withTiesAtRandom(items: StoredPage['items']): StoredPage['items'] {
  const drawn = items.map((item) => ({ item, at: RULES.at(item.testTime), place: Math.random() }));
  return drawn.sort((a, b) => compareInstants(a.at, b.at) || a.place - b.place).map(({ item }) => item);
}

function unknownIdRefused(): ServerOptions {
  return middleware(() => async (request, next) => {
    const query = queryOf(request);
    const id = query.get('from_id');
    if (!isScreenings(request) || id === null) return next(request);
    // Tests whether the id exists: asks for the first item after `id - 1` at the same instant.
    const around = await next(
      withQuery(request, (changed) => {
        changed.set('from_id', String(BigInt(/^-?\d{1,18}$/.test(id) ? id : '0') - 1n));
        changed.set('pageSize', '1');
      }),
    );
    return String(around.body).startsWith(`{"items":[{"id":${id},`) || around.status !== 200
      ? next(request)
      : refusal('400 invalid_request');
  });
}
