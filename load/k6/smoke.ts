/** A little of everything, every page judged: k6 run -e BASE_URL=… -e AUTH_URL=… -e CLIENT_ID=… load/k6/smoke.ts */
import { SharedArray } from 'k6/data';
import type { Options } from 'k6/options';
import { anywhere, arrive, openArrivals } from './lib/arrivals.ts';
import { begin, type Begun } from './lib/begin.ts';
import { readConfig, thresholdsOf } from './lib/config.ts';
import { dueMoments } from './lib/random.ts';
import { TREND_STATS } from './lib/summary.ts';
export { handleSummary } from './lib/summary.ts';

const config = readConfig({ requestsPerSecond: 5, seconds: 30, judgeEvery: 1 });
const due = new SharedArray('due moments', () => dueMoments(config));

export const options: Options = {
  scenarios: { smoke: openArrivals(config, due) },
  summaryTrendStats: TREND_STATS,
  thresholds: thresholdsOf(config, {
    page_ms: [`p(99)<${config.p99Ms}`],
    findings: ['count<1'],
    errors: ['count<1'],
    unauthenticated: ['count<1'],
  }),
};

export const setup = (): Begun => begin(config);

export default function (begun: Begun): void {
  arrive(config, due, begun, anywhere(config));
}
