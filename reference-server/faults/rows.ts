/** A store in memory in which each rule can be broken separately. */
import { AsyncLocalStorage } from 'node:async_hooks';
import {
  compareInstants,
  formatInstant,
  instant,
  parseInstant,
  type Instant,
} from '../../engine/data/instant.ts';
import type { ServiceRequest } from '../http/http.ts';
import type { PageQuery, StoredPage, StoredScreening } from '../parts.ts';
import type { ServerOptions } from '../run/start.ts';
import { queryOf, storedPages, type PageOf } from '../run/alter.ts';

export interface Row extends StoredScreening {
  /** The instant as the store holds it. */
  readonly at: Instant;
  readonly place: number;
}

export interface Asked extends PageQuery {
  readonly raw: URLSearchParams;
}

export interface Rules {
  readonly read: (text: string, name: 'from' | 'to') => Instant;
  readonly at: (testTime: string) => Instant;
  readonly order: (a: Row, b: Row) => number;
  /** Whether a row is at or after the start of the page. */
  readonly begins: (row: Row, asked: Asked) => boolean;
  readonly ends: (row: Row, asked: Asked) => boolean;
  readonly exists: (row: Row) => boolean;
  readonly cut: (selected: readonly Row[], asked: Asked) => StoredPage;
}

export const byInstant = (a: Row, b: Row): number => compareInstants(a.at, b.at);
export const byId = (a: Row, b: Row): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

export const RULES: Rules = {
  read: (text) => parseInstant(text) as Instant,
  at: instant,
  order: (a, b) => byInstant(a, b) || byId(a, b),
  begins: (row, { from, fromId }) => {
    const side = compareInstants(row.at, from);
    return side > 0 || (side === 0 && (fromId === undefined || row.id > fromId));
  },
  ends: (row, { to }) => compareInstants(row.at, to) < 0,
  exists: () => true,
  cut: (selected, { pageSize }) => ({ items: selected.slice(0, pageSize), more: selected.length > pageSize }),
};

const EVERYTHING = {
  from: instant('0001-01-01T00:00:00Z'),
  to: instant('9999-12-31T00:00:00Z'),
  pageSize: 1_000_000,
};

/** A server whose store follows RULES except for those given. */
export function rows(broken: Partial<Rules>): ServerOptions {
  const rules = { ...RULES, ...broken };
  const current = new AsyncLocalStorage<ServiceRequest>();
  return {
    wrapHandler: (handler) => (request) => current.run(request, () => handler(request)),
    ...storedPages(() => {
      const held = new Map<string, Promise<Row[]>>();
      const load = async (tenantId: string, ask: PageOf): Promise<Row[]> => {
        const { items } = await ask({ ...EVERYTHING, tenantId });
        return items
          .map((item, place) => ({ ...item, at: rules.at(item.testTime), place }))
          .filter(rules.exists)
          .sort(rules.order);
      };
      return async (query, ask) => {
        const all = held.get(query.tenantId) ?? load(query.tenantId, ask);
        held.set(query.tenantId, all);
        // Fails while the database is unavailable, although the rows are in memory.
        await ask({ ...query, pageSize: 1 });
        const raw = queryOf(current.getStore() as ServiceRequest);
        const [from, to] = (['from', 'to'] as const).map((name) => rules.read(raw.get(name) ?? '', name));
        const asked: Asked = { ...query, from: from!, to: to!, raw };
        const selected = (await all).filter((row) => rules.begins(row, asked) && rules.ends(row, asked));
        return rules.cut(selected, asked);
      };
    }),
  };
}

/** Alters every page of the store; next is built from the altered page. */
export const alterStored = (
  alter: (page: StoredPage, query: PageQuery) => StoredPage | Promise<StoredPage>,
): ServerOptions => storedPages(() => async (query, ask) => alter(await ask(query), query));

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
export const withAdded = (
  make: () => (query: PageQuery) => readonly StoredScreening[],
  isHidden: (item: StoredScreening) => boolean = () => false,
): ServerOptions =>
  storedPages(() => {
    const further = make();
    return async (query, ask) => merged(query, ask, further(query), isHidden);
  });

export async function merged(
  query: PageQuery,
  ask: PageOf,
  further: readonly StoredScreening[],
  isHidden: (item: StoredScreening) => boolean,
): Promise<StoredPage> {
  const { from, to, fromId, pageSize } = query;
  const { items, more } = await ask({ ...query, pageSize: pageSize + 1 });
  const all = [...items.filter((item) => !isHidden(item)), ...further]
    .map((item) => ({ item, at: instant(item.testTime) }))
    .filter(({ item, at }) => {
      const side = compareInstants(at, from);
      return (
        (side > 0 || (side === 0 && (fromId === undefined || item.id > fromId))) &&
        compareInstants(at, to) < 0
      );
    })
    .sort((a, b) => compareInstants(a.at, b.at) || (a.item.id < b.item.id ? -1 : 1))
    .map(({ item }) => item);
  return { items: all.slice(0, pageSize), more: more || all.length > pageSize };
}

export const screening = (tenantId: string, id: bigint, at: Instant): StoredScreening => {
  const testTime = formatInstant(at);
  return { id, testTime, json: `{"id":${id},"tenantId":"${tenantId}","testTime":"${testTime}"}` };
};
