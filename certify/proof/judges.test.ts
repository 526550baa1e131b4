/**
 * Mutation test of the judges: without any one of them, a fault passes or fails with other words. A judge that is not
 * missed lacks a fault or is unnecessary. The laws have their own faults in law-faults.ts.
 */
import { expect } from '@playwright/test';
import { REQUIREMENTS, type RequirementId } from '../../engine/requirements.ts';
import { FULL } from '../../fixtures/own-tests/tiers.ts';
import { FAULTS } from '../../reference-server/faults/all.ts';
import { tripped, type Fault } from '../../reference-server/faults/fault.ts';
import { test } from '../../reference-server/faults/testing.ts';
import { certifyFault, modesOf, verdictErrors, type Mode } from './faults.ts';
import { instrument, isProvedElsewhere, type Site } from './judges.ts';

test.describe.configure({ mode: 'parallel' });

/** Requirements with judges that no fault needs: each lacks a fault or is unnecessary. */
const OPEN: readonly RequirementId[] = [
  '4.2-from-inclusive',
  '4.2-to-exclusive',
  '4.2-offsets',
  '4.2-fractions',
  '4.2-fractions-finer',
  '4.2-r1-zero-width',
  '4.2-r2-inverted',
  '4.2-r3-one-tenant',
  '4.2-r4-order',
  '4.2-r5-exactly-once',
  '5-missing',
  '5-forged',
  '5-valid-token',
  '5-expired',
  '5-forbidden',
  '5-forbidden-unknown',
  '7.2-server-error',
];

interface Sighting {
  readonly fault: Fault;
  readonly mode: Mode;
  /** The number of judges that found a mismatch. */
  readonly witnesses: number;
}

for (const { id } of REQUIREMENTS) {
  const faults = FAULTS.filter((fault) => tripped(fault).includes(id));
  test(`${id}: every judge is needed to find some fault`, FULL, async ({ small, large }) => {
    test.setTimeout(600_000);
    using judges = instrument();
    const errorsOf = async (fault: Fault, mode: Mode, untilProved: boolean): Promise<string[]> => {
      const world = fault.large ? large : small;
      const report = await certifyFault(world, fault, mode, [id], 'in process', untilProved);
      return verdictErrors(fault, report).filter((error) => error.startsWith(`${id} `));
    };
    const open = new Set<Site>();
    const noticed = new Set<Site>();
    const sightings = new Map<Site, Sighting[]>();
    const own = (sites: ReadonlySet<Site>): Site[] => [...sites].filter((site) => site.startsWith(`${id} `));
    const record = async (fault: Fault, mode: Mode): Promise<void> => {
      judges.clear();
      await errorsOf(fault, mode, false);
      for (const site of own(judges.judged))
        if (!isProvedElsewhere(site) && !noticed.has(site)) open.add(site);
      const seen = own(judges.mismatched);
      for (const site of seen)
        sightings.set(site, [...(sightings.get(site) ?? []), { fault, mode, witnesses: seen.length }]);
    };
    const isNoticed = async (site: Site): Promise<boolean> => {
      const seen = (sightings.get(site) ?? []).sort((a, b) => a.witnesses - b.witnesses);
      if (seen[0]?.witnesses === 1) return true;
      judges.disabled = site;
      try {
        for (const { fault, mode } of seen) if ((await errorsOf(fault, mode, true)).length > 0) return true;
        return false;
      } finally {
        judges.disabled = undefined;
      }
    };
    for (const mode of ['full', 'bare'] as const) {
      for (const fault of faults) if (modesOf(fault).includes(mode)) await record(fault, mode);
      for (const site of [...open])
        if (await isNoticed(site)) {
          open.delete(site);
          noticed.add(site);
        }
      if (open.size === 0) break;
      sightings.clear();
    }
    console.log(
      `${id}: ${noticed.size + open.size} judges, ${noticed.size} deletions noticed, ${open.size} not noticed`,
    );
    if (OPEN.includes(id)) return;
    expect([...open]).toEqual([]);
  });
}
