/** The tenants' demand in requests per second, with the arithmetic as text. */
import { rounded } from '../estimate/numbers.ts';
import { meanPages } from './simulate.ts';

/** What is assumed about the tenants and the operation, with the names of the flags of `plan`; times in seconds. */
export interface Assumptions {
  readonly tenants: number;
  readonly poll: number;
  /** Length of the part of each interval in which polls arrive; the interval if they are independent. */
  readonly pollSpread: number;
  readonly screeningsPerDay: number;
  readonly pageSize: number;
  readonly tokenLifetime: number;
  /** The costs of a token call, an empty page and each screening on a page, in pages as measured. */
  readonly tokenPrice: number;
  readonly emptyPrice: number;
  readonly itemPrice: number;
  /** The busiest hour's screenings as a multiple of the mean; the number of polls stays the same. */
  readonly peakFactor: number;
  /** Share of the requests that are repeated. */
  readonly retries: number;
  /** Years of stored screenings; bytes of a screening in a page, and in a database with its indexes. */
  readonly history: number;
  readonly itemBytes: number;
  readonly rowBytes: number;
  /** Maximum utilisation of a replica at the peak. */
  readonly utilisation: number;
  readonly spare: number;
  readonly outage: number;
  readonly growth: number;
  readonly costPerReplica?: number;
}

export const SECONDS_PER_DAY = 86_400;
const MARGIN_SECONDS = 60;

/** Requests of all tenants per second, on average and at the peak. */
export function demandOf(assumed: Assumptions) {
  const { tenants, poll, screeningsPerDay, pageSize, peakFactor, retries, tokenPrice } = assumed;
  const polls = tenants / poll;
  const screenings = (screeningsPerDay * poll) / SECONDS_PER_DAY;
  const screeningsAtPeak = screenings * peakFactor;
  const pages = meanPages(screenings, pageSize);
  const pagesAtPeak = meanPages(screeningsAtPeak, pageSize);
  const lifetime = assumed.tokenLifetime;
  const usable = lifetime - Math.min(MARGIN_SECONDS, lifetime / 4);
  // A token is renewed by the first poll after its renewal is due.
  const renewal = Math.ceil(usable / poll) * poll;
  const tokensPerPoll = poll / renewal;
  const tokenPages = tokensPerPoll * tokenPrice;
  const work = workOf(pages, screenings, assumed);
  const workAtPeak = workOf(pagesAtPeak, screeningsAtPeak, assumed);
  const rate = (workEach: number): number => (polls * (workEach + tokenPages)) / (1 - retries);
  const [requests, peak] = [rate(work), rate(workAtPeak)];
  return {
    ...{ pages, pagesAtPeak, screeningsAtPeak, tokensPerPoll, requests, peak },
    /** The cost of a page at the peak. */
    pagePrice: workAtPeak / pagesAtPeak,
    steps: [
      `polls: ${tenants} tenants / ${poll} s = ${show(polls)}/s, at any hour`,
      `screenings per poll: ${screeningsPerDay} per day × ${poll} s / 86400 s = ${show(screenings)}; at the peak × ${peakFactor} = ${show(screeningsAtPeak)}`,
      `pages per poll: mean of max(1, ⌈N / ${pageSize}⌉) for Poisson N = ${show(pages)}; at the peak ${show(pagesAtPeak)}`,
      `tokens: one per tenant every ${show(renewal)} s, each costing ${show(tokenPrice)} pages = ${show(tokenPages)} per poll`,
      `their cost: ${show(pages)} × ${show(assumed.emptyPrice)} + ${show(screenings)} screenings × ${show(assumed.itemPrice)} = ${show(work)} pages as measured; at the peak ${show(workAtPeak)}`,
      `requests: ${show(polls)}/s × (${show(work)} + ${show(tokenPages)}) / (1 − ${retries} repeated) = ${show(requests)}/s; at the peak ${show(peak)}/s`,
    ],
  };
}

/** The cost of pages with screenings, in pages as measured. */
export const workOf = (
  pages: number,
  screenings: number,
  { emptyPrice, itemPrice }: Pick<Assumptions, 'emptyPrice' | 'itemPrice'>,
): number => pages * emptyPrice + screenings * itemPrice;

export const show = (value: number): string => String(rounded(value));
