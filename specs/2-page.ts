/** Sections 2.3 and 2.4: screenings and pages. The observers judge; here it is seen to that they have enough to look at. */
import { Untested } from '../fixtures/client/client.ts';
import { isOrdered, pageOf } from '../fixtures/client/page.ts';
import { compareInstants, formatInstant, sameInstant } from '../fixtures/data/instant.ts';
import { differs } from '../fixtures/checks/mismatch.ts';
import type { Probe } from '../fixtures/run/probe.ts';
import { sampleDataOf, windowOf } from '../fixtures/run/survey.ts';
import { walksOf, walksOfSeveralPages } from '../fixtures/run/standard-walks.ts';
import { sayItem } from '../fixtures/checks/page.ts';

export const probes: readonly Probe[] = [
  {
    ids: [
      '2.3-id',
      '2.3-tenantId',
      '2.3-testTime',
      '2.4-items',
      '2.4-links',
      '2.4-next-absent',
      '4.2-r7-link-absent',
    ],
    name: 'pages of every size',
    precondition: 'data',
    run: async (kit) => {
      const { items } = await sampleDataOf(kit);
      await walksOf(kit);
      const at = formatInstant(items[0]!.at);
      await kit.page({ from: at, to: at }, { id: '4.2-r1-zero-width' });
    },
  },
  {
    ids: [
      '2.4-next',
      '2.4-next-absolute',
      '2.4-next-no-empty-page',
      '2.4-full-pages',
      '4.2-r6-next-to',
      '4.2-r6-next-pageSize',
      '4.2-r6-next-from',
      '4.2-r6-next-from_id',
      '4.2-r6-next-target',
      '4.2-r7-link',
      '9-prefix',
    ],
    name: 'walks over several pages',
    precondition: 'data',
    run: async (kit) => {
      await walksOfSeveralPages(kit);
    },
  },
  {
    ids: ['2.3-id-stable'],
    name: 'the same screenings in several answers',
    precondition: 'data',
    run: async (kit) => {
      const sample = await sampleDataOf(kit);
      const window = windowOf(sample.densestSlice);
      await kit.checkAll(
        '2.3-id-stable',
        'probe',
        async () => {
          const [first, second] = [
            await kit.page({ ...window, pageSize: 1000 }),
            await kit.page({ ...window, pageSize: sample.densestSlice.length + 1 }),
          ].map((exchange) => (pageOf(exchange).items ?? []).filter(isOrdered));
          const length = Math.min(first!.length, second!.length);
          for (let i = 0; i < length; i++) {
            const [a, b] = [first![i]!, second![i]!];
            if (!sameInstant(a.at, b.at)) return undefined;
            const tied = [first![i - 1], first![i + 1]].some(
              (other) => other && compareInstants(other.at, a.at) === 0,
            );
            if (a.id !== b.id && !tied) {
              return differs(`${sayItem(a)} with the same id again`, sayItem(b));
            }
          }
          return undefined;
        },
        { needsAgain: true },
      );
      if (sample.items.length < 2)
        throw new Untested('one screening alone can share its id with none; load more');
    },
  },
];
