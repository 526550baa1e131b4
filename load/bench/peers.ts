/** The servers that pages are measured against, and pgbench. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const CONTENDER = fileURLToPath(new URL('contender.ts', import.meta.url));

interface Contender extends AsyncDisposable {
  readonly port: number;
}

export async function startContender(
  kind: string,
  databaseUrl: string,
  tenantId: string,
): Promise<Contender> {
  const child = spawn(
    process.execPath,
    ['--import', import.meta.resolve('tsx'), CONTENDER, kind, databaseUrl, tenantId],
    // It ends when this process does: its standard input closes.
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  const exited = once(child, 'exit');
  const [line] = (await Promise.race([
    once(child.stdout, 'data'),
    exited.then(() => Promise.reject(new Error(`the contender "${kind}" did not start`))),
  ])) as [Buffer];
  return {
    port: Number(line.toString()),
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await exited;
    },
  };
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
      const values = [
        `'${tenantId}'::uuid`,
        `${at}::numeric`,
        '1e12::numeric',
        String(size + 1),
        `${id}::bigint`,
      ];
      const file = join(directory, `${n}.sql`);
      await writeFile(
        file,
        `${query.replace(/\$(\d)/g, (_, place: string) => values[Number(place) - 1]!)};\n`,
      );
      files.push('-f', file);
    }
    // libpq reads a plus sign as one, and whole seconds only.
    const url = databaseUrl.replaceAll('+', '%20');
    const args = [
      '-n',
      '-M',
      'prepared',
      '-c',
      '8',
      '-j',
      '2',
      '-T',
      String(Math.ceil(seconds)),
      ...files,
      url,
    ];
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
