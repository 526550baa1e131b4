/** `--init` writes a target file that the kit reads. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@playwright/test';
import { loadTarget } from '../../engine/target/target.ts';
import { init } from './init.ts';

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
