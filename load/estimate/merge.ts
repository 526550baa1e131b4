/** Several generators' results as one: counts and histograms add up, quantiles are read from the sum. */
import {
  bucketEndMs,
  countOf,
  mergeHistograms,
  quantileBucket,
  type Histogram,
} from '../k6/lib/histogram.ts';

export interface Part {
  readonly seconds: number;
  readonly histogram: Histogram;
  readonly counts: Readonly<Record<string, number>>;
}

export interface Merged extends Part {
  readonly parts: number;
  readonly requests: number;
  readonly requestsPerSecond: number;
  /** The upper ends of the buckets that hold the quantiles. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** The parts ran side by side: the longest gives the length. */
export function mergeParts(parts: readonly Part[]): Merged {
  const histogram = mergeHistograms(parts.map((part) => part.histogram));
  const counts: Record<string, number> = {};
  for (const part of parts) {
    for (const [name, count] of Object.entries(part.counts)) counts[name] = (counts[name] ?? 0) + count;
  }
  const seconds = Math.max(0, ...parts.map((part) => part.seconds));
  const requests = countOf(histogram);
  return {
    parts: parts.length,
    seconds,
    histogram,
    counts,
    requests,
    requestsPerSecond: seconds > 0 ? requests / seconds : 0,
    p50Ms: bucketEndMs(quantileBucket(histogram, 0.5)),
    p99Ms: bucketEndMs(quantileBucket(histogram, 0.99)),
  };
}
