/** Latency histograms with buckets of equal ratio, which add up exactly over runners. Runs in k6 and in Node. */

/** Each bucket ends 5 % above the previous one; the first ends at 0.1 ms, the last is open from about a minute. */
const RATIO = 1.05;
const FIRST_MS = 0.1;
const BUCKETS = 274;

export function bucketOf(ms: number): number {
  if (!(ms > FIRST_MS)) return 0;
  return Math.min(BUCKETS - 1, Math.ceil(Math.log(ms / FIRST_MS) / Math.log(RATIO)));
}

/** The upper end of a bucket in milliseconds. */
export const bucketEndMs = (bucket: number): number => FIRST_MS * RATIO ** bucket;

/** Count by bucket; empty buckets are absent. */
export type Histogram = Readonly<Record<string, number>>;

export const countOf = (histogram: Histogram): number =>
  Object.values(histogram).reduce((sum, count) => sum + count, 0);

/** The bucket with the quantile; -1 for an empty histogram. */
export function quantileBucket(histogram: Histogram, share: number): number {
  const wanted = Math.ceil(share * countOf(histogram));
  let seen = 0;
  for (let bucket = 0; bucket < BUCKETS; bucket += 1) {
    seen += histogram[bucket] ?? 0;
    if (seen >= wanted && seen > 0) return bucket;
  }
  return -1;
}

/** Adds up counts by name, such as histograms. */
export function mergeHistograms(histograms: readonly Histogram[]): Histogram {
  const merged: Record<string, number> = {};
  for (const histogram of histograms)
    for (const [bucket, count] of Object.entries(histogram)) merged[bucket] = (merged[bucket] ?? 0) + count;
  return merged;
}

/** `each`: the count per value. */
export const histogramOf = (values: readonly number[], each = 1): Histogram =>
  mergeHistograms(values.map((value) => ({ [bucketOf(value)]: each })));

/** Percentiles that a runner reports: denser where SLOs are defined. */
export const GRID: readonly number[] = [
  ...Array.from({ length: 45 }, (_, index) => index * 2),
  ...Array.from({ length: 18 }, (_, index) => 90 + index / 2),
  ...Array.from({ length: 11 }, (_, index) => 99 + index / 10),
];

/** Builds the histogram from a k6 trend with these percentiles; values between two count as the higher one. */
export function fromQuantiles(values: Readonly<Record<string, number>>): Histogram {
  const count = values['count'] ?? 0;
  const counts: Record<string, number> = {};
  let before = 0;
  for (const share of GRID.slice(1)) {
    const upTo = Math.round((share / 100) * count);
    const bucket = bucketOf(values[`p(${share})`] ?? NaN);
    if (upTo > before) counts[bucket] = (counts[bucket] ?? 0) + upTo - before;
    before = upTo;
  }
  return counts;
}
