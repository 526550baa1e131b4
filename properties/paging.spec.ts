/** Properties of traversals of the target's own data: against the oracle if there is a dataset, otherwise metamorphic. */
import fc from 'fast-check';
import { about, test } from '../fixtures/test.ts';
import { MAX_PAGE_SIZE } from '../engine/client/page.ts';
import { isInside, readableText } from '../engine/data/instant.ts';
import { expectedItems } from '../engine/run/walk/walk.ts';
import { itemsOf, sayQuery, windows, windowsOf } from './cases.ts';
import { assertLaw, violationOf } from './law.ts';
import { concurrentlyAsAlone, resumingReturnsRest, sameItems, walkIsExact } from './paging-laws.ts';
import type { Entry } from './paging-laws.ts';

test(
  'a traversal of any window at any page size returns what is known of it, once and in order',
  about('4.2-r5-exactly-once', { access: 'reads', isSupplement: true }),
  async ({ kit, check }) =>
    assertLaw(kit, check, {
      cases: await windowsOf(kit),
      holds: async ({ query, from, to }) => {
        const before = await expectedItems(kit, query);
        const known = await kit.oracle();
        const ids = new Set(before.map(({ id }) => id));
        const words = `the ${before.length} screenings that are known of the window, once`;
        return violationOf(kit, words, async (traverse) => {
          // Some may have been deleted meanwhile.
          const expected = (await expectedItems(kit, query)).filter(({ id }) => ids.has(id));
          // An item outside the window breaks 4.2-window rather than the traversal, unless it is expected here.
          // Without a dataset, the window may hold screenings that no answer has shown yet.
          const counts = ({ at, id }: Entry): boolean =>
            ids.has(id) || (known.authoritative && isInside(at, { from, to }));
          const counting: typeof traverse = async (asked) =>
            (await traverse(asked)).map((items) => items.filter(counts));
          return walkIsExact(counting, query, expected);
        });
      },
      share: 2,
      script: ({ query }) => [sayQuery(query)],
    }),
);

test(
  'two page sizes give the same traversal',
  about('4.2-r5-exactly-once', { access: 'reads', isSupplement: true }),
  async ({ kit, check }) =>
    assertLaw(kit, check, {
      cases: fc.record({
        window: windows(await itemsOf(kit)),
        other: fc.constantFrom(1000, 1000, 1000, 101, 60),
      }),
      holds: ({ window: { query }, other }) =>
        violationOf(kit, 'the same screenings at both page sizes', (traverse) =>
          sameItems(traverse, { ...query, pageSize: other }, query),
        ),
      share: 0.5,
      needsAgain: true,
      script: ({ window, other }) => [sayQuery(window.query), `and again with pageSize ${other}`],
    }),
);

/** The walk to compare with has the largest pages: if it is a single page, no cursor can lose items from it. */
test(
  'a traversal that begins after any item of another returns the rest of it',
  about('4.2-from_id', { access: 'reads', isSupplement: true }),
  async ({ kit, check }) =>
    assertLaw(kit, check, {
      cases: fc.record({ window: await windowsOf(kit), place: fc.noBias(fc.nat({ max: 1_000 })) }),
      holds: ({ window: { query }, place }) =>
        violationOf(kit, 'the rest of the walk', (traverse) =>
          resumingReturnsRest(
            traverse,
            { ...query, pageSize: MAX_PAGE_SIZE },
            ({ testTime, id }) => ({ ...query, from: readableText(testTime!), fromId: id }),
            place,
          ),
        ),
      share: 2,
      needsAgain: true,
      script: ({ window: { query }, place }) => [
        sayQuery({ ...query, pageSize: MAX_PAGE_SIZE }),
        `resumed after item number ${place} (modulo their number), pageSize ${query.pageSize}`,
      ],
    }),
);

test(
  'concurrent traversals return what each returns alone',
  about('4.2-r5-exactly-once', { access: 'reads', isSupplement: true }),
  async ({ kit, check }) => {
    const sized = windows(await itemsOf(kit), { sizes: fc.integer({ min: 7, max: 100 }) });
    await assertLaw(kit, check, {
      cases: fc.array(sized, { minLength: 2, maxLength: 4 }).map((all) => all.map(({ query }) => query)),
      holds: (queries) =>
        violationOf(kit, 'the same screenings concurrently as alone', (traverse) =>
          concurrentlyAsAlone(traverse, queries),
        ),
      share: 0.2,
      needsAgain: true,
      script: (queries) => queries.map(sayQuery),
    });
  },
);
