/** Open arrivals at the token endpoint. A client asks seldom (section 5.6); many clients together ask often. */
import { sleep } from 'k6';
import { SharedArray } from 'k6/data';
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import { mint } from './lib/client.ts';
import { readConfig } from './lib/config.ts';
import { poissonArrivals } from './lib/random.ts';
export { handleSummary } from './lib/summary.ts';

const config = readConfig();
const due = new SharedArray('due moments', () =>
  poissonArrivals(config.seed, config.requestsPerSecond, config.seconds),
);

export const options: Options = {
  scenarios: {
    token: {
      executor: 'shared-iterations',
      vus: config.vus,
      iterations: Math.max(due.length, config.vus),
      maxDuration: `${Math.ceil(config.seconds + config.timeoutSeconds + 30)}s`,
    },
  },
  thresholds: Object.fromEntries(
    Object.entries(config.thresholds).map(([name, rules]) => [name, [...rules]]),
  ),
};

export const setup = (): number => Date.now() + 500;

export default function (startAtMs: number): void {
  const iteration = exec.scenario.iterationInTest;
  const dueMs = due[iteration];
  if (dueMs === undefined) return;
  const earlyMs = startAtMs + dueMs - Date.now();
  if (earlyMs > 0) sleep(earlyMs / 1000);
  const schedulerLagMs = earlyMs > 0 ? Math.max(0, Date.now() - startAtMs - dueMs) : 0;
  const which = iteration % config.clients.length;
  const sentAtMs = Date.now();
  let status = 200;
  try {
    mint(config, config.clients[which]!);
  } catch {
    status = 0;
  }
  const serviceMs = Date.now() - sentAtMs;
  const latencyMs = Math.max(serviceMs, sentAtMs - startAtMs - dueMs + serviceMs);
  console.log(`r ${dueMs} ${latencyMs} ${serviceMs} ${status} ${schedulerLagMs} ${which}`);
}
