/** Section 4.2: page sizes, order, and following next. */
import { about, test } from '../fixtures/test.ts';
import {
  DEFAULT_PAGE_SIZE,
  endsEmpty,
  MAX_PAGE_SIZE,
  pageOf,
  type PageQuery,
} from '../engine/client/page.ts';
import { answered200, refusedWith, sayRefusal } from '../engine/checks/errors.ts';
import { differs, type Judge } from '../engine/checks/mismatch.ts';
import { sameItems } from '../engine/checks/selection.ts';
import { mapConcurrently } from '../engine/client/concurrency.ts';
import { MAX_ID } from '../engine/data/dataset.ts';
import { compareInstants, formatInstant, readableText, shift } from '../engine/data/instant.ts';
import type { OracleItem } from '../engine/data/oracle.ts';
import type { Kit } from '../engine/run/kit.ts';
import { sendQuery } from '../engine/run/rules/raw-request.ts';
import { sampleDataOf, windowOf, type SampleData } from '../engine/run/walk/survey.ts';
import {
  checkDefaultPageSize,
  pagesOfEverySize,
  walksAcrossTies,
  walksOf,
  walksOfSeveralPages,
} from '../engine/run/walk/standard-walks.ts';
import { checkWalk, expectedItems, walkOn } from '../engine/run/walk/walk.ts';
import { repeatMismatch } from '../engine/run/walk/snapshot.ts';
import { Untested } from '../engine/errors.ts';

/** Pages of the largest size: they pass the offset of 10,000 items at which many stores stop. */
const DEEP_PAGES = 12;
const DEEPEST_PAGES = 1_000;

/** Other sizes that clients use; each seed takes two. */
const SIZES_IN_USE = [30, 40, 25, 75, 128, 150, 300, 400, 512, 600, 750, 800] as const;

const sizesOfSeed = (seed: number): number[] =>
  [0, 1].map((place) => SIZES_IN_USE[(2 * (seed + SIZES_IN_USE.length - 1) + place) % SIZES_IN_USE.length]!);

test('the default pageSize is 100', about('4.2-pageSize-default', { access: 'reads' }), async ({ kit }) => {
  const { items, window, beyond = window } = await sampleDataOf(kit);
  const { from, to } = items.length > DEFAULT_PAGE_SIZE ? window : beyond;
  const exchange = await kit.page({ from, to }, { id: '4.2-pageSize-default' });
  kit.ledger.observe('default-page-items', String(pageOf(exchange).items?.length ?? 'none'));
  await checkDefaultPageSize(kit, { from, to }, exchange);
  if ((await expectedItems(kit, { from, to })).length <= DEFAULT_PAGE_SIZE) {
    throw new Untested(
      `the default pageSize shows with more than ${DEFAULT_PAGE_SIZE} screenings; load some for clients.primary`,
    );
  }
});

test(
  `pageSize 1 and ${MAX_PAGE_SIZE} are accepted`,
  about('4.2-pageSize-bounds', { access: 'reads' }),
  async ({ kit }) => {
    const { window } = await sampleDataOf(kit);
    // The sizes that clients use most, too; and the page after each.
    const sizes = [1, 20, 50, 200, 250, 500, MAX_PAGE_SIZE - 1, MAX_PAGE_SIZE];
    for (const pageSize of [...sizes, ...sizesOfSeed(kit.options.seed)]) {
      const query = { from: window.from, to: window.to, pageSize };
      const first = await kit.ask(query, { id: '4.2-pageSize-bounds' });
      if (first.status === 200) await walkOn(kit, query, first, { maxPages: 2 });
    }
  },
);

test(
  'from_id inside a tie begins after that id',
  about('4.2-from_id', { access: 'reads' }),
  async ({ kit }) => {
    const sample = await sampleDataOf(kit);
    const ties = [...sample.ties].sort((a, b) => Math.abs(a.length - 4) - Math.abs(b.length - 4)).slice(0, 3);
    if (ties.length === 0)
      throw new Untested('no two screenings share a testTime; load some that do for clients.primary');
    const starts = ties.flatMap((tie) => startsAt(tie));
    const single = sample.items.find((item) => !sample.ties.some((tie) => tie.includes(item)));
    if (single) starts.push([single, single.id], [single, single.id + 1n], [single, single.id - 1n]);
    starts.push(...idsThatWrap(ties[0]![0]!));
    await mapConcurrently(starts, ([item, fromId]) => checkFromId(kit, sample, item, fromId));
    // Its id at an earlier instant: a server may know a screening's place, or a cache the page after it, by the id alone.
    if (single) await checkFromId(kit, sample, single, single.id, shift(single.at, -1n));
  },
);

/** Cursors within a tie, some with ids that no item has. */
function startsAt(tie: readonly OracleItem[]): [OracleItem, bigint][] {
  const [first, last] = [tie[0]!, tie.at(-1)!];
  return [
    ...tie.slice(0, 4).map((item): [OracleItem, bigint] => [item, item.id]),
    [last, last.id],
    [last, last.id + 1n],
    [first, first.id - 1n],
    [first, 0n],
  ];
}

/** Ids that are negative, or wrap around to an id of the tie or before it when truncated to 32 or 64 bits. */
const idsThatWrap = (first: OracleItem): [OracleItem, bigint][] =>
  [-1n, -first.id, 2n ** 63n, 2n ** 64n, -MAX_ID - 1n, -MAX_ID - 2n]
    .concat([32n, 64n].map((bits) => first.id + 2n ** bits))
    .map((id) => [first, id]);

async function checkFromId(
  kit: Kit,
  sample: SampleData,
  item: OracleItem,
  fromId: bigint,
  at = item.at,
): Promise<void> {
  const end =
    sample.items
      .filter((other) => compareInstants(other.at, item.at) > 0)
      .slice(0, 5)
      .at(-1) ?? item;
  const { to } = windowOf([end]);
  const isUsual = fromId >= 0n && fromId <= MAX_ID;
  const refused = refusedWith(kit, 'invalid_request');
  const answeredOrRefused: Judge = (page) =>
    page.status === 200 || !refused(page)
      ? undefined
      : differs('200, or 400 invalid_request', sayRefusal(page, kit.target.errorCodePointer));
  const asShown = isUsual && at === item.at ? [readableText(item.testTime)] : [];
  for (const from of new Set([formatInstant(at), ...asShown])) {
    const query = { from, to, fromId, pageSize: 50 };
    const exchange = isUsual ? await kit.page(query) : await sendQuery(kit, query);
    if (fromId === -1n) kit.ledger.observe('negative-from_id', sayRefusal(exchange).slice(0, 3));
    if (!isUsual && !refused(exchange)) continue;
    const known = await kit.oracle();
    const expected = await expectedItems(kit, query);
    const isKnown = (id: bigint): boolean => known.authoritative || expected.some((one) => one.id === id);
    kit.check(
      '4.2-from_id',
      exchange,
      (page) => (isUsual ? answered200 : answeredOrRefused)(page) ?? sameItems(page, expected, isKnown),
      isUsual ? 'probe' : 'a from_id that is negative or beyond 64 bits',
    );
  }
}

test(
  'ties are returned once and in order across page boundaries',
  about(['4.2-r4-order', '4.2-r5-exactly-once'], { access: 'reads' }),
  async ({ kit }) => {
    await walksAcrossTies(kit);
  },
);

test(
  'next carries to, pageSize, testTime and id of the last item',
  about(
    [
      '4.2-r6-next-to',
      '4.2-r6-next-pageSize',
      '4.2-r6-next-from',
      '4.2-r6-next-from_id',
      '4.2-r6-next-target',
      '4.2-r7-link',
    ],
    { access: 'reads' },
  ),
  async ({ kit }) => {
    await walksOfSeveralPages(kit);
    const { window } = await sampleDataOf(kit);
    // The digits of both are the same: a cache whose key joins them takes one page for the other.
    await kit.page({ ...window, pageSize: 1, fromId: 11n });
    await kit.page({ ...window, pageSize: 11, fromId: 1n });
  },
);

test(
  'the last page has neither next nor Link rel="next"',
  about('4.2-r7-link-absent', { access: 'reads' }),
  ({ kit }) => pagesOfEverySize(kit),
);

test(
  'a traversal as deep as the data or the budget returns each item once',
  about(['4.2-window', '4.2-r5-exactly-once'], { access: 'reads', isSupplement: true }),
  async ({ kit }) => {
    const { beyond } = await sampleDataOf(kit);
    // 60 pages by default; a million screenings with --max-requests 100000.
    const share = Math.floor(kit.options.maxRequests / 100);
    const maxPages = Math.min(DEEPEST_PAGES, Math.max(DEEP_PAGES, share));
    if (beyond)
      await checkWalk(kit, { ...beyond, pageSize: kit.knowledge.pageSize }, { maxPages }, 'deep walk');
  },
);

test(
  'a repeated request begins with the same items',
  about('4.2-repeatable', { access: 'reads' }),
  async ({ kit }) => {
    const sample = await sampleDataOf(kit);
    await walksOf(kit);
    const slice = windowOf(sample.densestSlice);
    const queries: PageQuery[] = [
      { ...slice, pageSize: sample.densestSlice.length },
      { ...slice, pageSize: 5 },
      { from: sample.window.from, to: sample.window.to },
      { ...sample.window, pageSize: MAX_PAGE_SIZE },
    ];
    for (const query of queries) {
      // Where every second answer lacks a screening, one of two pairs shows a loss that no deletion explains.
      await kit.checkAll({ id: '4.2-repeatable', cause: 'probe', needsAgain: true }, async () => {
        const [first, second, third] = [
          await kit.page(query),
          await kit.page(query),
          await kit.page(query),
        ] as const;
        return (await repeatMismatch(kit, first, second)) ?? (await repeatMismatch(kit, second, third));
      });
    }
  },
);

/** Without a dataset, screenings that no page shows any more count as deleted; all of them are not. */
test(
  'screenings are there at the end of the run',
  about('4.2-repeatable', { access: 'provokes' }),
  async ({ kit }) => {
    const { window } = await sampleDataOf(kit);
    if (endsEmpty(await kit.page({ ...window, pageSize: 1 })))
      throw new Untested(
        'the window of the sample is empty at the end of the run: later answers could be compared with nothing; supply a dataset, or run again where screenings stay',
      );
  },
);
