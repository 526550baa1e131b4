/** As many times the rate (-e SPIKE_FACTOR=5) in the second third of the run: whether it loses any, and recovers. */
import { SharedArray } from 'k6/data';
import type { Options } from 'k6/options';
import { anywhere, arrive, openArrivals } from './lib/arrivals.ts';
import { begin, type Begun } from './lib/begin.ts';
import { readConfig, thresholdsOf } from './lib/config.ts';
import { dueMoments } from './lib/random.ts';
import { TREND_STATS } from './lib/summary.ts';
export { handleSummary } from './lib/summary.ts';

const config = readConfig({ requestsPerSecond: 20, seconds: 60, judgeEvery: 10, spikeFactor: 5 });
const due = new SharedArray('due moments', () => dueMoments(config));

export const options: Options = {
  scenarios: { spike: openArrivals(config, due) },
  summaryTrendStats: TREND_STATS,
  // Late pages are what a spike is for: that none fails is what k6 holds, how soon it recovers is read afterwards.
  thresholds: thresholdsOf(config, { findings: ['count<1'], errors: ['count<1'] }),
};

export const setup = (): Begun => begin(config);

export default function (begun: Begun): void {
  arrive(config, due, begun, anywhere(config));
}
