/** `npm run build`: compiles the kit to JavaScript in `dist/` for the package (`npm pack`). */
import { execFile } from 'node:child_process';
import { cp, readdir, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');
const DIST = join(ROOT, 'dist');

await rm(DIST, { recursive: true, force: true });
const manifest = createRequire(import.meta.url).resolve('typescript/package.json');
const { bin } = JSON.parse(await readFile(manifest, 'utf8')) as { bin: { tsc: string } };
const compiler = join(dirname(manifest), bin.tsc);
await promisify(execFile)(process.execPath, [compiler, '-p', join(import.meta.dirname, 'tsconfig.json')], {
  cwd: ROOT,
}).catch((error: { stdout?: string }) => {
  throw new Error(`the compiler: ${error.stdout}`);
});
// Files other than TypeScript that the kit reads or runs.
for (const folder of ['certify/command', 'certify/render', 'reference-server'])
  for (const name of await readdir(join(ROOT, folder), { recursive: true }))
    if (/\.(css|js|json|pem|sql|yaml)$/.test(name))
      await cp(join(ROOT, folder, name), join(DIST, folder, name));
