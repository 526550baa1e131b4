/** Even load for a long time, such as -e DURATION=3600: drift, leaks, freezes and expired tokens show in it. */
import { SharedArray } from 'k6/data';
import type { Options } from 'k6/options';
import { anywhere, arrive, atHead, openArrivals, type StartPlace } from './lib/arrivals.ts';
import { begin, type Begun } from './lib/begin.ts';
import { readConfig, thresholdsOf } from './lib/config.ts';
import { dueMoments } from './lib/random.ts';
import { TREND_STATS } from './lib/summary.ts';
export { handleSummary } from './lib/summary.ts';

const config = readConfig({ requestsPerSecond: 20, seconds: 120, judgeEvery: 10 });
const due = new SharedArray('due moments', () => dueMoments(config));

export const options: Options = {
  scenarios: { soak: openArrivals(config, due) },
  summaryTrendStats: TREND_STATS,
  thresholds: thresholdsOf(config, {
    page_ms: [`p(99)<${config.p99Ms}`],
    findings: ['count<1'],
    errors: ['count<1'],
    // A token that expires while it is used is the client's own mistake, or the clock's.
    unauthenticated: ['count<1'],
  }),
};

export const setup = (): Begun => begin(config);

/** Where outages are tried, one walk in four is a poll of what is new. */
const somewhere: StartPlace = (begun, iteration, session) =>
  (config.outages && iteration % 4 === 0 ? atHead(config) : anywhere(config))(begun, iteration, session);

export default function (begun: Begun): void {
  arrive(config, due, begun, somewhere);
}
