/** Runs pgbench, and measures throughput over raw HTTP connections. */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '../../engine/files.ts';
import { sum } from '../estimate/numbers.ts';
import { connect, type Socket } from 'node:net';

/** A cursor in the tenant's screenings: `at` in decimal seconds; `offset`: number of screenings before it. */
export interface Cursor {
  readonly at: string;
  readonly id: string;
  readonly offset: number;
}

/** Pages per second of a query in pgbench, with 8 clients; undefined if it is not installed. Throws if it fails. */
export async function pgbench(
  databaseUrl: string,
  query: string,
  tenantId: string,
  cursors: readonly Cursor[],
  size: number,
  seconds: number,
): Promise<number | undefined> {
  await using directory = await temporaryFolder('screenings-pgbench');
  try {
    const files: string[] = [];
    for (const [n, { at, id }] of cursors.entries()) {
      // The query's parameters: $1 tenant, $2 from, $3 to, $4 LIMIT, $5 id of the cursor.
      const key = [`'${tenantId}'::uuid`, `${at}::numeric`, '1e12::numeric'];
      const values = [...key, String(size + 1), `${id}::bigint`];
      const file = join(directory.path, `${n}.sql`);
      const sql = query.replace(/\$(\d)/g, (_, index: string) => values[Number(index) - 1]!);
      await writeFile(file, `${sql};\n`);
      files.push('-f', file);
    }
    // libpq does not decode + as a space.
    const url = databaseUrl.replaceAll('+', '%20');
    const flags = `-n -M prepared -c 8 -j 2 -T ${Math.ceil(seconds)}`.split(' ');
    const args = [...flags, ...files, url];
    const { stdout } = await promisify(execFile)('pgbench', args);
    return Number(/tps = ([\d.]+)/.exec(stdout)?.[1]);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    // Only stderr: the error's message contains the command with the database's password.
    throw new Error(`pgbench: ${(error as { stderr?: string }).stderr?.trim()}`);
  }
}

const CONNECTIONS = 8;

/** Returns answers per second, with one request in flight per connection. Throws an Error for other answers than 200. */
export async function measureThroughput(port: number, request: () => string, seconds: number) {
  const startedAt = performance.now();
  const until = startedAt + seconds * 1_000;
  const counts = await Promise.all(
    Array.from({ length: CONNECTIONS }, () => requestUntil(port, request, until)),
  );
  return (sum(counts) * 1_000) / (performance.now() - startedAt);
}

function requestUntil(port: number, request: () => string, until: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(port, '127.0.0.1', () => socket.write(request()));
    socket.setNoDelay(true);
    let answers = 0;
    /** Bytes of the current body still to be received. */
    let missing = 0;
    let head = '';
    socket.on('data', (chunk: Buffer) => {
      if (missing === 0) {
        head += chunk.toString('latin1');
        const end = head.indexOf('\r\n\r\n');
        if (end < 0) return;
        if (!head.startsWith('HTTP/1.1 200')) return void socket.destroy(new Error(head.slice(0, 200)));
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
        missing = length - (head.length - end - 4);
        head = '';
      } else missing -= chunk.length;
      if (missing > 0) return;
      answers += 1;
      if (performance.now() < until) socket.write(request());
      else socket.end(() => resolve(answers));
    });
    socket.on('error', reject);
  });
}

export const get = (path: string, token?: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${token ? `Authorization: Bearer ${token}\r\n` : ''}\r\n`;

export const post = (path: string, form: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${form.length}\r\n\r\n${form}`;
