/** Arbitraries drawn from the known data: windows with edges at and next to its instants, page sizes, spellings of a time. */
import fc from 'fast-check';
import { MAX_PAGE_SIZE, type PageQuery } from '../engine/client/page.ts';
import { compareInstants, formatInstant, shift } from '../engine/data/instant.ts';
import type { Instant, Spelling } from '../engine/data/instant.ts';
import { lowerBound, type OracleItem } from '../engine/data/oracle.ts';
import type { Kit } from '../engine/run/kit.ts';
import { sampleDataOf, stepDigits } from '../engine/run/walk/survey.ts';

/** Offsets in minutes: all whole hours in use, with any of these minutes. */
const offsets = fc.noBias(
  fc
    .tuple(fc.integer({ min: -13, max: 14 }), fc.constantFrom(0, 15, 30, 45, 59))
    // Hour 00 occurs twice, as +00:mm and -00:mm.
    .map(([place, minutes]) => (place < 0 ? (place + 1) * 60 - minutes : place * 60 + minutes)),
);

/** Up to the microsecond: finer fractions are only recommended (4.2-fractions-finer). */
const SPELLING = { offsetMinutes: offsets, digits: fc.constantFrom(0, 1, 3, 6) };

export const spellings: fc.Arbitrary<Spelling> = fc.record(SPELLING, { requiredKeys: [] });

export const offsetSpellings: fc.Arbitrary<Spelling> = fc.record(SPELLING, {
  requiredKeys: ['offsetMinutes'],
});

/** Each value with its frequency, in ascending order: shrinking goes towards the first. */
const often = (...weighted: readonly (readonly [number, times: number])[]): fc.Arbitrary<number> =>
  fc.noBias(
    fc.constantFrom(...weighted.flatMap(([value, times]) => Array.from({ length: times }, () => value))),
  );

const each = (from: number, to: number, step = 1): (readonly [number, 1])[] =>
  Array.from({ length: Math.ceil((to - from + 1) / step) }, (_, i) => [from + i * step, 1] as const);

/** Sizes that tie sizes rarely equal or are multiples of, so that page boundaries fall inside ties. */
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

/** The number of full pages of a window; deep windows are drawn more often, since faults of early pages are easy to find. */
const depths = often([0, 1], [1, 1], [2, 1], [3, 1], [4, 1], [5, 2], [6, 2], [7, 2], [8, 2]);

export interface WindowCase {
  readonly from: Instant;
  readonly to: Instant;
  readonly query: PageQuery;
  /** The first and the last item of the data that the window was drawn around. */
  readonly around: readonly [OracleItem, OracleItem];
  /** The number of items of the data in the window. */
  readonly count: number;
}

/** A window by its position in the data. */
interface Shape {
  readonly start: number;
  readonly length: number;
  readonly size: number;
  /** -1: one unit before the item's instant; 0: at it; 1: one unit after it. */
  readonly before: number;
  readonly after: number;
  /** The cursor (from, from_id) after which it begins: that of the first item, or one that no item has. */
  readonly pair: 'none' | 'item' | 'absent';
  readonly fromSpelling: Spelling;
  readonly toSpelling: Spelling;
}

const ITEMS_AT_MOST = 400;
/** How many items a window may hold beyond `length`, because the ties at its ends belong to it completely. */
const SLACK = 8;

interface WindowOptions {
  readonly sizes?: fc.Arbitrary<number>;
  /** Lets some windows begin after a cursor. If false, a large tie can make a window far longer than drawn. */
  readonly pairs?: boolean;
}

export const itemsOf = async (kit: Kit): Promise<readonly OracleItem[]> => (await sampleDataOf(kit)).items;

export const windowsOf = async (kit: Kit): Promise<fc.Arbitrary<WindowCase>> => windows(await itemsOf(kit));

/** A window around consecutive items of the data, a few pages long, with its edges in any spelling. */
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
  // `to` is one unit after the last item, moved by `after`.
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
  // If a large tie makes the window far longer than drawn, it begins after a cursor inside the tie.
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

const countBefore = (items: readonly OracleItem[], instant: Instant): number =>
  lowerBound(items, ({ at }) => compareInstants(at, instant) >= 0);

/** Fewer items first, then smaller pages, then simpler edges. */
function* simpler(shape: Shape): Generator<Shape> {
  const { start, length, size, before, after, pair, fromSpelling, toSpelling } = shape;
  for (let cut = length >> 1; cut >= 1; cut >>= 1) {
    yield { ...shape, length: length - cut };
    yield { ...shape, start: start + cut, length: length - cut };
  }
  for (const smaller of [1, 2, 3, 5, 8, 13, size >> 1, size - 2, size - 1]) {
    if (smaller < 1 || smaller >= size) continue;
    yield { ...shape, size: smaller };
    // Only the first page gets smaller, so that it still ends at the same item.
    const cut = size - smaller;
    if (cut < length) yield { ...shape, start: start + cut, length: length - cut, size: smaller };
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

/**
 * Draws values as another arbitrary does, without bias, and shrinks them with a function: a smaller page keeps the
 * length of its window, and members shrink together.
 */
class Shrinking<T> extends fc.Arbitrary<T> {
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

/** A page size with which a walk over `count` items takes at most about 10 pages. */
export const atLeastFor = (size: number, count: number): number =>
  Math.min(MAX_PAGE_SIZE, Math.max(size, Math.ceil(count / 10)));

/** A case as text: `window [from, to), pageSize 7`. */
export const sayQuery = ({ from, to, pageSize, fromId }: PageQuery): string =>
  `window [${from}, ${to})${pageSize === undefined ? '' : `, pageSize ${pageSize}`}${fromId === undefined ? '' : `, from_id ${fromId}`}`;
