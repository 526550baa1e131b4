#!/usr/bin/env node
/** `npm run keys [-- --directory DIR]`: makes a key pair for certificates: private.jwk (mode 0600) and public.jwk. */
import { join } from 'node:path';
import { command, parseCommand, runCommand } from '../engine/command-line.ts';
import { prepareDirectory, writeNew } from '../engine/files.ts';
import { calledFrom } from '../engine/package.ts';
import { makeKeys } from './report/certificate.ts';

const at = calledFrom('keys');

const parser = command(
  'keys',
  'Makes a key pair: private.jwk signs certificates and stays secret, public.jwk verifies them.',
).option('--directory <dir>', 'directory of the keys', '.');

await runCommand('keys', async () => {
  const flags = parseCommand<{ directory: string }>(parser, process.argv.slice(2));
  if (!flags) return 0;
  const directory = at(flags.directory);
  await prepareDirectory(directory, '--directory');
  const keys = await makeKeys();
  for (const kind of ['private', 'public'] as const) {
    const path = join(directory, `${kind}.jwk`);
    // An existing key may have signed certificates.
    await writeNew(path, `${JSON.stringify(keys[kind], null, 2)}\n`, kind === 'private' ? 0o600 : 0o644);
    console.log(path);
  }
  return 0;
});
