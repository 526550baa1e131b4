/**
 * Every fault is failed at the right requirement, with the right words, and nothing else is blamed without
 * reason: with everything that a target file can say, and with an address and credentials alone.
 */
import { expect } from '@playwright/test';
import { THEMES } from '../../reference-server/faults/all.ts';
import { tripped } from '../../reference-server/faults/fault.ts';
import { certifyFault, verdictErrors } from './faults.ts';
import { test } from '../../reference-server/faults/testing.ts';

test.describe.configure({ mode: 'parallel' });

for (const [theme, faults] of Object.entries(THEMES)) {
  test.describe(theme, () => {
    for (const fault of faults) {
      test(fault.name, async ({ small, large }) => {
        const { database, provisioned } = fault.large ? large : small;
        const report = await certifyFault(database, provisioned, fault, 'full');
        expect(verdictErrors(fault, report), 'full').toEqual([]);
        if (!fault.bare) return;
        // Whom else it blames was looked at with everything at hand; what keeps company takes the whole look.
        const only = fault.mayTrip ? undefined : tripped(fault);
        const seen = await certifyFault(database, provisioned, fault, 'bare', only);
        expect(verdictErrors(fault, seen), 'bare').toEqual([]);
      });
    }
  });
}
