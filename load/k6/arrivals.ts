/** One step of open arrivals at a rate, without thresholds, due to the moment: what `capacity` searches with. */
import { sleep } from 'k6';
import { SharedArray } from 'k6/data';
import exec from 'k6/execution';
import { anywhere, arrive } from './lib/arrivals.ts';
import { begin, SETUP, type Begun } from './lib/begin.ts';
import { readConfig, thresholdsOf } from './lib/config.ts';
import { poissonArrivals, randomSource } from './lib/random.ts';

const config = readConfig({ requestsPerSecond: 20, seconds: 12 });
const { seed, requestsPerSecond, seconds, vus } = config;
// A step is short, and its rate may be high: what is due has to come evenly from its first moment on, from few VUs.
const due = new SharedArray('due moments', () => poissonArrivals(seed, requestsPerSecond, seconds));

export const options = {
  ...SETUP,
  scenarios: {
    arrivals: {
      executor: 'shared-iterations',
      vus,
      iterations: Math.max(due.length, vus),
      maxDuration: `${Math.ceil(seconds + config.timeoutSeconds + 30)}s`,
    },
  },
  thresholds: thresholdsOf(config, {}),
};

export const setup = (): Begun => begin(config, 500);

const start = anywhere(config);

export default function (begun: Begun): void {
  const iteration = exec.scenario.iterationInTest;
  const dueMs = due[iteration];
  if (dueMs === undefined) return;
  const dueAtMs = begun.startAtMs + dueMs;
  const earlyMs = dueAtMs - Date.now();
  if (earlyMs > 0) sleep(earlyMs / 1000);
  // Late although it was free: that is the generator's own lateness, not the target's.
  const schedulerLagMs = earlyMs > 0 ? Math.max(0, Date.now() - dueAtMs) : 0;
  arrive(config, begun, start, { dueAtMs, schedulerLagMs, draw: randomSource(seed * 7919 + iteration) });
}
