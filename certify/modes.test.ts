/** The modes that do not certify: `--check-target`, the catalogue, and a new target file. */
import { expect } from '@playwright/test';
import { type Target, loadTarget } from '../engine/target/target.ts';
import type { ServerOptions } from '../reference-server/run/start.ts';
import { startInProcess, test } from '../reference-server/testing.ts';
import { checkTarget } from './check-target.ts';
import { explain, list } from './explain.ts';
import { init } from './init.ts';
import { targetFor } from './proof/faults.ts';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { REQUIREMENTS } from '../engine/requirements.ts';
import { PROPERTIES } from '../properties/all.ts';
import { SPECS } from '../specs/all.ts';
import { MISTAKES } from './diagnosis/mistakes/all.ts';
import { FAULTS } from '../reference-server/faults/all.ts';
import { tripped } from '../reference-server/faults/fault.ts';

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
    'ids of two tenants',
    (target) => ({ ...target, secondDataset: target.dataset!.slice(0, 5) }),
    {},
    /^5 ids occur in both dataset and secondDataset/,
  ],
] as const satisfies readonly (readonly [
  string,
  (target: Target) => Target,
  ServerOptions,
  RegExp | undefined,
])[]) {
  test(`reports ${what}`, async ({ small }) => {
    await using server = await startInProcess(small, options);
    const target = change(await targetFor(server, 'full'));
    const { lines, usable } = await checkTarget(target, server);
    expect(usable, lines.join('\n')).toBe(true);
    const told = lines.filter((line) => line.startsWith('but ')).map((line) => line.slice(9));
    expect(told).toEqual(words ? [expect.stringMatching(words)] : []);
  });
}

test('no two tests have the same title', () => {
  const titles = [...SPECS, ...PROPERTIES].map(({ title }) => title);
  expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual([]);
});

test('--list prints one line for every requirement', () => {
  const lines = list().split('\n');
  for (const { id, level, title } of REQUIREMENTS) {
    expect(
      lines.filter(
        (line) => line.trim().startsWith(`${id} `) && line.includes(level) && line.endsWith(title),
      ),
    ).toHaveLength(1);
  }
});

test('--explain lists the tests of every requirement, within the given width', () => {
  for (const { id, title } of REQUIREMENTS) {
    const text = explain(id, 60);
    expect(text.replace(/\s+/g, ' ')).toContain(title);
    expect(text).toMatch(/^ {2}tried by {2}\S/m);
    for (const line of text.split('\n'))
      expect(line.length <= 60 || !line.trim().includes(' '), line).toBe(true);
  }
  expect(() => explain('4.2-windw')).toThrow('did you mean "4.2-window"?');
});

test('--explain describes every known kind of mistake', () => {
  for (const { name, why, fix } of MISTAKES) {
    const text = explain(name, 80).replace(/\s+/g, ' ');
    for (const part of [name, why, fix]) expect(text).toContain(part.replace(/\s+/g, ' '));
  }
});

test('--init without a terminal writes a valid example, and overwrites no file', async () => {
  const directory = test.info().outputPath();
  const file = join(directory, 'target.json');
  const terminal = { input: new PassThrough(), output: new PassThrough() } as never;
  const said = await init(file, 'target.json', terminal);
  expect(said).toContain('npm run certify -- --target target.json --check-target');
  expect(await readFile(file, 'utf8')).toContain('// ');
  const env = { SCREENINGS_CLIENT_SECRET: 'a', SCREENINGS_SECOND_SECRET: 'b' };
  const target = await loadTarget(file, env);
  expect(target.clients.secondTenant?.clientSecret).toBe('b');
  expect(target.variables).toMatchObject({ 'clients.primary.clientSecret': 'SCREENINGS_CLIENT_SECRET' });
  await expect(init(file, 'target.json', terminal)).rejects.toThrow('already exists');
});

const ids = new Set<string>(REQUIREMENTS.map(({ id }) => id));
const faulted = new Set<string>(FAULTS.flatMap(tripped));
const tested = new Set<string>(SPECS.flatMap((check) => check.ids));

test('every requirement has a test', () => {
  expect([...ids].filter((id) => !tested.has(id))).toEqual([]);
});

test('every requirement has a fault', () => {
  expect([...ids].filter((id) => !faulted.has(id))).toEqual([]);
});

test('every test and fault names requirements that exist', () => {
  const named = FAULTS.flatMap((fault) => [...tripped(fault), ...(fault.mayTrip ?? [])]);
  expect([...tested, ...named].filter((id) => !ids.has(id))).toEqual([]);
});

test('every fault trips a requirement and has a unique name', () => {
  expect(FAULTS.filter((fault) => tripped(fault).length === 0)).toEqual([]);
  const names = FAULTS.map(({ name }) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});
