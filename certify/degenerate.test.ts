/** What is no implementation is never conformant: quickly said, in few requests, and never the kit's own mistake. */
import { expect } from '@playwright/test';
import { resolveTarget, type Target } from '../fixtures/target/target.ts';
import { alwaysEmpty, DEGENERATE, dyingAfter } from '../reference-server/degenerate/servers.ts';
import { targetFor } from './proof/faults.ts';
import { test } from '../reference-server/faults/testing.ts';
import { startServer } from '../reference-server/start.ts';
import { certify } from './certify.ts';
import type { Report } from './report.ts';

/** None of them is worth the requests of a whole run. */
const MOST_REQUESTS = 2_400;

test.describe.configure({ mode: 'parallel' });

const certified = (target: Target): Promise<Report> => certify(target, { seed: 1, runs: 4, timeoutMs: 500 });

function neverGreen(report: Report): void {
  expect(report.verdict).not.toBe('conformant');
  expect(report.requirements.filter(({ status }) => status === 'error')).toEqual([]);
  expect(report.requests).toBeLessThan(MOST_REQUESTS);
  expect(report.summary).not.toBe('');
}

const credentials = { clientId: 'primary-client', clientSecret: 'a secret of nobody' };

for (const { name, start } of DEGENERATE) {
  test(name, async () => {
    await using server = await start();
    const { origin } = server;
    const target = await resolveTarget({
      baseUrl: origin,
      authUrl: origin,
      clients: { primary: credentials },
    });
    neverGreen(await certified(target));
  });
}

for (const mode of ['full', 'bare'] as const) {
  test(`always an empty page, ${mode}`, async ({ small: { database, provisioned } }) => {
    await using server = await startServer(database, provisioned, alwaysEmpty);
    const report = await certified(await targetFor(server, mode));
    neverGreen(report);
    // Without a dataset nobody can tell an empty tenant from a server that hides everything.
    expect(report.verdict).toBe(mode === 'full' ? 'non-conformant' : 'incomplete');
  });

  for (const how of ['resets', 'hangs', '503'] as const) {
    for (const requests of [1, 40, 200]) {
      test(`${how} behind ${requests} requests, ${mode}`, async ({ small: { database, provisioned } }) => {
        await using server = await startServer(database, provisioned, dyingAfter(requests, how));
        neverGreen(await certified(await targetFor(server, mode)));
      });
    }
  }
}
