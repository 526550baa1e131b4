/** Answers that are invalid, slow or endless at the level of HTTP and TCP; the token endpoint works. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer as createHttp } from 'node:http';
import { createServer as createTls } from 'node:https';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { KEY, SELF_SIGNED } from '../http/certificates.ts';
import { type Degenerate, http, isTokenPath, listenOn, page, raw, tokenAnswer } from './tools.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n';
const BODY = String(page().body);
const DRIP_MS = 200;
const MIB = 1024 * 1024;

/** Writes a text one byte at a time until the connection closes. */
async function drip(socket: Socket, text: () => string): Promise<void> {
  for (;;)
    for (const letter of text()) {
      if (socket.destroyed) return;
      socket.write(letter);
      await sleep(DRIP_MS, undefined, { ref: false });
    }
}

/** Writes `blocks` blocks as fast as the client reads them. */
function pour(socket: Socket, head: string, block: Buffer, blocks: number): void {
  socket.write(head);
  const more = (): void => {
    while (blocks-- > 0 && !socket.destroyed)
      if (!socket.write(block)) return void socket.once('drain', more);
    socket.end();
  };
  more();
}

const spaces = Buffer.alloc(MIB, ' ');

/** 1 GiB of blanks compressed to 1 MB, as concatenated gzip members. */
const bomb = (() => {
  let made: Buffer | undefined;
  return () => (made ??= Buffer.concat(Array<Buffer>(64).fill(gzipSync(Buffer.alloc(16 * MIB, ' ')))));
})();

/** Each answer takes longer than the one before. */
function slower(): Degenerate {
  let delayMs = 5;
  return http('slower and slower', async (request) => {
    await sleep((delayMs *= 1.25), undefined, { ref: false });
    return isTokenPath(request) ? tokenAnswer() : page();
  });
}

/** Stops listening after this number of requests. */
function closing(requests: number): Degenerate {
  return {
    name: `stops listening after ${requests} requests`,
    async start() {
      let asked = 0;
      const server = createHttp((request, response) => {
        request.resume();
        const { headers, status, body } = isTokenPath({ path: request.url ?? '' }) ? tokenAnswer() : page();
        if (++asked >= requests) server.close().closeIdleConnections();
        response.writeHead(status, { ...Object.fromEntries(headers), connection: 'close' }).end(body);
      });
      const address = await listenOn(server);
      return {
        ...address,
        [Symbol.asyncDispose]: async () => {
          if (server.listening) await address[Symbol.asyncDispose]();
        },
      };
    },
  };
}

/** Serves this number of whole pages first. */
function pouring(pages: number): Degenerate {
  let asked = 0;
  return raw(`bodies that never end, after ${pages} pages`, (socket) => {
    if (++asked > pages) pour(socket, `${OK}\r\n`, spaces, Infinity);
    else socket.write(`${OK}Content-Length: ${BODY.length}\r\n\r\n${BODY}`);
  });
}

export const WIRE: readonly Degenerate[] = [
  pouring(60),
  closing(15),
  raw('headers that trickle', (socket) => void drip(socket, () => `${OK}x-more: ${'x'.repeat(1e6)}`)),
  raw('a body that trickles', (socket) => {
    socket.write(`${OK}Content-Length: 1000000\r\n\r\n`);
    void drip(socket, () => BODY);
  }),
  raw('a body that never ends', (socket) => pour(socket, `${OK}\r\n`, spaces, Infinity)),
  raw('a body of 500 MB', (socket) => pour(socket, `${OK}Content-Length: ${500 * MIB}\r\n\r\n`, spaces, 500)),
  raw('a gzip bomb', (socket) => {
    socket.write(`${OK}Content-Encoding: gzip\r\nContent-Length: ${bomb().length}\r\n\r\n`);
    socket.write(bomb());
  }),
  raw('headers of 100 MB', (socket) => pour(socket, OK, Buffer.from(`x-more: ${'x'.repeat(MIB)}\r\n`), 100)),
  raw('Content-Length longer than the body', (socket) =>
    socket.end(`${OK}Content-Length: ${BODY.length + 10}\r\n\r\n${BODY}`),
  ),
  raw('Content-Length shorter than the body', (socket) =>
    socket.end(`${OK}Content-Length: ${BODY.length - 10}\r\n\r\n${BODY}`),
  ),
  raw('two Content-Length headers', (socket) =>
    socket.end(`${OK}Content-Length: ${BODY.length}\r\nContent-Length: 5\r\n\r\n${BODY}`),
  ),
  raw('chunks of no length', (socket) =>
    socket.end(`${OK}Transfer-Encoding: chunked\r\n\r\nxyz\r\n${BODY}\r\n0\r\n\r\n`),
  ),
  raw('another coding than Content-Encoding says', (socket) =>
    socket.end(`${OK}Content-Encoding: gzip\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`),
  ),
  slower(),
  {
    name: 'TLS with an unknown certificate',
    start: () =>
      listenOn(
        createTls({ key: KEY, cert: SELF_SIGNED }, (_, response) => void response.end(BODY)),
        'https',
      ),
  },
];
