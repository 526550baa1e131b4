/** Allowed variants are conformant, with everything that a target file can say and with next to nothing: in the full tier each on the real stack. */
import { expect } from '@playwright/test';
import { test } from '../../reference-server/faults/testing.ts';
import { SEED } from '../../fixtures/own-tests/seeded.ts';
import { byTurns, FULL } from '../../fixtures/own-tests/tiers.ts';
import { GROUPS } from '../../reference-server/variants/all.ts';
import { certifyVariant, blamesOf } from './variants.ts';
import { combined } from '../../reference-server/variants/variant.ts';

/** Few cases a law: the whole table of single variants tries more. */
const RUNS = 4;

test.describe.configure({ mode: 'parallel' });

const proofs = Object.entries(GROUPS).flatMap(([name, variants]) =>
  (['full', 'bare'] as const).map((mode) => ({
    title: `a server ${name}, ${mode}`,
    ...{ variants, mode, tier: byTurns(`${name}, ${mode}`) },
  })),
);
const quick = proofs.filter(({ tier }) => tier !== FULL);
/** The quick tier proves one over sockets and PostgreSQL, all its others in process. */
const real = quick[SEED % quick.length];

for (const proof of proofs) {
  const { title, variants, mode, tier } = proof;
  test(title, tier, async ({ small: { database, provisioned, store } }) => {
    const inside = tier === FULL || proof === real ? {} : { store };
    const options = { runs: RUNS, ...inside };
    const report = await certifyVariant(database, provisioned, combined(variants), mode, options);
    expect(blamesOf(report)).toEqual([]);
  });
}
