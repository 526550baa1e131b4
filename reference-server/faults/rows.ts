/** A store in memory in which each rule can be broken separately. */
import { compareInstants, formatInstant, instant, parseInstant } from '../../engine/data/instant.ts';
import type { Instant } from '../../engine/data/instant.ts';
import type { PageQuery, StoredPage, StoredScreening } from '../parts.ts';
import type { ServerOptions } from '../run/start.ts';
import { queryOf, storedPages, withRequestValue, type PageOf } from '../run/alter.ts';

export interface Row extends StoredScreening {
  /** The instant as the store holds it. */
  readonly at: Instant;
}

export interface Asked extends PageQuery {
  readonly raw: URLSearchParams;
}

export interface Rules<Query extends PageQuery = Asked> {
  readonly read: (text: string, name: 'from' | 'to') => Instant;
  readonly at: (testTime: string) => Instant;
  readonly order: (a: Row, b: Row) => number;
  /** Whether a row is at or after the start of the page. */
  readonly begins: (row: Row, asked: Query) => boolean;
  readonly ends: (row: Row, asked: Query) => boolean;
  readonly exists: (row: Row) => boolean;
}

export const byInstant = (a: Row, b: Row): number => compareInstants(a.at, b.at);
export const byId = (a: Row, b: Row): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

export const RULES: Rules<PageQuery> = {
  read: (text) => parseInstant(text) as Instant,
  at: instant,
  order: (a, b) => byInstant(a, b) || byId(a, b),
  begins: (row, { from, fromId }) => {
    const side = compareInstants(row.at, from);
    return side > 0 || (side === 0 && (fromId === undefined || row.id > fromId));
  },
  ends: (row, { to }) => compareInstants(row.at, to) < 0,
  exists: () => true,
};

const rowsOf = (items: readonly StoredScreening[], at: Rules['at']): Row[] =>
  items.map((item) => ({ ...item, at: at(item.testTime) }));

export const EVERYTHING = {
  from: instant('0001-01-01T00:00:00Z'),
  to: instant('9999-12-31T23:59:59Z'),
  pageSize: 1_000_000,
};

/** A server whose store follows RULES except for those given. */
export function rows(broken: Partial<Rules>): ServerOptions {
  const { read, at, order, begins, ends, exists }: Rules = { ...RULES, ...broken };
  return withRequestValue(queryOf, (current) =>
    storedPages(() => {
      const held = new Map<string, Promise<Row[]>>();
      const load = async (tenantId: string, ask: PageOf): Promise<Row[]> => {
        const { items } = await ask({ ...EVERYTHING, tenantId });
        return rowsOf(items, at).filter(exists).sort(order);
      };
      return async (query, ask) => {
        const all = held.get(query.tenantId) ?? load(query.tenantId, ask);
        held.set(query.tenantId, all);
        // Fails while the database is unavailable, although the rows are in memory.
        await ask({ ...query, pageSize: 1 });
        const raw = current();
        const [from, to] = [read(raw.get('from') ?? '', 'from'), read(raw.get('to') ?? '', 'to')];
        const asked = { ...query, from, to, raw };
        const selected = (await all).filter((row) => begins(row, asked) && ends(row, asked));
        return { items: selected.slice(0, query.pageSize), more: selected.length > query.pageSize };
      };
    }),
  );
}

/** A store whose windows end at another instant than to. */
export const endingAt = (endOf: (asked: Asked) => Instant): ServerOptions =>
  rows({ ends: (row, asked) => compareInstants(row.at, endOf(asked)) < 0 });

/** Alters every page of the store; next is built from the altered page. */
export const alterStored = (
  alter: (page: StoredPage, query: PageQuery) => StoredPage | Promise<StoredPage>,
): ServerOptions => storedPages(() => async (query, ask) => alter(await ask(query), query));

export const without = (page: StoredPage, index = 0): StoredPage => ({
  ...page,
  items: page.items.filter((_, place) => place !== index),
});

/** A store that is asked for another page size; next is built from the page that it returns. */
export const sized = (sizeOf: (pageSize: number) => number): ServerOptions =>
  storedPages(() => (query, ask) => ask({ ...query, pageSize: sizeOf(query.pageSize) }));

/** Alters the page number `depth` of a traversal, counted from 1, with the same parameters. The last item keeps next. */
export const byDepth = (
  alter: (page: StoredPage, depth: number, query: PageQuery) => StoredPage,
): ServerOptions =>
  storedPages(() => {
    const depths = new Map<string, number>();
    return async (query, ask) => {
      const page = await ask(query);
      const { tenantId, to, pageSize, fromId } = query;
      const keyOf = (id: bigint | undefined): string =>
        [tenantId, to.seconds, to.fraction, pageSize, id].join(' ');
      const depth = fromId === undefined ? 1 : (depths.get(keyOf(fromId)) ?? 1);
      depths.set(keyOf(page.items.at(-1)?.id), depth + 1);
      return alter(page, depth, query);
    };
  });

export const eachItem = (alter: (item: StoredScreening, index: number) => StoredScreening): ServerOptions =>
  alterStored((page) => ({ ...page, items: page.items.map(alter) }));

/** Replaces the first match of `from` in the text of single screenings. */
export const itemText = (
  from: RegExp,
  to: string | ((match: string, group: string) => string),
  where: (item: StoredScreening) => boolean = () => true,
): ServerOptions =>
  eachItem((item) => (where(item) ? { ...item, json: item.json.replace(from, to as string) } : item));

export const retimed = (item: StoredScreening, testTime: string): StoredScreening => ({
  ...item,
  testTime,
  json: item.json.replace(/"testTime":"[^"]*"/, () => `"testTime":"${testTime}"`),
});

/** Merges further screenings into the store's pages. `make` runs once per server. */
export const withAdded = (make: () => (query: PageQuery) => readonly StoredScreening[]): ServerOptions =>
  storedPages(() => {
    const further = make();
    return async (query, ask) => merged(query, ask, further(query));
  });

export const withAddedTo = (tenant: string, itemsOf: () => readonly StoredScreening[]): ServerOptions =>
  withAdded(
    () =>
      ({ tenantId }) =>
        tenantId === tenant ? itemsOf() : [],
  );

export async function merged(
  query: PageQuery,
  ask: PageOf,
  further: readonly StoredScreening[],
  isHidden: (item: StoredScreening) => boolean = () => false,
): Promise<StoredPage> {
  const { pageSize } = query;
  const { items, more } = await ask({ ...query, pageSize: pageSize + 1 });
  const all = rowsOf([...items.filter((item) => !isHidden(item)), ...further], instant)
    .filter((row) => RULES.begins(row, query) && RULES.ends(row, query))
    .sort(RULES.order);
  return { items: all.slice(0, pageSize), more: more || all.length > pageSize };
}

export const screening = (tenantId: string, id: bigint, at: Instant): StoredScreening => {
  const testTime = formatInstant(at);
  return { id, testTime, json: `{"id":${id},"tenantId":"${tenantId}","testTime":"${testTime}"}` };
};
