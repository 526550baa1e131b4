/**
 * What polls wait, by formula. Polls that are spread over their whole interval are independent callers: Erlang's
 * queue. Polls that come within a part of it are a burst: work piles up while it comes faster than it is done.
 */
import type { Pages } from './pages.ts';

export interface Servers {
  /** Requests a second, all busy. */
  readonly perSecond: number;
  readonly workers: number;
}

/** Polls of one interval, and within how many seconds of it they come. */
export interface Burst {
  readonly polls: number;
  readonly pages: Pages;
  readonly spreadSeconds: number;
  readonly pollSeconds: number;
}

const LATE = 0.01;
/** Moments within a burst, and lengths of service, that are averaged over. */
const MOMENTS = 60;
const LENGTHS = 12;

/** Seconds that one request in a hundred exceeds; Infinity where the servers never keep up. */
export function p99Seconds(servers: Servers, burst: Burst): number {
  const { perSecond, workers } = servers;
  const { polls, pages, spreadSeconds, pollSeconds } = burst;
  const requests = polls * pages.mean;
  if (requests / pollSeconds >= perSecond) return Infinity;
  const rate = requests / spreadSeconds;
  if (rate >= perSecond) return p99Burst(servers, burst);
  // M/M/c: independent callers at a rate that goes on.
  const steady = solve((seconds) => lateShare(workers, perSecond / workers, rate, seconds));
  // A burst that is over before the queue has settled waits as much less as the Brownian motion says.
  return spreadSeconds >= pollSeconds
    ? steady
    : (steady * p99Burst(servers, burst)) / p99Settled(servers, rate);
}

/**
 * A burst into idle servers: the work not yet done grows by what comes less what is done, never below nothing, with the
 * chance of both: a Brownian motion reflected at zero. A poll asks page after page, so of the work that is left only
 * its next page waits in front of others: half of its pages and a half are in each place, in the mean.
 */
function p99Burst(servers: Servers, { polls, pages, spreadSeconds }: Burst): number {
  const { perSecond } = servers;
  const drift = (polls * pages.mean) / (perSecond * spreadSeconds) - 1;
  const left = (pages.meanSquare / pages.mean + 1) / 2;
  const parts = Array.from({ length: MOMENTS }, (_, moment) => (moment + 0.5) / MOMENTS);
  return solveWith(servers, (wait) => {
    const late = parts.map((part) => {
      // How many of all came by then, of how many pages; how long those take.
      const came = part * pages.meanSquare - (part * pages.mean) ** 2;
      const variance = (polls / perSecond ** 2) * (came + part * pages.mean);
      return beyond(wait * left, drift * part * spreadSeconds, variance);
    });
    return late.reduce((sum, one) => sum + one, 0) / MOMENTS;
  });
}

/** The same motion after a long time: below saturation its level is exponential. */
const p99Settled = (servers: Servers, rate: number): number =>
  solveWith(servers, (wait) =>
    Math.exp(-Math.max(0, wait) * (servers.perSecond ** 2 / rate - servers.perSecond)),
  );

/** The p99 of a wait, given by its tail, and a request's own time behind it. */
function solveWith({ perSecond, workers }: Servers, waits: (seconds: number) => number): number {
  const lengths = Array.from(
    { length: LENGTHS },
    (_, index) => (-Math.log(1 - (index + 0.5) / LENGTHS) * workers) / perSecond,
  );
  return solve((seconds) => lengths.reduce((sum, one) => sum + waits(seconds - one), 0) / LENGTHS);
}

/** The probability that reflected work exceeds y, after a drift and a variance in all. */
function beyond(y: number, drift: number, variance: number): number {
  if (y < 0) return 1;
  const deviation = Math.sqrt(variance);
  const reflected = (2 * drift * y) / variance + logNormalBelow((-y - drift) / deviation);
  return Math.min(1, 1 - normalBelow((y - drift) / deviation) + Math.exp(Math.min(0, reflected)));
}

/** Where a falling share reaches one in a hundred. */
function solve(lateAt: (seconds: number) => number): number {
  let [low, high] = [0, 1];
  while (lateAt(high) > LATE && high < 1e6) high *= 2;
  for (let round = 0; round < 40; round += 1) {
    const middle = (low + high) / 2;
    if (lateAt(middle) > LATE) low = middle;
    else high = middle;
  }
  return high;
}

/** Abramowitz and Stegun 26.2.17. */
function normalBelow(z: number): number {
  const t = 1 / (1 + 0.2316419 * Math.abs(z));
  const tail =
    Math.exp((-z * z) / 2 - 0.9189385332) *
    t *
    (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  return z < 0 ? tail : 1 - tail;
}

const logNormalBelow = (z: number): number =>
  z > -6 ? Math.log(normalBelow(z)) : (-z * z) / 2 - 0.9189385332 - Math.log(-z);

/**
 * Erlang's queue: the share of requests that take longer than t seconds; mu: what one worker does a second, rate: below
 * workers × mu.
 */
export function lateShare(workers: number, mu: number, rate: number, t: number): number {
  const load = rate / mu;
  let blocked = 1;
  for (let k = 1; k <= workers; k += 1) blocked = (load * blocked) / (k + load * blocked);
  const waits = blocked / (1 - (load / workers) * (1 - blocked));
  const spare = (workers - 1) * mu - rate;
  const both = Math.abs(spare) < 1e-9 ? mu * t : (mu / spare) * (1 - Math.exp(-spare * t));
  return Math.exp(-mu * t) * (1 + waits * both);
}
