/** Global setup for Playwright: starts the reference server unless SCREENINGS_TARGET names a target file. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadTarget } from '../engine/target/target.ts';
import { startReference } from './reference.ts';

/** @returns the teardown */
export default async function setUp(): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'screenings-run-'));
  process.env['SEED'] ??= String(Math.floor(Math.random() * 2 ** 31));
  const given = process.env['SCREENINGS_TARGET'];
  const reference = given ? undefined : await startReference(directory);
  if (reference) {
    const file = join(directory, 'target.json');
    await writeFile(file, JSON.stringify(reference.target()), { mode: 0o600 });
    process.env['SCREENINGS_TARGET'] = file;
  }
  const { name, baseUrl } = await loadTarget(process.env['SCREENINGS_TARGET']!);
  console.log(`target: ${name} at ${baseUrl}, SEED=${process.env['SEED']}`);
  return async () => {
    await reference?.stop();
    await rm(directory, { recursive: true, force: true });
  };
}
