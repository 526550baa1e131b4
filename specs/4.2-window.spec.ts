/** Section 4.2: which screenings a window selects. */
import { about, test } from '../fixtures/test.ts';
import type { Exchange } from '../engine/client/exchange.ts';
import type { PageQuery } from '../engine/client/page.ts';
import {
  cutInstant,
  compareInstants,
  formatInstant,
  isMovable,
  readableText,
  sameInstant,
  shift,
  type Instant,
} from '../engine/data/instant.ts';
import { MAX_ID } from '../engine/data/dataset.ts';
import type { OracleItem } from '../engine/data/oracle.ts';
import { differs, type Judge } from '../engine/checks/mismatch.ts';
import { seedFor } from '../engine/run/state/covering-array.ts';
import type { Kit } from '../engine/run/kit.ts';
import { mapConcurrently } from '../engine/client/concurrency.ts';
import { itemsAtTurn, sampleDataOf, variedItems, windowOf } from '../engine/run/walk/survey.ts';
import type { SampleData } from '../engine/run/walk/survey.ts';
import { walk } from '../engine/run/walk/walk.ts';
import { lacksItem, containsItem, endsBefore } from '../engine/checks/selection.ts';
import { Untested } from '../engine/errors.ts';

const MICRO = 6;
const NANO = 9;

/** Offsets in minutes east of UTC: every whole hour in use and the extremes, with varying minutes. */
const OFFSETS = Array.from({ length: 27 }, (_, i) => {
  const hours = i - 12;
  const minutes = [0, 30, 45, 0, 15][i % 5]!;
  return hours * 60 + (hours < 0 ? -minutes : minutes);
}).concat(-30, 30, -959, 959); // of hour 00 the sign counts too

/** The last item with an earlier testTime. */
function lastBefore(sample: SampleData, item: OracleItem): OracleItem | undefined {
  return sample.items.filter((other) => compareInstants(other.at, item.at) < 0).at(-1);
}

const after2s = (at: Instant): string => formatInstant(shift(at, 2_000_000n, MICRO));
const before2s = (at: Instant): string => formatInstant(shift(at, -2_000_000n, MICRO));

const SECONDS_A_DAY = 86_400n;
/** Seconds. A server may answer windows of another width in another way: from another index, or in parts. */
const WIDTHS = [600n, 18_000n, ...[3n, 20n, 100n, 1_000n].map((days) => days * SECONDS_A_DAY), 2n];
/** The most known items in a window that ends at an item, since its page must reach that item. */
const MOST_BEFORE = 20;

const widthAt = (turn: number): bigint => WIDTHS[Math.abs(turn) % WIDTHS.length]!;

/** The end of a window that begins there, of another width in turn. A few items show what it begins with. */
function endAfter(from: Instant, turn: number): Pick<PageQuery, 'to' | 'pageSize'> {
  const to = shift(from, widthAt(turn), 0);
  return isMovable(to) ? { to: formatInstant(to), pageSize: 5 } : { to: after2s(from) };
}

/** The beginning of a window that ends at an item, of another width in turn if one page can hold it. */
function beginBefore({ items }: SampleData, { at }: OracleItem, turn: number): Instant | undefined {
  const from = shift(at, -widthAt(turn), 0);
  const held = items.filter(
    (item) => compareInstants(item.at, from) >= 0 && compareInstants(item.at, at) < 0,
  );
  const isKnown = compareInstants(from, items[0]!.at) >= 0;
  return isKnown && held.length <= MOST_BEFORE ? from : undefined;
}

const wholeSeconds = (time: string): string => time.slice(0, '2026-03-01T00:00:00'.length);

/**
 * The query with a page size from 102 to 998 if it has none, to find faults at some sizes: the same one for windows
 * that differ in fractions or offsets only, which a cache may confuse. It is large enough for most windows of these
 * tests; the largest page size is a requirement of its own.
 */
const widely = (query: PageQuery): PageQuery => ({
  pageSize: 102 + (Math.abs(seedFor(0, wholeSeconds(query.from) + wholeSeconds(query.to))) % 897),
  ...query,
});

/** Whether a window after the testTime of an item holds it, and one at its testTime does not. */
async function isStoredFiner(kit: Kit, item: OracleItem): Promise<boolean> {
  const isIn = async (from: Instant, to: Instant): Promise<boolean> =>
    lacksItem(item)(await kit.page(widely({ from: formatInstant(from), to: formatInstant(to) }))) !==
    undefined;
  const after = (units: bigint, digits: number): Instant => shift(item.at, units, digits);
  if (await isIn(item.at, after(1n, MICRO))) return false;
  // Such a window is empty where its edges are cut or rounded to fewer digits.
  for (let digits = item.at.fraction.length + 1; digits <= MICRO; digits++)
    if (
      (await isIn(after(1n, digits), after(4n, digits))) ||
      (await isIn(after(5n, digits), shift(after(1n, digits - 1), -1n, MICRO)))
    )
      return true;
  return false;
}

/** Whether testTime has fewer digits than the server selects by, which then explains what a window lacks or holds. */
const areStoredFiner = (kit: Kit): Promise<boolean> =>
  kit.once('testTime is shown with fewer digits', async () => {
    for (const item of variedItems(await sampleDataOf(kit), 6))
      if (await isStoredFiner(kit, item)) return true;
    return false;
  });

/**
 * With a unit of 10^-digits seconds: `from` = t + 1 unit excludes an item at t, and `to` = t + 1 unit includes it.
 * `to` = t is checked under 4.2-to-exclusive.
 */
async function askFractions(
  kit: Kit,
  id: '4.2-fractions' | '4.2-fractions-finer',
  item: OracleItem,
  digits: number,
  turn: number,
): Promise<void> {
  const after = formatInstant(shift(item.at, 1n, digits), { digits });
  const begin = beginBefore(await sampleDataOf(kit), item, turn) ?? item.at;
  const before = formatInstant(shift(begin, -1n, digits), { digits });
  const page = (query: PageQuery): Promise<Exchange> => kit.page(widely(query), digits > MICRO ? { id } : {});
  const later = await page({ from: after, ...endAfter(item.at, turn) });
  const isFiner = lacksItem(item)(later) !== undefined && (await areStoredFiner(kit));
  const judge: Judge = (exchange) => {
    const mismatch = lacksItem(item)(exchange);
    const why = ', selected as if it were later: testTime is stored with more digits than are shown';
    return mismatch && isFiner ? differs(mismatch.expected, `${mismatch.received}${why}`) : mismatch;
  };
  kit.check(id, later, judge, 'from one unit later');
  kit.check(id, await page({ from: before, to: after }), containsItem(item), 'one unit on both sides');
}

/** Items at which windows begin and end. */
const atEdges = (sample: SampleData): OracleItem[] => [
  ...new Set([...variedItems(sample, 8), ...itemsAtTurn(sample)]),
];

test(
  '200: valid requests',
  about(['4.2-success', '4.2-content-type'], { needs: 'page', access: 'reads' }),
  async ({ kit }) => {
    await kit.page({ from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' });
  },
);

test(
  'from is inclusive: a window that begins at an item returns it',
  about('4.2-from-inclusive', { access: 'reads' }),
  async ({ kit }) => {
    const sample = await sampleDataOf(kit);
    for (const [index, item] of atEdges(sample).entries()) {
      const queries = [
        widely({ from: readableText(item.testTime), ...endAfter(item.at, index + kit.options.seed) }),
        // Its next names the item.
        { from: formatInstant(item.at), to: sample.window.to, pageSize: 1 },
      ];
      for (const query of queries) {
        kit.check('4.2-from-inclusive', await kit.page(query), containsItem(item));
        kit.ledger.count('itemsAtFrom');
      }
    }
  },
);

test(
  'to is exclusive: a window that ends at an item does not return it',
  about('4.2-to-exclusive', { access: 'reads' }),
  async ({ kit }) => {
    const sample = await sampleDataOf(kit);
    for (const [index, item] of atEdges(sample).entries()) {
      const before = lastBefore(sample, item);
      const begin = beginBefore(sample, item, index + kit.options.seed) ?? before?.at;
      const from = begin ? formatInstant(begin) : before2s(item.at);
      const to = index % 2 === 0 ? readableText(item.testTime) : formatInstant(item.at);
      const exchange = await kit.page(widely({ from, to }));
      kit.check('4.2-to-exclusive', exchange, endsBefore(item.at));
      kit.ledger.count('itemsAtTo');
    }
    // Later pages must exclude `to` as well.
    const last = sample.densestSlice.at(-1)!;
    const [from, to] = [formatInstant(sample.densestSlice[0]!.at), formatInstant(last.at)];
    const { exchanges } = await walk(kit, { from, to, pageSize: 9 }, { maxPages: 10 });
    for (const exchange of exchanges) kit.check('4.2-to-exclusive', exchange, endsBefore(last.at));
  },
);

/** At which the day begins, by default in UTC. */
const midnightOf = ({ seconds }: Instant, offsetMinutes = 0): Instant => {
  const local = seconds + 60n * BigInt(offsetMinutes);
  const sinceMidnight = ((local % SECONDS_A_DAY) + SECONDS_A_DAY) % SECONDS_A_DAY;
  return { seconds: seconds - sinceMidnight, fraction: '' };
};

const isInLastSecond = (at: Instant, fraction: string): boolean =>
  at.seconds - midnightOf(at).seconds === SECONDS_A_DAY - 1n && compareInstants(at, { ...at, fraction }) > 0;

test(
  'a smaller window returns exactly its part of the sample',
  about('4.2-window', { access: 'reads' }),
  async ({ kit }) => {
    const { items } = await sampleDataOf(kit);
    const cuts = [0, 0.1, 0.37, 0.5, 0.81, 1].map((share) => Math.floor(share * (items.length - 1)));
    const windows = cuts.flatMap((end, i) => cuts.slice(0, i).map((start) => items.slice(start, end + 1)));
    await mapConcurrently(windows, (window) => kit.page(widely(windowOf(window))));
    // A day, as a daily job asks for it: a server may take midnight for the whole day that follows.
    for (const offsetMinutes of [0, 330]) {
      const midnight = (at: Instant): Instant => midnightOf(at, offsetMinutes);
      const dayBefore = (at: Instant): Instant => shift(midnight(at), -SECONDS_A_DAY, 0);
      const within = items.filter(({ at }) => !sameInstant(midnight(at), at) && isMovable(dayBefore(at)));
      // A day of UTC in place of the local one ends later, by the offset.
      const isBeforeEnd = ({ at }: OracleItem): boolean =>
        at.seconds - midnight(at).seconds < 60n * BigInt(offsetMinutes);
      const item = within.find(isBeforeEnd) ?? within[0];
      const spell = (at: Instant): string => formatInstant(at, offsetMinutes === 0 ? {} : { offsetMinutes });
      if (item) await kit.page(widely({ from: spell(dayBefore(item.at)), to: spell(midnight(item.at)) }));
    }
    // A day as a person writes it: a server may include all of its last second, or millisecond.
    for (const fraction of ['', '999']) {
      const last = items.find(({ at }) => isInLastSecond(at, fraction) && isMovable(midnightOf(at)))?.at;
      const to = last && formatInstant({ ...last, fraction });
      if (to) await kit.page(widely({ from: formatInstant(midnightOf(last)), to }));
    }
  },
);

test(
  'every offset of the same instants selects the same items',
  about('4.2-offsets', { access: 'reads' }),
  async ({ kit }) => {
    const sample = await sampleDataOf(kit);
    // Narrow windows: a wrong offset shows in the fewest items there.
    const singles = atEdges(sample);
    await mapConcurrently([...OFFSETS.entries()], async ([index, offsetMinutes]) => {
      const item = singles[index % singles.length]!;
      // One second of margin on both sides: fractions at the edges belong to another requirement.
      const exchange = await kit.page(
        widely({
          from: formatInstant(shift(item.at, -1n, 0), { offsetMinutes }),
          to: formatInstant(shift(item.at, 1n, 0), { offsetMinutes: OFFSETS[(index + 1) % OFFSETS.length]! }),
        }),
      );
      kit.check('4.2-offsets', exchange, containsItem(item));
    });
  },
);

/** The same digits with another offset are another instant: an answer cached for one must not serve the other. */
test(
  'the same digits with another offset select other items',
  about('4.2-offsets', { access: 'reads' }),
  async ({ kit }) => {
    const sample = await sampleDataOf(kit);
    const item = variedItems(sample, 1)[0]!;
    const digits = (seconds: bigint): string =>
      formatInstant(shift(item.at, seconds, 0), { offsetMinutes: 90 }).replace('+01:30', '');
    for (const offset of ['+01:30', '-01:30', 'Z', '+01:30']) {
      const exchange = await kit.page(
        widely({ from: `${digits(-1n)}${offset}`, to: `${digits(1n)}${offset}` }),
      );
      kit.check('4.2-offsets', exchange, offset === '+01:30' ? containsItem(item) : lacksItem(item));
    }
  },
);

test(
  'from one microsecond after an item does not select it',
  about('4.2-fractions', { access: 'reads' }),
  async ({ kit }) => {
    const sample = await sampleDataOf(kit);
    await mapConcurrently([...variedItems(sample, WIDTHS.length).entries()], ([index, item]) =>
      askFractions(kit, '4.2-fractions', item, MICRO, index + kit.options.seed),
    );
  },
);

/** A time may have any number of fraction digits; digits up to the microsecond must count. */
test(
  'fractions of one to twelve digits are accepted',
  about('4.2-fractions', { access: 'reads' }),
  async ({ kit }) => {
    const sample = await sampleDataOf(kit);
    // Many digits other than 0 and 9 are the most sensitive: what follows a 9 is a whole second.
    const digitsOf = ({ at: { fraction } }: OracleItem): number =>
      fraction.length > MICRO ? 0 : fraction.replace(/[09]/g, '').length;
    const item = sample.items.reduce((best, one) => (digitsOf(one) > digitsOf(best) ? one : best));
    const ask = async (from: Instant, to: Instant, digits: number, judge: Judge): Promise<void> => {
      // The longest time that must be accepted has an offset too.
      const spelling = digits === 12 ? { digits, offsetMinutes: 60 } : { digits };
      const query = widely({ from: formatInstant(from, { digits }), to: formatInstant(to, spelling) });
      kit.check('4.2-fractions', await kit.page(query, { id: '4.2-fractions' }), judge, `${digits} digits`);
    };
    for (const digits of [1, 2, 3, 4, 5, 6]) {
      const at = cutInstant(item.at, digits);
      const after = shift(at, 1n, digits);
      await ask(at, after, digits, containsItem(item));
      await ask(after, shift(after, 1n, 0), digits, lacksItem(item));
    }
    const second = cutInstant(item.at, 0);
    for (const digits of [1, 3, 6, 9, 12])
      await ask(second, shift(second, 1n, 0), digits, containsItem(item));
    if (item.at.fraction.length > MICRO) return;
    // Rounded to microseconds it is a whole second, which must not be one earlier.
    if (item.at.fraction !== '999999')
      await ask({ ...second, fraction: '9999999' }, shift(second, 2n, 0), 7, lacksItem(item));
    const micro = shift(item.at, 1n, MICRO);
    // Rounding up `to` shows only where a screening is there.
    const next = sample.items.find(({ at }) => compareInstants(at, shift(micro, 1n, MICRO)) > 0)?.at;
    const isEdge = next && isMovable(next) && next.fraction.length <= MICRO + 1;
    for (const digits of [7, 8, 9, 10, 11, 12]) {
      const beyond = shift(micro, 1n, digits);
      await ask(item.at, beyond, digits, containsItem(item));
      const to = isEdge ? next : shift(beyond, 1n, 0);
      await ask(beyond, to, digits, (exchange) => lacksItem(item)(exchange) ?? endsBefore(to)(exchange));
    }
  },
);

test(
  'from one nanosecond after an item does not select it',
  about('4.2-fractions-finer', { access: 'reads' }),
  async ({ kit }) => {
    const sample = await sampleDataOf(kit);
    const coarse = variedItems(sample, 6).filter((item) => item.at.fraction.length <= MICRO);
    if (coarse.length === 0)
      throw new Untested('every testTime is finer than a microsecond; load some that are not');
    const id = '4.2-fractions-finer';
    for (const [index, item] of coarse.slice(0, 2).entries()) {
      await askFractions(kit, id, item, NANO, index + kit.options.seed);
      // A server that rounds `from` up to the item's microsecond compares ids and drops the item.
      const between = formatInstant(shift(item.at, -500n, NANO), { digits: NANO });
      const query = widely({ from: between, to: after2s(item.at), fromId: MAX_ID });
      const exchange = await kit.ask(query);
      if (exchange.status === 200)
        kit.check(id, exchange, containsItem(item), 'a cursor between two microseconds');
    }
  },
);

test(
  'lower-case t and z are accepted',
  about(['4.2-lowercase', '4.2-r6-next-to'], { access: 'reads' }),
  async ({ kit }) => {
    const { densestSlice } = await sampleDataOf(kit);
    const { from, to } = windowOf(densestSlice);
    // Without room for the last item: next carries the lower-case to, and must not lose its offset.
    const pageSize = Math.max(1, densestSlice.length - 1);
    const query = { from: from.toLowerCase(), to: to.toLowerCase(), pageSize };
    const exchange = await kit.ask(query, { id: '4.2-lowercase' });
    if (exchange.status !== 200) return;
    kit.check('4.2-lowercase', exchange, containsItem(densestSlice[0]!));
  },
);
