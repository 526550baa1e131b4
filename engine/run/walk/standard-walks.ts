/** The walks that many requirements need, made once: small pages over the densest slice, large ones over the sample. */
import { countOf, DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, pageOf, type PageQuery } from '../../client/page.ts';
import {
  compareInstants,
  formatInstant,
  instant,
  sameInstant,
  shift,
  spellingOf,
  type Instant,
} from '../../data/instant.ts';
import type { OracleItem } from '../../data/oracle.ts';
import { differs, type Mismatch } from '../../checks/mismatch.ts';
import type { Kit, PageOptions } from '../kit.ts';
import { mapConcurrently } from '../../client/concurrency.ts';
import { sampleDataOf, windowOf, type SampleData } from './survey.ts';
import { checkWalk, type Walk } from './walk.ts';
import { PreconditionFailed, Untested } from '../../errors.ts';
import type { Exchange } from '../../client/exchange.ts';

/** Every size up to here is walked, to find faults at a single page size. */
const SMALL_SIZES = 18;
/** Sizes around which buffers and batches end, at them or at one more (what servers ask of their store). */
const MIDDLE_SIZES = [64, 99, 100, 101, 127, 256];
const MIDDLE_ITEMS = 450;
/** With pages of one item, a walk of more than a hundred pages. */
const DEEP_ITEMS = 104;
const WALK_PAGES = 8;
const WALKS_CONCURRENTLY = 12;
/** The page limit of a walk: a window cannot cut a huge tie. */
const LONGEST_WALK = 100;

export const walksOf = (kit: Kit): Promise<readonly Walk[]> => kit.once('walks', () => walkAll(kit));

async function walkAll(kit: Kit): Promise<readonly Walk[]> {
  const sample = await sampleDataOf(kit);
  const plans = affordable(planWalks(sample), sample, kit.options.budget);
  const walks = await mapConcurrently(
    plans,
    (query) => checkWalk(kit, query, { maxPages: LONGEST_WALK, isSample: sample.cutTie.length === 0 }),
    WALKS_CONCURRENTLY,
  );
  for (const walked of walks) noteEmptyPages(kit, walked);
  return walks;
}

function planWalks(sample: SampleData): PageQuery[] {
  const slice = rangeOf(sample, sample.densestSlice);
  const count = sample.densestSlice.length;
  const small = [...range(2, SMALL_SIZES), count - 1, count, count + 1].filter((size) => size >= 1);
  const middle = rangeOf(sample, stretch(sample, MIDDLE_ITEMS));
  const deepItems = stretch(sample, DEEP_ITEMS);
  const deep = rangeOf(sample, deepItems);
  const largest = [...sample.ties].sort((a, b) => b.length - a.length)[0];
  const newYear = sample.items.findIndex(
    ({ at }, index, all) => yearOf(at) !== yearOf(all[Math.max(0, index - 1)]!.at),
  );
  const edges = newYear < 0 ? [] : sample.items.slice(newYear - 1, newYear + 1);
  const turn = sample.items.filter(({ at }) => edges.some((edge) => sameInstant(edge.at, at)));
  const isWalked = sample.ties.some(([first]) => sample.densestSlice.includes(first!));
  return [
    // The largest pages reveal a target whose next never ends after the fewest requests.
    { ...sample.window, pageSize: MAX_PAGE_SIZE },
    // The longest first; the others run concurrently.
    { ...deep, pageSize: 1 },
    // Pages of more than a hundred: the last one holds a single item, or there is one full page.
    ...[deepItems.length - 1, deepItems.length]
      .filter((size) => size > count + 1 && size < MAX_PAGE_SIZE)
      .map((pageSize) => ({ ...deep, pageSize })),
    ...[...new Set(small)].map((pageSize) => ({ ...slice, pageSize })),
    // Formats of dates have a year of the week too, which differs around the turn of the year.
    ...(turn.length === 0
      ? []
      : [{ ...windowOf(turn), pageSize: Math.min(MAX_PAGE_SIZE, Math.ceil(turn.length / WALK_PAGES)) }]),
    { ...middle },
    ...MIDDLE_SIZES.map((pageSize) => ({ ...middle, pageSize })),
    ...[511, 999].map((pageSize) => ({ ...sample.window, pageSize })),
    ...(largest && (largest.length > count || !isWalked)
      ? [{ ...windowOf(largest), pageSize: sizeFor(largest) }]
      : []),
  ];
}

/** The window of these items of the sample; it begins after a cursor where they are the end of a long tie. */
function rangeOf({ items }: SampleData, range: readonly OracleItem[]): PageQuery {
  const before = items[items.indexOf(range[0]!) - 1];
  const isInside = before !== undefined && sameInstant(before.at, range[0]!.at);
  return { ...windowOf(range), ...(isInside ? { fromId: before.id } : {}) };
}

const yearOf = (at: Instant): string => formatInstant(at).slice(0, 4);

/** The share of a small budget for walks, and the most informative page sizes, in order. */
const SHARE_OF_BUDGET = 1 / 6;
const INFORMATIVE_SIZES = [7, MAX_PAGE_SIZE, undefined, 3, 99, 1];

function affordable(
  plans: readonly PageQuery[],
  sample: SampleData,
  budget = Infinity,
): readonly PageQuery[] {
  if (budget === Infinity) return plans;
  const informative = INFORMATIVE_SIZES.flatMap(
    (size) => plans.find(({ pageSize }) => pageSize === size) ?? [],
  );
  const [longest, slice] = [sample.items.length, sample.densestSlice.length];
  const pagesOf = ({ pageSize = DEFAULT_PAGE_SIZE }: PageQuery): number =>
    Math.ceil((pageSize === 1 ? DEEP_ITEMS : pageSize < DEFAULT_PAGE_SIZE ? slice : longest) / pageSize) + 1;
  let left = budget * SHARE_OF_BUDGET;
  return informative.filter((query) => (left -= pagesOf(query)) >= 0);
}

/** A size that does not divide the tie, for a few pages. */
const sizeFor = (tie: readonly OracleItem[]): number =>
  Math.min(MAX_PAGE_SIZE - 1, tie.length - 1, Math.ceil(tie.length / WALK_PAGES) + 1);

const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i);

/** About this many neighbours, from the middle if possible; a large tie may add many more. */
function stretch({ items, densestSlice }: SampleData, size: number): readonly OracleItem[] {
  if (items.length <= size) return items;
  const fitting = [0.5, 0.25, 0.75, 0, 1]
    .map((share) => Math.floor((items.length - size) * share))
    .map((start) => includingTies(items, start, size))
    .find((slice) => slice.length < 1.3 * size);
  if (fitting) return fitting;
  const end = items.indexOf(densestSlice.at(-1)!) + 1;
  const longer = items.slice(Math.max(0, end - size), end);
  return sameInstant(longer[0]!.at, densestSlice[0]!.at) ? longer : densestSlice;
}

/** Neighbours from `start` on, including all ties of the first and the last one. */
function includingTies(items: readonly OracleItem[], start: number, size: number): readonly OracleItem[] {
  const [first, last] = [items[start]!.at, items[start + size - 1]!.at];
  return items
    .filter(({ at }) => compareInstants(at, first) >= 0 && compareInstants(at, last) <= 0)
    .slice(0, 2 * size);
}

/** A page with next must be followed by a page with items (2.4-next-no-empty-page). */
function noteEmptyPages(kit: Kit, { exchanges }: Walk): void {
  for (const exchange of exchanges.slice(1))
    kit.check('2.4-next-no-empty-page', exchange, (page) =>
      pageOf(page).items?.length === 0 ? differs('items after a page with next', 'an empty page') : undefined,
    );
}

/** Throws Untested unless a walk has several pages. */
export async function walksOfSeveralPages(kit: Kit): Promise<readonly Walk[]> {
  const walks = await walksOf(kit);
  if (!walks.some((walked) => walked.exchanges.length > 2)) {
    const stuck = walks.find(({ end }) => end === 'stuck');
    if (stuck) throw new PreconditionFailed(`no walk had three pages: ${stuck.why}`, '4.2-r5-exactly-once');
    throw new Untested('no walk had three pages; load more screenings for clients.primary');
  }
  return walks;
}

/** Throws Untested unless a page ended inside a tie. */
export async function walksAcrossTies(kit: Kit): Promise<readonly Walk[]> {
  const walks = await walksOfSeveralPages(kit);
  if ((kit.ledger.seen.get('boundariesInsideTies') ?? 0) === 0) {
    const { ties } = await sampleDataOf(kit);
    if (ties.length > 0) {
      const why = `no page ended inside a tie, although the data has ${ties.length} ties`;
      throw new PreconditionFailed(why, '4.2-r5-exactly-once');
    }
    throw new Untested(
      'no page ended inside a tie; load at least two (better three) screenings with one testTime for clients.primary',
    );
  }
  return walks;
}

/** Fetches pages of every size, including the last page and an empty one. */
export const pagesOfEverySize = (kit: Kit): Promise<void> =>
  kit.once('pages of every size', async () => {
    const { items } = await sampleDataOf(kit);
    await walksOf(kit);
    const at = formatInstant(items[0]!.at);
    await kit.page({ from: at, to: at }, { id: '4.2-r1-zero-width' });
  });

/** Reports a different default if answers without pageSize are shorter than those with pageSize=100. */
export async function checkDefaultPageSize(
  kit: Kit,
  query: PageQuery,
  first: Exchange,
  options: PageOptions = {},
): Promise<void> {
  const compare = async (asked: PageQuery, without: Exchange): Promise<Mismatch | undefined> => {
    const held = countOf(without);
    if (held >= DEFAULT_PAGE_SIZE || pageOf(without).nextUrl === undefined) return undefined;
    const named = await kit.page({ ...asked, pageSize: DEFAULT_PAGE_SIZE }, options);
    const full = countOf(named);
    return full >= DEFAULT_PAGE_SIZE
      ? differs(
          `the ${full} items that pageSize=${DEFAULT_PAGE_SIZE} gives, without pageSize too`,
          `${held} items`,
        )
      : undefined;
  };
  kit.ledger.check('4.2-pageSize-default');
  const mismatch = await compare(query, first);
  if (!mismatch) return;
  let { to } = query;
  // Pages that are limited by time or octets are short occasionally; a different default is short each time. A cache
  // would repeat the pages of the same window.
  const again = async (): Promise<Mismatch | undefined> => {
    to = formatInstant(shift(instant(to), 1n, 0), spellingOf(to));
    return compare({ ...query, to }, await kit.page({ ...query, to }, options));
  };
  for (let i = 0; i < 4; i++) if (!(await again())) return;
  kit.fail({
    id: '4.2-pageSize-default',
    cause: 'default',
    mismatch,
    exchange: first,
    again,
    needsAgain: true,
  });
}
