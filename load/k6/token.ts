/** Open arrivals at the token endpoint. A client asks seldom (section 5.6); many clients together ask often. */
import { SharedArray } from 'k6/data';
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import { openArrivals, turn } from './lib/arrivals.ts';
import { mint } from './lib/client.ts';
import { readConfig, thresholdsOf } from './lib/config.ts';
import { dueMoments } from './lib/random.ts';
import { write } from './lib/record.ts';
import { TREND_STATS } from './lib/summary.ts';
export { handleSummary } from './lib/summary.ts';

const config = readConfig({ requestsPerSecond: 20, seconds: 30 });
const due = new SharedArray('due moments', () => dueMoments(config));

export const options: Options = {
  scenarios: { token: openArrivals(config, due) },
  summaryTrendStats: TREND_STATS,
  thresholds: thresholdsOf(config, {
    http_req_duration: [`p(99)<${config.p99Ms}`],
    http_req_failed: ['rate<0.001'],
  }),
};

export const setup = (): number => Date.now() + 500;

export default function (startAtMs: number): void {
  const now = turn(due, startAtMs);
  if (!now) return;
  const { dueMs, dueAtMs, schedulerLagMs } = now;
  const client = exec.scenario.iterationInTest % config.clients.length;
  const sentAtMs = Date.now();
  let status = 200;
  try {
    mint(config, config.clients[client]!);
  } catch {
    status = 0;
  }
  const serviceMs = Date.now() - sentAtMs;
  const latencyMs = Math.max(serviceMs, Date.now() - dueAtMs);
  if (config.records) write({ kind: 'arrival', dueMs, latencyMs, serviceMs, status, schedulerLagMs, client });
}
