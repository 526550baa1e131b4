/** Section 4.2: page sizes, order, and following next. */
import {
  DEFAULT_PAGE_SIZE,
  isPlaced,
  MAX_PAGE_SIZE,
  pageOf,
  type PageQuery,
} from '../fixtures/client/page.ts';
import { Untested } from '../fixtures/client/client.ts';
import type { Exchange } from '../fixtures/client/exchange.ts';
import { complain } from '../fixtures/checks/mismatch.ts';
import type { LawComplaint } from '../fixtures/run/kit.ts';
import { sayItem } from '../fixtures/checks/page.ts';
import type { Probe } from '../fixtures/run/probe.ts';
import { sceneOf, windowOf } from '../fixtures/run/survey.ts';
import { walksAcrossTies, walksOf } from '../fixtures/run/standard-walks.ts';

/** One answer's items are a prefix of the other's (4.2-repeatable). */
export function prefixComplaint(first: Exchange, second: Exchange): LawComplaint | undefined {
  const [a, b] = [first, second].map((exchange) => (pageOf(exchange).items ?? []).filter(isPlaced));
  for (let i = 0; i < Math.min(a!.length, b!.length); i++) {
    const [was, is] = [a![i]!, b![i]!];
    if (was.id !== is.id) {
      return { ...complain(`item number ${i + 1} again ${sayItem(was)}`, sayItem(is)), exchange: second };
    }
  }
  return undefined;
}

export const probes: readonly Probe[] = [
  {
    ids: ['4.2-pageSize-default'],
    name: 'no pageSize',
    basis: 'data',
    run: async (kit) => {
      const { items, window } = await sceneOf(kit);
      const exchange = await kit.page({ from: window.from, to: window.to }, { id: '4.2-pageSize-default' });
      kit.ledger.observe('default-page-items', String(pageOf(exchange).items?.length ?? 'none'));
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
    basis: 'data',
    run: async (kit) => {
      const { window } = await sceneOf(kit);
      for (const pageSize of [1, 2, 500, MAX_PAGE_SIZE - 1, MAX_PAGE_SIZE]) {
        await kit.ask({ from: window.from, to: window.to, pageSize }, { id: '4.2-pageSize-bounds' });
      }
    },
  },
  {
    ids: ['4.2-r4-order', '4.2-r5-exactly-once'],
    name: 'walks across ties',
    basis: 'data',
    run: async (kit) => {
      await walksAcrossTies(kit);
    },
  },
  {
    ids: ['4.2-repeatable'],
    name: 'the same request twice',
    basis: 'data',
    run: async (kit) => {
      const scene = await sceneOf(kit);
      await walksOf(kit);
      const focus = windowOf(scene.focus);
      const queries: PageQuery[] = [
        { ...focus, pageSize: scene.focus.length },
        { ...focus, pageSize: 5 },
        { from: scene.window.from, to: scene.window.to },
        { ...scene.window, pageSize: MAX_PAGE_SIZE },
      ];
      for (const query of queries) {
        await kit.holdAll(
          '4.2-repeatable',
          'probe',
          async () => prefixComplaint(await kit.page(query), await kit.page(query)),
          { needsAgain: true },
        );
      }
    },
  },
];
