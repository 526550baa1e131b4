/** What tenants do most: each request asks for the last minutes (-e HEAD=300) and finds few screenings or none. */
import { SharedArray } from 'k6/data';
import type { Options } from 'k6/options';
import { arrive, openArrivals, type StartPlace } from './lib/arrivals.ts';
import { begin, type Begun } from './lib/begin.ts';
import { firstPage } from './lib/client.ts';
import { readConfig, thresholdsOf } from './lib/config.ts';
import { dueMoments } from './lib/random.ts';
import { TREND_STATS } from './lib/summary.ts';
export { handleSummary } from './lib/summary.ts';

const config = readConfig({ requestsPerSecond: 20, seconds: 30, headSeconds: Number(__ENV['HEAD'] ?? 300) });
const due = new SharedArray('due moments', () => dueMoments(config));

export const options: Options = {
  scenarios: { poll: openArrivals(config, due) },
  summaryTrendStats: TREND_STATS,
  thresholds: thresholdsOf(config, {
    page_ms: [`p(99)<${config.p99Ms}`],
    findings: ['count<1'],
    errors: ['count<1'],
  }),
};

export const setup = (): Begun => begin(config);

/** The head of the data: what came since the poll before. */
const head: StartPlace = ({ window: { to } }, _iteration, { client }) => {
  const from = new Date(Date.parse(to) - (config.headSeconds ?? 300) * 1000).toISOString();
  return firstPage(config, client, from, to, config.pageSize);
};

export default function (begun: Begun): void {
  arrive(config, due, begun, head);
}
