/** Section 4.2: page sizes, order, and following next. */
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, pageOf, type PageQuery } from '../engine/client/page.ts';
import { type Probe, observed } from '../engine/run/probe.ts';
import { sampleDataOf, windowOf } from '../engine/run/walk/survey.ts';
import {
  walksAcrossTies,
  walksOf,
  walksOfSeveralPages,
  pagesOfEverySize,
} from '../engine/run/walk/standard-walks.ts';
import { checkWalk } from '../engine/run/walk/walk.ts';
import { holdAgainstDefault } from './4.2-circumstances.ts';
import { prefixMismatch } from '../engine/checks/selection.ts';
import { Untested } from '../engine/errors.ts';

/** Of the largest size: beyond the 10,000 items that many stores end at. */
const DEEP_PAGES = 12;
const DEEPEST_PAGES = 1_000;

export const probes: readonly Probe[] = [
  {
    ids: ['4.2-pageSize-default'],
    name: 'no pageSize',
    precondition: 'data',
    run: async (kit) => {
      const { items, window } = await sampleDataOf(kit);
      const exchange = await kit.page({ from: window.from, to: window.to }, { id: '4.2-pageSize-default' });
      kit.ledger.observe('default-page-items', String(pageOf(exchange).items?.length ?? 'none'));
      await holdAgainstDefault(kit, { from: window.from, to: window.to }, exchange);
      if (items.length <= DEFAULT_PAGE_SIZE) {
        throw new Untested(
          `more than ${DEFAULT_PAGE_SIZE} screenings show it; load some for clients.primary`,
        );
      }
    },
  },
  {
    ids: ['4.2-pageSize-bounds'],
    name: 'the smallest and the largest pageSize',
    precondition: 'data',
    run: async (kit) => {
      const { window } = await sampleDataOf(kit);
      for (const pageSize of [1, 2, 500, MAX_PAGE_SIZE - 1, MAX_PAGE_SIZE]) {
        await kit.ask({ from: window.from, to: window.to, pageSize }, { id: '4.2-pageSize-bounds' });
      }
    },
  },
  {
    ids: ['4.2-r4-order', '4.2-r5-exactly-once'],
    name: 'walks across ties',
    precondition: 'data',
    run: async (kit) => {
      await walksAcrossTies(kit);
    },
  },
  observed(
    [
      '4.2-r6-next-to',
      '4.2-r6-next-pageSize',
      '4.2-r6-next-from',
      '4.2-r6-next-from_id',
      '4.2-r6-next-target',
      '4.2-r7-link',
    ],
    'next on walks over several pages',
    walksOfSeveralPages,
  ),
  observed(['4.2-r7-link-absent'], 'the final pages', pagesOfEverySize),
  {
    ids: ['4.2-window', '4.2-r5-exactly-once'],
    name: 'a walk as deep as the data or the budget',
    precondition: 'data',
    supplement: true,
    run: async (kit) => {
      const { beyond } = await sampleDataOf(kit);
      // 60 pages by default, a million screenings with --max-requests 100000.
      const share = Math.floor(kit.options.maxRequests / 100);
      const maxPages = Math.min(DEEPEST_PAGES, Math.max(DEEP_PAGES, share));
      if (beyond) await checkWalk(kit, { ...beyond, pageSize: MAX_PAGE_SIZE }, { maxPages }, 'deep walk');
    },
  },
  {
    ids: ['4.2-repeatable'],
    name: 'the same request twice',
    precondition: 'data',
    run: async (kit) => {
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
        await kit.checkAll(
          '4.2-repeatable',
          'probe',
          async () => prefixMismatch(await kit.page(query), await kit.page(query)),
          { needsAgain: true },
        );
      }
    },
  },
];
