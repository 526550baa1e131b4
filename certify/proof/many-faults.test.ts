/** Faults hide each other rarely: a server with many faults fails the requirements of nearly all of them, as separate causes. */
import { byTurns, FULL } from '../../fixtures/own-tests/tiers.ts';
import { expect } from '@playwright/test';
import { faultNamed } from '../../reference-server/faults/all.ts';
import { tripped, type Fault } from '../../reference-server/faults/fault.ts';
import { test, type World } from '../../reference-server/testing.ts';
import { combined } from '../../reference-server/variants/variant.ts';
import type { Report } from '../report/report.ts';
import { certifyServer, missedOf } from './faults.ts';

/** A typical first version: spellings, dialects, near misses, slow effects, an outage, events; innermost first. */
const FIRST_VERSION = [
  'the HMAC key is "password"',
  'verifies the first three parts of a token with more',
  'ignores text after the token',
  'accepts jwt in the query',
  'a token of a tenant that is not onboarded opens every path',
  'accepts a path tenant that contains the tenant of the token',
  'a trailing slash bypasses authentication',
  'TRACE repeats the request',
  'from must be the first parameter',
  'a 400 in br without Content-Encoding',
  'a content type with a charset is no form',
  'a NUL ends a time',
  'a NUL ends an integer',
  'truncates a negative pageSize to 32 bits',
  'ignores the sign of a from_id',
  'a pageSize of Infinity is the largest one',
  'ignores a from_id of null',
  'fractions before 1970 are compared inversely',
  'rounds from to microseconds where there is a from_id',
  'client_secret[$ne] is an operator of the database',
  'looks a client_id up with LIKE',
  'accepts a secret with a prefix',
  'a NUL ends a grant_type',
  'grants all scopes for *',
  'a next expires after sixty further pages',
  'a 401 of the REST API lacks WWW-Authenticate',
  'after an outage an earlier next is refused',
  'some events have another result',
];

/** Another one, with other members of the same classes. */
const SECOND_VERSION = [
  'an unknown kid selects an empty HMAC key',
  'accepts the scheme JWT',
  'a session cookie that a page set replaces the token',
  'If-None-Match is answered with 304 before authentication',
  'a path in capitals or percent-encoded letters bypasses authentication',
  'header names are case-sensitive',
  'a form is not percent-decoded',
  'accepts a client_id with a suffix',
  'a blank client_secret is not compared',
  'reads the dot of a scope as any letter',
  '30 February is 2 March',
  'reads digits of every script',
  'reduces a pageSize beyond 1000 to 1000',
  'one more than the greatest from_id is the smallest',
  'a next is bound to its token',
  'during an outage pages of more than ten lack some items',
  'some events are missing',
];

async function certified(world: World, faults: readonly Fault[]): Promise<Report> {
  const { server, target } = combined(faults);
  return await certifyServer(world, server, 'full', {
    ...{ runs: 2, shrink: { requests: 40 }, pollingScale: 0.1 },
    change: target,
  });
}

for (const names of [FIRST_VERSION, SECOND_VERSION])
  test(`finds nine of ten of the ${names.length} faults of a version in one run`, FULL, async ({ small }) => {
    test.setTimeout(200_000);
    const faults = names.map(faultNamed);
    const report = await certified(small, faults);
    const missed = faults.flatMap((fault) => missedOf(fault, report).map((what) => `${fault.name}: ${what}`));
    expect(missed.length, missed.join(', ')).toBeLessThanOrEqual(faults.length / 10);
  });

/** Faults that are typical of a first version; each breaks another requirement. The order is that in which they wrap the server. */
const OF_A_FRAMEWORK = [
  'reads a pageSize up to its first letter',
  'a malformed time is invalid_request',
  'reduces a pageSize beyond 1000 to 1000',
  'a 401 has another code',
  'ids beyond 2^53 are strings',
  'next names another default page size',
  'a tenant that is not onboarded gets an empty page',
  'expires_in is a string',
  'aud is missing',
  'token responses lack Cache-Control',
  'reads the last of two different values',
  'a wrong secret is 400',
  'ignores grant_type',
  'grants screenings.read for every scope',
  'next is null on the last page',
  'the Link header is missing',
];

for (const [row, count] of [OF_A_FRAMEWORK.length, 8].entries()) {
  const title = `reports each of ${count} mistakes of a first version as a cause of its own`;
  test(title, byTurns('causes', 6, row), async ({ small }) => {
    test.setTimeout(200_000);
    const faults = OF_A_FRAMEWORK.slice(-count).map(faultNamed);
    const roots = (await certified(small, faults)).diagnosis.map(({ root }) => root);
    expect(faults.flatMap(tripped).filter((id) => !roots.includes(id))).toEqual([]);
  });
}
