/** `npm run build`: compiles the kit to JavaScript in `dist/` for the package (`npm pack`). */
import { execFile } from 'node:child_process';
import { cp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');
const DIST = join(ROOT, 'dist');

await rm(DIST, { recursive: true, force: true });
const compile = ['--no-install', 'tsc', '-p', join(import.meta.dirname, 'tsconfig.json')];
await promisify(execFile)('npx', compile, { cwd: ROOT }).catch((error: { stdout?: string }) => {
  throw new Error(`the compiler: ${error.stdout}`);
});
// Files other than TypeScript that the kit reads or runs.
for (const folder of ['certify/command', 'certify/render', 'reference-server'])
  for (const name of await readdir(join(ROOT, folder), { recursive: true }))
    if (/\.(css|js|json|pem|sql|yaml)$/.test(name))
      await cp(join(ROOT, folder, name), join(DIST, folder, name));
