/** Open arrivals: requests are due at moments of their own, whatever the target does; their lateness counts as latency. */
import { sleep } from 'k6';
import { SharedArray } from 'k6/data';
import exec from 'k6/execution';
import { Trend } from 'k6/metrics';
import type { Scenario } from 'k6/options';
import { clientsOf, type Begun } from './begin.ts';
import { Client, firstPage, nextPlace, type Place } from './client.ts';
import { sharedRun, type LoadConfig } from './config.ts';
import { poissonArrivals, randomSource } from './random.ts';
import { writeArrival } from './record.ts';

/** Runners write no records: this metric shows their scheduler lag. */
const lag = sharedRun ? new Trend('scheduler_lag_ms', true) : undefined;

/** A spike's phases: each ends at its part of the time. */
const SPIKE = [
  ['before', 1 / 3],
  ['spike', 2 / 3],
  ['recovery', 5 / 6],
  ['after', Infinity],
] as const;

const MOST_WAITING_VUS = 200;

/**
 * k6's arrival rates are evenly paced, and kinder than independent callers are; each request waits for a random part of
 * some seconds, which makes arrivals random. A VU is busy while it waits: at high rates the time is shorter.
 */
const spreadSeconds = ({ requestsPerSecond, spikeFactor = 1, seconds, vus }: LoadConfig): number =>
  Math.min(5, seconds / 20, Math.min(MOST_WAITING_VUS, 4 * vus) / (requestsPerSecond * spikeFactor));

export function openArrivals(config: LoadConfig): Record<string, Scenario> {
  const {
    scenario,
    requestsPerSecond,
    spikeFactor = 1,
    seconds,
    timeoutSeconds,
    vus,
    clients,
    parts = 1,
  } = config;
  const spread = spreadSeconds(config);
  // Whole numbers are wanted.
  const rate = (times: number): number => Math.max(1, Math.round(requestsPerSecond * times * 1000));
  const part = (of: number): string => `${Math.max(1000, Math.round(seconds * 1000)) / of}ms`;
  const common = {
    timeUnit: '1000s',
    preAllocatedVUs: Math.max(
      vus + Math.ceil(requestsPerSecond * spikeFactor * spread),
      clients.length,
      parts,
    ),
    gracefulStop: `${Math.ceil(spread + 3 * timeoutSeconds)}s`,
  };
  if (config.spikeFactor === undefined)
    return {
      [scenario]: {
        executor: 'constant-arrival-rate',
        rate: rate(1),
        duration: part(1),
        tags: { phase: 'even' },
        ...common,
      },
    };
  const stages = [1, spikeFactor, 1].flatMap((times) => [
    { target: rate(times), duration: '0s' },
    { target: rate(times), duration: part(3) },
  ]);
  return { [scenario]: { executor: 'ramping-arrival-rate', startRate: rate(1), stages, ...common } };
}

interface Turn {
  readonly dueAtMs: number;
  /** How late a free VU was: the generator's own lateness. */
  readonly schedulerLagMs: number;
  readonly draw: () => number;
}

/** Of a VU. */
let draw: (() => number) | undefined;

/** Waits until this iteration's request is due. */
export function turnOf(config: LoadConfig): Turn {
  const calledAtMs = Date.now();
  draw ??= randomSource(config.seed * 7919 + exec.vu.idInTest);
  const dueAtMs = calledAtMs + draw() * spreadSeconds(config) * 1000;
  sleep((dueAtMs - calledAtMs) / 1000);
  if (config.spikeFactor !== undefined) {
    const time = (dueAtMs - exec.scenario.startTime) / (config.seconds * 1000);
    exec.vu.metrics.tags['phase'] = SPIKE.find(([, end]) => time < end)![0];
  }
  return { dueAtMs, schedulerLagMs: Math.max(0, Date.now() - dueAtMs), draw };
}

/** Moments that are drawn beforehand: a step is short, and what is due has to come evenly, from few VUs. */
export const dueMoments = ({ seed, requestsPerSecond, seconds }: LoadConfig): readonly number[] =>
  new SharedArray('due moments', () => poissonArrivals(seed, requestsPerSecond, seconds));

export const drawnArrivals = (
  { seconds, timeoutSeconds, vus }: LoadConfig,
  due: readonly number[],
): Scenario => ({
  executor: 'shared-iterations',
  vus,
  iterations: Math.max(due.length, vus),
  maxDuration: `${Math.ceil(seconds + timeoutSeconds + 30)}s`,
});

/** Waits until this iteration's moment; undefined where there is none for it. */
export function drawnTurn(config: LoadConfig, begun: Begun, due: readonly number[]): Turn | undefined {
  const iteration = exec.scenario.iterationInTest;
  const dueMs = due[iteration];
  if (dueMs === undefined) return undefined;
  const dueAtMs = begun.startAtMs + dueMs;
  const earlyMs = dueAtMs - Date.now();
  if (earlyMs > 0) sleep(earlyMs / 1000);
  // Late although it was free: that is the generator's own lateness, not the target's.
  const schedulerLagMs = earlyMs > 0 ? Math.max(0, Date.now() - dueAtMs) : 0;
  return { dueAtMs, schedulerLagMs, draw: randomSource(config.seed * 7919 + iteration) };
}

/** Where a VU asks next, when its walk is over: where it is on the target, random numbers, its client. */
export type StartPlace = (begun: Begun, draw: () => number, client: Client) => Place;

/** How many pages a VU reads before it turns to another window. */
const WALK_PAGES = 4;

// Reading k6's state of an iteration costs more than most of the iteration: once is enough.
let client: Client | undefined;
let index = 0;
let place: Place | undefined;
let walked = 0;

/** One iteration, when its request is due: asks, and writes down what came. */
export function arrive(config: LoadConfig, begun: Begun, start: StartPlace, turn: Turn): void {
  const { dueAtMs, schedulerLagMs, draw } = turn;
  if (!client) {
    index = exec.vu.idInTest % config.clients.length;
    client = new Client(config, clientsOf(config, begun)[index]!, begun.tokens[index]!);
  }
  if (config.outages && draw() < RENEWED) renewed(client);
  if (!place || walked >= WALK_PAGES) {
    place = start(begun, draw, client);
    walked = 0;
  }
  const sent = client.ask(place, dueAtMs);
  place = sent.status === 200 ? nextPlace(config, place, sent) : undefined;
  walked += 1;
  if (!config.records) {
    lag?.add(schedulerLagMs);
    return;
  }
  const { status, errorCode, retryAfterSeconds, policy } = sent;
  writeArrival({
    kind: 'arrival',
    dueMs: rounded(dueAtMs - begun.startAtMs),
    latencyMs: rounded(sent.latencyMs),
    serviceMs: rounded(sent.serviceMs),
    schedulerLagMs,
    status,
    client: index,
    retryAfterSeconds,
    policy,
    errorCode,
  });
}

/** Where outages are tried, this share of the arrivals asks with a new token. */
const RENEWED = 0.02;

/** A token endpoint that fails meanwhile leaves the old one in use. */
function renewed(client: Client): void {
  try {
    client.renew();
  } catch {
    // The next request shows it.
  }
}

const rounded = (ms: number): number => Math.round(ms * 100) / 100;

/** A window that begins anywhere within the target's and ends with it. */
export const anywhere =
  (config: LoadConfig): StartPlace =>
  ({ window: { from, to } }, draw, { credentials }) => {
    const [first, last] = [Date.parse(from), Date.parse(to)];
    const at = first + draw() * (last - first) * 0.95;
    return firstPage(config, credentials, new Date(at).toISOString(), to, config.pageSize);
  };

/** The head of the data: what came since the poll before. */
export const atHead =
  (config: LoadConfig): StartPlace =>
  ({ window }, _draw, { credentials }) => {
    const headMs = (config.headSeconds ?? 300) * 1000;
    const fromMs = Math.max(Date.parse(window.from), Date.parse(window.to) - headMs);
    const first = firstPage(config, credentials, new Date(fromMs).toISOString(), window.to, config.pageSize);
    return { ...first, page: 'poll' };
  };
