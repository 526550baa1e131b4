/** Operations for this machine alone: their socket opens only for the user who started the server, without a secret. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../../engine/files.ts';
import { quote } from '../../engine/run/evidence/evidence.ts';
import type { Outage } from '../parts.ts';

export interface Operations extends AsyncDisposable {
  /** The shell command for an operation; it exits when the operation is complete. */
  command(name: 'ingest' | 'outage-begin' | 'outage-end'): string;
}

/** Listens until disposed. `ingest` reads dataset lines. */
export async function openOperations(
  ingest: (lines: IncomingMessage) => Promise<void>,
  outage: Outage,
): Promise<Operations> {
  const handlers: Readonly<Record<string, (request: IncomingMessage) => Promise<void>>> = {
    '/ingest': ingest,
    '/outage-begin': () => outage.begin(),
    '/outage-end': () => outage.end(),
  };
  const directory = await temporaryFolder('screenings-server');
  const socket = join(directory.path, 'operations');
  const server = createServer((request, response) => {
    const work = handlers[request.url ?? ''];
    const done = work ? work(request) : Promise.reject(new Error(`unknown operation ${request.url}`));
    done.then(
      () => response.end('done\n'),
      (error: Error) => response.writeHead(500).end(`${error.message}\n`),
    );
  });
  await once(server.listen(socket), 'listening');
  return {
    command: (name) =>
      `${[process.execPath, CLIENT, socket, `/${name}`].map(quote).join(' ')}${name === 'ingest' ? '' : ' </dev/null'}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await directory[Symbol.asyncDispose]();
    },
  };
}

const CLIENT = fileURLToPath(new URL('operate.js', import.meta.url));
