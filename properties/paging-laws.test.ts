/** The laws of paging over a list in memory: a correct list keeps them, and each fault fails with words that locate it. */
import { expect, test } from '@playwright/test';
import { fc } from '../fixtures/own-tests/seeded.ts';
import {
  partsEqualWhole,
  resumingReturnsRest,
  sameItems,
  concurrentlyAsAlone,
  returnsStoredOnce,
  walkIsExact,
  type FetchPage,
  type Ordering,
} from './paging-laws.ts';

interface Entry {
  readonly at: number;
  readonly id: number;
}

/** Selects entries of [from, to), or those strictly after a cursor. */
interface Query {
  readonly from: number;
  readonly to: number;
  readonly size: number;
  readonly after?: number;
}

const ORDERING: Ordering<Entry> = {
  compare: (a, b) => a.at - b.at || a.id - b.id,
  say: ({ at, id }) => `entry ${id} at ${at}`,
};

interface Rules {
  readonly order: (a: Entry, b: Entry) => number;
  readonly isAfter: (entry: Entry, at: number, id: number) => boolean;
  /** Cuts the page from all entries that follow. */
  readonly cut: (found: readonly Entry[], query: Query) => readonly Entry[];
}

const RIGHT: Rules = {
  order: ORDERING.compare,
  isAfter: (entry, at, id) => entry.at > at || (entry.at === at && entry.id > id),
  cut: (found, { size }) => found.slice(0, size),
};

/** A paged list in memory, whose `next` is the query of the next page. */
function listApi(list: readonly Entry[], broken: Partial<Rules> = {}): FetchPage<Query, Entry> {
  const { order, isAfter, cut } = { ...RIGHT, ...broken };
  return async (ask) => {
    const query = 'next' in ask ? (JSON.parse(ask.next) as Query) : ask;
    const { from, to, after } = query;
    const found = list
      .filter((entry) => (after === undefined ? entry.at >= from : isAfter(entry, from, after)))
      .filter(({ at }) => at < to)
      .sort(order);
    const items = cut(found, query);
    const last = items.at(-1);
    const more = last !== undefined && found.length > items.length;
    return more ? { items, next: JSON.stringify({ ...query, from: last.at, after: last.id }) } : { items };
  };
}

const LIST: readonly Entry[] = [
  { at: 10, id: 4 },
  { at: 10, id: 9 },
  { at: 10, id: 30 },
  { at: 20, id: 2 },
  { at: 20, id: 11 },
  { at: 31, id: 1 },
];
const QUERY: Query = { from: 0, to: 40, size: 2 };

test.describe('a right list keeps', () => {
  const lists = fc.uniqueArray(fc.record({ at: fc.nat({ max: 6 }), id: fc.nat({ max: 40 }) }), {
    selector: ({ id }) => id,
    maxLength: 25,
  });
  const queries = fc.record({
    from: fc.nat({ max: 6 }),
    width: fc.nat({ max: 6 }),
    size: fc.integer({ min: 1, max: 9 }),
  });
  const example = fc.record({
    list: lists,
    query: queries,
    at: fc.nat({ max: 6 }),
    place: fc.nat(),
    other: fc.integer({ min: 1, max: 30 }),
  });
  type Example = typeof example extends fc.Arbitrary<infer T> ? T : never;

  const asked = ({ query: { from, width, size } }: Example): Query => ({ from, to: from + width, size });
  const sorted = (list: readonly Entry[], { from, to }: Query): Entry[] =>
    list.filter(({ at }) => at >= from && at < to).sort(ORDERING.compare);
  const LAWS: Readonly<Record<string, (one: Example) => Promise<string | undefined>>> = {
    'walks are exact': (one) =>
      walkIsExact(listApi(one.list), asked(one), sorted(one.list, asked(one)), ORDERING),
    'two page sizes give the same': (one) =>
      sameItems(listApi(one.list), asked(one), { ...asked(one), size: one.other }, ORDERING),
    'parts make the whole': (one) => {
      const whole = asked(one);
      const cut = Math.min(whole.to, Math.max(whole.from, one.at));
      return partsEqualWhole(
        listApi(one.list),
        whole,
        [
          { ...whole, to: cut },
          { ...whole, from: cut },
        ],
        ORDERING,
      );
    },
    'resuming gives the rest': (one) =>
      resumingReturnsRest(
        listApi(one.list),
        asked(one),
        ({ at, id }) => ({ ...asked(one), from: at, after: id, size: one.other }),
        one.place,
        ORDERING,
      ),
    'concurrently as alone': (one) =>
      concurrentlyAsAlone(listApi(one.list), [asked(one), { ...asked(one), size: one.other }], ORDERING),
    'what was stored before comes once': (one) => {
      const list = [...one.list];
      // Only for three pages: entries that keep arriving ahead of a walk would never let it end.
      const store = async (page: number): Promise<void> => {
        if (page <= 3) list.push({ at: one.at, id: 100 + page });
      };
      return returnsStoredOnce(listApi(list), asked(one), sorted(one.list, asked(one)), store, ORDERING);
    },
  };
  for (const [name, law] of Object.entries(LAWS)) {
    test(name, () =>
      fc.assert(
        fc.asyncProperty(example, async (one) => expect(await law(one)).toBeUndefined()),
        { numRuns: 200 },
      ),
    );
  }
});

const BROKEN: readonly [name: string, rules: Partial<Rules>, words: string][] = [
  [
    'a cursor that drops the rest of a tie',
    { isAfter: (entry, at) => entry.at > at },
    'entry 30 at 10 is missing after entry 9 at 10',
  ],
  [
    'a cursor that repeats its own entry',
    { isAfter: (entry, at, id) => entry.at > at || (entry.at === at && entry.id >= id) },
    'page 2 repeats entry 9 at 10',
  ],
  [
    'ties in any order',
    { order: (a, b) => a.at - b.at || b.id - a.id },
    'page 1 has entry 9 at 10 after entry 30 at 10',
  ],
  [
    'an entry too few on later pages',
    { cut: (found, { size, after }) => (after === undefined ? found.slice(0, size) : found.slice(1, size)) },
    'entry 30 at 10 is missing after entry 9 at 10',
  ],
  ['a walk that never begins', { cut: () => [] }, 'entry 4 at 10 is missing at the beginning'],
];
for (const [name, rules, words] of BROKEN) {
  test(`${name}: ${words}`, async () => {
    expect(await walkIsExact(listApi(LIST, rules), QUERY, LIST, ORDERING)).toBe(words);
  });
}

test('names an entry outside the window', async () => {
  const generous = listApi(LIST, { cut: (_, { size }) => LIST.slice(0, Math.max(size, 6)) });
  expect(await walkIsExact(generous, { ...QUERY, from: 20 }, LIST.slice(3), ORDERING)).toBe(
    'entry 4 at 10 is not expected in place 1',
  );
});

const DROPPING: Partial<Rules> = { isAfter: (entry, at) => entry.at > at };

test('reports the rest of a tie that only one of two page sizes returns', async () => {
  expect(await sameItems(listApi(LIST, DROPPING), { ...QUERY, size: 6 }, QUERY, ORDERING)).toBe(
    'entry 30 at 10 is missing after entry 9 at 10',
  );
});

test('reports an entry that two parts of a window both return', async () => {
  const parts = [
    { ...QUERY, to: 21 },
    { ...QUERY, from: 20 },
  ];
  expect(await partsEqualWhole(listApi(LIST), { ...QUERY, size: 9 }, parts, ORDERING)).toBe(
    'entry 2 at 20 is not expected in place 6',
  );
});

test('reports the rest of a tie that a resumed walk drops', async () => {
  const resumed = resumingReturnsRest<Query, Entry>(
    listApi(LIST, DROPPING),
    { ...QUERY, size: 9 },
    ({ at, id }) => ({ ...QUERY, from: at, after: id }),
    3,
    ORDERING,
  );
  expect(await resumed).toBe('entry 11 at 20 is missing at the beginning');
});

test('reports entries that concurrent walks lose by sharing one query', async () => {
  let latest: Query = QUERY;
  const api = listApi(LIST);
  const shared: FetchPage<Query, Entry> = async (ask) => {
    if (!('next' in ask)) latest = ask;
    await Promise.resolve();
    const page = await api(ask);
    return { ...page, items: page.items.filter(({ at }) => at < latest.to) };
  };
  const narrow = { ...QUERY, to: 20 };
  expect(await concurrentlyAsAlone(shared, [QUERY, narrow], ORDERING)).toBe(
    'traversal 1 of 2 at the same time: entry 2 at 20 is missing after entry 30 at 10',
  );
});

test('reports an entry that offset paging repeats when another arrives earlier', async () => {
  const list = [...LIST];
  const byPosition: FetchPage<Query, Entry> = async (ask) => {
    const start = 'next' in ask ? Number(ask.next) : 0;
    const items = [...list].sort(ORDERING.compare).slice(start, start + 2);
    return start + 2 < list.length ? { items, next: String(start + 2) } : { items };
  };
  const store = async (page: number): Promise<void> => void (page === 1 && list.push({ at: 10, id: 1 }));
  expect(await returnsStoredOnce(byPosition, QUERY, LIST, store, ORDERING)).toBe(
    'page 2 repeats entry 9 at 10',
  );
});

test('ends a walk whose next repeats', async () => {
  const circle: FetchPage<Query, Entry> = async () => ({ items: LIST.slice(0, 2), next: 'again' });
  expect(await walkIsExact(circle, QUERY, LIST, ORDERING)).toBe('page 2 repeats entry 4 at 10');
});
