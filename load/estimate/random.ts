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

/** Due moments of a Poisson process, in ms since the start; even arrivals would overestimate the capacity. */
export function poissonArrivals(seed: number, requestsPerSecond: number, seconds: number): number[] {
  const random = randomSource(seed);
  const due: number[] = [];
  for (let at = exponential(random, 1000 / requestsPerSecond); at < seconds * 1000;) {
    due.push(Math.round(at * 1000) / 1000);
    at += exponential(random, 1000 / requestsPerSecond);
  }
  return due;
}

/** Bound once: k6 looks up a global by its name whenever it is used, here for each arrival. */
const { floor, max, min } = Math;

/** A longer run repeats its arrivals, so that its memory is bounded. */
const MOST_DRAWN = 200_000;

type Arrivals = Readonly<Record<'seed' | 'requestsPerSecond' | 'seconds', number>>;

/** Due moments of a run, in milliseconds since its start; a spike multiplies the rate in the second third. */
export function dueMoments(
  { seed, requestsPerSecond, seconds, spikeFactor = 1 }: Arrivals & { readonly spikeFactor?: number },
  keep = (draw: () => number[]): readonly number[] => draw(),
) {
  const thirdMs = (seconds * 1000) / 3;
  // Drawn at a constant rate, in a time that a spike then shortens.
  const drawnMs = thirdMs * (2 + spikeFactor);
  const repeats = Math.ceil((requestsPerSecond * drawnMs) / 1000 / MOST_DRAWN);
  const periodMs = drawnMs / repeats;
  const drawn = keep(() => poissonArrivals(seed, requestsPerSecond, periodMs / 1000));
  const { length } = drawn;
  return {
    length: repeats * length,
    at(index: number): number {
      // Without the calls that few runs need, since each costs k6 as much as a part of a request.
      if (repeats === 1 && spikeFactor === 1) return drawn[index]!;
      const ms = floor(index / length) * periodMs + drawn[index % length]!;
      const ofSpikeMs = min(max(0, ms - thirdMs), spikeFactor * thirdMs);
      return ms - ofSpikeMs * (1 - 1 / spikeFactor);
    },
  };
}

/** The number of virtual users for a rate: twice as many as are busy while answers take as long as the SLO allows. */
export const enoughVUs = (requestsPerSecond: number, p99Ms: number): number =>
  Math.ceil((requestsPerSecond * 2 * p99Ms) / 1000) + 20;
