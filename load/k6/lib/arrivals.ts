/** Open arrivals: requests are due at moments that do not depend on the target; latency counts from the due moment. */
import { sleep } from 'k6';
import { SharedArray } from 'k6/data';
import exec from 'k6/execution';
import { Trend } from 'k6/metrics';
import type { Scenario } from 'k6/options';
import { clientOfVu, type SetupData } from './setup.ts';
import type { Client, PageRequest } from './client.ts';
import { areRecordsRead, sharedRun, type LoadConfig } from './config.ts';
import { poissonArrivals, randomSource } from '../../estimate/random.ts';
import { HEAD_SECONDS } from './presets.ts';
import { shortlyBefore } from './window.ts';
import { writeArrival } from './record.ts';

/** Runners in a cluster write no records; they report their scheduler lag by this metric. */
const lag = sharedRun ? new Trend('scheduler_lag_ms', true) : undefined;

/** The phases of a spike, each with its end as a share of the duration. */
const SPIKE = [
  ['before', 1 / 3],
  ['spike', 2 / 3],
  ['recovery', 5 / 6],
  ['after', Infinity],
] as const;

const MAX_WAITING_VUS = 200;

/**
 * k6 paces arrival rates evenly, which is easier on a queue than independent callers. Each iteration therefore waits
 * a random time of up to some seconds. A VU is occupied meanwhile, so the time is shorter at high rates.
 */
const spreadSeconds = ({ requestsPerSecond, spikeFactor = 1, seconds, vus }: LoadConfig): number =>
  Math.min(5, seconds / 20, Math.min(MAX_WAITING_VUS, 4 * vus) / (requestsPerSecond * spikeFactor));

export function openArrivals(config: LoadConfig): Scenario {
  const { requestsPerSecond, spikeFactor = 1, seconds, parts = 1 } = config;
  const spread = spreadSeconds(config);
  // k6 requires integers.
  const rate = (times: number): number => Math.max(1, Math.round(requestsPerSecond * times * 1000));
  const part = (of: number): string => `${Math.max(1000, Math.round(seconds * 1000)) / of}ms`;
  const waiting = Math.ceil(requestsPerSecond * spikeFactor * spread);
  const common = {
    timeUnit: '1000s',
    preAllocatedVUs: Math.max(config.vus + waiting, config.clients.length, parts),
    gracefulStop: `${Math.ceil(spread + 3 * config.timeoutSeconds)}s`,
  };
  if (config.spikeFactor === undefined)
    return {
      executor: 'constant-arrival-rate',
      rate: rate(1),
      duration: part(1),
      tags: { phase: 'even' },
      ...common,
    };
  const stages = [1, spikeFactor, 1].flatMap((times) => [
    { target: rate(times), duration: '0s' },
    { target: rate(times), duration: part(3) },
  ]);
  return { executor: 'ramping-arrival-rate', startRate: rate(1), stages, ...common };
}

interface DueRequest {
  readonly dueAtMs: number;
  /** How late a free VU started: the generator's own delay. */
  readonly schedulerLagMs: number;
  readonly draw: () => number;
}

let drawOfVu: (() => number) | undefined;

export function waitUntilDue(config: LoadConfig): DueRequest {
  const calledAtMs = Date.now();
  const draw = (drawOfVu ??= randomSource(config.seed * 7919 + exec.vu.idInTest));
  const dueAtMs = calledAtMs + draw() * spreadSeconds(config) * 1000;
  sleep((dueAtMs - calledAtMs) / 1000);
  if (config.spikeFactor !== undefined) {
    const time = (dueAtMs - exec.scenario.startTime) / (config.seconds * 1000);
    exec.vu.metrics.tags['phase'] = SPIKE.find(([, end]) => time < end)![0];
  }
  const schedulerLagMs = Math.max(0, Date.now() - dueAtMs);
  lag?.add(schedulerLagMs);
  return { dueAtMs, schedulerLagMs, draw };
}

/** Precomputed due moments: a step is short, and needs an exact rate with few VUs. */
export const dueMoments = ({ seed, requestsPerSecond, seconds }: LoadConfig): readonly number[] =>
  new SharedArray('due moments', () => poissonArrivals(seed, requestsPerSecond, seconds));

export const precomputedArrivals = (config: LoadConfig, due: readonly number[]): Scenario => ({
  executor: 'shared-iterations',
  vus: config.vus,
  iterations: Math.max(due.length, config.vus),
  maxDuration: `${Math.ceil(config.seconds + config.timeoutSeconds + 30)}s`,
});

let scenario: typeof exec.scenario | undefined;

/** Waits until this iteration's precomputed moment; undefined if it has none. */
export function waitForMoment(config: LoadConfig, data: SetupData, due: readonly number[]) {
  // `exec.scenario` creates an object on each access; one per VU suffices, as its values stay current.
  scenario ??= exec.scenario;
  const iteration = scenario.iterationInTest;
  const dueMs = due[iteration];
  if (dueMs === undefined) return undefined;
  const dueAtMs = data.startAtMs + dueMs;
  const earlyMs = dueAtMs - Date.now();
  if (earlyMs > 0) sleep(earlyMs / 1000);
  // Only the delay of a VU that was free in time is scheduler lag; otherwise the target caused it.
  const schedulerLagMs = earlyMs > 0 ? Math.max(0, Date.now() - dueAtMs) : 0;
  return { dueAtMs, schedulerLagMs, draw: () => randomSource(config.seed * 7919 + iteration)() };
}

/** Returns the first page of a VU's next traversal. */
export type StartPage = (data: SetupData, draw: () => number, client: Client) => PageRequest;

/** Number of pages that a VU reads before it starts another traversal. */
const WALK_PAGES = 4;

let pageRequest: PageRequest | undefined;
let walked = 0;

/** Runs one iteration: requests the next page when it is due, and records the answer. */
export function arrive(config: LoadConfig, data: SetupData, start: StartPage, request: DueRequest): void {
  const { dueAtMs, schedulerLagMs, draw } = request;
  const client = clientOfVu(config, data);
  if (config.outages && draw() < RENEWAL_SHARE)
    try {
      client.renew();
    } catch {
      // Keeps the old token; the next request shows the failure.
    }
  if (!pageRequest || walked >= WALK_PAGES) {
    pageRequest = start(data, draw, client);
    walked = 0;
  }
  const sent = client.fetchPage(pageRequest, dueAtMs);
  pageRequest = sent.status === 200 ? client.next(pageRequest, sent.next) : undefined;
  walked += 1;
  if (areRecordsRead) writeArrival(sent, dueAtMs - data.startAtMs, schedulerLagMs);
}

/** Share of the arrivals that use a new token in outage tests. */
const RENEWAL_SHARE = 0.02;

/** Starts windows at random points of the target's window; all end with it. */
export const anywhere =
  ({ pageSize }: LoadConfig): StartPage =>
  ({ window: { from, to } }, draw, by) => {
    const [first, last] = [Date.parse(from), Date.parse(to)];
    return by.first(new Date(first + draw() * (last - first) * 0.95).toISOString(), to, pageSize);
  };

/** Polls the end of the window, where new screenings arrive. */
export const atHead =
  ({ pageSize, headSeconds = HEAD_SECONDS }: LoadConfig): StartPage =>
  ({ window: { from, to } }, draw, by) => {
    const fromMs = Math.max(Date.parse(from), Date.parse(to) - headSeconds * 1000);
    return by.first(shortlyBefore(fromMs, draw()), to, pageSize, 'poll');
  };
