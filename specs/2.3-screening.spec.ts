/** Section 2.3: the screening object; and section 3: only completed screenings. */
import { about, test } from '../fixtures/test.ts';
import { MAX_PAGE_SIZE, orderedItems } from '../engine/client/page.ts';
import { formatInstant, instant, sameInstant, shift } from '../engine/data/instant.ts';
import { mapConcurrently } from '../engine/client/concurrency.ts';
import { differs } from '../engine/checks/mismatch.ts';
import { sayItem } from '../engine/checks/page.ts';
import { pagesOfEverySize } from '../engine/run/walk/standard-walks.ts';
import { sampleDataOf, windowOf } from '../engine/run/walk/survey.ts';
import { SupplyUnusable, Untested } from '../engine/errors.ts';

test(
  'every item of pages of several sizes has id, tenantId and testTime',
  about(['2.3-id', '2.3-object-stable', '2.3-tenantId', '2.3-testTime'], { access: 'reads' }),
  ({ kit }) => pagesOfEverySize(kit),
);

test(
  'a screening is the same in every answer',
  about('2.3-id-stable', { access: 'reads' }),
  async ({ kit }) => {
    const sample = await sampleDataOf(kit);
    const window = windowOf(sample.densestSlice);
    await kit.checkAll({ id: '2.3-id-stable', cause: 'probe', needsAgain: true }, async () => {
      const [first, second] = [
        await kit.page({ ...window, pageSize: MAX_PAGE_SIZE }),
        await kit.page({ ...window, pageSize: sample.densestSlice.length + 1 }),
      ].map(orderedItems);
      const length = Math.min(first!.length, second!.length);
      for (let i = 0; i < length; i++) {
        const [a, b] = [first![i]!, second![i]!];
        if (!sameInstant(a.at, b.at)) return undefined;
        const tied = [first!, second!].some((items) =>
          [items[i - 1], items[i + 1]].some((other) => other && sameInstant(other.at, a.at)),
        );
        if (a.id !== b.id && !tied) {
          return differs(`${sayItem(a)} with the same id again`, sayItem(b));
        }
      }
      return undefined;
    });
    if (sample.items.length < 2)
      throw new Untested('a single screening cannot show whether ids are stable; load more');
  },
);

const UNFINISHED_ASKED = 20;

test(
  'screenings that are not completed are not returned',
  about('4.2-window', { needs: 'page', access: 'reads', isSupplement: true }),
  async ({ kit }) => {
    const { unfinished } = kit.target;
    if (!unfinished) return;
    const tenantId = await kit.tenantOf();
    const owned = unfinished.filter((one) => one.tenantId.toLowerCase() === tenantId.toLowerCase());
    if (owned.length === 0) throw new SupplyUnusable(`unfinished holds no screening of tenant ${tenantId}`);
    const step = Math.ceil(owned.length / UNFINISHED_ASKED);
    const asked = owned.filter((_, index) => index % step === 0).map(({ testTime }) => instant(testTime));
    // The observers compare every page with the file; these windows are where those screenings would appear.
    await mapConcurrently(asked, (at) =>
      kit.page({ from: formatInstant(shift(at, -1n, 0)), to: formatInstant(shift(at, 1n, 0)) }),
    );
  },
);
