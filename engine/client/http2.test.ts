/** Requests survive the end of a session of HTTP/2 or of a kept connection, and HTTP/2 falls back to HTTP/1.1. */
import { createServer } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import { expect, test } from '@playwright/test';
import { KEY, SELF_SIGNED } from '../../reference-server/http/certificates.ts';
import { bind } from '../../reference-server/http/http.ts';
import { listenOn, type Address } from '../../reference-server/non-implementations/tools.ts';
import type { Exchange } from './exchange.ts';
import { Transport } from './transport.ts';

/** Sends forty requests, twelve at a time. */
async function exchangesWith(
  answer: (request: Http2ServerRequest, response: Http2ServerResponse) => void,
): Promise<Exchange[]> {
  const server = createSecureServer({ key: KEY, cert: SELF_SIGNED, allowHTTP1: true }, answer);
  const url = `https://localhost:${await bind(server)}/`;
  await using transport = new Transport({ timeoutMs: 5_000, ca: SELF_SIGNED });
  const authorization = { kind: 'none' } as const;
  const request = { channel: 'rest', method: 'GET', url, headers: {}, authorization, isHttp2: true } as const;
  const exchanges: Exchange[] = [];
  for (let left = 40; left > 0;) {
    const some = Array.from({ length: Math.min(left, 12) }, () => transport.send(request, 'Bearer of'));
    exchanges.push(...(await Promise.all(some)));
    left -= some.length;
  }
  server.close();
  return exchanges;
}

test('loses no request when the server ends a session', async () => {
  let count = 0;
  const exchanges = await exchangesWith((request, response) => {
    if (++count % 7 === 0) request.stream.session?.close();
    if (count === 16) return request.stream.session?.destroy();
    response.end(`${request.httpVersion} ${request.headers['authorization'] as string}`);
  });
  expect(exchanges.filter(({ text }) => !text.endsWith(' Bearer of'))).toEqual([]);
  expect(exchanges.filter(({ text }) => text.startsWith('2.0')).length).toBeGreaterThan(30);
});

test('repeats a request over HTTP/1.1 that HTTP/2 does not answer', async () => {
  const exchanges = await exchangesWith((request, response) => {
    if (request.httpVersionMajor === 2) return request.stream.close(7);
    response.end(request.httpVersion);
  });
  expect(new Set(exchanges.map(({ status, text }) => `${status} ${text}`))).toEqual(new Set(['200 1.1']));
  expect(exchanges[0]!.http2Failure).toBe('Stream closed with error code NGHTTP2_REFUSED_STREAM');
});

/** Sends a request without a body, over a connection of its own if `isAlone`; returns the status of the answer. */
const sendBy =
  (transport: Transport, { origin }: Address) =>
  async (isAlone: boolean): Promise<number> => {
    const authorization = { kind: 'header', value: 'Bearer a', label: 'a', isAlone } as const;
    const request = { channel: 'rest', method: 'GET', url: `${origin}/`, headers: {} } as const;
    return (await transport.send({ ...request, authorization }, authorization.value)).status;
  };

test('opens a new connection for an exclusive request although the target admits only one, which is kept', async () => {
  const limited = createServer((_, response) => response.end());
  limited.maxConnections = 1;
  await using address = await listenOn(limited);
  await using transport = new Transport({ timeoutMs: 2_000 });
  const send = sendBy(transport, address);
  expect(await send(false)).toBe(200);
  // The target may notice the end of the kept connection late.
  await send(true);
  expect(await send(true)).toBe(200);
});

test('keeps no connection after a request without an answer: the target may serve one connection at a time', async () => {
  const server = createServer((_, response) => response.end());
  const queue: Socket[] = [];
  const serveFirst = (): void => {
    const [socket] = queue;
    if (!socket) return;
    socket.once('close', () => {
      queue.shift();
      serveFirst();
    });
    server.emit('connection', socket);
    socket.resume();
  };
  const serial = createTcpServer({ pauseOnConnect: true }, (socket) => {
    if (queue.push(socket) === 1) serveFirst();
  });
  await using address = await listenOn(serial);
  await using transport = new Transport({ timeoutMs: 1_000 });
  const send = sendBy(transport, address);
  expect(await send(false)).toBe(200);
  expect(await send(true)).toBe(0);
  for (const isAlone of [true, false, true]) expect(await send(isAlone)).toBe(200);
});
