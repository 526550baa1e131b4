/** What tenants do most: each request asks for the last minutes (-e HEAD=300) and finds few screenings or none. */
import { SharedArray } from 'k6/data';
import type { Options } from 'k6/options';
import { arrive, atHead, openArrivals } from './lib/arrivals.ts';
import { begin, type Begun } from './lib/begin.ts';
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

export default function (begun: Begun): void {
  arrive(config, due, begun, atHead(config));
}
