/** Faults hide each other rarely: a server with one fault of many kinds fails the requirement of each. */
import { FULL } from '../../fixtures/own-tests/tiers.ts';
import { expect } from '@playwright/test';
import { FAULTS } from '../../reference-server/faults/all.ts';
import { tripped, type Fault } from '../../reference-server/faults/fault.ts';
import { test, type World } from '../../reference-server/testing.ts';
import { combined } from '../../reference-server/variants/variant.ts';
import { requirement, REQUIREMENTS } from '../../engine/requirements.ts';
import type { Report } from '../report.ts';
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

/** A typical first version: spellings, dialects, near misses, slow effects, an outage, events. */
const FIRST_VERSION = [
  'tokens signed with the key "password" are believed',
  'letters that are not of base64url are left out of the signature',
  'text after the token is left out',
  'a token in the query called jwt is accepted',
  'a token of a tenant that is not onboarded opens every path',
  'the UUID is searched for in the path',
  'a slash after the path asks for no token',
  'TRACE repeats the request',
  'from has to be the first parameter',
  'a refusal in br has lost its Content-Encoding',
  'a token request in chunks is read as an empty one',
  'times end at a NUL',
  'integers end at a NUL',
  'a pageSize of 64 bits is cut to 32 with its sign',
  'the sign of a from_id is lost',
  'from[] is as good as from',
  'to[] is as good as to',
  'fractions before 1970 go backwards',
  'from is rounded to the microsecond where there is a from_id',
  'grant_type[] is as good as grant_type',
  'a client_id is looked up with LIKE',
  'a client_secret may stand anywhere in what is sent',
  'a grant_type ends at a NUL',
  'a scope of * is all that there are',
  'a next is gone after sixty further requests',
  'a 401 of the REST API without WWW-Authenticate',
  'after an outage a next of before is refused',
  'one event of ten with another result',
];

const named = (name: string): Fault => {
  const found = FAULTS.find((fault) => fault.name === name);
  if (!found) throw new Error(`no fault is called ${name}`);
  return found;
};

/** Certifies a server with all these faults in one run. */
async function certifyTogether(world: World, faults: readonly Fault[]): Promise<Report> {
  const { server, target } = combined(faults);
  const all: Fault = { name: 'all of them', trips: {}, bare: false, server: server!, target: target! };
  const ids = REQUIREMENTS.map(({ id }) => id);
  return certifyFault(world, all, 'full', ids);
}

/** The requirements of a fault that the report does not find broken. */
const missedOf =
  ({ requirements }: Report) =>
  (fault: Fault): string[] =>
    tripped(fault).flatMap((id) => {
      const { status } = requirements.find((result) => result.id === id)!;
      const expected = requirement(id).level === 'MUST' ? 'fail' : 'warn';
      return status === expected ? [] : [`${fault.name}: ${id} is ${status}`];
    });

test('finds every fault in a server with one of each kind', FULL, async ({ large }) => {
  const faults = NAMES.map(named);
  const report = await certifyTogether(large, faults);
  expect(faults.flatMap(missedOf(report))).toEqual([]);
});

test(
  'finds nine of ten faults of a first version with twenty-eight mistakes in one run',
  FULL,
  async ({ small }) => {
    test.setTimeout(200_000);
    const faults = FIRST_VERSION.map(named);
    const report = await certifyTogether(small, faults);
    const missed = faults.filter((fault) => missedOf(report)(fault).length > 0).map(({ name }) => name);
    expect(missed.length, missed.join(', ')).toBeLessThanOrEqual(faults.length / 10);
  },
);
