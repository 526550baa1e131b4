/** `--init` writes a target file that the kit reads; `--check-target` reports what contradicts the answers. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { fakeClock, UNREACHABLE } from '../../engine/testing.ts';
import { loadTarget, resolveTarget, type Target } from '../../engine/target/target.ts';
import type { ServerOptions } from '../../reference-server/run/start.ts';
import { startInProcess, test } from '../../reference-server/testing.ts';
import { answering } from '../../reference-server/run/alter.ts';
import { brokenAnswer } from '../../reference-server/faults/rest-errors.ts';
import { checkTarget, init } from './check-target.ts';
import { targetFor } from '../proof/faults.ts';

type Row = readonly [string, (target: Target) => Target, ServerOptions, RegExp | undefined];
const moved: ServerOptions = { publicUrl: 'http://10.0.0.7:8080' };

for (const [what, change, options, words] of [
  ['no contradiction if everything agrees', (target) => target, {}, undefined],
  [
    'an issuer that no token names',
    (target) => ({ ...target, issuer: 'http://other' }),
    {},
    /^iss of the token is http:\/\/127\.0\.0\.1:1, not issuer/,
  ],
  [
    'next under another address',
    (target) => ({
      ...target,
      baseUrl: 'http://127.0.0.1:1',
      authUrl: 'http://127.0.0.1:1',
      issuer: 'http://10.0.0.7:8080',
    }),
    moved,
    /^next is http:\/\/10\.0\.0\.7:8080\/v1\/\S+, not under baseUrl/,
  ],
  [
    'a dataset that holds more',
    (target) => ({ ...target, dataset: [...target.dataset!, { ...target.dataset![0]!, id: 99n }] }),
    {},
    /^the pages hold \d+ screenings, the dataset \d+: export it again/,
  ],
  [
    'a dataset that holds more, in the last second of the year 9999',
    (target) => ({
      ...target,
      window: undefined,
      dataset: [...target.dataset!, { ...target.dataset![0]!, id: 99n, testTime: '9999-12-31T23:59:59.5Z' }],
    }),
    {},
    /^the pages hold \d+ screenings, the dataset \d+: export it again/,
  ],
  [
    'no contradiction if only the first page comes',
    (target) => target,
    answering(brokenAnswer, (_, query) => query.has('from_id')),
    undefined,
  ],
  [
    'ids of two tenants',
    (target) => ({ ...target, secondDataset: target.dataset!.slice(0, 5) }),
    {},
    /^5 ids occur in both dataset and secondDataset/,
  ],
] as const satisfies readonly Row[])
  test(`reports ${what}`, async ({ small }) => {
    await using server = await startInProcess(small, options);
    const target = change(await targetFor(server, 'full'));
    const { lines, usable } = await checkTarget(target, server);
    expect(usable, lines.join('\n')).toBe(true);
    const told = lines.filter((line) => line.startsWith('but ')).map((line) => line.slice(9));
    expect(told).toEqual(words ? [expect.stringMatching(words)] : []);
  });

test('says that a tenant without screenings exercises nothing', async ({ small }) => {
  await using server = await startInProcess(small, {});
  const { dataset, secondDataset, window, ...target } = await targetFor(server, 'full');
  const { scratch } = target.clients;
  const empty: Target = { ...target, clients: { primary: scratch! } };
  const coreOf = async (one: Target): Promise<string | undefined> =>
    (await checkTarget(one, server)).lines.find((line) => line.startsWith('core '))?.slice(14);
  expect(await coreOf(empty)).toBe(
    'no screenings found: load some for clients.primary, or name a window that holds some',
  );
  expect(await coreOf(target)).toBe('would be exercised');
});

test('says what would supply a class, a flag included', async ({ small }) => {
  await using server = await startInProcess(small, {});
  const target = await targetFor(server, 'bare');
  const stateOf = async (name: string, waitForExpiry: boolean): Promise<string | undefined> =>
    (await checkTarget(target, { ...server, waitForExpiry })).lines.find((line) => line.startsWith(name));
  expect(await stateOf('isolation', false)).toMatch(/ supply clients\.secondTenant: /);
  expect(await stateOf('expiry', false)).toMatch(/ supply expiredToken, keepToken .* --wait-for-expiry/);
  expect(await stateOf('expiry', true)).toMatch(/ would be exercised$/);
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
