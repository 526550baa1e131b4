/** Seeded random numbers, in k6 and in Node. */

/** Returns a source of numbers in [0, 1), the same for the same seed (mulberry32). */
export function randomSource(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** An exponentially distributed number with the given mean. */
export const exponential = (random: () => number, mean: number): number => -mean * Math.log(1 - random());

/**
 * Due moments of a Poisson process, in milliseconds since the step's start. Evenly spaced arrivals would overestimate
 * the capacity for independent callers.
 */
export function poissonArrivals(seed: number, requestsPerSecond: number, seconds: number): number[] {
  const random = randomSource(seed);
  const due: number[] = [];
  for (let at = exponential(random, 1000 / requestsPerSecond); at < seconds * 1000;) {
    due.push(Math.round(at * 1000) / 1000);
    at += exponential(random, 1000 / requestsPerSecond);
  }
  return due;
}

/** Longer runs repeat a block of this many arrivals, so that memory is bounded. */
const LONGEST_BLOCK = 100_000;

/** The arrivals of a run; a spike multiplies the rate in the second third. `keep`: how k6 shares the moments. */
export function openArrivals(
  run: {
    readonly seed: number;
    readonly requestsPerSecond: number;
    readonly seconds: number;
    readonly spikeFactor?: number;
  },
  keep = (create: () => number[]): readonly number[] => create(),
) {
  const { seed, requestsPerSecond: rate, seconds, spikeFactor } = run;
  const blocks = spikeFactor === undefined ? Math.ceil((rate * seconds) / LONGEST_BLOCK) : 1;
  const blockMs = (seconds * 1000) / blocks;
  const moments = keep(() =>
    spikeFactor === undefined
      ? poissonArrivals(seed, rate, blockMs / 1000)
      : [1, spikeFactor, 1].flatMap((times, third) =>
          poissonArrivals(seed + third, rate * times, seconds / 3).map((at) => at + (third * blockMs) / 3),
        ),
  );
  // Read once: in k6, the moments are shared by all VUs, and each access to them costs.
  const { length } = moments;
  const count = blocks * length;
  return {
    count,
    /** Milliseconds since the start of the run; undefined beyond the last arrival. */
    dueMs: (index: number): number | undefined =>
      index < count ? Math.floor(index / length) * blockMs + moments[index % length]! : undefined,
  };
}

/** The number of virtual users for a rate: twice as many as are busy while answers take as long as the SLO allows. */
export const enoughVUs = (requestsPerSecond: number, p99Ms: number): number =>
  Math.ceil((requestsPerSecond * 2 * p99Ms) / 1000) + 20;

/** Judges a sample of five answers per second, which costs little at any rate. */
const JUDGED_PER_SECOND = 5;
export const judgedShare = (requestsPerSecond: number): number =>
  Math.min(1, JUDGED_PER_SECOND / requestsPerSecond);
