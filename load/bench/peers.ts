/** The servers that pages are measured against, and pgbench. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startChild } from '../run/child.ts';

/** The port of a server that pages are measured against. */
export async function startContender(...args: [kind: string, databaseUrl: string, tenantId: string]) {
  const child = await startChild(new URL('contender.ts', import.meta.url), args);
  return { port: Number(child.line), [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
}

/** A place in the tenant's screenings: `at` is in seconds, decimal; `offset` is how many lie before it. */
export interface Place {
  readonly at: string;
  readonly id: string;
  readonly offset: number;
}

/** Pages a second of the query that the server runs, by 8 clients with prepared statements; undefined without pgbench. */
export async function pgbench(
  databaseUrl: string,
  query: string,
  tenantId: string,
  places: readonly Place[],
  { size, seconds }: { size: number; seconds: number },
): Promise<number | undefined> {
  const directory = await mkdtemp(join(tmpdir(), 'screenings-pgbench-'));
  try {
    const files: string[] = [];
    for (const [n, { at, id }] of places.entries()) {
      // Parameters as the server's: $1 tenant, $2 from, $3 to, $4 how many, $5 after which.
      const key = [`'${tenantId}'::uuid`, `${at}::numeric`, '1e12::numeric'];
      const values = [...key, String(size + 1), `${id}::bigint`];
      const file = join(directory, `${n}.sql`);
      await writeFile(
        file,
        `${query.replace(/\$(\d)/g, (_, place: string) => values[Number(place) - 1]!)};\n`,
      );
      files.push('-f', file);
    }
    // libpq reads a plus sign as one, and whole seconds only.
    const url = databaseUrl.replaceAll('+', '%20');
    const flags = `-n -M prepared -c 8 -j 2 -T ${Math.ceil(seconds)}`.split(' ');
    const args = [...flags, ...files, url];
    const { stdout } = await promisify(execFile)('pgbench', args);
    return Number(/tps = ([\d.]+)/.exec(stdout)?.[1]);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    // Its own words alone: the command holds the database's password.
    throw new Error(`pgbench: ${(error as { stderr?: string }).stderr?.trim()}`);
  } finally {
    await rm(directory, { recursive: true });
  }
}
