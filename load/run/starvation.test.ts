/** Runs on a busy machine must not be interpreted. */
import { expect, test } from '@playwright/test';
import type { Arrival } from './k6-run.ts';
import { starved } from './starvation.ts';

const SLO = { p99Ms: 5000, errorRate: 0.001 };
const arrival = (dueMs: number, status: number, latencyMs: number): Arrival => ({
  kind: 'arrival',
  ...{ dueMs, status, latencyMs, serviceMs: latencyMs, schedulerLagMs: 5, client: 0 },
});
const samples = Array.from({ length: 26 }, (_, index) =>
  index < 12 ? arrival(index * 115, 200, 3000) : arrival(index * 115, 0, index < 14 ? 10_000 : 13_000),
);
const counts = { pages: 14, dropped_iterations: 12 };
const summary = { seconds: 19, counts, histogram: {}, thresholds: {} };
const atRest = (busy: number) => ({ waiting: 0, stolen: 0, throttled: 0, busy });

test('reports a run with dropped requests as void if the machine was busy before it', () => {
  expect(starved({ summary, oneIn: 1 }, samples, 5, SLO, atRest(1))).toMatchObject({ remedy: 'passing' });
  expect(starved({ summary, oneIn: 1 }, samples, 5, SLO, atRest(0.1))).toBeUndefined();
});
