/** Cases drawn from what is known of the data: windows with edges at and next to its own instants. */
import fc from 'fast-check';
import { MAX_PAGE_SIZE, type PageQuery } from '../engine/client/page.ts';
import {
  compareInstants,
  formatInstant,
  shift,
  type Instant,
  type Spelling,
} from '../engine/data/instant.ts';
import type { OracleItem } from '../engine/data/oracle.ts';
import { stepDigits } from '../engine/run/walk/survey.ts';

/** The hours that the world uses, with any minutes. */
const offsets = fc.noBias(
  fc
    .tuple(fc.integer({ min: -13, max: 14 }), fc.constantFrom(0, 15, 30, 45, 59))
    // Hour 00 stands twice: its sign counts for the minutes.
    .map(([place, minutes]) => (place < 0 ? (place + 1) * 60 - minutes : place * 60 + minutes)),
);

/** To the microsecond: finer is recommended only (4.2-fractions-finer). */
export const spellings: fc.Arbitrary<Spelling> = fc.record(
  { offsetMinutes: offsets, digits: fc.constantFrom(0, 1, 3, 6) },
  { requiredKeys: [] },
);

/** The same with an offset in any case. */
export const offsetSpellings: fc.Arbitrary<Spelling> = fc.record(
  { offsetMinutes: offsets, digits: fc.constantFrom(0, 1, 3, 6) },
  { requiredKeys: ['offsetMinutes'] },
);

/** Values as often as they are named, smallest first: the arbitrary shrinks towards the first. */
const often = (...weighted: readonly (readonly [number, times: number])[]): fc.Arbitrary<number> =>
  fc.noBias(
    fc.constantFrom(...weighted.flatMap(([value, times]) => Array.from({ length: times }, () => value))),
  );

const each = (from: number, to: number, step = 1): (readonly [number, 1])[] =>
  Array.from({ length: Math.ceil((to - from + 1) / step) }, (_, i) => [from + i * step, 1] as const);

/** Ties are rarely as large as these, nor multiples of them. */
export const pageSizes = often(
  [1, 3],
  [2, 5],
  [3, 5],
  ...each(4, 6),
  [7, 14],
  ...each(8, 20),
  ...each(21, 60, 2),
  [99, 2],
  [100, 2],
  [101, 2],
  [999, 1],
  [1000, 1],
);

/** Whole pages of a window: mistakes of the first two are the easiest to find otherwise. */
const depths = often([0, 1], [1, 1], [2, 1], [3, 1], [4, 1], [5, 2], [6, 2], [7, 2], [8, 2]);

export interface WindowCase {
  readonly from: Instant;
  readonly to: Instant;
  readonly query: PageQuery;
  /** Which items of the data it was drawn around, first and last. */
  readonly around: readonly [OracleItem, OracleItem];
  /** How many items of the data it holds. */
  readonly count: number;
}

/** A window by its place in the data. */
interface Shape {
  readonly start: number;
  readonly length: number;
  readonly size: number;
  /** -1: one unit before the item's instant, 0: at it, 1: one unit after it. */
  readonly before: number;
  readonly after: number;
  /** Begins after a cursor (from, from_id): the first item's own, or one that no item has. */
  readonly pair: 'none' | 'item' | 'absent';
  readonly fromSpelling: Spelling;
  readonly toSpelling: Spelling;
}

const ITEMS_AT_MOST = 400;
/** How many more items than were drawn a window may hold, since it holds the ties at its ends whole. */
const SLACK = 8;

interface WindowOptions {
  readonly sizes?: fc.Arbitrary<number>;
  /** Some begin after a cursor (from, from_id); without, a window may hold far more items than were drawn. */
  readonly pairs?: boolean;
}

/** A window around neighbours of the data, some pages long; its edges in any spelling. */
export function windows(
  items: readonly OracleItem[],
  { sizes = pageSizes, pairs = true }: WindowOptions = {},
): fc.Arbitrary<WindowCase> {
  const digits = stepDigits(items);
  const beside = fc.constantFrom(0, 0, 1, -1);
  const shapes = fc
    .record({
      start: fc.nat({ max: items.length - 1 }),
      depth: depths,
      over: fc.integer({ min: 1, max: 9 }),
      size: sizes,
      before: beside,
      after: beside,
      pair: pairs ? fc.constantFrom('none', 'none', 'none', 'item', 'absent') : fc.constant('none' as const),
      fromSpelling: spellings,
      toSpelling: spellings,
    })
    .map(({ depth, over, ...shape }): Shape => {
      const length = depth * shape.size + Math.min(over, shape.size);
      return { ...shape, length: Math.min(ITEMS_AT_MOST, items.length - shape.start, length) };
    });
  return new Shrinking(shapes, simpler).map((shape) => windowOf(items, shape, digits, pairs));
}

function windowOf(
  items: readonly OracleItem[],
  { start, length, size, before, after, pair, fromSpelling, toSpelling }: Shape,
  digits: number,
  pairs: boolean,
): WindowCase {
  const [first, last] = [items[start]!, items[Math.min(items.length, start + length) - 1]!];
  // After the last item, unless its instant is to be the window's end.
  const end = shift(last.at, BigInt(after + 1), digits);
  const edge = pair === 'none' ? shift(first.at, BigInt(before), digits) : first.at;
  const to = compareInstants(end, edge) < 0 ? edge : end;
  const past = countBefore(items, to);
  const held = past - countBefore(items, edge);
  const afterPair = (item: OracleItem, id: bigint): WindowCase => ({
    from: item.at,
    to,
    query: {
      from: formatInstant(item.at, fromSpelling),
      to: formatInstant(to, toSpelling),
      pageSize: size,
      ...(id >= 0n ? { fromId: id } : {}),
    },
    around: [first, last],
    count: Math.max(0, past - start),
  });
  // A tie that is far longer than the window was meant to be is entered in its middle.
  if (pairs && held > length + SLACK) {
    const entry = items[past - length - 1]!;
    return { ...afterPair(entry, entry.id), count: length };
  }
  if (pair !== 'none') return afterPair(first, pair === 'item' ? first.id : first.id - 1n);
  const query = {
    from: formatInstant(edge, fromSpelling),
    to: formatInstant(to, toSpelling),
    pageSize: size,
  };
  return { from: edge, to, query, around: [first, last], count: held };
}

/** How many items come before an instant. */
function countBefore(items: readonly OracleItem[], at: Instant): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareInstants(items[middle]!.at, at) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Fewer items first, then smaller pages, then plainer edges. */
function* simpler(shape: Shape): Generator<Shape> {
  const { start, length, size, before, after, pair, fromSpelling, toSpelling } = shape;
  for (let cut = length >> 1; cut >= 1; cut >>= 1) {
    yield { ...shape, length: length - cut };
    yield { ...shape, start: start + cut, length: length - cut };
  }
  for (const smaller of [1, 2, 3, 5, 8, 13, size >> 1, size - 2, size - 1]) {
    if (smaller >= 1 && smaller < size) yield { ...shape, size: smaller };
  }
  if (pair !== 'none') yield { ...shape, pair: 'none' };
  if (before !== 0) yield { ...shape, before: 0 };
  if (after !== 0) yield { ...shape, after: 0 };
  for (const name of ['fromSpelling', 'toSpelling'] as const) {
    const spelling = { fromSpelling, toSpelling }[name];
    if (Object.keys(spelling).length > 0) yield { ...shape, [name]: {} };
    if (spelling.digits !== undefined && spelling.offsetMinutes !== undefined) {
      yield { ...shape, [name]: { offsetMinutes: spelling.offsetMinutes } };
    }
  }
}

/** Values as another arbitrary draws them, evenly, and shrunk as a whole: members that hang together shrink together. */
export class Shrinking<T> extends fc.Arbitrary<T> {
  constructor(
    private readonly drawn: fc.Arbitrary<T>,
    private readonly smaller: (value: T) => Generator<T>,
  ) {
    super();
  }

  override generate(random: fc.Random): fc.Value<T> {
    return new fc.Value(this.drawn.generate(random, undefined).value, undefined);
  }

  override canShrinkWithoutContext(_: unknown): _ is T {
    return true;
  }

  override shrink(value: T): fc.Stream<fc.Value<T>> {
    return fc.stream(this.smaller(value)).map((smaller) => new fc.Value(smaller, undefined));
  }
}

/** A page size at which that many items take some pages, not hundreds. */
export const atLeastFor = (size: number, count: number): number =>
  Math.min(MAX_PAGE_SIZE, Math.max(size, Math.ceil(count / 10)));

/** `window [from, to), pageSize 7`: how a case reads. */
export const sayQuery = ({ from, to, pageSize, fromId }: PageQuery): string =>
  `window [${from}, ${to})${pageSize === undefined ? '' : `, pageSize ${pageSize}`}${fromId === undefined ? '' : `, from_id ${fromId}`}`;
