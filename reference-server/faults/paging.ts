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
import type { ServerOptions } from '../run/start.ts';
import { pageFaults, type Fault } from './fault.ts';
import {
  alterStored,
  byDepth,
  byId,
  byInstant,
  RULES,
  rows,
  type Asked,
  type Row,
  type Rules,
} from './rows.ts';
import type { StoredPage } from '../parts.ts';

const byIdText = (a: Row, b: Row): number => (String(a.id) < String(b.id) ? -1 : 1);
/** A pseudo-random number that is the same on every start. */
const pseudoRandom = (id: bigint, salt: number): number =>
  Number((id * 2654435761n + BigInt(salt) * 40503n) % 65_521n);

const ordered = (order: Rules['order']): ServerOptions => rows({ order });

const tied = (order: Rules['order']): ServerOptions => ordered((a, b) => byInstant(a, b) || order(a, b));

const starts = (rule: (row: Row, asked: Asked, side: number) => boolean): ServerOptions =>
  rows({ begins: (row, asked) => rule(row, asked, compareInstants(row.at, asked.from)) });

/** Alters the pages after page number `most` of traversals with one page size; their next stays. */
const deep = (
  size: number,
  most: number,
  alter: (items: StoredPage['items']) => StoredPage['items'],
): ServerOptions =>
  byDepth((page, depth, { pageSize }) =>
    depth > most && pageSize === size ? { ...page, items: alter(page.items) } : page,
  );

const refusedSizes = (from: number, to: number): ServerOptions =>
  answering('400 page_size_out_of_range', (query) => {
    const pageSize = Number(query.get('pageSize') ?? 0);
    return pageSize >= from && pageSize <= to;
  });

/** The last page that is returned at some page sizes is the first one. */
const noNextAt = (isFull: (pageSize: number) => boolean): ServerOptions =>
  alterStored((page, { pageSize }) => ({ ...page, more: page.more && !isFull(pageSize) }));

export const paging: readonly Fault[] = [
  ...pageFaults({ '4.2-r4-order': /smaller id comes first/ })({
    'ties in descending order of id': tied((a, b) => byId(b, a)),
    'ties in the order of storage': tied((a, b) => pseudoRandom(a.id, 1) - pseudoRandom(b.id, 1)),
    'ids of a tie sorted as text': tied(byIdText),
  }),
  ...pageFaults({ '4.2-r4-order': /smaller id comes first/, '4.2-from_id': /items|item \d+/ })({
    'ids of a tie sorted and compared as text': rows({
      order: (a, b) => byInstant(a, b) || byIdText(a, b),
      begins: (row, { from, fromId }) => {
        const side = compareInstants(row.at, from);
        return fromId === undefined ? side >= 0 : side > 0 || (side === 0 && String(row.id) > String(fromId));
      },
    }),
  }),
  ...pageFaults({ '4.2-r4-order': /testTime ascending/ })({
    'newest first': ordered((a, b) => byInstant(b, a) || byId(b, a)),
    'items sorted by id alone': ordered(byId),
    'timestamps sorted as text': ordered((a, b) =>
      a.testTime < b.testTime ? -1 : a.testTime > b.testTime ? 1 : byId(a, b),
    ),
    'timestamps sorted by millisecond, the finer digits ignored': ordered(
      (a, b) => compareInstants(cutInstant(a.at, 3), cutInstant(b.at, 3)) || byId(a, b),
    ),
  }),
  ...pageFaults({ '4.2-r4-order': /after item/ })({
    'two neighbours change places at page size 7 after the fifth page': deep(7, 5, (items) =>
      swapAt(items, 2),
    ),
  }),
  ...pageFaults({ '4.2-r5-exactly-once': /is missing/ })({
    'the page after the sixth at page size 3 loses its first item': deep(3, 6, (items) => items.slice(1)),
    'where three screenings tie across a boundary the second is lost': alterStored((page, query) => {
      if (query.fromId === undefined) return page;
      const ties = page.items.filter(({ testTime }) => compareInstants(RULES.at(testTime), query.from) === 0);
      return ties.length === 2 ? { ...page, items: page.items.slice(1) } : page;
    }),
    'pages by OFFSET, one too many from the second on': storedPages(() => async (query, ask) => {
      if (query.fromId === undefined || query.pageSize < 4) return ask(query);
      const page = await ask({ ...query, pageSize: query.pageSize + 1 });
      return { ...page, items: page.items.slice(1) };
    }),
  }),
  ...pageFaults({ '4.2-r5-exactly-once': /is missing/, '4.2-from_id': /items|item \d+/ })({
    'the cursor is the testTime alone, compared with >: ties are lost': starts((_, { fromId }, side) =>
      fromId === undefined ? side >= 0 : side > 0,
    ),
  }),
  ...pageFaults({
    '4.2-from_id': /strictly after|items/,
    '4.2-r5-exactly-once': /each screening once|leads back|repeats/,
  })({
    'from_id is ignored: ties are repeated': starts((_, __, side) => side >= 0),
  }),
  ...pageFaults({
    '4.2-from_id': /strictly after/,
    '4.2-r5-exactly-once': /each screening once|leads back|repeats/,
  })({
    'the cursor compares the id with >=: its item comes twice': starts(
      (row, { fromId }, side) => side > 0 || (side === 0 && row.id >= (fromId ?? row.id)),
    ),
  }),
  ...pageFaults({ '4.2-from_id': /items/ })({
    'the pair compared as two conditions: later instants with smaller ids are lost': starts(
      (row, { fromId }, side) => side >= 0 && (fromId === undefined || row.id > fromId),
    ),
  }),
  ...pageFaults({ '4.2-from_id': /strictly after|items/ })({
    'the cursor looks its item up and restarts where there is none': cursorLookup(),
  }),
  ...pageFaults({ '4.2-from_id': /200.*400/ })({
    'from_id of an id that does not exist is refused': unknownIdRefused(),
  }),
  ...pageFaults({ '2.4-next': /on the page.*no next/ })({
    'the walk ends after sixty-four pages': byDepth((page, depth) =>
      depth < 64 ? page : { ...page, more: false },
    ),
    'no next where a buffer of 64 rows, or several, is full with the extra row': noNextAt(
      (pageSize) => (pageSize + 1) % 64 === 0,
    ),
    'no next where a buffer of 64 rows, or several, is full': noNextAt((pageSize) => pageSize % 64 === 0),
  }),
  ...pageFaults({ '4.2-pageSize-default': /at most 100 items/ })({
    'pageSize defaults to 1000': defaulting(
      'pageSize',
      () => '1000',
      (query) => query.has('from'),
    ),
  }),
  ...pageFaults({ '4.2-pageSize-bounds': /200.*page_size_out_of_range/ })({
    'pageSize 1000 is refused': refusedSizes(1000, 1000),
    'pageSize 1 is refused': refusedSizes(1, 1),
  }),
  ...pageFaults(
    { '4.2-pageSize-bounds': /200.*page_size_out_of_range/ },
    { needsNeighbours: true },
  )({
    'page sizes from 102 to 126 are refused': refusedSizes(102, 126),
    'page sizes from 600 to 998 are refused': refusedSizes(600, 998),
  }),
  ...pageFaults({ '4.2-repeatable': /number \d+ again/ })({
    'a tie comes in another order each time': shuffledTies(),
  }),
  ...pageFaults({ '4.2-repeatable': /number \d+ again|of the same next/ })({
    'one of two replicas lacks a screening of seven': storedPages(() => {
      let asked = 0;
      return async (query, ask) => {
        asked += 1;
        const page = await ask(query);
        return asked % 2 === 0 ? { ...page, items: page.items.filter(({ id }) => id % 7n !== 3n) } : page;
      };
    }),
  }),
];

function swapAt<T>(items: readonly T[], at: number): T[] {
  const [a, b] = [items[at], items[at + 1]];
  return a && b ? [...items.slice(0, at), b, a, ...items.slice(at + 2)] : [...items];
}

function cursorLookup(): ServerOptions {
  const known = new Set<string>();
  return rows({
    exists: (row) => known.add(`${row.id}`) !== undefined,
    begins: (row, asked) =>
      asked.fromId === undefined || known.has(`${asked.fromId}`)
        ? RULES.begins(row, asked)
        : compareInstants(row.at, asked.from) >= 0,
  });
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

function shuffledTies(): ServerOptions {
  let asked = 0;
  return alterStored((page) => {
    asked += 1;
    const salt = asked;
    const items = page.items.map((item) => ({ item, at: RULES.at(item.testTime) }));
    items.sort(
      (a, b) => compareInstants(a.at, b.at) || pseudoRandom(a.item.id, salt) - pseudoRandom(b.item.id, salt),
    );
    return { ...page, items: items.map(({ item }) => item) };
  });
}
