/** `npm run load -- write-scripts DIR`: copies the k6 scripts and their imports, to run with k6 alone. */
import { copyFile, mkdir, readdir, readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const LOAD = fileURLToPath(new URL('..', import.meta.url));
/** Tests and scripts that only the kit runs. */
const EXCLUDED = /\.(test|d)\.ts$|^(arrivals|tenants)\./;

/** Returns the file and all its imports, as paths relative to load/. */
async function importsOf(file: string, known: Set<string>): Promise<Set<string>> {
  if (known.has(file)) return known;
  known.add(file);
  const text = await readFile(join(LOAD, file), 'utf8');
  for (const [, path] of text.matchAll(/ from '(\.[^']+)'/g))
    await importsOf(relative(LOAD, join(LOAD, dirname(file), path!)), known);
  return known;
}

/** Returns the paths of the scripts. */
export async function writeScripts(directory: string): Promise<string[]> {
  const scripts = (await readdir(join(LOAD, 'k6'))).filter(
    (name) => /\.ts$/.test(name) && !EXCLUDED.test(name),
  );
  const files = new Set<string>();
  for (const script of scripts) await importsOf(join('k6', script), files);
  for (const file of files) {
    const target = join(directory, file);
    await mkdir(dirname(target), { recursive: true });
    await copyFile(join(LOAD, file), target);
  }
  return scripts.map((name) => join(directory, 'k6', name));
}
