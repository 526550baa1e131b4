/**
 * Faults hide each other rarely: a server with one fault of many kinds fails the requirement of each. express.test.ts
 * shows the same for the mistakes of a first version.
 */
import { FULL } from '../../fixtures/own-tests/tiers.ts';
import { expect } from '@playwright/test';
import { FAULTS } from '../../reference-server/faults/all.ts';
import { tripped, type Fault } from '../../reference-server/faults/fault.ts';
import { test } from '../../reference-server/testing.ts';
import { combined } from '../../reference-server/variants/variant.ts';
import { requirement, REQUIREMENTS } from '../../engine/requirements.ts';
import { certifyFault } from './faults.ts';

/** In order of wrapping, innermost first: faults that change tokens come before those that read them. */
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

test('finds every fault in a server with one of each kind', FULL, async ({ large }) => {
  const faults = NAMES.map((name) => FAULTS.find((fault) => fault.name === name)!);
  const { server, target } = combined(faults);
  const all: Fault = { name: 'all of them', trips: {}, bare: false, server: server!, target: target! };
  const ids = REQUIREMENTS.map(({ id }) => id);
  const { requirements } = await certifyFault(large, all, 'full', ids);
  const missed = faults.flatMap((fault) =>
    tripped(fault).flatMap((id) => {
      const { status } = requirements.find((result) => result.id === id)!;
      return status === (requirement(id).level === 'MUST' ? 'fail' : 'warn')
        ? []
        : [`${fault.name}: ${id} is ${status}`];
    }),
  );
  expect(missed).toEqual([]);
});
