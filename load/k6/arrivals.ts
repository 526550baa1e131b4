/** One step of open arrivals at a rate, without thresholds: what `capacity` searches with. */
import { SharedArray } from 'k6/data';
import type { Options } from 'k6/options';
import { anywhere, arrive, openArrivals } from './lib/arrivals.ts';
import { begin, type Begun } from './lib/begin.ts';
import { readConfig, thresholdsOf } from './lib/config.ts';
import { dueMoments } from './lib/random.ts';
import { TREND_STATS } from './lib/summary.ts';
export { handleSummary } from './lib/summary.ts';

const config = readConfig({ requestsPerSecond: 20, seconds: 12, judgeEvery: 10 });
const due = new SharedArray('due moments', () => dueMoments(config));

export const options: Options = {
  scenarios: { arrivals: openArrivals(config, due) },
  summaryTrendStats: TREND_STATS,
  thresholds: thresholdsOf(config, {}),
  noCookiesReset: true,
};

export const setup = (): Begun => begin(config);

export default function (begun: Begun): void {
  arrive(config, due, begun, anywhere(config));
}
