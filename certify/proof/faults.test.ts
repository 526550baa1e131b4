/**
 * Every fault is failed at the right requirement, with the right words: with everything that a target file can say, and
 * with an address and credentials alone. That nothing else is blamed is looked at for every second fault that
 * shows in both, in one of the modes: four seeds in a row look at every fault in both.
 */
import { createHash } from 'node:crypto';
import { expect } from '@playwright/test';
import { THEMES } from '../../reference-server/faults/all.ts';
import { tripped, type Fault } from '../../reference-server/faults/fault.ts';
import { SEED } from '../../fixtures/own-tests/seeded.ts';
import type { RequirementId } from '../../engine/requirements.ts';
import { certifyFault, selectionOf, verdictErrors, type Mode } from './faults.ts';
import { test } from '../../reference-server/faults/testing.ts';

test.describe.configure({ mode: 'parallel' });

/** What is looked at in each mode: its own requirements, and where it is its turn their neighbours too. */
function looksAt(fault: Fault): (readonly [Mode, readonly RequirementId[]])[] {
  const own = tripped(fault);
  const near = selectionOf(fault);
  const turn = (createHash('sha256').update(fault.name).digest()[0]! + SEED) % 4;
  const looks = (mode: Mode, at: number) =>
    [mode, fault.needsNeighbours || turn === at ? near : own] as const;
  return fault.bare ? [looks('full', 0), looks('bare', 2)] : [['full', near]];
}

for (const [theme, faults] of Object.entries(THEMES)) {
  test.describe(theme, () => {
    for (const fault of faults) {
      test(fault.name, async ({ small, large }) => {
        const { database, provisioned } = fault.large ? large : small;
        for (const [mode, only] of looksAt(fault)) {
          const report = await certifyFault(database, provisioned, fault, mode, only);
          expect(verdictErrors(fault, report), mode).toEqual([]);
        }
      });
    }
  });
}
