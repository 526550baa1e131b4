#!/usr/bin/env node
/** `npm run keys [-- --directory DIR]`: makes a key pair for certificates: private.jwk (mode 0600) and public.jwk. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { calledFrom } from '../engine/package.ts';
import { command, parseOwnFlags } from '../engine/command-line.ts';
import { makeKeys } from './report/certificate.ts';
import { makeFolder } from '../engine/files.ts';

const at = calledFrom('keys');

const { directory } = parseOwnFlags<{ directory: string }>(
  command(
    'keys',
    'Makes a key pair: private.jwk signs certificates and stays secret, public.jwk verifies them.',
  ).option('--directory <dir>', 'folder of the keys', '.'),
);

const keys = await makeKeys();
try {
  makeFolder(at(directory));
  for (const kind of ['private', 'public'] as const) {
    const path = join(at(directory), `${kind}.jwk`);
    // An existing key may have signed certificates, so it is not overwritten.
    const mode = kind === 'private' ? 0o600 : 0o644;
    await writeFile(path, `${JSON.stringify(keys[kind], null, 2)}\n`, { mode, flag: 'wx' });
    console.log(path);
  }
} catch (error) {
  const { code, path, message } = error as NodeJS.ErrnoException;
  console.error(`keys: ${code === 'EEXIST' ? `${path} already exists and was not changed` : message}`);
  process.exitCode = 2;
}
