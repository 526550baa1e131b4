/** Properties of paging over the target's own data: against the oracle if there is a dataset, otherwise metamorphic. */
import fc from 'fast-check';
import { about, test } from '../fixtures/test.ts';
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
import { Law, ORDERING, violationOf, type Entry, type Violation } from './law.ts';
import {
  exactly,
  partsEqualWhole,
  resumingReturnsRest,
  sameItems,
  concurrentlyAsAlone,
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
  /** The instant of an item in the window, in any spelling. */
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

/** Walks of one window while items keep being erased from it. */
const WALKS_AT_MOST = 3;

test(
  'a traversal of any window at any page size returns what is known of it, once and in order',
  about('4.2-r5-exactly-once', { access: 'reads', isSupplement: true }),
  async ({ kit, title }) => {
    const cases = await windowsOf(kit);
    const law = new Law(kit, cases, {
      id: '4.2-r5-exactly-once',
      title,
      share: 2,
      script: ({ query }) => [sayQuery(query)],
    });
    await fc.assert(
      fc.asyncProperty(
        cases,
        law.predicate(async ({ query, from, to }) => {
          const before = [...(await expectedItems(kit, query))];
          const known = await kit.oracle();
          const ids = new Set(before.map(({ id }) => id));
          // An item outside the window breaks 4.2-window rather than the traversal, unless it is expected here.
          const inside = ({ at, id }: Entry): boolean =>
            (compareInstants(at, from) >= 0 && compareInstants(at, to) < 0) || ids.has(id);
          const held = new Set<bigint>();
          return violationOf(
            kit,
            `the ${before.length} screenings that are known of the window, once`,
            async (fetchPage) => {
              const holds = (expected: readonly Entry[]): Promise<string | undefined> =>
                walkIsExact(
                  async (ask) => {
                    const page = await fetchPage(ask);
                    const items = page.items.filter(inside);
                    for (const { id } of items) held.add(id);
                    // Without a dataset, the window may hold screenings that no answer has shown yet.
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
                if (wrong === undefined || walks === WALKS_AT_MOST || !(await areErased(kit, lost)))
                  return wrong;
                expected = expected.filter(({ id }) => held.has(id));
              }
            },
          );
        }),
      ),
      law.parameters,
    );
  },
);

function knownOnly<P extends { readonly items: readonly Entry[] }>(page: P, known: readonly Entry[]): P {
  const ids = new Set(known.map(({ id }) => id));
  return { ...page, items: page.items.filter(({ id }) => ids.has(id)) };
}

test(
  'two page sizes give the same traversal',
  about('4.2-r5-exactly-once', { access: 'reads', isSupplement: true }),
  async ({ kit, title }) => {
    const items = await itemsOf(kit);
    const cases = fc.record({ window: windows(items), other: fc.constantFrom(1000, 1000, 1000, 101, 60) });
    const law = new Law(kit, cases, {
      id: '4.2-r5-exactly-once',
      title,
      share: 0.75,
      needsAgain: true,
      script: ({ window, other }) => [sayQuery(window.query), `and again with pageSize ${other}`],
    });
    await fc.assert(
      fc.asyncProperty(
        cases,
        law.predicate(({ window: { query }, other }) =>
          violationOf(kit, 'the same screenings at both page sizes', (fetchPage) =>
            sameItems(fetchPage, { ...query, pageSize: other }, query, ORDERING),
          ),
        ),
      ),
      law.parameters,
    );
  },
);

test(
  'a window cut in two holds what the whole holds',
  about('4.2-window', { access: 'reads', isSupplement: true }),
  async ({ kit, title }) => {
    const cases = await splits(kit);
    const law = new Law(kit, cases, {
      id: '4.2-window',
      title,
      needsAgain: true,
      script: ({ window, at, sizes }) => [
        sayQuery(window.query),
        `cut at ${at}, pageSize ${sizes[0]} and ${sizes[1]}`,
      ],
    });
    await fc.assert(
      fc.asyncProperty(
        cases,
        law.predicate(({ window: { query }, at, sizes: [first, second] }) =>
          violationOf(kit, 'both parts together to be the whole', (fetchPage) =>
            partsEqualWhole<PageQuery, Entry>(
              fetchPage,
              { ...query, pageSize: 1000 },
              [
                { from: query.from, to: at, pageSize: first },
                { from: at, to: query.to, pageSize: second },
              ],
              ORDERING,
            ),
          ),
        ),
      ),
      law.parameters,
    );
  },
);

/** The walk to compare with has pages of 1000: if it is a single page, no cursor can lose items from it. */
test(
  'a traversal that begins after any item of another returns the rest of it',
  about('4.2-from_id', { access: 'reads', isSupplement: true }),
  async ({ kit, title }) => {
    const cases = fc.record({ window: await windowsOf(kit), place: fc.noBias(fc.nat({ max: 1_000 })) });
    const law = new Law(kit, cases, {
      id: '4.2-from_id',
      title,
      share: 2,
      needsAgain: true,
      script: ({ window: { query }, place }) => [
        sayQuery({ ...query, pageSize: 1000 }),
        `resumed after item number ${place} (modulo their number), pageSize ${query.pageSize}`,
      ],
    });
    await fc.assert(
      fc.asyncProperty(
        cases,
        law.predicate(({ window: { query }, place }) =>
          violationOf(kit, 'the rest of the walk', (fetchPage) =>
            resumingReturnsRest<PageQuery, Entry>(
              fetchPage,
              { ...query, pageSize: 1000 },
              (item) => ({ from: item.testTime!, to: query.to, fromId: item.id, pageSize: query.pageSize }),
              place,
              ORDERING,
            ),
          ),
        ),
      ),
      law.parameters,
    );
  },
);

/** Several spellings per case: a fault may affect a single offset. */
test(
  'another spelling of the same instants gives the same screenings',
  about('4.2-offsets', { access: 'reads', isSupplement: true }),
  async ({ kit, title }) => {
    const cases = fc.record({
      window: windows(await itemsOf(kit), { sizes: fc.integer({ min: 7, max: 60 }) }),
      others: fc.noBias(
        fc.array(fc.record({ from: offsetSpellings, to: offsetSpellings }), {
          maxLength: 12,
          size: 'max',
        }),
      ),
    });
    const law = new Law(kit, cases, {
      id: '4.2-offsets',
      title,
      needsAgain: true,
      script: ({ window, others }) => [
        sayQuery(plainly(window)),
        ...others.map(
          ({ from, to }) => `and as ${sayQuery({ ...plainly(window), ...respell(window, from, to) })}`,
        ),
      ],
    });
    await fc.assert(
      fc.asyncProperty(
        cases,
        law.predicate(async ({ window, others }) => {
          const ask = (law: Parameters<typeof violationOf>[2]): Promise<Violation | undefined> =>
            violationOf(kit, 'the same screenings for all spellings', law);
          let items: readonly Entry[] = [];
          await ask(async (fetchPage) => void ({ items } = await walkPages(fetchPage, plainly(window))));
          const violations = await mapConcurrently(others, ({ from, to }) =>
            ask((fetchPage) =>
              walkIsExact(fetchPage, { ...plainly(window), ...respell(window, from, to) }, items, ORDERING),
            ),
          );
          return violations.find((violation) => violation !== undefined);
        }),
      ),
      law.parameters,
    );
  },
);

const plainly = ({ from, to, query }: WindowCase): PageQuery => ({
  ...query,
  from: formatInstant(from),
  to: formatInstant(to),
  pageSize: 1000,
});

test(
  'a smaller window holds a slice of what the larger holds',
  about('4.2-window', { access: 'reads', isSupplement: true }),
  async ({ kit, title }) => {
    const cases = await splits(kit);
    const law = new Law(kit, cases, {
      id: '4.2-window',
      title,
      share: 0.75,
      needsAgain: true,
      script: ({ window, at }) => [
        sayQuery({ ...window.query, pageSize: 1000 }),
        `up to ${at}, and from there on`,
      ],
    });
    await fc.assert(
      fc.asyncProperty(
        cases,
        law.predicate(({ window: { query }, at }) =>
          violationOf(kit, 'both smaller windows to hold their part of the larger', async (fetchPage) => {
            const all = { ...query, pageSize: 1000 };
            const larger = await fetchPage(all);
            const early = await fetchPage({ ...all, to: at });
            const late = await fetchPage({ ...all, from: at });
            // More than one page: other laws check walks.
            if ([larger, early, late].some(({ next }) => next !== undefined)) return undefined;
            const cut = instant(at);
            const side = (earlier: boolean): Entry[] =>
              larger.items.filter((item) => compareInstants(item.at, cut) < 0 === earlier);
            return exactly(early.items, side(true), ORDERING) ?? exactly(late.items, side(false), ORDERING);
          }),
        ),
      ),
      law.parameters,
    );
  },
);

test(
  'a window of no width is empty, however its edges are spelled',
  about('4.2-r1-zero-width', { access: 'reads', isSupplement: true }),
  async ({ kit, title }) => {
    const cases = fc.record({
      window: await windowsOf(kit),
      from: spellings,
      to: spellings,
      withId: fc.boolean(),
    });
    const law = new Law(kit, cases, {
      id: '4.2-r1-zero-width',
      title,
      script: ({ window, from, to }) => [
        sayQuery({ from: formatInstant(window.from, from), to: formatInstant(window.from, to) }),
      ],
    });
    await fc.assert(
      fc.asyncProperty(
        cases,
        law.predicate(async ({ window, from, to, withId }) => {
          const exchange = await kit.page(
            {
              from: formatInstant(window.from, from),
              to: formatInstant(window.from, to),
              fromId: withId && window.around[0].id > 0n ? window.around[0].id - 1n : undefined,
            },
            { id: '4.2-r1-zero-width' },
          );
          const { items, next } = pageOf(exchange);
          // An unreadable page is reported under 2.4-items.
          if (items === undefined || (items.length === 0 && next === undefined)) return undefined;
          return {
            mismatch: { expected: 'no items and no next', received: `${items.length} items` },
            exchange,
          };
        }),
      ),
      law.parameters,
    );
  },
);

test(
  'the same request twice begins with the same items',
  about('4.2-repeatable', { access: 'reads', isSupplement: true }),
  async ({ kit, title }) => {
    const cases = await windowsOf(kit);
    const law = new Law(kit, cases, {
      id: '4.2-repeatable',
      title,
      share: 0.5,
      needsAgain: true,
      script: ({ query }) => [sayQuery(query), 'and again'],
    });
    await fc.assert(
      fc.asyncProperty(
        cases,
        law.predicate(async ({ query }) => {
          const wrong = prefixMismatch(await kit.page(query), await kit.page(query), kit.knowledge.oracleOf);
          return wrong && { mismatch: wrong, exchange: wrong.exchange };
        }),
      ),
      law.parameters,
    );
  },
);

test(
  'concurrent traversals return what each returns alone',
  about('4.2-r5-exactly-once', { access: 'reads', isSupplement: true }),
  async ({ kit, title }) => {
    const cases = fc.array(windows(await itemsOf(kit), { sizes: fc.integer({ min: 7, max: 100 }) }), {
      minLength: 2,
      maxLength: 4,
    });
    const law = new Law(kit, cases, {
      id: '4.2-r5-exactly-once',
      title,
      share: 0.2,
      needsAgain: true,
      script: (cases) => cases.map(({ query }) => sayQuery(query)),
    });
    await fc.assert(
      fc.asyncProperty(
        cases,
        law.predicate((cases) =>
          violationOf(kit, 'the same screenings concurrently as alone', (fetchPage) =>
            concurrentlyAsAlone(
              fetchPage,
              cases.map(({ query }) => query),
              ORDERING,
            ),
          ),
        ),
      ),
      law.parameters,
    );
  },
);

/** Windows one instant wide return every item of that instant without paging. */
test(
  'a window one instant wide holds exactly what lies there',
  about('4.2-from-inclusive', { access: 'reads', isSupplement: true }),
  async ({ kit, title }) => {
    const cases = await windowsOf(kit);
    const law = new Law(kit, cases, {
      id: '4.2-from-inclusive',
      title,
      share: 0.5,
      script: ({ around: [first] }) => [`the instant of item ${first.id}, ${first.testTime}`],
    });
    await fc.assert(
      fc.asyncProperty(
        cases,
        law.predicate(async ({ around: [item] }) => {
          const known = (await expectedItems(kit, oneInstant(item))).filter(
            ({ at }) => compareInstants(at, item.at) === 0,
          );
          return violationOf(kit, `${known.length} items at ${item.testTime}`, async (fetchPage) => {
            const page = await fetchPage(oneInstant(item));
            // An item returned with another testTime is not missing here.
            const here = page.items.filter(
              ({ at, id }) => compareInstants(at, item.at) === 0 || known.some((one) => one.id === id),
            );
            return page.next === undefined
              ? exactly(knownOnly({ items: here }, known).items, known, ORDERING)
              : undefined;
          });
        }),
      ),
      law.parameters,
    );
  },
);

function oneInstant({ at }: Entry): PageQuery {
  return { from: formatInstant(at), to: formatInstant(shift(at, 1n, stepDigits([{ at }]))), pageSize: 1000 };
}
