/** `--init` writes a target file that the kit reads; `--check-target` reports what contradicts the answers. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { fakeClock, UNREACHABLE } from '../../engine/testing.ts';
import type { KitOptions } from '../../engine/run/state/context.ts';
import { loadTarget, resolveTarget, type Target } from '../../engine/target/target.ts';
import type { ServerOptions } from '../../reference-server/run/start.ts';
import { startInProcess, test } from '../../reference-server/testing.ts';
import { answering } from '../../reference-server/run/alter.ts';
import { brokenAnswer } from '../../reference-server/faults/rest-errors.ts';
import { checkTarget, init } from './check-target.ts';
import { targetFor } from '../proof/faults.ts';

const ORIGIN = 'http://127.0.0.1:1';
const MOVED = 'http://10.0.0.7:8080';
const HOLDS_MORE = /^the pages hold \d+ screenings, the dataset \d+: export it again/;

type Row = readonly [change: (target: Target) => Partial<Target>, words?: RegExp, server?: ServerOptions];

/** By what the target file has that the server has not. */
const CONTRADICTIONS: Readonly<Record<string, Row>> = {
  'nothing if everything agrees': [() => ({})],
  'an issuer that no token names': [
    () => ({ issuer: 'http://other' }),
    /^iss of the token is http:\/\/127\.0\.0\.1:1, not issuer/,
  ],
  'next under another address': [
    () => ({ baseUrl: ORIGIN, authUrl: ORIGIN, issuer: MOVED }),
    /^next is http:\/\/10\.0\.0\.7:8080\/v1\/\S+, not under baseUrl/,
    { publicUrl: MOVED },
  ],
  'a dataset that holds more': [
    ({ dataset = [] }) => ({ dataset: [...dataset, { ...dataset[0]!, id: 99n }] }),
    HOLDS_MORE,
  ],
  'a dataset that holds more, in the last second of the year 9999': [
    ({ dataset = [] }) => ({
      window: undefined,
      dataset: [...dataset, { ...dataset[0]!, id: 99n, testTime: '9999-12-31T23:59:59.5Z' }],
    }),
    HOLDS_MORE,
  ],
  'nothing if only the first page comes': [
    () => ({}),
    undefined,
    answering(brokenAnswer, (_, query) => query.has('from_id')),
  ],
  'ids of two tenants': [
    ({ dataset = [] }) => ({ secondDataset: dataset.slice(0, 5) }),
    /^5 ids occur in both dataset and secondDataset/,
  ],
};

for (const [what, [change, words, options]] of Object.entries(CONTRADICTIONS))
  test(`reports ${what}`, async ({ small }) => {
    await using server = await startInProcess(small, options);
    const target = await targetFor(server, 'full');
    const { lines, usable } = await checkTarget({ ...target, ...change(target) }, server);
    expect(usable, lines.join('\n')).toBe(true);
    const told = lines.filter((line) => line.startsWith('but ')).map((line) => line.slice(9));
    expect(told).toEqual(words ? [expect.stringMatching(words)] : []);
  });

/** The line of a class. */
const stateOf = async (name: string, target: Target, options: Partial<KitOptions>): Promise<string> =>
  (await checkTarget(target, options)).lines.find((line) => line.startsWith(`${name} `))!.slice(14);

test('says that a tenant without screenings exercises nothing', async ({ small }) => {
  await using server = await startInProcess(small);
  const { dataset, secondDataset, window, ...target } = await targetFor(server, 'full');
  const empty: Target = { ...target, clients: { primary: target.clients.scratch! } };
  expect(await stateOf('core', empty, server)).toBe(
    'no screenings found: load some for clients.primary, or name a window that holds some',
  );
  expect(await stateOf('core', target, server)).toBe('would be exercised');
});

test('says what would supply a class, a flag included', async ({ small }) => {
  await using server = await startInProcess(small);
  const target = await targetFor(server, 'bare');
  expect(await stateOf('isolation', target, server)).toMatch(/^supply clients\.secondTenant: /);
  expect(await stateOf('expiry', target, server)).toMatch(
    /^supply expiredToken, keepToken .* --wait-for-expiry/,
  );
  expect(await stateOf('expiry', target, { ...server, waitForExpiry: true })).toBe('would be exercised');
});

test('says what it asked a target for that does not answer', async () => {
  const target = await resolveTarget(UNREACHABLE);
  const { lines, usable } = await checkTarget(target, { clock: fakeClock(Date.now) });
  expect(lines[0]).toMatch(/^token {4}none: no connection to http/);
  expect(usable).toBe(false);
});

test('--init writes a valid example, and overwrites no file', async () => {
  const directory = test.info().outputPath();
  const file = join(directory, 'target.json');
  const said = await init(file, 'target.json');
  expect(said).toContain('npm run certify -- --target target.json --check-target');
  expect(await readFile(file, 'utf8')).toContain('// ');
  const env = { SCREENINGS_CLIENT_SECRET: 'a', SCREENINGS_SECOND_SECRET: 'b' };
  const target = await loadTarget(file, env);
  expect(target.clients.secondTenant?.clientSecret).toBe('b');
  expect(target.variables).toMatchObject({ 'clients.primary.clientSecret': 'SCREENINGS_CLIENT_SECRET' });
  await expect(init(file, 'target.json')).rejects.toThrow('already exists');
});
