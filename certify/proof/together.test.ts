/** Mistakes hide one another less than they might: a server with one of many kinds at once fails at all of them. */
import { FULL } from '../../fixtures/own-tests/tiers.ts';
import { expect } from '@playwright/test';
import { THEMES } from '../../reference-server/faults/all.ts';
import { tripped, type Fault } from '../../reference-server/faults/fault.ts';
import { test } from '../../reference-server/faults/testing.ts';
import { combined } from '../../reference-server/variants/variant.ts';
import { requirement, REQUIREMENTS } from '../../engine/requirements.ts';
import { certifyFault } from './faults.ts';

/** The first innermost: what changes tokens stands before what looks at them. */
const NAMES = [
  'walks end after three pages of 1000',
  'two versions in parallel, one of which adds a member',
  'the default page size is 99',
  'a window that lies in the future is 404',
  'times of two digits are refused',
  'pageSize is not looked at after a cursor',
  'a next is gone after sixty further requests',
  'a star stands for the own tenant',
  'aud is the client_id',
  'a later mint ends the tokens before it',
  'tokens signed with the client_id are believed',
  'an empty grant_type is the only grant there is',
  'PUT and PATCH are 204, and do nothing',
  'the token comes back in a cookie',
  'one event of ten has no testTime, and no window is named',
  'Retry-After is a negative wait',
];

const named = (name: string): Fault => {
  const found = Object.values(THEMES)
    .flat()
    .find((fault) => fault.name === name);
  if (!found) throw new Error(`no fault is called ${name}`);
  return found;
};

test('one mistake of each kind at once', FULL, async ({ large }) => {
  const faults = NAMES.map(named);
  const { server, target } = combined(faults);
  const all: Fault = { name: 'all of them', trips: {}, bare: false, server: server!, target: target! };
  const report = await certifyFault(
    large,
    all,
    'full',
    REQUIREMENTS.map(({ id }) => id),
  );
  const status = new Map<string, string>(report.requirements.map(({ id, status }) => [id, status]));
  const missed = faults.flatMap((fault) =>
    tripped(fault)
      .filter((id) => status.get(id) !== (requirement(id).level === 'MUST' ? 'fail' : 'warn'))
      .map((id) => `${fault.name}: ${id} is ${status.get(id)}`),
  );
  expect(missed).toEqual([]);
});
