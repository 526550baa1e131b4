/**
 * A wrong member of the target file leaves the run incomplete and is named in the summary; no requirement fails. Nor does
 * one because of data that arrives, disappears or shows late while a run reads it.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { compareInstants, instant, shift } from '../../engine/data/instant.ts';
import { parseScreening, type Screening } from '../../engine/data/dataset.ts';
import { fakeClock } from '../../engine/testing.ts';
import { resolveTarget } from '../../engine/target/target.ts';
import { byTurns } from '../../fixtures/own-tests/tiers.ts';
import { generateScreenings } from '../../fixtures/dataset/generator.ts';
import { payloadOf } from '../../reference-server/faults/bearer.ts';
import { screening, withAdded } from '../../reference-server/faults/rows.ts';
import { SMALL_COUNT, startInProcess, test, type World } from '../../reference-server/testing.ts';
import { answering, both, html, nextUrls, verifying } from '../../reference-server/run/alter.ts';
import { TENANTS } from '../../reference-server/run/provisioning.ts';
import type { ServerOptions } from '../../reference-server/run/start.ts';
import type { ReferenceTarget } from '../../reference-server/run/target.ts';
import { arrivingEvery, arrivingFarAway, LIVE } from '../../reference-server/variants/live.ts';
import { certify } from '../certify.ts';
import { certifyServer, expectIncomplete, failedOf, saidOf } from './faults.ts';
import { type RequirementId, selectIds } from '../../engine/requirements.ts';
import { SPECS } from '../../specs/all.ts';
import type { Report } from '../report/report.ts';

type Supply = (whole: ReferenceTarget) => object;

const client =
  (role: keyof ReferenceTarget['clients'], change: object): Supply =>
  ({ clients }) => ({ clients: { primary: clients.primary, [role]: { ...clients[role], ...change } } });

const NOBODY = '00000000-0000-4000-8000-000000000000';
const ROTATED = { clientSecret: 'the one of last month' };
const NO_TOKEN = /does not work: no token for clients\.(secondTenant|notOnboarded|scratch)/;

/** The expired token with other claims or another header; nothing verifies its signature here. */
const token =
  (claims: object, header: object = {}): Supply =>
  ({ expiredToken }) => {
    const [head, payload, signature] = expiredToken.split('.');
    const changed = [
      [head!, header],
      [payload!, claims],
    ].map(([part, change]) => {
      const json = JSON.parse(Buffer.from(part as string, 'base64url').toString()) as object;
      return Buffer.from(JSON.stringify({ ...json, ...(change as object) })).toString('base64url');
    });
    return { expiredToken: [...changed, signature].join('.') };
  };

const command =
  (start: string, stop: string): Supply =>
  () => ({ fault: { start, stop } });

const exchanged: Supply = ({ clients: { primary, secondTenant } }) => ({
  clients: {
    primary: { ...primary, tenantId: secondTenant!.tenantId },
    secondTenant: { ...secondTenant, tenantId: primary.tenantId },
  },
});

const SUPPLIES: Readonly<Record<string, readonly [ids: string, supply: Supply, words: RegExp]>> = {
  'a second tenant that is not onboarded': [
    '4.2-r3-one-tenant',
    ({ clients: { primary, notOnboarded } }) => ({ clients: { primary, secondTenant: notOnboarded } }),
    /the tenant of clients\.secondTenant is not onboarded/,
  ],
  'a baseUrl with a prefix too many': [
    '4.2-success,5-valid-token,7.1',
    ({ baseUrl }) => ({ baseUrl: `${baseUrl}/api` }),
    /was answered 404 .*check baseUrl/,
  ],
  'a primary tenant that is not onboarded': [
    '4.2-success,5-valid-token,7.1',
    ({ clients: { notOnboarded } }) => ({ clients: { primary: notOnboarded } }),
    /was answered 404 .*that the tenant is onboarded/,
  ],
  'a wrong secret': ['2.1', client('primary', ROTATED), /check clientId and clientSecret/],
  'a rotated secret of the second tenant': ['2.1,5-one-tenant', client('secondTenant', ROTATED), NO_TOKEN],
  'a class that is required and not supplied': ['2.1,6', () => ({ require: ['events'] }), /supply events/],
  'a rotated secret of the tenant to fill': [
    '4.2-r5-exactly-once',
    (whole) => ({ ...client('scratch', ROTATED)(whole), ingest: 'true' }),
    NO_TOKEN,
  ],
  'a command to store that fails': [
    '4.2-r5-exactly-once',
    ({ clients: { primary, scratch } }) => ({ clients: { primary, scratch }, ingest: 'exit 7' }),
    /ingest: `exit 7` failed: exit status 7/,
  ],
  'an expired token without exp': ['5-expired', token({ exp: undefined }), /has no exp/],
  'a token that has not expired': ['5-expired', token({ exp: 4_000_000_000 }), /has not expired yet/],
  'of another issuer': ['5-expired', token({ iss: 'https://elsewhere.example' }), /another iss/],
  'of another tenant': ['5-expired', token({ tenant_id: 'b' }), /another tenant_id/],
  'signed in another way': ['5-expired', token({}, { alg: 'HS512' }), /alg HS512/],
  'copied by half': [
    '5-expired',
    ({ expiredToken }) => ({ expiredToken: expiredToken.slice(0, -20) }),
    /is cut off/,
  ],
  'no token at all': ['5-expired', () => ({ expiredToken: 'hello' }), /is no JWT/],
  'a place for tokens that is a folder': ['5-expired', () => ({ keepToken: '.' }), /keepToken: can't write/],
  'an empty capture': ['6', () => ({ events: 'empty.ndjson' }), /events file is empty/],
  'a capture that was stopped': ['6', () => ({ events: 'stopped.ndjson' }), /last line .* is cut off/],
  'a capture of something else': ['6', () => ({ events: 'words.txt' }), /no line of the events file is JSON/],
  'an empty dataset': ['4.2-window', () => ({ dataset: 'empty.ndjson' }), /dataset is empty/],
  'a dataset of another tenant': [
    '4.2-window',
    () => ({ dataset: 'foreign.ndjson' }),
    /of tenant 00000000-.* belongs to tenant/,
  ],
  'a command to store that stores nothing': [
    '4.2-r5-exactly-once',
    ({ clients: { primary, scratch } }) => ({ clients: { primary, scratch }, ingest: 'cat >/dev/null' }),
    /ingest: nothing that it stored shows within 10 s/,
  ],
  'a fault command that fails': ['7.2-server-error', command('no-such-command', 'true'), /fault\.start: /],
  'an issuer that no token names': [
    '2.2-iss',
    () => ({ issuer: 'https://elsewhere.example' }),
    /issuer is https:\/\/elsewhere\.example, but tokens name authUrl/,
  ],
  'a tenantId of no tenant': [
    '9-prefix,2.2-tenant_id',
    client('primary', { tenantId: NOBODY }),
    /clients\.primary\.tenantId is 0.* for tenant 7d0c5a52/,
  ],
  'two tenantIds in each other’s place': [
    '2.2-tenant_id,5-forbidden',
    exchanged,
    /either the target file or the target has exchanged the two; supply a dataset/,
  ],
  'two tenantIds in each other’s place, and a dataset': [
    '2.2-tenant_id,5-forbidden',
    (whole) => ({ ...exchanged(whole), dataset: whole.dataset }),
    /the target file has exchanged the two, as its dataset shows/,
  ],
  'a dataset that the tenant has grown beyond': [
    '2.3,4.2',
    () => ({ dataset: 'outdated.ndjson' }),
    /of clients\.primary has item \d+ at .*, after the last screening of its dataset, .*export dataset again/,
  ],
  'a dataset that begins after the first screenings': [
    '4.2-window',
    () => ({ dataset: 'late.ndjson' }),
    /of clients\.primary has item \d+ at .*, before the first screening of its dataset, .*or name the part in window/,
  ],
  'a window without screenings': [
    '4.2-window',
    () => ({ window: { from: '1999-01-01T00:00:00Z', to: '1999-01-02T00:00:00Z' } }),
    /window holds no screenings/,
  ],
};

let directory: string;
test.beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'screenings-supplies-'));
  await writeFile(join(directory, 'empty.ndjson'), '');
  const foreign = { id: 1, tenantId: NOBODY, testTime: '2024-06-01T00:00:00Z' };
  await writeFile(join(directory, 'foreign.ndjson'), `${JSON.stringify(foreign)}\n`);
  const data = { tenantId: TENANTS.primary, count: SMALL_COUNT, seed: 1, bigIds: true } as const;
  const all = [...generateScreenings(data)];
  const inOrder = all.sort((a, b) => compareInstants(instant(a.testTime), instant(b.testTime)));
  const write = (name: string, part: readonly Screening[]): Promise<void> =>
    writeFile(join(directory, name), part.map(({ json }) => `${json}\n`).join(''));
  await write('outdated.ndjson', inOrder.slice(0, -5));
  await write('late.ndjson', inOrder.slice(10));
  await write('completed.ndjson', inOrder.slice(100, 101));
  await writeFile(join(directory, 'stopped.ndjson'), '{"specversion":"1.0"}\n{"specversion":"1.0","i');
  await writeFile(join(directory, 'words.txt'), 'hello\nworld\n');
});
test.afterAll(() => rm(directory, { recursive: true }));

async function certified(world: World, supply: Supply, ids: string, faulty?: ServerOptions): Promise<Report> {
  await using server = await startInProcess(world, faulty);
  const whole = server.target();
  const { baseUrl, authUrl, clients } = whole;
  const supplied = { baseUrl, authUrl, clients: { primary: clients.primary }, ...supply(whole) };
  const target = await resolveTarget(supplied, { directory });
  const only = selectIds(ids.split(','));
  const { dispatcher } = server;
  return await certify(target, { seed: 1, runs: 1, only, clock: fakeClock(Date.now), dispatcher });
}

for (const [what, [ids, supply, words]] of Object.entries(SUPPLIES))
  test(what, byTurns(what), async ({ small }) =>
    expectIncomplete(await certified(small, supply, ids), words),
  );

const notFound = answering(
  () => html(404, 'Not Found'),
  ({ path }) => path.startsWith('/api/'),
);

test('a baseUrl at which a web server answers 404 in HTML', async ({ small }) => {
  const supply: Supply = ({ baseUrl }) => ({ baseUrl: `${baseUrl}/api` });
  const report = await certified(small, supply, '4.2-success,5,7.2', notFound);
  expectIncomplete(report, /was answered 404 <h1>.*; check baseUrl/);
});

test('a next that leads to the 404 in HTML of a web server', async ({ small }) => {
  const server = both(
    notFound,
    nextUrls(({ href }) => href.replace('/v1/', '/api/v1/')),
  );
  const report = await certified(small, () => ({}), '4.2-r6-next-target,7.2-body', server);
  expect(failedOf(report)).toEqual([expect.stringMatching(/^4\.2-r6-next-target: /)]);
});

for (const [seconds, verdict] of [
  [240, 'incomplete'],
  [400, 'non-conformant'],
] as const)
  test(`an expired token that is accepted ${seconds} s after its exp: ${verdict}`, async ({ small }) => {
    const exp = Math.round(Date.now() / 1000) - seconds;
    const lenient = verifying(
      () => async (text, nowSeconds, real) =>
        payloadOf(text)?.exp === exp ? payloadOf(text) : real(text, nowSeconds),
    );
    const report = await certified(small, token({ exp }), '5-expired', lenient);
    expect(report.verdict).toBe(verdict);
    if (verdict === 'incomplete') expect(report.summary).toMatch(/leeway of a verifier may explain/);
  });

// -- screenings that arrive after the dataset was exported, or late after ingest ---------------------

const ARRIVED_ID = 8_000_000_000_000n;

test('screenings of now that each request finds are no changes by writing methods', async ({ small }) => {
  const report = await certifyServer(small, arrivingEvery(1), 'full', {
    ...{ only: '1-read-only', runs: 1 },
    change: ({ window: _, ...target }) => target,
  });
  expect(failedOf(report)).toEqual([]);
});

// At some of these intervals, one arrives whenever methods are sent, and none in two seconds between.
test('screenings that arrive every few seconds are no changes by writing methods', async ({ small }) => {
  for (const everyMs of [3_000, 3_500, 4_000, 4_500]) {
    const clock = fakeClock(Date.now);
    const options = { only: '1-read-only', runs: 1, clock };
    const report = await certifyServer(small, arrivingFarAway(everyMs, 150, clock), 'bare', options);
    expect(failedOf(report), `every ${everyMs} ms`).toEqual([]);
  }
});

const IMPORT = 'an import into a walked window is no next without an end';

test(IMPORT, byTurns(IMPORT), async ({ small }) => {
  const [first, count] = [instant('2024-06-15T00:00:00Z'), 30_000];
  const server = withAdded(() => {
    let isStored = false;
    return ({ tenantId, from, pageSize }) => {
      // The first walk over several pages.
      isStored ||= pageSize === 1;
      if (!isStored || tenantId !== TENANTS.primary) return [];
      const start = Math.max(0, Number(from.seconds - first.seconds));
      return Array.from({ length: Math.max(0, Math.min(pageSize + 2, count - start)) }, (_, index) => {
        const n = BigInt(start + index);
        return screening(tenantId, ARRIVED_ID + n, shift(first, n, 0));
      });
    };
  });
  const checks = SPECS.filter(({ title }) => title.startsWith('ties are returned once and in order'));
  const report = await certifyServer(small, server, 'bare', { checks });
  expect(failedOf(report)).toEqual([]);
  expect(report.coverage.deepestWalk).toBeGreaterThan(count);
});

const DELETED_LATER = 'a screening that one of two replicas deletes later than the other is not lost';

test(DELETED_LATER, byTurns(DELETED_LATER), async ({ small }) => {
  const { server } = LIVE.find(({ name }) => name.startsWith('a retention period deletes'))!;
  const report = await certifyServer(small, server!, 'bare', {
    ...{ only: '4.2-repeatable 4.2-from-inclusive 2.3-id-stable', runs: 2, pollingScale: 0.25 },
  });
  expect(failedOf(report)).toEqual([]);
});

const LATE_MS = 20_000;

for (const [what, lateMsOf, failed, words] of [
  ['all shows late', () => LATE_MS, /^$/, /ingest: nothing that it stored shows within 10 s/],
  [
    'half shows late',
    (index: number) => (index % 2 === 1 ? LATE_MS : 0),
    /^$/,
    /ingest: what it stored shows only after (19|2\d) s/,
  ],
  ['half never shows', (index: number) => (index % 2 === 1 ? Infinity : 0), /4\.2-r5-exactly-once/, /broken/],
] as const)
  test(`a command to store of which ${what} from the second time on`, byTurns(what, 3), async ({ small }) => {
    const clock = fakeClock(Date.now);
    const stored: { readonly one: Screening; readonly fromMs: number }[] = [];
    let times = 0;
    const ingest = async (lines: readonly string[]): Promise<void> => {
      const isFirst = times++ === 0;
      for (const [index, line] of lines.entries())
        stored.push({ one: parseScreening(line), fromMs: clock.now() + (isFirst ? 0 : lateMsOf(index)) });
    };
    const server = withAdded(
      () =>
        ({ tenantId }) =>
          tenantId === TENANTS.scratch
            ? stored.flatMap(({ one, fromMs }) => (clock.now() >= fromMs ? one : []))
            : [],
    );
    const report = await certifyServer(small, server, 'full', {
      ...{ only: ['4.2-r5-exactly-once'], runs: 10, clock },
      change: (target) => ({ ...target, ingest }),
    });
    expect(failedOf(report).join()).toMatch(failed);
    expect(report.summary).toMatch(words);
  });

/** Mismatches that either the target or the target file may cause: the requirement fails and the message names the member. */
const EITHER: Readonly<Record<string, readonly [id: RequirementId, supply: Supply, words: RegExp]>> = {
  'a rotated secret of the client that may not use the grant': [
    '7.1-unauthorized_client',
    client('unauthorized', ROTATED),
    /^fail: .*got 401 "invalid_client", unless the target file is wrong: .* of clients\.unauthorized$/,
  ],
  'one client in place of the other': [
    '7.1-invalid_grant',
    ({ clients: { primary, unauthorized } }) => ({ clients: { primary, invalidGrant: unauthorized } }),
    /^fail: .*unless the target file is wrong: clients\.unauthorized and clients\.invalidGrant in place/,
  ],
  'a client that is onboarded': [
    '7.2-not_found',
    ({ clients: { primary, secondTenant } }) => ({ clients: { primary, notOnboarded: secondTenant } }),
    /^fail: .*unless the target file is wrong: the tenant of clients\.notOnboarded is onboarded$/,
  ],
  'another place of the code': [
    '7.2-unauthenticated',
    () => ({ errorCodePointer: '/error/code' }),
    /^fail: .*unless the target file is wrong: errorCodePointer, since a code is at \/code$/,
  ],
  'an unfinished screening that has been completed since': [
    '4.2-window',
    () => ({ unfinished: 'completed.ndjson' }),
    /^fail: .*as unfinished, unless the target file is wrong: unfinished, if it has been completed since$/,
  ],
};

for (const [what, [id, supply, words]] of Object.entries(EITHER))
  test(`${what}, or a fault of the target`, byTurns(what), async ({ small }) => {
    expect(saidOf(await certified(small, supply, id), id)).toMatch(words);
  });
