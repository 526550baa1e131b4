#!/usr/bin/env node
/** `npm run keys [-- --directory DIR]`: makes a key pair for certificates: private.jwk (mode 0600) and public.jwk. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { command, parseCommand, runCommand } from '../engine/command-line.ts';
import { UsageError } from '../engine/errors.ts';
import { makeFolder } from '../engine/files.ts';
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
  const keys = await makeKeys();
  try {
    makeFolder(at(flags.directory));
    for (const kind of ['private', 'public'] as const) {
      const path = join(at(flags.directory), `${kind}.jwk`);
      // An existing key may have signed certificates, so it is not overwritten.
      const mode = kind === 'private' ? 0o600 : 0o644;
      await writeFile(path, `${JSON.stringify(keys[kind], null, 2)}\n`, { mode, flag: 'wx' });
      console.log(path);
    }
    return 0;
  } catch (error) {
    const { code, path, message } = error as NodeJS.ErrnoException;
    throw new UsageError(code === 'EEXIST' ? `${path} already exists and was not changed` : message);
  }
});
