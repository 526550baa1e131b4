/** Answers that are invalid, slow or endless at the level of HTTP and TCP, and misdirection; the token endpoint works. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { KEY, SELF_SIGNED } from '../http/certificates.ts';
import { http, page, raw, tokenAnswer, withTokenEndpoint, ITEMS, TENANT } from './tools.ts';
import type { NonImplementation } from './tools.ts';
import { isTokenRequest, urlOf, withHeader, withoutBody } from '../run/alter.ts';
import { jsonAnswer, serve, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';

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

function slower(): NonImplementation {
  let delayMs = 5;
  return http('slower and slower', async (request) => {
    await sleep((delayMs *= 1.25), undefined, { ref: false });
    return isTokenRequest(request) ? tokenAnswer() : page();
  });
}

function closing(requests: number): NonImplementation {
  return {
    name: `stops listening after ${requests} requests`,
    async start() {
      let asked = 0;
      const listener = await serve(async (request) => {
        if (++asked === requests) void listener.stop(10_000);
        return withHeader(isTokenRequest(request) ? tokenAnswer() : page(), 'connection', 'close');
      });
      return listener;
    },
  };
}

function pouring(pages: number): NonImplementation {
  let asked = 0;
  return raw(`bodies that never end, after ${pages} pages`, (socket) => {
    if (++asked > pages) pour(socket, `${OK}\r\n`, spaces, Infinity);
    else socket.write(`${OK}Content-Length: ${BODY.length}\r\n\r\n${BODY}`);
  });
}

export const WIRE: readonly NonImplementation[] = [
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
  ...Object.entries({
    'Content-Length longer than the body': `Content-Length: ${BODY.length + 10}\r\n\r\n${BODY}`,
    'Content-Length shorter than the body': `Content-Length: ${BODY.length - 10}\r\n\r\n${BODY}`,
    'two Content-Length headers': `Content-Length: ${BODY.length}\r\nContent-Length: 5\r\n\r\n${BODY}`,
    'chunks of no length': `Transfer-Encoding: chunked\r\n\r\nxyz\r\n${BODY}\r\n0\r\n\r\n`,
    'another coding than Content-Encoding says': `Content-Encoding: gzip\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`,
  }).map(([name, rest]) => raw(name, (socket) => socket.end(`${OK}${rest}`))),
  raw('the status 000', (socket) => socket.end('HTTP/1.1 000 None\r\nContent-Length: 0\r\n\r\n')),
  slower(),
  {
    name: 'TLS with an unknown certificate',
    start: () => serve(async () => page(), { http2: { key: KEY, cert: SELF_SIGNED } }),
  },
];

// -- servers that misdirect their clients or make them wait -------------------------------------------

const withNext = (
  name: string,
  next: (request: ServiceRequest) => string,
  items: readonly unknown[] = ITEMS,
): NonImplementation =>
  http(
    name,
    withTokenEndpoint((request) => page(items, next(request))),
  );

/** Leads clients to another server, which records every request that reaches it. */
const leadingElsewhere = (
  name: string,
  lead: (origin: string, request: ServiceRequest) => ServiceAnswer,
): NonImplementation => ({
  name,
  async start() {
    const reached: string[] = [];
    const other = await serve(async ({ method, path, headers }) => {
      reached.push(`${method} ${path} ${headers['authorization'] ?? ''}`);
      return page();
    });
    const server = await serve(async (request) => lead(other.origin, request));
    return {
      origin: server.origin,
      leaked: () => reached,
      async [Symbol.asyncDispose]() {
        await server[Symbol.asyncDispose]();
        await other[Symbol.asyncDispose]();
      },
    };
  },
});

const redirect = (location: string, status = 302): ServiceAnswer =>
  withoutBody(status, [['location', location]]);

const rejecting = (name: string, retryAfter: string): NonImplementation =>
  http(name, withTokenEndpoint(jsonAnswer(429, { code: 'rate_limited' }, [['retry-after', retryAfter]])));

let counter = 0;

function another(): object {
  counter++;
  const at = new Date(Date.parse('2026-03-01T00:00:00Z') + counter * 1000).toISOString();
  return { id: counter, tenantId: TENANT, testTime: at };
}

export const WAYS: readonly NonImplementation[] = [
  withNext('next leads to itself', urlOf, []),
  withNext('next leads in a circle', (request) =>
    urlOf(request).includes('&b')
      ? urlOf(request).replace('&b', '&a')
      : `${urlOf(request).replace('&a', '')}&b`,
  ),
  withNext('next leads ever forward, without items', (request) => `${urlOf(request)}0`, []),
  http(
    'next leads ever forward, an item a page',
    withTokenEndpoint((request) => page([another()], `${urlOf(request).replace(/&n=.*/, '')}&n=${counter}`)),
  ),
  withNext('next is file:', () => 'file:///etc/passwd'),
  withNext('next leads to a private address', () => 'http://169.254.169.254/latest/meta-data/'),
  withNext('next carries credentials', () => 'http://user:pass@127.0.0.1:1/x'),
  withNext('next of 100 kB', (request) => `${urlOf(request)}&x=${'x'.repeat(100_000)}`),
  withNext('next is no URL', () => 'http://[::1'),
  leadingElsewhere('next leads to another origin', (origin, request) =>
    isTokenRequest(request) ? tokenAnswer() : page(ITEMS, `${origin}${request.path}`),
  ),
  leadingElsewhere('every page redirects to another origin', (origin, request) =>
    isTokenRequest(request) ? tokenAnswer() : redirect(`${origin}${request.path}`, 307),
  ),
  leadingElsewhere('the token endpoint redirects to another origin', (origin, { path }) =>
    redirect(`${origin}${path}`, 307),
  ),
  http(
    'redirects in a loop',
    withTokenEndpoint(({ path }) => redirect(path.endsWith('&again') ? path.slice(0, -6) : `${path}&again`)),
  ),
  rejecting('429, with Retry-After of a year', '31536000'),
  rejecting('429, with Retry-After of 300 digits', '9'.repeat(300)),
];
