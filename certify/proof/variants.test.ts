/** Allowed variants are conformant, with everything that a target file can say and with next to nothing. */
import { expect } from '@playwright/test';
import { test } from '../../reference-server/faults/testing.ts';
import { byTurns } from '../../fixtures/own-tests/tiers.ts';
import { GROUPS } from '../../reference-server/variants/all.ts';
import { certifyVariant, blamesOf } from './variants.ts';
import { combined } from '../../reference-server/variants/variant.ts';

/** Few cases a law: the whole table of single variants tries more. */
const RUNS = 4;

test.describe.configure({ mode: 'parallel' });

const MODES = [
  ...Object.entries(GROUPS).flatMap(([name, variants]) => [
    { name, variants, mode: 'full' as const },
    { name, variants, mode: 'bare' as const },
  ]),
];

for (const { name, variants, mode } of MODES) {
  test(
    `a server ${name}, ${mode}`,
    byTurns(`${name}, ${mode}`),
    async ({ small: { database, provisioned } }) => {
      const report = await certifyVariant(database, provisioned, combined(variants), mode, { runs: RUNS });
      expect(blamesOf(report)).toEqual([]);
    },
  );
}
