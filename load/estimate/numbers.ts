/** Statistics: quantiles, extremes of lists of any length, bisection; and lines of text. */

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

/** Halves the interval from 0 to `high`, around the value up to which `isBelow` holds. */
export function bisect(high: number, rounds: number, isBelow: (at: number) => boolean): [number, number] {
  let [from, to] = [0, high];
  for (let round = 0; round < rounds; round += 1) {
    const middle = (from + to) / 2;
    if (isBelow(middle)) from = middle;
    else to = middle;
  }
  return [from, to];
}

export const percent = (share: number, digits = 1): string => `${(share * 100).toFixed(digits)} %`;

/** With four significant digits. */
export const rounded = (value: number): number => Number(value.toPrecision(4));

export const linesOf = (...lines: readonly (string | false | undefined)[]): string[] =>
  lines.filter((line) => typeof line === 'string');
