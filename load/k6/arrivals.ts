/**
 * One step of open arrivals at a rate, without thresholds, at precomputed moments: `capacity` runs it at every rate.
 */
import { anywhere, arrive, dueMoments, precomputedArrivals, waitForMoment } from './lib/arrivals.ts';
import { readConfig } from './lib/config.ts';
import { runSetup, SETUP, type SetupData } from './lib/setup.ts';

const config = readConfig();
const due = dueMoments(config);

export const options = {
  ...SETUP,
  scenarios: { arrivals: precomputedArrivals(config, due) },
};

export const setup = (): SetupData => runSetup(config, 500);

const start = anywhere(config);

export default function (data: SetupData): void {
  const request = waitForMoment(config, data, due);
  if (request) arrive(config, data, start, request);
}
