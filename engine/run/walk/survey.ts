/**
 * Finds the screenings for the checks before they run. With a dataset its items are known; otherwise a window is
 * found and walked once.
 */
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, pageOf, type PageQuery } from '../../client/page.ts';
import {
  compareInstants,
  formatInstant,
  isInside,
  isMovable,
  mostDigits,
  offsetMinutesOf,
  readableText,
  sameInstant,
  shift,
  type Instant,
} from '../../data/instant.ts';
import type { OracleItem } from '../../data/oracle.ts';
import type { Kit } from '../kit.ts';
import { walk, walkOn, type Walk } from './walk.ts';
import { AnswerTooLarge, Untested } from '../../errors.ts';
import type { Target } from '../../target/target.ts';
import { SMALL_PAGE } from '../state/knowledge.ts';

/** A completely known range of screenings, and its parts that are most useful for checks. */
export interface SampleData {
  /** In order; a tie is cut only at the start or the end, if it is larger than the rest. */
  readonly items: readonly OracleItem[];
  /** From the first item to just after the last one. */
  readonly window: PageQuery;
  /** Groups of items with the same instant, also `cutTie`. */
  readonly ties: readonly (readonly OracleItem[])[];
  /** A tie that goes on beyond what is known of it: at the end of the sample, or beside it. */
  readonly cutTie: readonly OracleItem[];
  /** The window after the sample; undefined if the sample is everything. */
  readonly beyond: PageQuery | undefined;
  /** A few dozen neighbours with as many different properties as possible. */
  readonly densestSlice: readonly OracleItem[];
}

/** Limit for a survey with short or empty pages. */
const SURVEY_PAGES = 150;
const SAMPLE_ITEMS = 2_500;
/** Pages in which data is read that is mostly one tie, or in which the first tie is looked for. */
const TIE_PAGES = 30;
/** More pages make a walk of the whole sample too long. */
const WALK_PAGES = 60;
const SLICE_ITEMS = 48;
/** Limits of sample and slice for large items, as shares of the largest answer: dozens of walks read them. */
const SAMPLE_SHARE = 0.25;
const SLICE_SHARE = 0.09;
const FEWEST_OF_SLICE = 12;
const LONGEST_WAIT_MS = 5_000;
const POLL_MS = 500;
const DAY_MS = 86_400_000;
const DECADE_DAYS = 3_653;
export const WIDE_WINDOWS = [
  ['1970-01-01T00:00:00Z', '2100-01-01T00:00:00Z'],
  ['0001-01-02T00:00:00Z', '9999-12-30T00:00:00Z'],
  // Fits in 31 bits of seconds, for servers that use no more.
  ['1970-01-01T00:00:00Z', '2038-01-01T00:00:00Z'],
] as const;

/** The sample of primary. Throws Untested if there are no screenings. */
export const sampleDataOf = (kit: Kit): Promise<SampleData> => kit.once('sample', () => survey(kit));

async function survey(kit: Kit): Promise<SampleData> {
  const known = await kit.oracle();
  const found = known.authoritative ? await datasetItems(kit, known.items) : await pollForItems(kit);
  if (found.items.length === 0) throw new Untested(sayNoScreenings(kit.target));
  const { items, beyond, cutTie = [] } = await readableOf(kit, found);
  const isBeside = cutTie.length > 1 && !items.includes(cutTie[0]!);
  const ties = [...tiesOf(items), ...(isBeside ? [cutTie] : [])];
  kit.ledger.raiseTo('sampleItems', items.length);
  kit.ledger.raiseTo('ties', ties.length);
  return { items, window: windowOf(items), beyond, ties, cutTie, densestSlice: densestSliceOf(kit, items) };
}

export const sayNoScreenings = ({ window }: Target): string =>
  window
    ? 'window holds no screenings of clients.primary: name another, or load some there'
    : 'no screenings found: load some for clients.primary, or name a window that holds some';

type Found = Pick<SampleData, 'items' | 'beyond'> & Partial<Pick<SampleData, 'cutTie'>>;

/** With a dataset the items are known; a few pages show that the target serves, and how long its pages are. */
async function datasetItems(kit: Kit, all: readonly OracleItem[]): Promise<Found> {
  const { window } = kit.target;
  const items = all.filter(({ at }) => isMovable(at) && (!window || isInside(at, window)));
  if (items.length === 0)
    throw new Untested(
      'the dataset (from 0001-01-02 to 9999-12-30, within window) holds no screenings; load some for clients.primary',
    );
  const walked = await withReadablePages(kit, windowOf(items), (query) => walk(kit, query, { maxPages: 3 }));
  return sampleOf(items, sampleSize(kit, walked), windowOf(items));
}

/** The most informative range of at most this many items; the rest is `beyond`. */
function sampleOf(items: readonly OracleItem[], size: number, beyond: PageQuery | undefined): Found {
  return items.length <= size
    ? { items, beyond: undefined }
    : { items: wholeTies(items, mostInformativeStart(items, size), size), beyond };
}

/** A smaller sample if a page cannot hold it: where items differ in size, the first ones do not show the largest. */
async function readableOf(kit: Kit, found: Found): Promise<Found> {
  const { items, beyond = windowOf(items) } = found;
  const { knowledge } = kit;
  if (knowledge.pageSize === MAX_PAGE_SIZE) return found;
  const whole = { ...windowOf(items), pageSize: MAX_PAGE_SIZE };
  const page = await kit.page(whole).catch((error: unknown) => {
    if (!(error instanceof AnswerTooLarge)) throw error;
  });
  if (page) knowledge.noteItemSize(page);
  const smaller = sampleOf(
    items,
    page ? knowledge.itemsIn(SAMPLE_SHARE) : Math.ceil(items.length / 2),
    beyond,
  );
  if (smaller.items.length === 0 || smaller.items.length === items.length) return found;
  return page ? { ...found, ...smaller } : readableOf(kit, { ...found, ...smaller });
}

/** A smaller sample if pages are short, to limit the pages of its walks. */
function sampleSize({ knowledge }: Kit, { summary, exchanges, end }: Walk): number {
  const readable = Math.min(SAMPLE_ITEMS, knowledge.itemsIn(SAMPLE_SHARE));
  if (end === 'complete' || readable < SAMPLE_ITEMS) return readable;
  return Math.max(
    SLICE_ITEMS,
    Math.min(readable, Math.ceil((WALK_PAGES * summary.count) / exchanges.length)),
  );
}

/** Recently loaded data may appear late: an empty tenant is polled for a while. */
async function pollForItems(kit: Kit): Promise<Found> {
  const found = await findItems(kit);
  if (found.items.length > 0 || found.beyond) return found;
  const [first] = windowsOf(kit);
  const began = kit.clock.now();
  for (let shown = 0; shown === 0;) {
    if (kit.clock.now() - began > kit.pollingMs(LONGEST_WAIT_MS)) return found;
    await kit.clock.sleep(POLL_MS);
    const page = pageOf(await kit.page({ from: first![0], to: first![1], pageSize: 100 }));
    // Empty pages with `next` do not show that the tenant is empty.
    if (page.nextUrl !== undefined) break;
    shown = page.items?.length ?? 0;
  }
  kit.ledger.notes.add(`the first screenings showed ${((kit.clock.now() - began) / 1000).toFixed(1)} s late`);
  return findItems(kit);
}

/** The window of the target file, otherwise wide ones. */
export const windowsOf = ({ target: { window } }: Kit): readonly (readonly [string, string])[] =>
  window ? [[formatInstant(window.from), formatInstant(window.to)]] : WIDE_WINDOWS;

/** The latest month and year, and the decades before them to 1970: a server may search at most a month per page. */
function narrowWindows({ clock }: Kit): (readonly [string, string])[] {
  const nowDays = Math.ceil(clock.now() / DAY_MS);
  const at = (daysAgo: number): string => new Date(Math.max(0, nowDays - daysAgo) * DAY_MS).toISOString();
  const decades = Array.from({ length: Math.ceil(nowDays / DECADE_DAYS) }, (_, index) => index * DECADE_DAYS);
  return [
    ...[31, 366].map((days) => [at(days), at(-1)] as const),
    ...decades.map((days) => [at(days + DECADE_DAYS), at(days - 1)] as const),
  ];
}

/**
 * Without a dataset: the window of the target file, otherwise the first wide window with items, or a narrow one where a
 * wide one has too many empty pages before them. `beyond` is then set although there are no items.
 */
async function findItems(kit: Kit): Promise<Found> {
  const windows = [...windowsOf(kit)];
  let goesOn: PageQuery | undefined;
  for (const [index, [from, to]] of windows.entries()) {
    const walked = await surveyWalk(kit, { from, to });
    const known = await kit.oracle();
    const last = known.items.at(-1);
    if (!last) {
      if (walked.end !== 'cut' || goesOn) continue;
      goesOn = { from, to };
      if (!kit.target.window) windows.splice(index + 1, 0, ...narrowWindows(kit));
      continue;
    }
    // The wider windows before it showed nothing: repeat them, now that items are known.
    for (const [from, to] of windows.slice(0, index)) await kit.ask({ from, to, pageSize: 100 });
    // Tests that the window ends with the walk: nothing follows its last item.
    if (walked.end === 'complete')
      await kit.page({ from: readableText(last.testTime), to, fromId: last.id, pageSize: 100 });
    const beyond = { from, to };
    const isMoved = ({ at }: OracleItem): boolean => isMovable(at);
    const size = sampleSize(kit, walked);
    if (walked.end === 'complete') return sampleOf(known.items.filter(isMoved), size, beyond);
    const kept = withoutTie(known.items, last).filter(isMoved);
    const cutTie = kept.filter(({ at }) => sameInstant(at, last.at));
    const items = cutTie.length === 0 ? kept : await besideTie(kit, cutTie, beyond);
    if (!items) {
      // The tie is most of the data: read to its end, so that windows can begin after a cursor near it.
      const all = await withReadablePages(kit, beyond, (query) => walk(kit, query, { maxPages: TIE_PAGES }));
      if (all.end === 'complete') return sampleOf((await kit.oracle()).items.filter(isMoved), size, beyond);
    }
    return { ...sampleOf(items ?? kept, size, beyond), beyond, cutTie };
  }
  return { items: [], beyond: goesOn };
}

/** A window cannot end inside a tie: a sample before or after a huge one, if there are enough screenings. */
async function besideTie(
  kit: Kit,
  tie: readonly OracleItem[],
  { to }: PageQuery,
): Promise<readonly OracleItem[] | undefined> {
  const { at } = tie[0]!;
  const walked = await surveyWalk(kit, { from: windowOf(tie).to, to });
  const { items } = await kit.oracle();
  const isBeside = (item: OracleItem): boolean => isMovable(item.at) && !sameInstant(item.at, at);
  const others = items.filter(isBeside);
  const last = walked.end === 'complete' ? undefined : items.at(-1);
  const [earlier, later] = [
    others.filter((item) => compareInstants(item.at, at) < 0),
    others.filter((item) => compareInstants(item.at, at) > 0 && !(last && sameInstant(item.at, last.at))),
  ];
  const longer = earlier.length < later.length ? later : earlier;
  return longer.length < SLICE_ITEMS ? undefined : longer;
}

/** Walks in the largest pages; if they are rejected, reports 4.2-pageSize-bounds and uses smaller ones. */
const surveyWalk = (kit: Kit, window: PageQuery): Promise<Walk> =>
  withReadablePages(kit, window, async (query) => {
    // Enough for the default page size as well.
    const large = Math.max(DEFAULT_PAGE_SIZE + 1, kit.knowledge.itemsIn(2 * SAMPLE_SHARE));
    const enough = Math.min(SAMPLE_ITEMS, large);
    const first = await kit.ask(query);
    let walked =
      first.status === 200
        ? await walkOn(kit, query, first, { maxPages: SURVEY_PAGES, enough })
        : await walk(kit, { ...window, pageSize: 100 }, { maxPages: SURVEY_PAGES, enough });
    // Where testTimes are fine, ties are rare, and without one most of paging is untested.
    kit.knowledge.noteItemSize(walked.exchanges[0]!);
    for (let pages = 0; walked.end === 'cut' && pages < TIE_PAGES; pages++) {
      const { items } = await kit.oracle();
      if (items.length === 0 || items.length > kit.knowledge.itemsIn(1) || tiesOf(items).length > 0) break;
      walked = await walkOn(kit, walked.query, walked.exchanges.at(-1)!, { maxPages: 2 });
    }
    return walked;
  });

/** Reduces the page size until answers can be read. */
async function withReadablePages(
  kit: Kit,
  window: PageQuery,
  run: (query: PageQuery) => Promise<Walk>,
): Promise<Walk> {
  for (;;) {
    const { pageSize } = kit.knowledge;
    try {
      const walked = await run({ ...window, pageSize });
      kit.knowledge.noteItemSize(walked.exchanges[0]!);
      return walked;
    } catch (error) {
      if (!(error instanceof AnswerTooLarge) || pageSize === 1) throw error;
      kit.knowledge.shrinkPages(await kit.page({ ...window, pageSize: Math.min(pageSize, SMALL_PAGE) }));
    }
  }
}

/** Items with different precision and offset; the first of each tie. */
export function variedItems(sample: SampleData, atMost: number): OracleItem[] {
  const kinds = new Map<string, OracleItem>();
  for (const [index, item] of sample.items.entries()) {
    const before = sample.items[index - 1];
    if (before && sameInstant(before.at, item.at)) continue;
    const offset = Math.sign(offsetMinutesOf(item.testTime));
    const kind = `${Math.ceil(item.at.fraction.length / 3)} ${offset}`;
    if (!kinds.has(kind)) kinds.set(kind, item);
  }
  const first = sample.densestSlice[0]!;
  return [...new Set([first, ...kinds.values()])].slice(0, atMost);
}

/** In UTC, of a year, a month, a day. */
const BEGINNINGS = [/-01-01T00:00:00Z$/, /-01T00:00:00Z$/, /T00:00:00Z$/];
const LEAP_DAY = /-02-29T/;

/**
 * Where the sample has an item at which a year begins, else a month or a day: that one, and the one before it. And an
 * item of a leap day.
 */
export function itemsAtTurn({ items }: SampleData): OracleItem[] {
  const texts = items.map(({ at }) => formatInstant(at));
  const turn = BEGINNINGS.map((begins) => texts.findIndex((text) => begins.test(text))).find((at) => at >= 0);
  return [
    ...(turn === undefined ? [] : items.slice(Math.max(0, turn - 1), turn + 1)),
    ...items.filter((_, index) => LEAP_DAY.test(texts[index]!)).slice(0, 1),
  ];
}

/** Without the tie to which `next` belongs, as it may be cut; a tie that is most of the items stays. */
function withoutTie(items: readonly OracleItem[], next: OracleItem | undefined): readonly OracleItem[] {
  const kept = items.filter((item) => !next || !sameInstant(item.at, next.at));
  return 2 * kept.length < items.length ? items : kept;
}

/** The smallest window that contains the items. */
export function windowOf(items: readonly { readonly at: Instant }[]): PageQuery {
  return {
    from: formatInstant(items[0]!.at),
    to: formatInstant(shift(items.at(-1)!.at, 1n, stepDigits(items))),
  };
}

/** Microseconds, or finer if an item is finer. */
export const stepDigits = (items: readonly { readonly at: Instant }[]): number => mostDigits(items, 6);

/** Groups of two and more items with the same instant, in order. */
function tiesOf(items: readonly OracleItem[]): OracleItem[][] {
  const all: OracleItem[][] = [];
  for (const item of items) {
    const group = all.at(-1);
    if (group && sameInstant(group[0]!.at, item.at)) group.push(item);
    else all.push([item]);
  }
  return all.filter((group) => group.length > 1);
}

/** The most informative range of about this many items. */
export function densestSliceOf({ knowledge }: Kit, items: readonly OracleItem[]): readonly OracleItem[] {
  const size = Math.min(SLICE_ITEMS, Math.max(FEWEST_OF_SLICE, knowledge.itemsIn(SLICE_SHARE)));
  return wholeTies(items, mostInformativeStart(items, size), size);
}

/**
 * About `size` items from `start`, which is the start of a tie. Of a tie that is longer they are the last ones: a
 * window cannot end inside it, and would hold all that follows.
 */
function wholeTies(items: readonly OracleItem[], start: number, size: number): readonly OracleItem[] {
  const kept = withoutTie(items.slice(start, start + size), items[start + size]);
  const [last, next] = [kept.at(-1), items[start + kept.length]];
  if (!last || !next || !sameInstant(last.at, next.at)) return kept;
  const end = items.findLastIndex(({ at }) => sameInstant(at, last.at)) + 1;
  return items.slice(Math.max(0, end - size), end);
}

/** The index at which the most informative range starts, which has a tie if there is one. */
function mostInformativeStart(items: readonly OracleItem[], size: number): number {
  const worth = items.map((item, i) => informationOf(item, items[i - 1]));
  const isTied = items.map(({ at }, i) => i > 0 && sameInstant(items[i - 1]!.at, at));
  let sum = worth.slice(0, size).reduce((total, value) => total + value, 0);
  let best = { start: 0, sum };
  for (let start = 1; start + size <= items.length; start++) {
    sum += worth[start + size - 1]! - worth[start - 1]!;
    if (!isTied[start] && sum > best.sum) best = { start, sum };
  }
  const firstTie = isTied.indexOf(true);
  return firstTie < 0 || isTied.slice(best.start, best.start + size).includes(true)
    ? best.start
    : Math.max(0, Math.min(firstTie - Math.ceil(size / 2), items.length - size));
}

/** How informative an item is after the previous one: ties most, with a limit, since a single tie shows little. */
function informationOf(item: OracleItem, before: OracleItem | undefined): number {
  if (!before) return 0;
  let worth = 0;
  if (sameInstant(item.at, before.at)) {
    worth += 4;
    if (String(item.id).length !== String(before.id).length) worth += 4;
  } else {
    worth += 2;
    if (item.id < before.id) worth += 2;
    if (compareInstants(item.at, shift(before.at, 2n)) <= 0) worth += 4;
  }
  if (item.at.fraction.length > 3) worth += 2;
  if (item.at.fraction.length > 6) worth += 4;
  if (offsetMinutesOf(item.testTime) !== offsetMinutesOf(before.testTime)) worth += 2;
  return worth;
}
