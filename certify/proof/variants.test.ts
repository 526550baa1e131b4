/** All variants are conformant with a complete and a minimal target file; in the full tier each also on the real stack. */
import { expect } from '@playwright/test';
import { test } from '../../reference-server/faults/testing.ts';
import { SEED } from '../../fixtures/own-tests/seeded.ts';
import { byTurns, FULL } from '../../fixtures/own-tests/tiers.ts';
import { GROUPS } from '../../reference-server/variants/all.ts';
import { certifyVariant, obstaclesOf } from './variants.ts';
import { combined } from '../../reference-server/variants/variant.ts';

/** Few cases per law; variant-table.ts tries more. */
const RUNS = 4;

test.describe.configure({ mode: 'parallel' });

const proofs = Object.entries(GROUPS).flatMap(([name, variants]) =>
  (['full', 'bare'] as const).map((mode) => ({
    title: `a server ${name}, ${mode}`,
    ...{ variants, mode, tier: byTurns(`${name}, ${mode}`) },
  })),
);
const quick = proofs.filter(({ tier }) => tier !== FULL);
/** The quick tier runs one variant over sockets and PostgreSQL, and the others in process. */
const real = quick[SEED % quick.length];

for (const proof of proofs) {
  const { title, variants, mode, tier } = proof;
  test(title, tier, async ({ small: { database, provisioned, store } }) => {
    const inside = tier === FULL || proof === real ? {} : { store };
    const options = { runs: RUNS, ...inside };
    const report = await certifyVariant(database, provisioned, combined(variants), mode, options);
    expect(obstaclesOf(report)).toEqual([]);
  });
}
