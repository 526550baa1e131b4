/** Open arrivals: requests are due at moments that do not depend on the target; latency counts from the due moment. */
import { sleep } from 'k6';
import { SharedArray } from 'k6/data';
import exec from 'k6/execution';
import { Trend } from 'k6/metrics';
import type { Scenario } from 'k6/options';
import type { SetupData } from './setup.ts';
import { areMetricsRead, areRecordsRead, sharedRun, type LoadConfig } from './config.ts';
import { type Answered, writeArrival } from './record.ts';
import { dueMoments } from '../../estimate/random.ts';

/** Bound once: k6 looks up each global and each import by its name whenever it is used. */
const { now } = Date;
const wait = sleep;
const record = areRecordsRead ? writeArrival : undefined;

/** Runners in a cluster write no records; they report their scheduler lag by this metric. */
const lag = sharedRun ? new Trend('scheduler_lag_ms', true) : undefined;

/** The phases of a spike, each with its end as a share of the duration. */
const SPIKE = [
  ['before', 1 / 3],
  ['spike', 2 / 3],
  ['recovery', 5 / 6],
  ['after', Infinity],
] as const;

/** When a request is due, since the epoch and since the start of the run, and the seed of its own random numbers. */
export type DueRequest = Readonly<Record<'dueAtMs' | 'dueMs' | 'seed', number>>;

/**
 * The k6 scenario of a script, and its iteration, which waits for its moment, sends and records. k6's own arrival rates
 * are even, which is easier on a queue than callers are.
 */
export function openArrivals<Data extends Pick<SetupData, 'startAtMs'>>(
  config: LoadConfig,
  send: (data: Data, request: DueRequest) => Answered,
) {
  const { clients, seconds, timeoutSeconds, seed, spikeFactor } = config;
  // Moments of the whole run: exact rates with few VUs, the same for any number of runners.
  const due = dueMoments(config, (draw) => new SharedArray('due moments', draw));
  const vus = Math.max(config.vus, clients.length);
  const scenario: Scenario = {
    executor: 'shared-iterations',
    vus,
    iterations: Math.max(due.length, vus),
    maxDuration: `${Math.ceil(seconds + timeoutSeconds + 30)}s`,
    ...(areMetricsRead ? { tags: { phase: 'even' } } : {}),
  };

  // When the last of these moments has passed, a VU may be left without another one.
  const lastMs = due.length > vus ? due.at(due.length - vus - 1) : 0;
  let state: typeof exec.scenario | undefined;
  const iteration = (data: Data): void => {
    // `exec.scenario` creates an object on each access; one per VU suffices, as its values stay current.
    state ??= exec.scenario;
    const index = state.iterationInTest;
    // Each VU has an iteration, also if there are fewer moments.
    if (index >= due.length) return;
    const dueMs = due.at(index);
    const dueAtMs = data.startAtMs + dueMs;
    const earlyMs = dueAtMs - now();
    if (earlyMs > 0) wait(earlyMs / 1000);
    if (spikeFactor !== undefined)
      exec.vu.metrics.tags['phase'] = SPIKE.find(([, end]) => dueMs < end * seconds * 1000)![0];
    // Only the delay of a VU that was free in time is scheduler lag; otherwise the target caused it.
    const lateMs = earlyMs > 0 ? now() - dueAtMs : 0;
    const schedulerLagMs = lateMs > 0 ? lateMs : 0;
    lag?.add(schedulerLagMs);
    const answered = send(data, { dueAtMs, dueMs, seed: seed * 7919 + index });
    record?.(answered, dueMs, schedulerLagMs, now() >= data.startAtMs + lastMs);
  };
  return { scenario, iteration };
}
