/**
 * A queue with a known number of workers and known service times, for the simulated server and for checking the
 * estimators in virtual time.
 */
import { exponential, poissonArrivals, randomSource } from '../k6/lib/random.ts';

export interface ServiceSettings {
  readonly workers: number;
  readonly serviceMs: number;
  /** deterministic: always serviceMs; exponential: random with this mean. */
  readonly distribution: 'deterministic' | 'exponential';
}

/** Workers that serve requests in the order of arrival. Times are computed, so delays of timers do not accumulate. */
export class WorkQueue {
  readonly #freeAt: number[];

  constructor(workers: number) {
    this.#freeAt = Array.from({ length: workers }, () => 0);
  }

  /** Returns when a request that arrives at atMs and needs serviceMs is finished. */
  finishAt(atMs: number, serviceMs: number): number {
    let first = 0;
    for (let worker = 1; worker < this.#freeAt.length; worker += 1) {
      if (this.#freeAt[worker]! < this.#freeAt[first]!) first = worker;
    }
    const done = Math.max(atMs, this.#freeAt[first]!) + serviceMs;
    this.#freeAt[first] = done;
    return done;
  }
}

/** Returns a function that draws service times. */
export function serviceTimes(settings: ServiceSettings, random: () => number): () => number {
  return settings.distribution === 'deterministic'
    ? () => settings.serviceMs
    : () => exponential(random, settings.serviceMs);
}

/** Latencies in milliseconds of Poisson arrivals at an initially empty queue. */
export function simulate(
  settings: ServiceSettings,
  requestsPerSecond: number,
  seconds: number,
  seed: number,
): { dueMs: number; latencyMs: number }[] {
  const queue = new WorkQueue(settings.workers);
  const draw = serviceTimes(settings, randomSource(seed ^ 0x5f356495));
  return poissonArrivals(seed, requestsPerSecond, seconds).map((dueMs) => ({
    dueMs,
    latencyMs: queue.finishAt(dueMs, draw()) - dueMs,
  }));
}

/**
 * Latencies under processor sharing: all requests share the workers equally. Each receives the same service in the
 * same time, so a request ends when the service per request reaches its value at arrival plus its own need.
 */
export function sharedLatencies(
  workers: number,
  draw: () => number,
  arrivals: ArrayLike<number>,
): Float64Array {
  const found = new Float64Array(arrivals.length);
  const open: { readonly index: number; readonly endsAt: number }[] = [];
  let [nowMs, done] = [0, 0];
  const workUntil = (atMs: number): void => {
    for (;;) {
      const first = open.at(-1);
      if (!first) break;
      const each = Math.min(1, workers / open.length);
      const endMs = nowMs + (first.endsAt - done) / each;
      if (endMs > atMs) {
        done += (atMs - nowMs) * each;
        break;
      }
      open.pop();
      found[first.index] = endMs - arrivals[first.index]!;
      [nowMs, done] = [endMs, first.endsAt];
    }
    nowMs = atMs;
  };
  for (let index = 0; index < arrivals.length; index += 1) {
    workUntil(arrivals[index]!);
    const endsAt = done + draw();
    // Sorted in descending order of their end.
    let place = open.length;
    while (place > 0 && open[place - 1]!.endsAt < endsAt) place -= 1;
    open.splice(place, 0, { index, endsAt });
  }
  workUntil(Infinity);
  return found;
}
