/** Section 4.2, rules 4 and 5: order, cursors, page sizes. */
import { compareInstants } from '../../engine/data/instant.ts';
import { jsonAnswer } from '../http/http.ts';
import {
  instead,
  middleware,
  queryOf,
  requests,
  storedPages,
  withQuery,
  isScreenings,
} from '../run/alter.ts';
import type { Fault } from './fault.ts';
import { byId, byInstant, onTheirWay, RULES, rows, type Row } from './rows.ts';

/** Other requirements that a cursor breaks by losing or repeating screenings. */
const CURSOR = [
  '4.2-r4-order',
  '4.2-r5-exactly-once',
  '4.2-from_id',
  '4.2-window',
  '4.2-from-inclusive',
  '4.2-to-exclusive',
  '4.2-offsets',
  '4.2-fractions',
  '4.2-repeatable',
  '4.2-r6-next-from',
  '4.2-r6-next-from_id',
  '2.4-next',
  '2.3-id-stable',
] as const;

const byIdText = (a: Row, b: Row): number => (String(a.id) < String(b.id) ? -1 : 1);
/** The same numbers on every start. */
const mixed = (id: bigint, salt: number): number =>
  Number((id * 2654435761n + BigInt(salt) * 40503n) % 65_521n);

export const paging: readonly Fault[] = [
  {
    name: 'ties in descending order of id',
    trips: { '4.2-r4-order': /smaller id comes first/ },
    mayTrip: CURSOR,
    server: rows({ order: (a, b) => byInstant(a, b) || byId(b, a) }),
  },
  {
    name: 'ties in the order of storage',
    trips: { '4.2-r4-order': /smaller id comes first/ },
    mayTrip: CURSOR,
    server: rows({ order: (a, b) => byInstant(a, b) || mixed(a.id, 1) - mixed(b.id, 1) }),
  },
  {
    name: 'ids of a tie sorted as text',
    trips: { '4.2-r4-order': /smaller id comes first/ },
    mayTrip: CURSOR,
    server: rows({ order: (a, b) => byInstant(a, b) || byIdText(a, b) }),
  },
  {
    name: 'ids of a tie sorted and compared as text',
    trips: { '4.2-r4-order': /smaller id comes first/, '4.2-from_id': /items|item \d+/ },
    mayTrip: CURSOR,
    server: rows({
      order: (a, b) => byInstant(a, b) || byIdText(a, b),
      begins: (row, { from, fromId }) => {
        const side = compareInstants(row.at, from);
        return fromId === undefined ? side >= 0 : side > 0 || (side === 0 && String(row.id) > String(fromId));
      },
    }),
  },
  {
    name: 'newest first',
    trips: { '4.2-r4-order': /testTime ascending/ },
    mayTrip: CURSOR,
    server: rows({ order: (a, b) => byInstant(b, a) || byId(b, a) }),
  },
  {
    name: 'items sorted by id alone',
    trips: { '4.2-r4-order': /testTime ascending/ },
    mayTrip: CURSOR,
    server: rows({ order: byId }),
  },
  {
    name: 'timestamps sorted as text',
    trips: { '4.2-r4-order': /testTime ascending/ },
    mayTrip: CURSOR,
    server: rows({
      order: (a, b) => (a.testTime < b.testTime ? -1 : a.testTime > b.testTime ? 1 : byId(a, b)),
    }),
  },
  {
    name: 'timestamps sorted by millisecond, the finer digits ignored',
    trips: { '4.2-r4-order': /testTime ascending/ },
    mayTrip: CURSOR,
    server: rows({
      order: (a, b) => {
        const milli = ({ at }: Row): string => at.fraction.slice(0, 3).padEnd(3, '0');
        const side = a.at.seconds === b.at.seconds ? 0 : a.at.seconds < b.at.seconds ? -1 : 1;
        return side || milli(a).localeCompare(milli(b)) || byId(a, b);
      },
    }),
  },
  {
    name: 'two neighbours change places at page size 7 after the fifth page',
    trips: { '4.2-r4-order': /after item/ },
    mayTrip: CURSOR,
    server: deep(7, 5, (items) => swapAt(items, 2)),
  },
  {
    name: 'the page after the sixth at page size 3 loses its first item',
    trips: { '4.2-r5-exactly-once': /is missing/ },
    mayTrip: CURSOR,
    server: deep(3, 6, (items) => items.slice(1)),
  },
  {
    name: 'the cursor is the testTime alone, compared with >: ties are lost',
    trips: { '4.2-r5-exactly-once': /is missing/, '4.2-from_id': /items|item \d+/ },
    mayTrip: CURSOR,
    server: rows({
      begins: (row, asked) =>
        asked.fromId === undefined ? RULES.begins(row, asked) : compareInstants(row.at, asked.from) > 0,
    }),
  },
  {
    name: 'from_id is ignored: ties are repeated',
    trips: {
      '4.2-from_id': /strictly after|items/,
      '4.2-r5-exactly-once': /each screening once|leads back|repeats/,
    },
    mayTrip: CURSOR,
    server: rows({ begins: (row, asked) => compareInstants(row.at, asked.from) >= 0 }),
  },
  {
    name: 'the cursor compares the id with >=: its item comes twice',
    trips: {
      '4.2-from_id': /strictly after/,
      '4.2-r5-exactly-once': /each screening once|leads back|repeats/,
    },
    mayTrip: CURSOR,
    server: rows({
      begins: (row, { from, fromId }) => {
        const side = compareInstants(row.at, from);
        return side > 0 || (side === 0 && row.id >= (fromId ?? row.id));
      },
    }),
  },
  {
    name: 'the pair compared as two conditions: later instants with smaller ids are lost',
    trips: { '4.2-from_id': /items/ },
    mayTrip: CURSOR,
    server: rows({
      begins: (row, { from, fromId }) =>
        compareInstants(row.at, from) >= 0 && (fromId === undefined || row.id > fromId),
    }),
  },
  {
    name: 'the cursor looks its item up and restarts where there is none',
    trips: { '4.2-from_id': /strictly after|items/ },
    mayTrip: CURSOR,
    server: lookedUp(),
  },
  {
    name: 'from_id of an id that does not exist is refused',
    trips: { '4.2-from_id': /200.*400/ },
    mayTrip: ['4.2-success', '4.2-r1-zero-width'],
    server: unknownIdRefused(),
  },
  {
    name: 'where three screenings tie across a boundary the second is lost',
    trips: { '4.2-r5-exactly-once': /is missing/ },
    mayTrip: CURSOR,
    server: onTheirWay((page, query) => {
      if (query.fromId === undefined) return page;
      const tied = page.items.filter((item) => sameAsFrom(item.testTime, query.from));
      return tied.length === 2 ? { ...page, items: page.items.slice(1) } : page;
    }),
  },
  {
    name: 'pages by OFFSET, one too many from the second on',
    trips: { '4.2-r5-exactly-once': /is missing/ },
    mayTrip: CURSOR,
    server: storedPages(() => async (query, ask) => {
      if (query.fromId === undefined || query.pageSize < 4) return ask(query);
      const page = await ask({ ...query, pageSize: query.pageSize + 1 });
      return { ...page, items: page.items.slice(1) };
    }),
  },
  {
    name: 'the walk ends after ten pages',
    trips: { '2.4-next': /on the page.*no next/ },
    mayTrip: CURSOR,
    server: counted(10),
  },
  {
    name: 'pageSize defaults to 1000',
    trips: { '4.2-pageSize-default': /at most 100 items/ },
    mayTrip: ['4.2-r6-next-pageSize'],
    server: requests((request) =>
      isScreenings(request) && !queryOf(request).has('pageSize') && queryOf(request).has('from')
        ? withQuery(request, (query) => query.set('pageSize', '1000'))
        : request,
    ),
  },
  {
    name: 'pageSize 1000 is refused',
    trips: { '4.2-pageSize-bounds': /200.*page_size_out_of_range/ },
    mayTrip: ['4.2-success'],
    server: instead((request) =>
      queryOf(request).get('pageSize') === '1000'
        ? jsonAnswer(400, { code: 'page_size_out_of_range' })
        : undefined,
    ),
  },
  {
    name: 'pageSize 1 is refused',
    trips: { '4.2-pageSize-bounds': /200.*page_size_out_of_range/ },
    mayTrip: ['4.2-success', '4.2-r5-exactly-once'],
    server: instead((request) =>
      queryOf(request).get('pageSize') === '1'
        ? jsonAnswer(400, { code: 'page_size_out_of_range' })
        : undefined,
    ),
  },
  {
    name: 'a tie comes in another order each time',
    trips: { '4.2-repeatable': /again item \d+/ },
    mayTrip: CURSOR,
    server: shuffledTies(),
  },
  {
    name: 'one of two replicas lacks a screening of seven',
    trips: { '4.2-repeatable': /again item \d+|of the same next/ },
    mayTrip: [...CURSOR, '4.2-pageSize-default'],
    server: replicas(),
  },
];

function sameAsFrom(testTime: string, from: Row['at']): boolean {
  return compareInstants(RULES.at(testTime), from) === 0;
}

function swapAt<T>(items: readonly T[], at: number): T[] {
  const [a, b] = [items[at], items[at + 1]];
  return a && b ? [...items.slice(0, at), b, a, ...items.slice(at + 2)] : [...items];
}

/** Alters the pages after the `depth`th of a walk with one page size. The last item stays: so does next. */
function deep(
  pageSize: number,
  depth: number,
  alter: <T>(items: readonly T[]) => readonly T[],
): NonNullable<Fault['server']> {
  return storedPages(() => {
    const depths = new Map<string, number>();
    return async (query, ask) => {
      const page = await ask(query);
      if (query.pageSize !== pageSize) return page;
      const walk = `${query.tenantId} ${JSON.stringify(query.to, (_, v: unknown) => String(v))}`;
      const here = query.fromId === undefined ? 1 : (depths.get(`${walk} ${query.fromId}`) ?? 1);
      const last = page.items.at(-1);
      if (last) depths.set(`${walk} ${last.id}`, here + 1);
      return here > depth ? { ...page, items: alter(page.items) } : page;
    };
  });
}

function counted(pages: number): NonNullable<Fault['server']> {
  return middleware(() => {
    const depths = new Map<string, number>();
    return async (request, next) => {
      const answer = await next(request);
      if (!isScreenings(request) || answer.status !== 200) return answer;
      const query = queryOf(request);
      const keyOf = (id: string | null): string => `${query.get('to')} ${query.get('pageSize')} ${id}`;
      const here = query.has('from_id') ? (depths.get(keyOf(query.get('from_id'))) ?? 1) : 1;
      const body = String(answer.body);
      const id = /from_id=(\d+)"\}\}$/.exec(body)?.[1];
      if (id === undefined) return answer;
      depths.set(keyOf(id), here + 1);
      if (here < pages) return answer;
      return {
        ...answer,
        headers: answer.headers.filter(([name]) => name !== 'link'),
        body: `${body.slice(0, body.lastIndexOf(',"links":'))},"links":{}}`,
      };
    };
  });
}

function lookedUp(): NonNullable<Fault['server']> {
  const known = new Set<string>();
  return rows({
    exists: (row) => known.add(`${row.id}`) !== undefined,
    begins: (row, asked) =>
      asked.fromId === undefined || known.has(`${asked.fromId}`)
        ? RULES.begins(row, asked)
        : compareInstants(row.at, asked.from) >= 0,
  });
}

function unknownIdRefused(): NonNullable<Fault['server']> {
  return middleware(() => async (request, next) => {
    const query = queryOf(request);
    const id = query.get('from_id');
    if (!isScreenings(request) || id === null) return next(request);
    // The item after the id before it, at the same instant.
    const around = await next(
      withQuery(request, (changed) => {
        changed.set('from_id', String(BigInt(/^-?\d{1,18}$/.test(id) ? id : '0') - 1n));
        changed.set('pageSize', '1');
      }),
    );
    return String(around.body).startsWith(`{"items":[{"id":${id},`) || around.status !== 200
      ? next(request)
      : jsonAnswer(400, { code: 'invalid_request' });
  });
}

function shuffledTies(): NonNullable<Fault['server']> {
  let asked = 0;
  return onTheirWay((page) => {
    asked += 1;
    const salt = asked;
    const items = page.items.map((item) => ({ item, at: RULES.at(item.testTime) }));
    items.sort((a, b) => compareInstants(a.at, b.at) || mixed(a.item.id, salt) - mixed(b.item.id, salt));
    // Without its cursor's neighbours a walk would break for another reason: the last item stays.
    return { ...page, items: items.map(({ item }) => item) };
  });
}

function replicas(): NonNullable<Fault['server']> {
  return storedPages(() => {
    let asked = 0;
    return async (query, ask) => {
      asked += 1;
      const page = await ask(query);
      return asked % 2 === 0 ? { ...page, items: page.items.filter(({ id }) => id % 7n !== 3n) } : page;
    };
  });
}
