/** The tenants' demand in requests per second, with the arithmetic as text. */
import { rounded } from '../estimate/numbers.ts';
import { above0, below1, count, duration, from0, pageSize, share, whole } from '../run/flags.ts';
import type { Flag, Values } from '../run/flags.ts';
import { meanPages } from './simulate.ts';

/** What is assumed about the tenants and the operation, as flags of `plan`; those without a default are required. */
export const ASSUMED = {
  tenants: ['--tenants <n>', 'number of polling tenants', whole],
  poll: ['--poll <time>', 'interval between polls, such as 60s', duration],
  screeningsPerDay: ['--screenings-per-day <n>', 'screenings of a tenant per day', above0],
  pageSize: ['--page-size <n>', 'items per page', pageSize, 100],
  tokenLifetime: ['--token-lifetime <time>', 'lifetime of access tokens', duration, 3600],
  history: ['--history <years>', 'years of stored screenings, which a back-fill reads', above0, 5],
  itemBytes: ['--item-bytes <n>', 'bytes of a screening in a page', above0, 250],
  rowBytes: ['--row-bytes <n>', 'bytes of a screening in the database, with its indexes', above0, 300],
  utilisation: ['--utilisation <share>', 'maximum utilisation of a replica at the peak', share, 0.7],
  peakFactor: ['--peak-factor <n>', "the busiest hour's screenings as a multiple of the mean", above0, 1],
  retries: ['--retries <share>', 'share of requests that are repeated', below1, 0.01],
  spare: ['--spare <n>', 'number of replicas that may fail', count, 1],
  outage: ['--outage <time>', 'duration of an outage to catch up with', duration, 3600],
  growth: ['--growth <share>', 'yearly growth of tenants, such as 0.3', from0, 0],
} as const satisfies Readonly<Record<string, Flag>>;

/** Times are in seconds. */
export interface Assumptions extends Values<typeof ASSUMED> {
  /** Length of the part of each interval in which polls arrive; the interval if they are independent. */
  readonly pollSpread: number;
  /** The costs of a token call, an empty page and each screening on a page, in pages as measured. */
  readonly tokenPrice: number;
  readonly emptyPrice: number;
  readonly itemPrice: number;
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
