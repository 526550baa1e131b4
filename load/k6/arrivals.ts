/**
 * One step of open arrivals at a rate, without thresholds, at precomputed moments: `capacity` runs it at every rate.
 */
import { anywhere, arrive, drawnArrivals, drawnTurn, dueMoments } from './lib/arrivals.ts';
import { begin, SETUP, type Begun } from './lib/begin.ts';
import { readConfig, thresholdsOf } from './lib/config.ts';

const config = readConfig({ requestsPerSecond: 20, seconds: 12 });
const due = dueMoments(config);

export const options = {
  ...SETUP,
  scenarios: { arrivals: drawnArrivals(config, due) },
  thresholds: thresholdsOf(config, {}),
};

export const setup = (): Begun => begin(config, 500);

const start = anywhere(config);

export default function (begun: Begun): void {
  const turn = drawnTurn(config, begun, due);
  if (turn) arrive(config, begun, start, turn);
}
