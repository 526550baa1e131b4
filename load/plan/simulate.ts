/** Simulates the waiting times of polls: each tenant requests page after page, and the pages queue for the workers. */
import { quantile } from '../estimate/numbers.ts';
import { exponential, randomSource } from '../k6/lib/random.ts';
import { pagesOfPoll } from './demand.ts';

export interface Servers {
  /** Requests per second at saturation. */
  readonly perSecond: number;
  readonly workers: number;
}

interface Polls {
  readonly tenants: number;
  readonly pollSeconds: number;
  /** Length of the part of each interval in which polls arrive. */
  readonly spreadSeconds: number;
  /** Mean number of screenings per poll (Poisson). */
  readonly screenings: number;
  readonly pageSize: number;
  /** Token requests per poll, and the cost of one in pages. */
  readonly tokensPerPoll: number;
  readonly tokenPrice: number;
  /** Number of concurrent back-fills, and the cost of one of their pages. */
  readonly backfills?: number;
  readonly backfillWork?: number;
}

export interface Waits {
  /** The quantile of a page's latency in seconds; Infinity at saturation. */
  readonly quantile: (share: number) => number;
  /** Pages per second of all back-fills together. */
  readonly backfilled: number;
}

/** Gives the p99 to within a few percent. */
const MIN_POLLS = 12_000;
const NEVER: Waits = { quantile: () => Infinity, backfilled: 0 };

/** Draws a Poisson number by a product of uniform ones; for large means by a normal approximation. */
function poisson(random: () => number, mean: number): number {
  if (mean > 200) {
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal));
  }
  const least = Math.exp(-mean);
  let found = 0;
  for (let product = 1 - random(); product > least; product *= 1 - random()) found += 1;
  return found;
}

export function simulatePolls({ perSecond, workers }: Servers, polls: Polls): Waits {
  const { tenants, pollSeconds, spreadSeconds, screenings, pageSize, tokensPerPoll, tokenPrice } = polls;
  const { backfills = 0, backfillWork = 1 } = polls;
  const work = pagesOfPoll(screenings, pageSize) + tokensPerPoll * tokenPrice;
  if ((tenants * work) / pollSeconds >= perSecond) return NEVER;
  const random = randomSource(7);
  const queue = new WorkQueue(workers);
  const intervals = Math.max(2, Math.ceil(MIN_POLLS / tenants));
  const [workMs, endMs] = [(workers * 1000) / perSecond, intervals * pollSeconds * 1000];
  const waits: number[] = [];
  let backfilled = 0;
  // Sorted in descending order of time.
  const open: { atMs: number; pages: number }[] = [];
  for (let interval = 0; interval < intervals; interval += 1) {
    for (let tenant = 0; tenant < tenants; tenant += 1)
      open.push({
        atMs: (interval * pollSeconds + random() * spreadSeconds) * 1000,
        pages: Math.max(1, Math.ceil(poisson(random, screenings) / pageSize)),
      });
    // Polls of the previous interval may still be open.
    open.sort((a, b) => b.atMs - a.atMs);
    if (interval === 0) for (let one = 0; one < backfills; one += 1) open.push({ atMs: 0, pages: Infinity });
    const untilMs = interval === intervals - 1 ? Infinity : (interval + 1) * pollSeconds * 1000;
    while (open.length > 0 && open.at(-1)!.atMs < untilMs) {
      const { atMs, pages } = open.pop()!;
      const pageMs = pages === Infinity ? workMs * backfillWork : workMs;
      const doneMs = queue.finishAt(atMs, exponential(random, pageMs));
      if (pages === Infinity) {
        backfilled += 1;
        if (doneMs < endMs) insertDescending(open, { atMs: doneMs, pages });
        continue;
      }
      waits.push(doneMs - atMs);
      if (pages > 1) insertDescending(open, { atMs: doneMs, pages: pages - 1 });
      else if (random() < tokensPerPoll) queue.finishAt(doneMs, exponential(random, workMs * tokenPrice));
    }
  }
  waits.sort((a, b) => a - b);
  return { quantile: (share) => quantile(waits, share) / 1000, backfilled: (backfilled * 1000) / endMs };
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

/** Inserts into a list in descending order of time, so that the next one is popped. */
export function insertDescending<Event extends { readonly atMs: number }>(list: Event[], event: Event): void {
  let [from, to] = [0, list.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (list[middle]!.atMs < event.atMs) to = middle;
    else from = middle + 1;
  }
  list.splice(from, 0, event);
}
