/** The concurrency limit tells a slow network from a target that serves requests one by one. */
import { setImmediate } from 'node:timers/promises';
import { expect, test } from '@playwright/test';
import { ConcurrencyLimit } from './concurrency.ts';

/** Sends 300 requests, and returns the most in flight of the last 50; `durationMs` depends on the number in flight. */
async function mostInFlight(durationMs: (inFlight: number) => number): Promise<number> {
  const limit = new ConcurrencyLimit(12, 10_000);
  const seen: number[] = [];
  let inFlight = 0;
  const send = async (): Promise<void> => {
    const mine = ++inFlight;
    await setImmediate();
    limit.served(durationMs(mine));
    inFlight--;
    seen.push(mine);
  };
  await limit.run(send, 'shared');
  await Promise.all(Array.from({ length: 300 }, () => limit.run(send, 'shared')));
  return Math.max(...seen.slice(-50));
}

test('sends as many requests at a time over a slow network as over a fast one', async () => {
  for (const latencyMs of [1, 800, 3_000]) expect(await mostInFlight(() => latencyMs)).toBe(12);
});

test('keeps the requests to a serial target far below the timeout', async () => {
  const seconds = await Promise.all(
    [100, 500, 1_000, 4_000].map(
      async (ms) => ((await mostInFlight((inFlight) => ms * inFlight)) * ms) / 1000,
    ),
  );
  expect(Math.max(...seconds)).toBeLessThanOrEqual(5);
  expect(await mostInFlight((inFlight) => 500 * inFlight)).toBeGreaterThan(3);
});
