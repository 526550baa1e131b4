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

/** k6's arrival rates may be one request short at each end of a phase, and on each runner. */
const ROUNDING = 4;

/** The minimum number of requests due in a run; a spike multiplies the rate in the second third. */
export function dueCount(run: {
  readonly requestsPerSecond: number;
  readonly seconds: number;
  readonly spikeFactor?: number;
  readonly parts?: number;
}): number {
  const { requestsPerSecond, seconds, spikeFactor = 1, parts = 1 } = run;
  return Math.max(0, Math.floor((requestsPerSecond * seconds * (2 + spikeFactor)) / 3) - ROUNDING * parts);
}

/** Tolerated share of due requests that the generator did not start before its end. */
const SHORTFALL = 0.01;

/** Why a run is void: due requests were never started. Dropped iterations found no free VU, which is another reason. */
export function shortfall(due: number, counts: Readonly<Record<string, number>>): string | undefined {
  const short = due - (counts['iterations'] ?? due) - (counts['dropped_iterations'] ?? 0);
  if (short <= SHORTFALL * due) return undefined;
  return `generator overload: ${short} of ${due} requests were never started`;
}

/** The number of virtual users for a rate: twice as many as are busy while answers take as long as the SLO allows. */
export const enoughVUs = (requestsPerSecond: number, p99Ms: number): number =>
  Math.ceil((requestsPerSecond * 2 * p99Ms) / 1000) + 20;
