/** The laws of paging on a target's own data: with the oracle where there is a dataset, metamorphic in any case. */
import fc from 'fast-check';
import { pageOf, type PageQuery } from '../engine/client/page.ts';
import { compareInstants, formatInstant, instant, shift, type Spelling } from '../engine/data/instant.ts';
import type { Kit } from '../engine/run/kit.ts';
import { mapConcurrently } from '../engine/run/concurrent.ts';
import { sampleDataOf, stepDigits } from '../engine/run/walk/survey.ts';
import { areErased, expectedItems } from '../engine/run/walk/walk.ts';
import type { OracleItem } from '../engine/data/oracle.ts';
import { prefixMismatch } from '../engine/checks/selection.ts';
import {
  atLeastFor,
  offsetSpellings,
  pageSizes,
  sayQuery,
  spellings,
  windows,
  type WindowCase,
} from './cases.ts';
import { lawCheck, ORDERING, over, type Entry, type Law, type LawCheck, type Violation } from './law.ts';
import {
  exactly,
  partsMakeTheWhole,
  resumingGivesTheRest,
  sameItems,
  sideBySideAsAlone,
  walkIsExact,
  walkPages,
} from './paging-laws.ts';

const itemsOf = async (kit: Kit) => (await sampleDataOf(kit)).items;

const windowsOf = async (kit: Kit): Promise<fc.Arbitrary<WindowCase>> => windows(await itemsOf(kit));

const respell = ({ from, to }: WindowCase, a: Spelling, b: Spelling): { from: string; to: string } => ({
  from: formatInstant(from, a),
  to: formatInstant(to, b),
});

interface Split {
  readonly window: WindowCase;
  /** The instant of some item of the window, in any spelling. */
  readonly at: string;
  readonly sizes: readonly [number, number];
}

const splits = async (kit: Kit): Promise<fc.Arbitrary<Split>> => {
  const items = await itemsOf(kit);
  return fc
    .record({
      window: windows(items, { pairs: false }),
      place: fc.noBias(fc.nat({ max: 1_000 })),
      spelling: spellings,
      first: pageSizes,
      second: pageSizes,
    })
    .map(({ window, place, spelling, first, second }) => {
      const inside = items.filter(
        ({ at }) => compareInstants(at, window.from) >= 0 && compareInstants(at, window.to) <= 0,
      );
      const at = inside.length > 0 ? inside[place % inside.length]!.at : window.from;
      const sizes = [atLeastFor(first, window.count), atLeastFor(second, window.count)] as const;
      return { window, at: formatInstant(at, spelling), sizes };
    });
};

/** Of a window of which something is erased each time. */
const WALKS_AT_MOST = 3;

const exact: Law<WindowCase> = {
  id: '4.2-r5-exactly-once',
  name: 'a walk of any window at any page size returns what is known of it, once and in order',
  share: 2,
  cases: windowsOf,
  script: ({ query }) => [sayQuery(query)],
  holds: async (kit, { query, from, to }) => {
    const before = [...(await expectedItems(kit, query))];
    const known = await kit.oracle();
    const ids = new Set(before.map(({ id }) => id));
    // What lies outside is the window's mistake (4.2-window), not the walk's, unless it is one of these.
    const inside = ({ at, id }: Entry): boolean =>
      (compareInstants(at, from) >= 0 && compareInstants(at, to) < 0) || ids.has(id);
    const held = new Set<bigint>();
    return over(
      kit,
      `the ${before.length} screenings that are known of the window, once`,
      async (fetchPage) => {
        const holds = (expected: readonly Entry[]): Promise<string | undefined> =>
          walkIsExact(
            async (ask) => {
              const page = await fetchPage(ask);
              const items = page.items.filter(inside);
              for (const { id } of items) held.add(id);
              // Without a dataset, what nobody has seen before may be there as well.
              return known.authoritative ? { ...page, items } : knownOnly({ ...page, items }, expected);
            },
            query,
            expected,
            ORDERING,
          );
        let expected: readonly OracleItem[] = before;
        for (let walks = 1; ; walks++) {
          held.clear();
          const wrong = await holds(expected);
          const lost = expected.filter(({ id }) => !held.has(id));
          if (wrong === undefined || walks === WALKS_AT_MOST || !(await areErased(kit, lost))) return wrong;
          expected = expected.filter(({ id }) => held.has(id));
        }
      },
    );
  },
};

function knownOnly<P extends { readonly items: readonly Entry[] }>(page: P, known: readonly Entry[]): P {
  const ids = new Set(known.map(({ id }) => id));
  return { ...page, items: page.items.filter(({ id }) => ids.has(id)) };
}

const sizes: Law<{ window: WindowCase; other: number }> = {
  id: '4.2-r5-exactly-once',
  name: 'two page sizes give the same walk',
  needsAgain: true,
  share: 0.75,
  cases: async (kit) => {
    const items = await itemsOf(kit);
    return fc.record({ window: windows(items), other: fc.constantFrom(1000, 1000, 1000, 101, 60) });
  },
  script: ({ window, other }) => [sayQuery(window.query), `and again with pageSize ${other}`],
  holds: (kit, { window: { query }, other }) =>
    over(kit, 'the same screenings at both page sizes', (fetchPage) =>
      sameItems(fetchPage, { ...query, pageSize: other }, query, ORDERING),
    ),
};

const parts: Law<Split> = {
  id: '4.2-window',
  name: 'a window cut in two holds what the whole holds',
  needsAgain: true,
  cases: splits,
  script: ({ window, at, sizes }) => [
    sayQuery(window.query),
    `cut at ${at}, pageSize ${sizes[0]} and ${sizes[1]}`,
  ],
  holds: (kit, { window: { query }, at, sizes: [first, second] }) =>
    over(kit, 'both parts together to be the whole', (fetchPage) =>
      partsMakeTheWhole<PageQuery, Entry>(
        fetchPage,
        { ...query, pageSize: 1000 },
        [
          { from: query.from, to: at, pageSize: first },
          { from: at, to: query.to, pageSize: second },
        ],
        ORDERING,
      ),
    ),
};

/** The walk to compare with is one page where that can be: what a cursor loses, it can't lose. */
const resumed: Law<{ window: WindowCase; place: number }> = {
  id: '4.2-from_id',
  name: 'beginning behind any item of a walk gives the rest of it',
  needsAgain: true,
  cases: async (kit) => fc.record({ window: await windowsOf(kit), place: fc.noBias(fc.nat({ max: 1_000 })) }),
  script: ({ window: { query }, place }) => [
    sayQuery({ ...query, pageSize: 1000 }),
    `resumed behind item number ${place} (modulo their number), pageSize ${query.pageSize}`,
  ],
  holds: (kit, { window: { query }, place }) =>
    over(kit, 'the rest of the walk', (fetchPage) =>
      resumingGivesTheRest<PageQuery, Entry>(
        fetchPage,
        { ...query, pageSize: 1000 },
        (item) => ({ from: item.testTime!, to: query.to, fromId: item.id, pageSize: query.pageSize }),
        place,
        ORDERING,
      ),
    ),
};

/** Several spellings a case: mistakes may sit in a single hour of all offsets. */
const spelled: Law<{ window: WindowCase; others: readonly { from: Spelling; to: Spelling }[] }> = {
  id: '4.2-offsets',
  name: 'another spelling of the same instants gives the same screenings',
  needsAgain: true,
  cases: async (kit) =>
    fc.record({
      window: windows(await itemsOf(kit), { sizes: fc.integer({ min: 7, max: 60 }) }),
      others: fc.noBias(
        fc.array(fc.record({ from: offsetSpellings, to: offsetSpellings }), {
          maxLength: 12,
          size: 'max',
        }),
      ),
    }),
  script: ({ window, others }) => [
    sayQuery(plainly(window)),
    ...others.map(
      ({ from, to }) => `and as ${sayQuery({ ...plainly(window), ...respell(window, from, to) })}`,
    ),
  ],
  holds: async (kit, { window, others }) => {
    const ask = (law: Parameters<typeof over>[2]): Promise<Violation | undefined> =>
      over(kit, 'the same screenings for all spellings', law);
    let items: readonly Entry[] = [];
    await ask(async (fetchPage) => void ({ items } = await walkPages(fetchPage, plainly(window))));
    const violations = await mapConcurrently(others, ({ from, to }) =>
      ask((fetchPage) =>
        walkIsExact(fetchPage, { ...plainly(window), ...respell(window, from, to) }, items, ORDERING),
      ),
    );
    return violations.find((violation) => violation !== undefined);
  },
};

const plainly = ({ from, to, query }: WindowCase): PageQuery => ({
  ...query,
  from: formatInstant(from),
  to: formatInstant(to),
  pageSize: 1000,
});

const slices: Law<Split> = {
  id: '4.2-window',
  name: 'a smaller window holds a slice of what the larger holds',
  needsAgain: true,
  share: 0.75,
  cases: splits,
  script: ({ window, at }) => [
    sayQuery({ ...window.query, pageSize: 1000 }),
    `up to ${at}, and from there on`,
  ],
  holds: (kit, { window: { query }, at }) =>
    over(kit, 'both smaller windows to hold their part of the larger', async (fetchPage) => {
      const all = { ...query, pageSize: 1000 };
      const larger = await fetchPage(all);
      const early = await fetchPage({ ...all, to: at });
      const late = await fetchPage({ ...all, from: at });
      // More than one page holds: walks are for other laws.
      if ([larger, early, late].some(({ next }) => next !== undefined)) return undefined;
      const cut = instant(at);
      const side = (earlier: boolean): Entry[] =>
        larger.items.filter((item) => compareInstants(item.at, cut) < 0 === earlier);
      return exactly(early.items, side(true), ORDERING) ?? exactly(late.items, side(false), ORDERING);
    }),
};

const widthless: Law<{ window: WindowCase; from: Spelling; to: Spelling; withId: boolean }> = {
  id: '4.2-r1-zero-width',
  name: 'a window of no width is empty, however its edges are spelled',
  cases: async (kit) =>
    fc.record({ window: await windowsOf(kit), from: spellings, to: spellings, withId: fc.boolean() }),
  script: ({ window, from, to }) => [
    sayQuery({ from: formatInstant(window.from, from), to: formatInstant(window.from, to) }),
  ],
  holds: async (kit, { window, from, to, withId }) => {
    const exchange = await kit.page(
      {
        from: formatInstant(window.from, from),
        to: formatInstant(window.from, to),
        fromId: withId && window.around[0].id > 0n ? window.around[0].id - 1n : undefined,
      },
      { id: '4.2-r1-zero-width' },
    );
    const { items, next } = pageOf(exchange);
    return items?.length === 0 && next === undefined
      ? undefined
      : {
          mismatch: { expected: 'no items and no next', received: `${items?.length ?? 'no'} items` },
          exchange,
        };
  },
};

const repeated: Law<WindowCase> = {
  id: '4.2-repeatable',
  name: 'the same request twice begins with the same items',
  needsAgain: true,
  share: 0.5,
  cases: windowsOf,
  script: ({ query }) => [sayQuery(query), 'and again'],
  holds: async (kit, { query }) => {
    const wrong = prefixMismatch(await kit.page(query), await kit.page(query));
    return wrong && { mismatch: wrong, exchange: wrong.exchange };
  },
};

const together: Law<readonly WindowCase[]> = {
  id: '4.2-r5-exactly-once',
  name: 'walks side by side give what each gives alone',
  needsAgain: true,
  share: 0.2,
  cases: async (kit) =>
    fc.array(windows(await itemsOf(kit), { sizes: fc.integer({ min: 7, max: 100 }) }), {
      minLength: 2,
      maxLength: 4,
    }),
  script: (cases) => cases.map(({ query }) => sayQuery(query)),
  holds: (kit, cases) =>
    over(kit, 'the same screenings side by side as alone', (fetchPage) =>
      sideBySideAsAlone(
        fetchPage,
        cases.map(({ query }) => query),
        ORDERING,
      ),
    ),
};

/** Windows one instant wide: what lies at an instant, got without any paging, for every instant of a stretch. */
const instants: Law<WindowCase> = {
  id: '4.2-from-inclusive',
  name: 'a window one instant wide holds exactly what lies there',
  share: 0.5,
  cases: windowsOf,
  script: ({ around: [first] }) => [`the instant of item ${first.id}, ${first.testTime}`],
  holds: async (kit, { around: [item] }) => {
    const known = (await expectedItems(kit, oneInstant(item))).filter(
      ({ at }) => compareInstants(at, item.at) === 0,
    );
    return over(kit, `${known.length} items at ${item.testTime}`, async (fetchPage) => {
      const page = await fetchPage(oneInstant(item));
      // What came with another time came all the same.
      const here = page.items.filter(
        ({ at, id }) => compareInstants(at, item.at) === 0 || known.some((one) => one.id === id),
      );
      return page.next === undefined
        ? exactly(knownOnly({ items: here }, known).items, known, ORDERING)
        : undefined;
    });
  },
};

function oneInstant({ at }: Entry): PageQuery {
  return { from: formatInstant(at), to: formatInstant(shift(at, 1n, stepDigits([{ at }]))), pageSize: 1000 };
}

export const PAGING_LAWS: readonly LawCheck[] = [
  lawCheck(exact),
  lawCheck(sizes),
  lawCheck(parts),
  lawCheck(resumed),
  lawCheck(spelled),
  lawCheck(slices),
  lawCheck(widthless),
  lawCheck(repeated),
  lawCheck(together),
  lawCheck(instants),
];
