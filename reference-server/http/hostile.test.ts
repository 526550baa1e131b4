/** Malformed, oversized and unknown requests get the right status, a JSON body, and no reset. */
import { connect as openSession, constants } from 'node:http2';
import { connect } from 'node:net';
import { expect } from '@playwright/test';
import { send, test } from '../testing.ts';
import { KEY, SELF_SIGNED } from './certificates.ts';
import { serve } from './http.ts';

/** Sends raw bytes; resolves to everything that was received before the server closed the connection. */
function exchangeRaw(port: number, octets: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, '127.0.0.1', () => socket.write(octets));
    socket.setTimeout(8_000, () => socket.destroy(new Error('no answer')));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('end', () => resolve(Buffer.concat(chunks).toString()));
    socket.on('error', reject);
  });
}

const CLOSE = 'Host: localhost\r\nConnection: close\r\n';
const POST = `POST /oauth/token HTTP/1.1\r\n${CLOSE}`;
const PATH = '/v1/tenants/7d0c5a52-3f0e-4b61-9c55-0d8a1f2b6e01/screenings';

const REQUESTS: [title: string, request: string, status: number][] = [
  ['no HTTP at all', 'hello\r\n\r\n', 400],
  ['a space in the path', `GET ${PATH}?from=2024-06-15 12:00:00Z HTTP/1.1\r\n${CLOSE}\r\n`, 400],
  ['a URI of 8,001 octets', `GET ${`${PATH}?x=`.padEnd(8_001, 'x')} HTTP/1.1\r\n${CLOSE}\r\n`, 414],
  ['a URI of 1,000,000 octets', `GET ${`${PATH}?x=`.padEnd(1_000_000, 'x')} HTTP/1.1\r\n${CLOSE}\r\n`, 431],
  ['no Host', `GET ${PATH} HTTP/1.1\r\nConnection: close\r\n\r\n`, 400],
  ['HTTP/1.0 without Host', `GET ${PATH} HTTP/1.0\r\n\r\n`, 401],
  ['a body announced as too long', `${POST}Content-Length: 9999999999\r\n\r\n`, 413],
  ['an unknown expectation', `${POST}Expect: wonders\r\nContent-Length: 1\r\n\r\n`, 417],
  ['CONNECT', `CONNECT example.org:443 HTTP/1.1\r\n${CLOSE}\r\n`, 405],
  ['an absolute URI', `GET http://127.0.0.1${PATH} HTTP/1.1\r\n${CLOSE}\r\n`, 401],
  ['an absolute URI without a path', `GET http://127.0.0.1 HTTP/1.1\r\n${CLOSE}\r\n`, 404],
  ['broken percent-encoding in the path', `GET /v1/tenants/%/screenings HTTP/1.1\r\n${CLOSE}\r\n`, 401],
];
for (const [title, request, status] of REQUESTS)
  test(`answers ${title} with ${status} and a JSON body, without a reset`, async ({ server }) => {
    const answer = await exchangeRaw(Number(new URL(server.baseUrl).port), Buffer.from(request, 'latin1'));
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))).toEqual({
      code: expect.any(String),
      message: expect.any(String),
    });
  });

test('answers a body of 30 MB with 413 while the client is still sending', async ({ server }) => {
  for (const path of ['/oauth/token', PATH]) {
    const { status, json } = await send(`${server.baseUrl}${path}`, {
      method: 'POST',
      body: new Uint8Array(30_000_000),
    });
    expect(status).toBe(413);
    expect(json).toMatchObject({ code: 'invalid_request' });
  }
});

test('keeps the connection open after a rejected body', async ({ server }) => {
  const long = `POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n${'x'.repeat(2_000_000)}`;
  const next = `GET ${PATH} HTTP/1.1\r\n${CLOSE}\r\n`;
  const answer = await exchangeRaw(Number(new URL(server.baseUrl).port), long + next);
  expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 413', 'HTTP/1.1 401']);
});

test('answers a chunked body beyond the limit with 413', async ({ server }) => {
  const chunk = `8000\r\n${'x'.repeat(0x8000)}\r\n`;
  const request = `${POST}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(40)}0\r\n\r\n`;
  expect(await exchangeRaw(Number(new URL(server.baseUrl).port), request)).toMatch(/^HTTP\/1\.1 413 /);
});

test('breaks the stream of HTTP/2 off with an error if the body breaks off', async () => {
  const body = async function* (): AsyncGenerator<Buffer> {
    yield Buffer.from('{"items":[');
    throw new Error('a half page');
  };
  const answer = async () => ({ status: 200, headers: [], body: body() });
  await using listener = await serve(answer, { http2: { key: KEY, cert: SELF_SIGNED } });
  const session = openSession(listener.origin, { ca: SELF_SIGNED });
  const stream = session.request({ ':path': '/' }).resume();
  await new Promise((closed) => stream.on('error', () => undefined).on('close', closed));
  expect(stream.rstCode).not.toBe(constants.NGHTTP2_NO_ERROR);
  session.destroy();
});

for (const [method, path, allow] of [
  ['DELETE', PATH, 'GET, HEAD'],
  ['HEAD', '/oauth/token', 'POST'],
] as const)
  test(`answers ${method} ${path} with 405 and Allow: ${allow}`, async ({ server }) => {
    const { status, headers, text } = await send(`${server.baseUrl}${path}`, { method });
    expect(status).toBe(405);
    expect(headers.get('allow')).toBe(allow);
    if (method === 'HEAD') expect(text).toBe('');
    else expect(JSON.parse(text)).toMatchObject({ code: 'method_not_allowed' });
  });

test('answers paths unknown, of the other origin or without the prefix with 404', async ({ start }) => {
  const { baseUrl, authUrl } = await start({ separateOrigins: true, pathPrefix: '/api' });
  const withoutPrefix = `${new URL(baseUrl).origin}${PATH}`;
  const unknown = [`${baseUrl}/v1/tenants`, `${baseUrl}${PATH}/1`, `${authUrl}/oauth/token/`];
  for (const url of [...unknown, `${baseUrl}/oauth/token`, `${authUrl}${PATH}`, withoutPrefix]) {
    const { status, json } = await send(url);
    expect([url, status, json]).toMatchObject([url, 404, { code: 'not_found' }]);
  }
});
