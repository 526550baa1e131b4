/**
 * Whether the cost of a page grows with its depth in a traversal, or with the length of its window. Compares pairs of
 * pages that begin at the same position and are read in succession, so that storage, item sizes, caches and other load
 * affect both alike.
 */
import { median } from './numbers.ts';
import { binomialAtMost } from './step.ts';

export const DEPTH = {
  /** A page is slower than the other of its pair if it takes this many times the work. */
  factor: 1.8,
  /** Pages after this share of a traversal show the cost of depth; after `end`, whether the planner switched plans. */
  deep: 0.66,
  end: 0.96,
  /** The additional work of deep pages grows if it is this many times that of the pages before half of their depth. */
  growth: 1.5,
};

/** A page of one traversal; `firstMs`: the first page of a window that begins there, read right before or after it. */
export interface DeepPage {
  readonly depth: number;
  readonly ms: number;
  readonly firstMs?: number | undefined;
}

/** The first pages of a short and of a long window that begin at the same position. */
export interface WindowPair {
  readonly shortMs: number;
  readonly longMs: number;
  /** Read after many short windows on each connection, when the database has cached its plans. */
  readonly settled: boolean;
}

interface Read {
  readonly pages: readonly DeepPage[];
  readonly windows: readonly WindowPair[];
  /** Latencies of zero-width windows: the round trip, which is subtracted from the cost of a page. */
  readonly emptyMs: readonly number[];
}

/**
 * Whether the other one of a pair is read first, as the second read has a warm cache. The order is a Thue–Morse sequence:
 * if replicas answer in turn, each of them answers deep and first pages equally often.
 */
export function isReversed(pair: number): boolean {
  let odd = 0;
  for (let bits = pair; bits > 0; bits >>= 1) odd ^= bits & 1;
  return odd === 1;
}

/** Read order of the pair at this depth; undefined without a pair. */
export function pairedAt(depth: number): 'deep-first' | 'deep-last' | undefined {
  const step = depth < 120 ? 2 : 8;
  if (depth % step !== 1) return undefined;
  return isReversed(Math.floor(depth / step)) ? 'deep-last' : 'deep-first';
}

export type Shape = 'flat' | 'grows-with-depth' | 'slow-on-long-windows' | 'slow-first-page';

export type DepthFinding = ReturnType<typeof depthShape>;

/** Fewer pages do not show the effect of depth. */
export const LEAST_PAGES = 12;
/** A safety limit: smaller differences are no finding. */
const LEAST_MS = 4;
/** Significance of the sign test: four of four pairs have it. A shape must show twice. */
const BY_CHANCE = 0.07;
const BINS = 20;

const CAUSES = {
  offset: 'OFFSET, or another query that reads all rows before the page',
  or: 'the cursor as `t > … OR (t = … AND id > …)`, which is no index range: the database reads and discards the rows before the page, except near the end',
  next: 'work for next pages only, the same at any depth, such as reading the state of a session',
  first: 'work for first pages only, such as a count of all rows of the window',
  rest: 'each page sorts or counts the rest of the window: ORDER BY an expression that is not in the index, such as the time as text',
  plan: "long windows use a plan that was cached for short ones (a prepared statement's generic plan; avoided by plan_cache_mode=force_custom_plan)",
} as const;

/** The Hodges–Lehmann estimate: the median of the means of two. Effects that half of the values have cancel. */
const centre = (values: readonly number[]): number =>
  median(values.flatMap((one, index) => values.slice(index).map((other) => (one + other) / 2)));

export function depthShape({ pages, windows, emptyMs: empty }: Read) {
  const shortest = median(windows.map(({ shortMs }) => shortMs)) || Infinity;
  const emptyMs = Math.min(median(empty) || 0, shortest, median(pages.map(({ ms }) => ms)) || Infinity);
  type Pair = readonly [ms: number, otherMs: number];
  const work = (ms: number): number => Math.max(0.1, ms - emptyMs);
  const ratio = (pairs: readonly Pair[]): number =>
    Math.exp(centre(pairs.map(([ms, other]) => Math.log(work(ms) / work(other)))));
  const seemsSlower = (pairs: readonly Pair[]): boolean =>
    ratio(pairs) > DEPTH.factor && centre(pairs.map(([ms, other]) => ms - other)) > LEAST_MS;
  const slower = (pairs: readonly Pair[]): boolean =>
    seemsSlower(pairs) &&
    binomialAtMost(pairs.filter(([ms, other]) => ms <= other).length, pairs.length, 0.5) <= BY_CHANCE;
  const flipped = (pairs: readonly Pair[]): Pair[] => pairs.map(([ms, other]) => [other, ms]);
  const between = (from: number, to: number): Pair[] =>
    pages.flatMap(({ depth, ms, firstMs }) =>
      firstMs !== undefined && depth >= from * pages.length && depth < to * pages.length
        ? [[ms, firstMs] as const]
        : [],
    );
  const long = (settled: boolean): Pair[] =>
    windows.filter((pair) => pair.settled === settled).map(({ longMs, shortMs }) => [longMs, shortMs]);
  const [deep, all] = [between(DEPTH.deep, DEPTH.end), between(0, DEPTH.end)];
  const grows = ratio(deep) - 1 > DEPTH.growth * (ratio(between(0, DEPTH.deep / 2)) - 1);
  const causes: readonly (readonly [found: boolean, Shape, cause: string])[] = [
    [slower(deep) && grows, 'grows-with-depth', slower(between(DEPTH.end, 1)) ? CAUSES.offset : CAUSES.or],
    [slower(flipped(all)), 'slow-first-page', CAUSES.first],
    [
      slower(long(true)),
      'slow-on-long-windows',
      slower(long(false)) ? `${CAUSES.rest}; or ${CAUSES.plan}` : CAUSES.plan,
    ],
    [slower(deep), 'flat', CAUSES.next],
  ];
  const [, shape = 'flat', likelyCause] = causes.find(([found]) => found) ?? [];
  const compared = [deep, flipped(all), long(true)];
  const width = Math.ceil(pages.length / BINS);
  return {
    flat: shape === 'flat',
    shape,
    /** Whether pages seem slower, but vary so much that it may be chance. */
    isOpen: shape === 'flat' && !likelyCause && compared.some(seemsSlower),
    /** Implementation mistakes that produce this shape, for the report. */
    likelyCause,
    /** Median ratios of work (latency minus emptyMs) within pairs: deep to first page, long to short window. */
    ratios: { deep: ratio(deep), long: ratio(long(false)), settled: ratio(long(true)) },
    emptyMs,
    /** Median latency over depth, whatever its cause. */
    points: Array.from({ length: BINS }, (_, bin) => {
      const some = pages.slice(bin * width, (bin + 1) * width);
      return { depth: bin * width, p50Ms: median(some.map(({ ms }) => ms)) };
    }).filter(({ p50Ms }) => !Number.isNaN(p50Ms)),
  };
}
