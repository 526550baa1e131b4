/** Properties of windows over the target's own data: what a window holds follows from what other windows hold. */
import fc from 'fast-check';
import { about, test } from '../fixtures/test.ts';
import { MAX_PAGE_SIZE, type PageQuery } from '../engine/client/page.ts';
import { isEmpty } from '../engine/checks/selection.ts';
import { compareInstants, formatInstant, type Spelling } from '../engine/data/instant.ts';
import { mapConcurrently } from '../engine/client/concurrency.ts';
import { windowOf } from '../engine/run/walk/survey.ts';
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
import { assertLaw, violationIn, violationOf, type Violation } from './law.ts';
import { exactly, sameItems, walkIsExact, type Entry } from './paging-laws.ts';

test(
  'a window cut in two holds what the whole holds',
  about('4.2-window', { access: 'reads', isSupplement: true }),
  async ({ kit, check }) => {
    const items = await itemsOf(kit);
    const cuts = fc
      .record({
        window: windows(items, { pairs: false }),
        place: fc.noBias(fc.nat({ max: 1_000 })),
        spelling: spellings,
        first: pageSizes,
        second: pageSizes,
      })
      .map(({ window: { query, from, to, count }, place, spelling, first, second }) => {
        const inside = items.filter(
          ({ at }) => compareInstants(at, from) >= 0 && compareInstants(at, to) <= 0,
        );
        const cut = formatInstant(inside.length > 0 ? inside[place % inside.length]!.at : from, spelling);
        const parts = [
          { from: query.from, to: cut, pageSize: atLeastFor(first, count) },
          { from: cut, to: query.to, pageSize: atLeastFor(second, count) },
        ] as const;
        return { query, cut, parts };
      });
    await assertLaw(kit, check, {
      cases: cuts,
      holds: ({ query, parts }) =>
        violationOf(kit, 'both parts together to be the whole', (traverse) =>
          sameItems(traverse, { ...query, pageSize: MAX_PAGE_SIZE }, ...parts),
        ),
      needsAgain: true,
      script: ({ query, cut, parts: [first, second] }) => [
        sayQuery(query),
        `cut at ${cut}, pageSize ${first.pageSize} and ${second.pageSize}`,
      ],
    });
  },
);

/** A whole window with this spelling of its edges. */
const spelled = ({ from, to, query }: WindowCase, ofFrom: Spelling = {}, ofTo: Spelling = {}): PageQuery => ({
  ...query,
  from: formatInstant(from, ofFrom),
  to: formatInstant(to, ofTo),
  pageSize: MAX_PAGE_SIZE,
});

/** Several spellings per case: a fault may affect a single offset. */
test(
  'another spelling of the same instants gives the same screenings',
  about('4.2-offsets', { access: 'reads', isSupplement: true }),
  async ({ kit, check }) => {
    const others = fc.array(fc.record({ from: offsetSpellings, to: offsetSpellings }), {
      maxLength: 12,
      size: 'max',
    });
    const ask = (holds: Parameters<typeof violationOf>[2]): Promise<Violation | undefined> =>
      violationOf(kit, 'the same screenings for all spellings', holds);
    await assertLaw(kit, check, {
      cases: fc.record({
        window: windows(await itemsOf(kit), { sizes: fc.integer({ min: 7, max: 60 }) }),
        others: fc.noBias(others),
      }),
      holds: async ({ window, others }) => {
        let items: readonly Entry[] = [];
        await ask(async (traverse) => void (items = (await traverse(spelled(window))).flat()));
        const violations = await mapConcurrently(others, ({ from, to }) =>
          ask((traverse) => walkIsExact(traverse, spelled(window, from, to), items)),
        );
        const index = violations.findIndex((violation) => violation !== undefined);
        const { from, to } = others[index] ?? {};
        // Screenings may have arrived since the first walk.
        return index < 0
          ? undefined
          : ask((traverse) => sameItems(traverse, spelled(window), spelled(window, from, to)));
      },
      needsAgain: true,
      script: ({ window, others }) => [
        sayQuery(spelled(window)),
        ...others.map(({ from, to }) => `and as ${sayQuery(spelled(window, from, to))}`),
      ],
    });
  },
);

test(
  'a window of no width is empty, however its edges are spelled',
  about('4.2-r1-zero-width', { access: 'reads', isSupplement: true }),
  async ({ kit, check }) =>
    assertLaw(kit, check, {
      cases: fc
        .record({ window: await windowsOf(kit), from: spellings, to: spellings, withId: fc.boolean() })
        .map(({ window, from, to, withId }) => ({
          from: formatInstant(window.from, from),
          to: formatInstant(window.from, to),
          fromId: withId && window.around[0].id > 0n ? window.around[0].id - 1n : undefined,
        })),
      holds: async (query) => {
        const exchange = await kit.page(query, { id: check.id });
        return violationIn(exchange, isEmpty);
      },
      script: (query) => [sayQuery(query)],
    }),
);

/** Windows one instant wide return every item of that instant without paging. */
test(
  'a window one instant wide holds exactly what lies there',
  about('4.2-from-inclusive', { access: 'reads', isSupplement: true }),
  async ({ kit, check }) =>
    assertLaw(kit, check, {
      cases: (await windowsOf(kit)).map(({ around: [first] }) => first),
      holds: async (item) => {
        const query = { ...windowOf([item]), pageSize: MAX_PAGE_SIZE };
        const known = (await expectedItems(kit, query)).filter(
          ({ at }) => compareInstants(at, item.at) === 0,
        );
        return violationOf(kit, `${known.length} items at ${item.testTime}`, async (traverse) => {
          const pages = await traverse(query);
          // An item returned with another testTime is not missing here.
          const here = pages.flat().filter(({ id }) => known.some((one) => one.id === id));
          return pages.length === 1 ? exactly(here, known) : undefined;
        });
      },
      share: 0.5,
      script: ({ id, testTime }) => [`the instant of item ${id}, ${testTime}`],
    }),
);
