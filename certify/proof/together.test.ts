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
  'a traversal ends after three pages of 1000',
  'one of two deployed versions adds a member',
  'pageSize defaults to 99',
  'a window in the future is 404',
  'times of two digits are refused',
  'pageSize is not validated after a cursor',
  'a next expires after sixty further pages',
  'the tenant * is the tenant of the token',
  'aud is the client_id',
  'a mint revokes earlier tokens',
  'the client_id is the HMAC key',
  'an empty grant_type is client_credentials',
  'PUT and PATCH are 204 without effect',
  'pages set the token as a cookie',
  'some events lack testTime, without a window',
  'Retry-After is negative',
];

/** A typical first version: spellings, dialects, near misses, slow effects, an outage, events. */
const FIRST_VERSION = [
  'the HMAC key is "password"',
  'drops characters outside of base64url from signatures',
  'ignores text after the token',
  'accepts jwt in the query',
  'a token of a tenant that is not onboarded opens every path',
  'accepts a path tenant that contains the tenant of the token',
  'a trailing slash bypasses authentication',
  'TRACE repeats the request',
  'from must be the first parameter',
  'a 400 in br without Content-Encoding',
  'the body of a chunked token request is not read',
  'a NUL ends a time',
  'a NUL ends an integer',
  'truncates a negative pageSize to 32 bits',
  'ignores the sign of a from_id',
  'from[] is read as from',
  'to[] is read as to',
  'fractions before 1970 are compared inversely',
  'rounds from to microseconds where there is a from_id',
  'grant_type[] is read as grant_type',
  'looks a client_id up with LIKE',
  'accepts a secret with a prefix',
  'a NUL ends a grant_type',
  'grants all scopes for *',
  'a next expires after sixty further pages',
  'a 401 of the REST API lacks WWW-Authenticate',
  'after an outage an earlier next is refused',
  'some events have another result',
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
