/**
 * Open arrivals: requests are due at the moments of a Poisson process, whatever the target does.
 * VUs wait for the next due moment; when all of them wait for the target, the lateness counts
 * as latency. capacity, spike and smoke run it.
 */
import { sleep } from 'k6';
import { SharedArray } from 'k6/data';
import exec from 'k6/execution';
import { firstPage, mint, nextPlace, Session, type Place, type Token } from './lib/client.ts';
import { readConfig } from './lib/config.ts';
import { poissonArrivals, randomSource } from './lib/random.ts';
export { handleSummary } from './lib/summary.ts';

const config = readConfig();
const due = new SharedArray('due moments', () => {
  const { seed, requestsPerSecond: rate, seconds, spikeFactor } = config;
  if (!spikeFactor) return poissonArrivals(seed, rate, seconds);
  const third = seconds / 3;
  return [rate, rate * spikeFactor, rate].flatMap((each, part) =>
    poissonArrivals(seed + part, each, third).map((at) => at + part * third * 1000),
  );
});

export const options = {
  scenarios: {
    arrivals: {
      executor: 'shared-iterations',
      vus: config.vus,
      iterations: Math.max(due.length, config.vus),
      maxDuration: `${Math.ceil(config.seconds + config.timeoutSeconds + 30)}s`,
    },
  },
  thresholds: config.thresholds,
  summaryTrendStats: ['med', 'p(99)', 'count'],
  noCookiesReset: true,
};

interface Shared {
  readonly tokens: readonly Token[];
  readonly startAtMs: number;
}

export function setup(): Shared {
  const tokens = config.clients.map((client) => mint(config, client));
  return { tokens, startAtMs: config.startAtMs ?? Date.now() + 500 };
}

/** How many pages a VU reads before it turns to another window. */
const WALK_PAGES = 4;

let sessions: Session[] | undefined;
let place: Place | undefined;
let walked = 0;

export default function (shared: Shared): void {
  const iteration = exec.scenario.iterationInTest;
  const dueMs = due[iteration];
  if (dueMs === undefined) return;
  sessions ??= config.clients.map((client, index) => new Session(config, client, shared.tokens[index]!));
  const dueAtMs = shared.startAtMs + dueMs;
  const earlyMs = dueAtMs - Date.now();
  if (earlyMs > 0) sleep(earlyMs / 1000);
  // Late although it was free: that is the generator's own lateness, not the target's.
  const schedulerLagMs = earlyMs > 0 ? Math.max(0, Date.now() - dueAtMs) : 0;

  const which = exec.vu.idInTest % config.clients.length;
  const session = sessions[which]!;
  if (!place || walked >= WALK_PAGES) {
    place = anywhere(session, iteration);
    walked = 0;
  }
  const sentAtMs = Date.now();
  const sent = session.ask(place, config.pageSize, dueAtMs);
  const latencyMs = Math.max(sent.serviceMs, sentAtMs - dueAtMs + sent.serviceMs);
  place = sent.status === 200 ? nextPlace(config, sent, place.to) : undefined;
  walked += 1;
  if (config.records) {
    console.log(
      `r ${dueMs} ${latencyMs.toFixed(2)} ${sent.serviceMs.toFixed(2)} ${sent.status} ${schedulerLagMs} ${which}`,
    );
  }
}

/** A window that begins anywhere within the target's and ends with it. */
function anywhere(session: Session, iteration: number): Place {
  const { from, to } = config.window;
  const [first, last] = [Date.parse(from), Date.parse(to)];
  const start = first + randomSource(config.seed * 7919 + iteration)() * (last - first) * 0.95;
  return firstPage(config, session.client, new Date(start).toISOString(), to, config.pageSize);
}
