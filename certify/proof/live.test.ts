/** A target whose data changes during the run is conformant, with a complete and with a minimal target file. */
import { expect } from '@playwright/test';
import { test } from '../../reference-server/faults/testing.ts';
import { byTurns, FULL } from '../../fixtures/own-tests/tiers.ts';
import { SEED } from '../../fixtures/own-tests/seeded.ts';
import { startServer } from '../../reference-server/run/start.ts';
import { LIVE } from '../../reference-server/variants/live.ts';
import { certify } from '../certify.ts';
import { targetFor } from './faults.ts';
import { certifyVariant, obstaclesOf } from './variants.ts';

test.describe.configure({ mode: 'parallel' });

for (const variant of LIVE) {
  for (const mode of ['full', 'bare'] as const) {
    const title = `${variant.name}, ${mode}`;
    test(title, byTurns(title, 8), async ({ small: { database, provisioned, store } }) => {
      test.slow();
      // Filling a tenant needs the database.
      const stack = mode === 'full' ? { fills: true } : { store };
      const report = await certifyVariant(database, provisioned, variant, mode, { seed: SEED, ...stack });
      expect(obstaclesOf(report)).toEqual([]);
    });
  }
}

test(
  'two runs with the same clients at the same time',
  FULL,
  async ({ small: { database, provisioned } }) => {
    await using server = await startServer(database, provisioned);
    const target = {
      ...(await targetFor(server, 'full')),
      ingest: (lines: readonly string[]) => server.ingest(lines),
    };
    const reports = await Promise.all([SEED, SEED + 1].map((seed) => certify({ ...target }, { seed })));
    expect(reports.map(obstaclesOf)).toEqual([[], []]);
  },
);
