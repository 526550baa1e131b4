/**
 * What only this machine may ask of a running server: to store screenings, to lose its database and to have it back.
 * The way in is a socket that belongs to the user who started the server, so no secret is needed and none can leak.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Outage } from '../store/running-postgres.ts';

export interface Operations extends AsyncDisposable {
  /** The user's own, and gone with the server. */
  readonly directory: string;
  /** The shell command for it; it ends when the thing is done. */
  command(name: 'ingest' | 'outage-begin' | 'outage-end'): string;
}

/** Listens until it is disposed of. `ingest` reads dataset lines. */
export async function openOperations(
  ingest: (lines: IncomingMessage) => Promise<void>,
  outage: Outage,
): Promise<Operations> {
  const works: Readonly<Record<string, (request: IncomingMessage) => Promise<void>>> = {
    '/ingest': ingest,
    '/outage-begin': () => outage.begin(),
    '/outage-end': () => outage.end(),
  };
  const directory = await mkdtemp(join(tmpdir(), 'screenings-server-'));
  const socket = join(directory, 'operations');
  const server = createServer((request, response) => {
    const work = works[request.url ?? ''];
    const done = work ? work(request) : Promise.reject(new Error(`there is no ${request.url}`));
    done.then(
      () => response.end('done\n'),
      (error: Error) => response.writeHead(500).end(`${error.message}\n`),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(socket, resolve);
  });
  return {
    directory,
    command: (name) =>
      `${[process.execPath, CLIENT, socket, `/${name}`].map(quoted).join(' ')}${name === 'ingest' ? '' : ' </dev/null'}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

const CLIENT = fileURLToPath(new URL('operate.js', import.meta.url));
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
