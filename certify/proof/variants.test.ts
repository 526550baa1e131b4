/**
 * All variants are conformant with a complete and a minimal target file: at one seed with the complete one, at the next
 * with the minimal one.
 */
import { expect } from '@playwright/test';
import { test } from '../../reference-server/testing.ts';
import { byTurns, FULL, SEED, turnOf } from '../../fixtures/own-tests/tiers.ts';
import { ALONE, GROUPS } from '../../reference-server/variants/all.ts';
import { certifyVariant, LIMIT_MS, obstaclesOf, targetFor } from './faults.ts';
import { combined } from '../../reference-server/variants/variant.ts';
import { startServer } from '../../reference-server/run/start.ts';
import { LIVE } from '../../reference-server/variants/live.ts';
import { certify } from '../certify.ts';

/** In the quick tier each runs at one seed of this number: an odd one, so that the modes take turns there too. */
const TURNS = 21;
/** Cases of each law; the laws themselves are the same in both tiers. */
const runsOf = (tier: { tag?: string }): number => (tier === FULL ? 4 : 2);
/** Leaves more than a second for replicas, which lag by 0.3 s in these variants. */
const LIVE_POLLING = 0.25;
/** Pages of large items take long on a busy machine. */
const TIMEOUT_MS = 60_000;

test.describe.configure({ mode: 'parallel', timeout: LIMIT_MS });

const modeOf = (row: number): 'full' | 'bare' => ((SEED + row) % 2 === 0 ? 'full' : 'bare');

/** A quarter runs over sockets and PostgreSQL, another one for each seed; the others in process. */
const REAL = 4;

// The longest ones first, so that short ones fill what they leave.
for (const [row, variant] of [...ALONE, ...LIVE].entries()) {
  const tier = ALONE.includes(variant) ? FULL : byTurns('alone', TURNS, row);
  const mode = modeOf(row);
  test(`${variant.name}, ${mode}`, tier, async ({ small }) => {
    const pollingScale = tier === FULL ? 1 : LIVE_POLLING;
    // Filling a tenant needs the database.
    const stack = mode === 'full' ? 'real' : 'in process';
    const runs = tier === FULL && LIVE.includes(variant) ? undefined : runsOf(tier);
    const options = { seed: SEED, runs, pollingScale, stack, timeoutMs: TIMEOUT_MS } as const;
    const report = await certifyVariant(small, variant, mode === 'full' ? 'filled' : mode, options);
    expect(obstaclesOf(report)).toEqual([]);
  });
}

for (const [row, [name, variants]] of Object.entries(GROUPS).entries()) {
  const mode = modeOf(row);
  const title = `a server ${name}, ${mode}`;
  const tier = byTurns('groups', TURNS, row);
  test(title, tier, async ({ small }) => {
    const stack = turnOf(title, REAL) === 0 ? 'real' : 'in process';
    const options = { runs: runsOf(tier), seed: SEED, stack } as const;
    expect(obstaclesOf(await certifyVariant(small, combined(variants), mode, options))).toEqual([]);
  });
}

test(
  'two runs with the same clients at the same time',
  FULL,
  async ({ small: { database, provisioned } }) => {
    await using server = await startServer(database, provisioned);
    const target = await targetFor(server, 'filled');
    const reports = await Promise.all([SEED, SEED + 1].map((seed) => certify({ ...target }, { seed })));
    expect(reports.map(obstaclesOf)).toEqual([[], []]);
  },
);
