/** Cases drawn from what is known of the data: windows with edges at and beside its own instants. */
import fc from 'fast-check';
import type { PageQuery } from '../fixtures/client/page.ts';
import {
  compareInstants,
  formatInstant,
  shift,
  type Instant,
  type Spelling,
} from '../fixtures/data/instant.ts';
import type { KnownItem } from '../fixtures/data/known.ts';
import { stepDigits } from '../fixtures/judge/survey.ts';

/** Hours and minutes that a right implementation accepts (beyond 18 hours many parsers stop). */
export const offsets = fc
  .tuple(fc.integer({ min: -14, max: 14 }), fc.constantFrom(0, 0, 15, 30, 45, 59))
  .map(([hours, minutes]) => hours * 60 + (hours < 0 ? -minutes : minutes));

export const spellings: fc.Arbitrary<Spelling> = fc.record(
  { offsetMinutes: offsets, digits: fc.constantFrom(0, 1, 3, 6) },
  { requiredKeys: [] },
);

/** -1: one unit before the item's instant, 0: at it, 1: one unit behind. */
const besides = fc.constantFrom(0, 0, 1, -1);

const pageSizes = fc.oneof(
  { arbitrary: fc.constantFrom(1, 2, 3, 7), weight: 5 },
  { arbitrary: fc.constantFrom(99, 100, 101, 999, 1000), weight: 2 },
  { arbitrary: fc.integer({ min: 1, max: 60 }), weight: 3 },
);

export interface WindowCase {
  readonly from: Instant;
  readonly to: Instant;
  readonly query: PageQuery;
  /** Which items of the data it was drawn around, first and last. */
  readonly around: readonly [KnownItem, KnownItem];
}

const PAGES = 9;
const ITEMS_AT_MOST = 400;

/** A window around neighbours of the data, at most some pages long; its edges in any spelling. */
export function windows(
  items: readonly KnownItem[],
  sizes: fc.Arbitrary<number> = pageSizes,
): fc.Arbitrary<WindowCase> {
  const digits = stepDigits(items);
  return fc
    .record({
      size: sizes,
      start: fc.nat({ max: items.length - 1 }),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
      before: besides,
      behind: besides,
      fromSpelling: spellings,
      toSpelling: spellings,
    })
    .map(({ size, start, share, before, behind, fromSpelling, toSpelling }) => {
      const length = Math.max(1, Math.ceil(share * Math.min(ITEMS_AT_MOST, size * PAGES)));
      const [first, last] = [items[start]!, items[Math.min(items.length - 1, start + length - 1)]!];
      const from = shift(first.at, BigInt(before), digits);
      // Behind the last item, unless its instant is to be the window's end.
      const end = shift(last.at, BigInt(behind + 1), digits);
      const to = compareInstants(end, from) < 0 ? from : end;
      const query = {
        from: formatInstant(from, fromSpelling),
        to: formatInstant(to, toSpelling),
        pageSize: size,
      };
      return { from, to, query, around: [first, last] as const };
    });
}

/** How many items come before an instant. */
function countFrom(items: readonly KnownItem[], at: Instant): number {
  const index = items.findIndex((item) => compareInstants(item.at, at) >= 0);
  return index < 0 ? items.length : index;
}

/** `window [from, to), pageSize 7`: how a case reads. */
export const sayQuery = ({ from, to, pageSize, fromId }: PageQuery): string =>
  `window [${from}, ${to})${pageSize === undefined ? '' : `, pageSize ${pageSize}`}${fromId === undefined ? '' : `, from_id ${fromId}`}`;
