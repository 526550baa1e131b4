/** `--fault NAME` and `--list-faults`: faults and variants by name. */
import { commandLine } from '../../engine/package.ts';
import { REQUIREMENTS } from '../../engine/requirements.ts';
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
  throw noSuch('--fault', 'fault', name, known, '--list-faults prints all');
}

/** All names, or those of faults that break a requirement. Throws a UsageError for an unknown one. */
export function namesOf(id?: string) {
  const ids: readonly string[] = REQUIREMENTS.map((one) => one.id);
  if (id !== undefined && !ids.includes(id))
    throw noSuch('--list-faults', 'requirement', id, ids, `${commandLine('certify', '--list')} prints all`);
  return LISTS.map(([heading, all]) => ({
    heading,
    names: all
      .filter((behaviour) => id === undefined || ('trips' in behaviour && id in behaviour.trips))
      .map(({ name }) => name),
  })).filter(({ names }) => names.length > 0);
}
