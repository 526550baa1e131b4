/**
 * Open arrivals: requests are due at the moments of a Poisson process, whatever the target does.
 * VUs wait for the next due moment; when all of them wait for the target, the lateness counts
 * as latency. capacity, spike and smoke run it.
 */
import { sleep } from 'k6';
import { SharedArray } from 'k6/data';
import exec from 'k6/execution';
import { firstPage, mint, nextPlace, Session, type Place, type Sent, type Token } from './lib/client.ts';
import { readConfig } from './lib/config.ts';
import { dueMoments, randomSource } from './lib/random.ts';
export { handleSummary } from './lib/summary.ts';

const config = readConfig();
const due = new SharedArray('due moments', () => dueMoments(config));

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
  const sent = ask(session, place, dueAtMs);
  place = sent.status === 200 ? nextPlace(config, sent, place.to) : undefined;
  walked += 1;
  if (config.records) {
    console.log(
      `r ${dueMs} ${sent.latencyMs.toFixed(2)} ${sent.serviceMs.toFixed(2)} ${sent.status} ${schedulerLagMs} ${which} ${sent.retryAfterSeconds ?? ''} ${sent.errorCode || ''}`,
    );
  }
}

/** A token that is not to be had fails the request that needed it, and not the run. */
function ask(session: Session, at: Place, dueAtMs: number): Sent {
  const sentAtMs = Date.now();
  try {
    return session.ask(at, config.pageSize, dueAtMs);
  } catch {
    const nowMs = Date.now();
    return {
      status: 0,
      items: 0,
      errorCode: 0,
      serviceMs: nowMs - sentAtMs,
      latencyMs: Math.max(0, nowMs - dueAtMs),
    };
  }
}

/** A window that begins anywhere within the target's and ends with it. */
function anywhere(session: Session, iteration: number): Place {
  const { from, to } = config.window;
  const [first, last] = [Date.parse(from), Date.parse(to)];
  const start = first + randomSource(config.seed * 7919 + iteration)() * (last - first) * 0.95;
  return firstPage(config, session.client, new Date(start).toISOString(), to, config.pageSize);
}
