/** The demand of tenants: polls, pages, tokens. */
import { atMost } from '../estimate/numbers.ts';

export interface Habits {
  readonly tenants: number;
  readonly pollSeconds: number;
  /** Length of the part of each interval in which polls arrive; pollSeconds if they are independent. */
  readonly spreadSeconds: number;
  readonly screeningsPerDay: number;
  readonly pageSize: number;
  readonly tokenLifetimeSeconds: number;
  /** The cost of a token call in pages. */
  readonly tokenPrice: number;
  /** The busiest hour's screenings as a multiple of the mean; the number of polls stays the same. */
  readonly peakFactor: number;
  /** Share of the requests that are repeated. */
  readonly retries: number;
  /** Days of stored screenings per tenant; bytes of a screening in a page, and in a database with its indexes. */
  readonly historyDays: number;
  readonly itemBytes: number;
  readonly rowBytes: number;
}

export const SECONDS_PER_DAY = 86_400;
const MARGIN_SECONDS = 60;

/** Requests of all tenants per second, on average and at the peak, and the arithmetic as text. */
export function demandOf(habits: Habits) {
  const { tenants, pollSeconds, screeningsPerDay, pageSize, peakFactor, retries, tokenPrice } = habits;
  const polls = tenants / pollSeconds;
  const screenings = (screeningsPerDay * pollSeconds) / SECONDS_PER_DAY;
  const screeningsAtPeak = screenings * peakFactor;
  const pages = pagesOfPoll(screenings, pageSize);
  const pagesAtPeak = pagesOfPoll(screeningsAtPeak, pageSize);
  const lifetime = habits.tokenLifetimeSeconds;
  const usable = lifetime - Math.min(MARGIN_SECONDS, lifetime / 4);
  // A token is renewed by the first poll after its renewal is due.
  const renewal = Math.ceil(usable / pollSeconds) * pollSeconds;
  const tokensPerPoll = pollSeconds / renewal;
  const tokenPages = tokensPerPoll * tokenPrice;
  const rate = (pagesEach: number): number => (polls * (pagesEach + tokenPages)) / (1 - retries);
  const [requests, peak] = [rate(pages), rate(pagesAtPeak)];
  return {
    ...{ pages, pagesAtPeak, screeningsAtPeak, tokensPerPoll, requests, peak },
    steps: [
      `polls: ${tenants} tenants / ${pollSeconds} s = ${show(polls)}/s, at any hour`,
      `screenings per poll: ${screeningsPerDay} per day × ${pollSeconds} s / 86400 s = ${show(screenings)}; at the peak × ${peakFactor} = ${show(screeningsAtPeak)}`,
      `pages per poll: mean of max(1, ⌈N / ${pageSize}⌉) for Poisson N = ${show(pages)}; at the peak ${show(pagesAtPeak)}`,
      `tokens: one per tenant every ${show(renewal)} s, each costing ${show(tokenPrice)} pages = ${show(tokenPages)} per poll`,
      `requests: ${show(polls)}/s × (${show(pages)} + ${show(tokenPages)}) / (1 − ${retries} repeated) = ${show(requests)}/s; at the peak ${show(peak)}/s`,
    ],
  };
}

export const show = (value: number): string => String(Number(value.toPrecision(4)));
export const percent = (value: number): string => `${(value * 100).toFixed(1)} %`;

/** The mean of max(1, ⌈N / pageSize⌉) for a Poisson number N of screenings. */
export function pagesOfPoll(meanScreenings: number, pageSize: number): number {
  // With more than fifty pages, the last one is half full on average.
  if (meanScreenings > 50 * pageSize && meanScreenings > 1000) return meanScreenings / pageSize + 0.5;
  let mean = 1;
  // The mean is the sum of the probabilities of more than `page` pages.
  for (let page = 1; ; page += 1) {
    const more = 1 - poissonAtMost(page * pageSize, meanScreenings);
    mean += more;
    if (more < 1e-9 && page * pageSize > meanScreenings) return mean;
  }
}

/** Returns the quantile of the number of pages per poll. */
export function pagesAtMost(meanScreenings: number, pageSize: number, share: number): number {
  let pages = 1;
  while (poissonAtMost(pages * pageSize, meanScreenings) < share) pages += 1;
  return pages;
}

/** The Poisson distribution function at k. */
const poissonAtMost = (k: number, mean: number): number =>
  mean <= 0 ? 1 : atMost(k, -mean, (n) => Math.log(mean / n));
