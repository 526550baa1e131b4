/** `--fault NAME` and `--list-faults`: faults and variants by name. */
import { noSuch } from '../../engine/target/usage.ts';
import { THEMES } from '../faults/all.ts';
import type { Behaviour, Fault } from '../faults/fault.ts';
import { ALONE, GROUPS } from '../variants/all.ts';
import { LIVE } from '../variants/live.ts';
import type { Variant } from '../variants/variant.ts';

const LISTS: readonly (readonly [heading: string, all: readonly (Fault | Variant)[]])[] = [
  ...Object.entries(THEMES).map(([theme, faults]) => [`faults: ${theme}`, faults] as const),
  ...Object.entries({ ...GROUPS, 'of tenants that change': LIVE }).map(
    ([group, variants]) => [`allowed variants ${group}`, variants] as const,
  ),
  ['allowed variants that take long to certify', ALONE],
];

/** Throws a UsageError that suggests the nearest name. */
export function faultByName(name: string): Behaviour {
  const all = LISTS.flatMap(([, behaviours]) => behaviours);
  const found = all.find((behaviour) => behaviour.name === name);
  if (found) return found;
  const known = all.map((behaviour) => behaviour.name);
  throw noSuch('--fault', 'fault', name, known, '--list-faults');
}

export const namesOf = (id?: string) =>
  LISTS.map(([heading, all]) => ({
    heading,
    names: all
      .filter((behaviour) => id === undefined || ('trips' in behaviour && id in behaviour.trips))
      .map(({ name }) => name),
  })).filter(({ names }) => names.length > 0);
