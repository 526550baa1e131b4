/** `npm run load -- write-scripts DIR`: the k6 scripts and what they import, as files that run with k6 alone. */
import { copyFile, mkdir, readdir, readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const LOAD = fileURLToPath(new URL('..', import.meta.url));
/** The kit's own steps. */
const LEFT_OUT = /\.(test|d)\.ts$|^(arrivals|tenants)\./;

/** Every file of them once, by its place below load/. */
async function closure(file: string, known: Set<string>): Promise<Set<string>> {
  if (known.has(file)) return known;
  known.add(file);
  const text = await readFile(join(LOAD, file), 'utf8');
  for (const [, path] of text.matchAll(/ from '(\.[^']+)'/g))
    await closure(relative(LOAD, join(LOAD, dirname(file), path!)), known);
  return known;
}

/** Returns the scripts that were written. */
export async function writeScripts(directory: string): Promise<string[]> {
  const scripts = (await readdir(join(LOAD, 'k6'))).filter(
    (name) => /\.ts$/.test(name) && !LEFT_OUT.test(name),
  );
  const files = new Set<string>();
  for (const script of scripts) await closure(join('k6', script), files);
  for (const file of files) {
    const target = join(directory, file);
    await mkdir(dirname(target), { recursive: true });
    await copyFile(join(LOAD, file), target);
  }
  return scripts.map((name) => join(directory, 'k6', name));
}
