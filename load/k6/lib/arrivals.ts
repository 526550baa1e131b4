/** Open arrivals: requests are due at moments that do not depend on the target; latency counts from the due moment. */
import { sleep } from 'k6';
import { SharedArray } from 'k6/data';
import exec from 'k6/execution';
import { Trend } from 'k6/metrics';
import type { Scenario } from 'k6/options';
import type { SetupData } from './setup.ts';
import { areMetricsRead, sharedRun, type LoadConfig } from './config.ts';
import { dueMoments, randomSource } from '../../estimate/random.ts';

/** Runners in a cluster write no records; they report their scheduler lag by this metric. */
const lag = sharedRun ? new Trend('scheduler_lag_ms', true) : undefined;

/** The phases of a spike, each with its end as a share of the duration. */
const SPIKE = [
  ['before', 1 / 3],
  ['spike', 2 / 3],
  ['recovery', 5 / 6],
  ['after', Infinity],
] as const;

/** Moments of the whole run: exact rates with few VUs, the same for any number of runners. */
export const dueMomentsOf = (of: LoadConfig) =>
  dueMoments(of, (draw) => new SharedArray('due moments', draw));

type Due = ReturnType<typeof dueMomentsOf>;

/** Each iteration waits for its moment. k6's own arrival rates are even, which is easier on a queue than callers are. */
export function openArrivals({ vus: own, clients, seconds, timeoutSeconds }: LoadConfig, due: Due): Scenario {
  const vus = Math.max(own, clients.length);
  return {
    executor: 'shared-iterations',
    vus,
    iterations: Math.max(due.length, vus),
    maxDuration: `${Math.ceil(seconds + timeoutSeconds + 30)}s`,
    ...(areMetricsRead ? { tags: { phase: 'even' } } : {}),
  };
}

let scenario: typeof exec.scenario | undefined;

/** Waits until this iteration's moment, also since the start of the run (dueMs); undefined if it has none. */
export function waitUntilDue(
  { seed, seconds, spikeFactor }: LoadConfig,
  { startAtMs }: Pick<SetupData, 'startAtMs'>,
  due: Due,
) {
  // `exec.scenario` creates an object on each access; one per VU suffices, as its values stay current.
  scenario ??= exec.scenario;
  const iteration = scenario.iterationInTest;
  if (iteration >= due.length) return undefined;
  const dueMs = due.at(iteration);
  const dueAtMs = startAtMs + dueMs;
  const earlyMs = dueAtMs - Date.now();
  if (earlyMs > 0) sleep(earlyMs / 1000);
  if (spikeFactor !== undefined)
    exec.vu.metrics.tags['phase'] = SPIKE.find(([, end]) => dueMs < end * seconds * 1000)![0];
  // Only the delay of a VU that was free in time is scheduler lag; otherwise the target caused it.
  const schedulerLagMs = earlyMs > 0 ? Math.max(0, Date.now() - dueAtMs) : 0;
  lag?.add(schedulerLagMs);
  return { dueAtMs, dueMs, schedulerLagMs, draw: randomSource(seed * 7919 + iteration) };
}
