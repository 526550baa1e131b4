/** The modes that do not certify: the catalogue, and a new target file. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, test } from '@playwright/test';
import { loadTarget } from '../engine/target/target.ts';
import { REQUIREMENTS } from '../engine/requirements.ts';
import { explain, list } from './catalogue.ts';
import { PROPERTIES } from '../properties/all.ts';
import { SPECS } from '../specs/all.ts';
import { MISTAKES } from './diagnosis/mistakes/all.ts';
import { init } from './init.ts';

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
  for (const { name, what, fix } of MISTAKES) {
    const text = explain(name, 80).replace(/\s+/g, ' ');
    for (const part of [name, what, fix]) expect(text).toContain(part.replace(/\s+/g, ' '));
  }
});

test('--init without a terminal writes a valid example, and overwrites no file', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'init-'));
  const file = join(directory, 'target.json');
  const terminal = { input: new PassThrough(), output: new PassThrough() } as never;
  try {
    const said = await init(file, 'target.json', terminal);
    expect(said).toContain('npm run certify -- --target target.json --check-target');
    expect(await readFile(file, 'utf8')).toContain('// ');
    const env = { SCREENINGS_CLIENT_SECRET: 'a', SCREENINGS_SECOND_SECRET: 'b' };
    const target = await loadTarget(file, env);
    expect(target.clients.secondTenant?.clientSecret).toBe('b');
    expect(target.variables).toMatchObject({ 'clients.primary.clientSecret': 'SCREENINGS_CLIENT_SECRET' });
    await expect(init(file, 'target.json', terminal)).rejects.toThrow('already exists');
  } finally {
    await rm(directory, { recursive: true });
  }
});
