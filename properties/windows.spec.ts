/** Properties of windows over the target's own data: what a window holds follows from what other windows hold. */
import fc from 'fast-check';
import { about, test } from '../fixtures/test.ts';
import { pageOf, type PageQuery } from '../engine/client/page.ts';
import { compareInstants, formatInstant, shift, type Spelling } from '../engine/data/instant.ts';
import type { Kit } from '../engine/run/kit.ts';
import { mapConcurrently } from '../engine/client/concurrency.ts';
import { stepDigits } from '../engine/run/walk/survey.ts';
import { expectedItems } from '../engine/run/walk/walk.ts';
import {
  atLeastFor,
  itemsOf,
  offsetSpellings,
  pageSizes,
  sayQuery,
  spellings,
  windows,
  windowsOf,
  type WindowCase,
} from './cases.ts';
import { checkLaw, ORDERING, violationOf, type Entry, type Violation } from './law.ts';
import { exactly, partsEqualWhole, walkIsExact, walkPages } from './paging-laws.ts';

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

test(
  'a window cut in two holds what the whole holds',
  about('4.2-window', { access: 'reads', isSupplement: true }),
  async ({ kit, title }) => {
    const cases = await splits(kit);
    await checkLaw(
      kit,
      cases,
      {
        id: '4.2-window',
        title,
        needsAgain: true,
        script: ({ window, at, sizes }) => [
          sayQuery(window.query),
          `cut at ${at}, pageSize ${sizes[0]} and ${sizes[1]}`,
        ],
      },
      ({ window: { query }, at, sizes: [first, second] }) =>
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
    );
  },
);

const respell = ({ from, to }: WindowCase, a: Spelling, b: Spelling): { from: string; to: string } => ({
  from: formatInstant(from, a),
  to: formatInstant(to, b),
});

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
    await checkLaw(
      kit,
      cases,
      {
        id: '4.2-offsets',
        title,
        needsAgain: true,
        script: ({ window, others }) => [
          sayQuery(plainly(window)),
          ...others.map(
            ({ from, to }) => `and as ${sayQuery({ ...plainly(window), ...respell(window, from, to) })}`,
          ),
        ],
      },
      async ({ window, others }) => {
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
      },
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
  'a window of no width is empty, however its edges are spelled',
  about('4.2-r1-zero-width', { access: 'reads', isSupplement: true }),
  async ({ kit, title }) => {
    const cases = fc.record({
      window: await windowsOf(kit),
      from: spellings,
      to: spellings,
      withId: fc.boolean(),
    });
    await checkLaw(
      kit,
      cases,
      {
        id: '4.2-r1-zero-width',
        title,
        script: ({ window, from, to }) => [
          sayQuery({ from: formatInstant(window.from, from), to: formatInstant(window.from, to) }),
        ],
      },
      async ({ window, from, to, withId }) => {
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
      },
    );
  },
);

/** Windows one instant wide return every item of that instant without paging. */
test(
  'a window one instant wide holds exactly what lies there',
  about('4.2-from-inclusive', { access: 'reads', isSupplement: true }),
  async ({ kit, title }) => {
    const cases = await windowsOf(kit);
    await checkLaw(
      kit,
      cases,
      {
        id: '4.2-from-inclusive',
        title,
        share: 0.5,
        script: ({ around: [first] }) => [`the instant of item ${first.id}, ${first.testTime}`],
      },
      async ({ around: [item] }) => {
        const known = (await expectedItems(kit, oneInstant(item))).filter(
          ({ at }) => compareInstants(at, item.at) === 0,
        );
        return violationOf(kit, `${known.length} items at ${item.testTime}`, async (fetchPage) => {
          const page = await fetchPage(oneInstant(item));
          // An item returned with another testTime is not missing here.
          const here = page.items.filter(({ id }) => known.some((one) => one.id === id));
          return page.next === undefined ? exactly(here, known, ORDERING) : undefined;
        });
      },
    );
  },
);

function oneInstant({ at }: Entry): PageQuery {
  return { from: formatInstant(at), to: formatInstant(shift(at, 1n, stepDigits([{ at }]))), pageSize: 1000 };
}
