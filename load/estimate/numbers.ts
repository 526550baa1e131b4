/** Statistics: quantiles, medians, extremes of lists of any length, slopes. */

/** The nearest-rank quantile of sorted numbers; NaN if there are none. */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  return sorted[Math.max(0, Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1))] ?? NaN;
}

export const ascending = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b);

export const median = (values: readonly number[]): number => {
  const sorted = ascending(values);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return NaN;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

export const sum = (values: Iterable<number>): number => {
  let all = 0;
  for (const value of values) all += value;
  return all;
};

/** For lists of any length: a spread into Math.min exceeds the call stack beyond some 100,000 values. */
export const smallest = (values: Iterable<number>): number => {
  let from = Infinity;
  for (const value of values) if (value < from) from = value;
  return from;
};
export const largest = (values: Iterable<number>, from = -Infinity): number => {
  for (const value of values) if (value > from) from = value;
  return from;
};

export interface Slope {
  readonly slope: number;
  readonly interval: readonly [low: number, high: number];
}

/** Sample size: the number of pairs grows quadratically. */
const MOST_POINTS = 400;
/** Two-sided 95 % quantile of the normal distribution. */
const Z = 1.96;

/** Theil–Sen slope with its 95 % interval; NaN with fewer than three pairs of points with different x. */
export function theilSen(points: readonly (readonly [x: number, y: number])[]): Slope {
  const step = Math.max(1, Math.ceil(points.length / MOST_POINTS));
  const some = points.filter((_, index) => index % step === 0);
  const slopes: number[] = [];
  for (const [index, [x, y]] of some.entries()) {
    for (const [laterX, laterY] of some.slice(index + 1))
      if (laterX !== x) slopes.push((laterY - y) / (laterX - x));
  }
  if (slopes.length < 3) return { slope: NaN, interval: [NaN, NaN] };
  slopes.sort((a, b) => a - b);
  const n = some.length;
  // Kendall's variance gives the ranks of the interval's ends.
  const spread = Z * Math.sqrt((n * (n - 1) * (2 * n + 5)) / 18);
  const rank = (at: number): number => slopes[Math.max(0, Math.min(slopes.length - 1, Math.round(at)))]!;
  return {
    slope: rank(slopes.length / 2),
    interval: [rank((slopes.length - spread) / 2), rank((slopes.length + spread) / 2)],
  };
}
