/** Simulates the waiting times of polls: each tenant requests page after page, and the pages queue for the workers. */
import { lowerBound } from '../../engine/data/oracle.ts';
import { quantile } from '../estimate/numbers.ts';
import { exponential, randomSource } from '../estimate/random.ts';

interface Beside {
  /** Token requests per poll, and the cost of one in pages. */
  readonly tokensPerPoll: number;
  readonly tokenPrice: number;
  /** The cost of a page of a poll. */
  readonly pagePrice?: number;
  /** Number of concurrent back-fills, the cost of one of their pages, and its least time by the client's quota. */
  readonly backfills?: number;
  readonly backfillWork?: number;
  readonly backfillGapMs?: number;
}

/** The demand of tenants (plan.ts); screenings: the mean per poll (Poisson). */
interface Polls
  extends Beside, Readonly<Record<'tenants' | 'poll' | 'pollSpread' | 'pageSize' | 'screenings', number>> {
  /** What the latencies are of: a poll lasts until its last page. */
  readonly of: 'polls' | 'pages';
}

export interface Waits {
  /** The quantile of the latencies in seconds; Infinity at saturation. */
  readonly quantile: (share: number) => number;
  readonly backfilled: number;
}

/** Gives the p99 to within a few percent. */
const MIN_POLLS = 12_000;
const NEVER: Waits = { quantile: () => Infinity, backfilled: 0 };

/** perSecond: requests at saturation. */
export function simulatePolls(
  { perSecond, workers }: Readonly<Record<'perSecond' | 'workers', number>>,
  polls: Polls,
): Waits {
  const { tenants, poll, pollSpread, screenings, pageSize } = polls;
  const { pagePrice = 1, tokensPerPoll, tokenPrice } = polls;
  const work = meanPages(screenings, pageSize) * pagePrice + tokensPerPoll * tokenPrice;
  if ((tenants * work) / poll >= perSecond) return NEVER;
  const random = randomSource(7);
  const shares = pagesOfPolls(screenings, pageSize);
  const pollsOfAll = Math.max(2, Math.ceil(MIN_POLLS / tenants)) * tenants;
  // Sorted here: without a comparison function, that takes a tenth of the time.
  const moments = Float64Array.from(
    { length: pollsOfAll },
    (_, index) => (Math.floor(index / tenants) * poll + random() * pollSpread) * 1000,
  ).sort();
  const asked = Array.from(moments, (atMs) => ({ atMs, pages: pagesAtMost(shares, random()) }));
  const served = servePolls(workers, (workers * 1000) / perSecond, asked, polls, random);
  const waits = Float64Array.from(polls.of === 'polls' ? served.pollMs : served.pageMs).sort();
  const seconds = (pollsOfAll / tenants) * poll;
  const backfilled = served.backfillMs.length / seconds;
  return { quantile: (share) => quantile(waits, share) / 1000, backfilled };
}

/**
 * Serves the polls, which are in the order of time, page after page, with exponential service times of mean pageMs. A
 * token request follows a poll; back-fills request pages until the last poll. Returns the latencies of the polls in their
 * order, and of their pages and those of the back-fills.
 */
export function servePolls(
  workers: number,
  pageMs: number,
  polls: readonly { readonly atMs: number; readonly pages: number }[],
  { tokensPerPoll, tokenPrice, pagePrice = 1, backfills = 0, backfillWork = 1, backfillGapMs = 0 }: Beside,
  random: () => number,
) {
  const queue = new WorkQueue(workers);
  const arrivals = polls.map(({ atMs, pages }, poll) => ({ atMs, poll, pages }));
  const [startMs, endMs] = [arrivals[0]?.atMs ?? 0, arrivals.at(-1)?.atMs ?? 0];
  const served = {
    pollMs: new Float64Array(polls.length),
    pageMs: [] as number[],
    backfillMs: [] as number[],
  };
  // The next page of polls and back-fills in progress, in descending order of time.
  const open = Array.from({ length: backfills }, () => ({ atMs: startMs, poll: -1, pages: 0 }));
  for (let next = 0; ;) {
    const [arrival, page] = [arrivals[next], open.at(-1)];
    const one = arrival && !(page && page.atMs < arrival.atMs) ? arrivals[next++] : open.pop();
    if (!one) return served;
    const { atMs, poll, pages } = one;
    const price = poll < 0 ? backfillWork : pagePrice;
    const doneMs = queue.finishAt(atMs, exponential(random, pageMs * price));
    (poll < 0 ? served.backfillMs : served.pageMs).push(doneMs - atMs);
    const nextMs = poll < 0 ? Math.max(doneMs, atMs + backfillGapMs) : doneMs;
    if (poll < 0 ? nextMs < endMs : pages > 1)
      insertDescending(open, { atMs: nextMs, poll, pages: pages - 1 });
    else if (poll >= 0) {
      served.pollMs[poll] = doneMs - polls[poll]!.atMs;
      if (random() < tokensPerPoll) queue.finishAt(doneMs, exponential(random, pageMs * tokenPrice));
    }
  }
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
  const index = lowerBound(list, ({ atMs }) => atMs < event.atMs);
  list.splice(index, 0, event);
}

/** More standard deviations above the mean are too rare to matter. */
const RANGE = 9;

/** The shares of the polls with at most 1, 2, … pages; the number of screenings is Poisson, with this mean. */
export function pagesOfPolls(meanScreenings: number, pageSize: number): number[] {
  const pages = Math.ceil((meanScreenings + RANGE * Math.sqrt(meanScreenings + 1)) / pageSize);
  let [logTerm, total] = [-meanScreenings, Math.exp(-meanScreenings)];
  return Array.from({ length: pages }, (_, page) => {
    for (let n = page * pageSize + 1; n <= (page + 1) * pageSize; n += 1) {
      logTerm += Math.log(meanScreenings / n);
      total += Math.exp(logTerm);
    }
    return page === pages - 1 ? 1 : total;
  });
}

/** The mean of max(1, ⌈N / pageSize⌉): the sum of the probabilities of more than 0, 1, … pages. */
export const meanPages = (meanScreenings: number, pageSize: number): number =>
  pagesOfPolls(meanScreenings, pageSize).reduce((mean, share) => mean + 1 - share, 1);

/** The number of pages that this share of the polls does not exceed. */
export const pagesAtMost = (shares: readonly number[], share: number): number =>
  1 + shares.findIndex((each) => each >= share);
