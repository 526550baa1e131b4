/**
 * Open arrivals: requests are due at the moments of a Poisson process, whatever the target does. VUs wait for the next
 * due moment; when all of them wait for the target, the lateness counts as latency.
 */
import { sleep } from 'k6';
import exec from 'k6/execution';
import { Trend } from 'k6/metrics';
import type { Scenario } from 'k6/options';
import type { Begun } from './begin.ts';
import { firstPage, nextPlace, Session, type Place, type Sent } from './client.ts';
import { countsHistogram, type LoadConfig } from './config.ts';
import { randomSource } from './random.ts';
import { write, type Stretch } from './record.ts';

/** Runners write no records: this is how they tell that they fell behind. */
const lag = countsHistogram ? new Trend('scheduler_lag_ms', true) : undefined;

/** One iteration for each due moment; k6's own arrival rates are evenly paced, and kinder than independent callers. */
export const openArrivals = (config: LoadConfig, due: readonly number[]): Scenario => ({
  executor: 'shared-iterations',
  vus: config.vus,
  iterations: Math.max(due.length, config.vus),
  maxDuration: `${Math.ceil(config.seconds + config.timeoutSeconds + 30)}s`,
});

/** Waits until this iteration's request is due; undefined where there is none left. */
export function turn(due: readonly number[], startAtMs: number) {
  const dueMs = due[exec.scenario.iterationInTest];
  if (dueMs === undefined) return undefined;
  const dueAtMs = startAtMs + dueMs;
  const earlyMs = dueAtMs - Date.now();
  if (earlyMs > 0) sleep(earlyMs / 1000);
  // Late although it was free: that is the generator's own lateness, not the target's.
  return { dueMs, dueAtMs, schedulerLagMs: earlyMs > 0 ? Math.max(0, Date.now() - dueAtMs) : 0 };
}

/** Where a VU asks next, when its walk is over: where it is on the target, its iteration, and its client's session. */
export type StartPlace = (begun: Begun, iteration: number, session: Session) => Place;

/** How many pages a VU reads before it turns to another window. */
const WALK_PAGES = 4;

let sessions: Session[] | undefined;
let place: Place | undefined;
let walked = 0;

/** One iteration: waits until the request is due, asks, and writes down what came. */
export function arrive(config: LoadConfig, due: readonly number[], begun: Begun, start: StartPlace): void {
  const now = turn(due, begun.startAtMs);
  if (!now) return;
  const { dueMs, dueAtMs, schedulerLagMs } = now;
  sessions ??= begun.clients.map((client, index) => new Session(config, client, begun.tokens[index]!));
  const client = exec.vu.idInTest % sessions.length;
  const session = sessions[client]!;
  if (config.outages && exec.scenario.iterationInTest % RENEWED_EVERY === 0) renewed(session);
  if (!place || walked >= WALK_PAGES) {
    place = start(begun, exec.scenario.iterationInTest, session);
    walked = 0;
  }
  const asked = place;
  const sent = ask(config, session, asked, dueAtMs);
  place = sent.status === 200 ? nextPlace(config, sent, asked.to) : undefined;
  walked += 1;
  if (!config.records) {
    lag?.add(schedulerLagMs);
    return;
  }
  const { status, errorCode, retryAfterSeconds, policy } = sent;
  const [latencyMs, serviceMs] = [rounded(sent.latencyMs), rounded(sent.serviceMs)];
  const times = { dueMs, latencyMs, serviceMs, schedulerLagMs };
  write({
    kind: 'arrival',
    ...times,
    status,
    client,
    retryAfterSeconds,
    policy,
    ...(errorCode ? { errorCode } : {}),
    ...(config.outages && status === 200 ? { stretch: stretchOf(asked, sent) } : {}),
  });
}

/** Where outages are tried, one arrival in so many asks with a new token. */
const RENEWED_EVERY = 50;

/** A token endpoint that fails meanwhile leaves the old one in use. */
function renewed(session: Session): void {
  try {
    session.renew();
  } catch {
    // What it asks next is told.
  }
}

const stretchOf = ({ from, after }: Place, { first, last, items, next }: Sent): Stretch => ({
  from,
  after,
  first,
  last,
  items,
  final: next === undefined,
});

const rounded = (ms: number): number => Math.round(ms * 100) / 100;

/** A token that is not to be had fails the request that needed it, and not the run. */
function ask(config: LoadConfig, session: Session, at: Place, dueAtMs: number): Sent {
  const sentAtMs = Date.now();
  try {
    return session.ask(at, config.pageSize, dueAtMs);
  } catch {
    const nowMs = Date.now();
    const times = { serviceMs: nowMs - sentAtMs, latencyMs: Math.max(0, nowMs - dueAtMs) };
    return { status: 0, items: 0, errorCode: 0, body: '', ...times };
  }
}

/** A window that begins anywhere within the target's and ends with it. */
export const anywhere =
  (config: LoadConfig): StartPlace =>
  ({ window: { from, to } }, iteration, { client }) => {
    const [first, last] = [Date.parse(from), Date.parse(to)];
    const at = first + randomSource(config.seed * 7919 + iteration)() * (last - first) * 0.95;
    return firstPage(config, client, new Date(at).toISOString(), to, config.pageSize);
  };

/** The head of the data: what came since the poll before. */
export const atHead =
  (config: LoadConfig): StartPlace =>
  ({ window }, _iteration, { client }) => {
    const headMs = (config.headSeconds ?? 300) * 1000;
    const fromMs = Math.max(Date.parse(window.from), Date.parse(window.to) - headMs);
    return firstPage(config, client, new Date(fromMs).toISOString(), window.to, config.pageSize);
  };
