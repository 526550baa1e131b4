/** The server under load that means it no good: floods, drips, tricks; and what its logs hold then. */
import { FULL } from '../../fixtures/own-tests/tiers.ts';
import { spawn } from 'node:child_process';
import { createHmac, generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from '@playwright/test';
import { SignJWT } from 'jose';
import { accessLog, createMetrics } from './observation.ts';
import { goodForm, mintToken, requestToken, screeningsUrl, send, test } from '../testing.ts';

const WINDOW = 'from=2024-02-01T00:00:00Z&to=2025-02-01T00:00:00Z&pageSize=3';
const text = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

test(
  'a flood of wrong secrets is bounded with 429, and a right one goes through',
  FULL,
  async ({ start }) => {
    const server = await start();
    const target = server.target();
    const { primary, scratch } = target.clients;
    const guesses = Array.from({ length: 200 }, (_, n) =>
      requestToken(target, {
        ...goodForm(primary),
        client_id: n % 2 ? primary.clientId : `nobody-${n}`,
        client_secret: `wrong-${n}`,
      }),
    );
    // A client that has not been seen before: its secret has to be checked among all the others.
    expect((await requestToken(target, goodForm(scratch!))).status).toBe(200);
    const answers = await Promise.all(guesses);
    const statuses = answers.map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([401, 429]));
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(150);
    const refused = answers.find(({ status }) => status === 429);
    expect(refused?.headers.get('retry-after')).toBe('1');
    expect(refused?.json).toMatchObject({ error: 'temporarily_unavailable' });
    expect((await requestToken(target, goodForm(primary))).status).toBe(200);
  },
);

test('tokens that are nearly right are none', FULL, async ({ start }) => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const server = await start({
    signingKeyPem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  });
  const target = server.target();
  const { primary } = target.clients;
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    iss: target.authUrl,
    aud: target.baseUrl,
    sub: primary.clientId,
    iat: now,
    exp: now + 3_600,
    scope: 'screenings.read',
    tenant_id: primary.tenantId,
  };
  const sign = (changes: object, header: object = {}, key = privateKey): Promise<string> =>
    new SignJWT({ ...claims, ...changes }).setProtectedHeader({ alg: 'ES256', ...header }).sign(key);
  const hmac = (secret: string | Buffer): string => {
    const signed = `${text({ alg: 'HS256', typ: 'JWT' })}.${text(claims)}`;
    return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
  };
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const ask = async (token: string): Promise<number> => {
    const headers = { authorization: `Bearer ${token}` };
    return (await send(`${screeningsUrl(target, primary.tenantId)}?${WINDOW}`, { headers })).status;
  };
  expect(await ask(await sign({}))).toBe(200);
  const jwk = { ...other.publicKey.export({ format: 'jwk' }) };
  const tricks: Record<string, string> = {
    'alg none': `${text({ alg: 'none' })}.${text(claims)}.`,
    'HS256 with the public key': hmac(pem),
    'HS256 with an empty key': hmac(''),
    'a key in the header': await sign({}, { jwk }, other.privateKey),
    'kid that names a file': await sign({}, { kid: '../../../../dev/null' }, other.privateKey),
    'kid with SQL': await sign({}, { kid: "x' UNION SELECT 'k'--" }, other.privateKey),
    'an extension that must be understood': await sign({}, { crit: ['exp'], exp: now }).catch(() => 'a.b.c'),
    'another issuer': await sign({ iss: 'https://other.example' }),
    'another audience': await sign({ aud: 'https://other.example' }),
    'exp as a string': await sign({ exp: String(now + 3_600) }),
    'no exp': await sign({ exp: undefined }),
    'exp has passed': await sign({ exp: now - 1 }),
    'not before tomorrow': await sign({ nbf: now + 86_400 }),
  };
  for (const [trick, token] of Object.entries(tricks)) expect(await ask(token), trick).toBe(401);
});

/** Opens connections to a port, of which every other one drips a request. */
const DRIP = `
const [port, count] = process.argv.slice(1).map(Number);
const sockets = [];
const open = setInterval(() => {
  for (let n = 0; n < 100; n += 1) {
    const socket = require('node:net').connect(port, '127.0.0.1');
    sockets.push(socket.on('error', () => {}).resume());
    if (n % 2) socket.write('GET /v1/tenants/x/screenings HTTP/1.1\\r\\nHost: x\\r\\n');
  }
  if (sockets.length >= count) clearInterval(open);
}, 20);
setTimeout(() => process.exit(), 120_000);
setInterval(() => sockets.forEach((socket, n) => n % 2 && !socket.destroyed && socket.write('x')), 1000);`;
const CONNECTIONS = 10_000;

/** Of this process: the server's. What the kernel's queue had no room for never reaches it. */
const openHere = (): number =>
  process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;

test(
  '10,000 connections that say nothing, or drip, delay no other client and are cut off',
  FULL,
  async ({ start }) => {
    const server = await start();
    const target = server.target();
    const before = openHere();
    // A process has a limit of open files.
    const children = [0, 1].map(() =>
      spawn(process.execPath, ['-e', DRIP, new URL(server.baseUrl).port, String(CONNECTIONS / 2)]),
    );
    try {
      await expect.poll(openHere, { timeout: 30_000 }).toBeGreaterThan(CONNECTIONS / 2);
      const { primary } = target.clients;
      const headers = { authorization: `Bearer ${await mintToken(target, primary)}` };
      expect((await send(`${screeningsUrl(target, primary.tenantId)}?${WINDOW}`, { headers })).status).toBe(
        200,
      );
      await expect.poll(openHere, { timeout: 60_000 }).toBeLessThan(before + 50);
    } finally {
      for (const child of children) child.kill('SIGKILL');
    }
  },
);

test('a hundred requests in one piece are answered one after the other', FULL, async ({ server }) => {
  const port = Number(new URL(server.baseUrl).port);
  const request = (n: number): string =>
    `GET /nowhere/${n} HTTP/1.1\r\nHost: x\r\n${n === 99 ? 'Connection: close\r\n' : ''}\r\n`;
  const answer = await new Promise<string>((resolve, reject) => {
    let received = '';
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(Array.from({ length: 100 }, (_, n) => request(n)).join(''));
    });
    socket.on('data', (chunk) => (received += String(chunk)));
    socket.on('end', () => resolve(received)).on('error', reject);
  });
  expect(answer.match(/HTTP\/1\.1 404 /g)).toHaveLength(100);
});

test(
  'no log and no metric holds a secret of a request, a token, or a line of its own',
  FULL,
  async ({ start }) => {
    const directory = await mkdtemp(join(tmpdir(), 'screenings-test-'));
    const file = join(directory, 'access.log');
    const log = accessLog(file);
    const server = await start({
      observe(counts) {
        const { observer, text } = createMetrics(counts);
        return { observer: (outcome) => [observer, log].forEach((tell) => tell(outcome)), metrics: text };
      },
    });
    try {
      const target = server.target();
      const { primary } = target.clients;
      const token = await mintToken(target, primary);
      const secrets = [primary.clientSecret, token];
      const page = screeningsUrl(target, primary.tenantId);
      const headers = { authorization: `Bearer ${token}`, 'x-request-id': 'the-clients-own' };
      const first = await send(`${page}?${WINDOW}`, { headers });
      expect(first.headers.get('x-request-id')).toBe('the-clients-own');
      for (const secret of secrets) {
        await requestToken(target, { ...goodForm(primary), client_id: secret });
        await send(`${page}?access_token=${secret}&from=${secret}&pageSize=${secret}`, { headers });
        await send(`${target.baseUrl}/v1/tenants/${secret}/screenings?${WINDOW}`, {
          headers: { ...headers, 'x-request-id': `${secret} "},{"forged":true` },
        });
        await send(`${target.baseUrl}/${secret}`, { headers: { 'user-agent': secret, referer: secret } });
        await send(`${page}?from=%0a%7b%22forged%22:true%7d&to='%3bDROP TABLE screening--`, { headers });
      }
      const metrics = await send(`${server.baseUrl}/metrics`);
      expect(metrics.text).toMatch(
        /^http_requests_total\{endpoint="screenings",method="GET",status="200"\} 1$/m,
      );
      expect(metrics.text).toMatch(/^database_connections\{state="waiting"\} 0$/m);
      await sleep(100);
      const written = await readFile(file, 'utf8');
      for (const secret of secrets) expect(`${written}${metrics.text}`).not.toContain(secret);
      expect(written).not.toContain('forged');
      const lines = written
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>);
      expect(lines).toHaveLength(13);
      expect(lines[1]).toMatchObject({
        requestId: 'the-clients-own',
        method: 'GET',
        endpoint: 'screenings',
        tenantId: primary.tenantId,
        query: { pageSize: '3' },
        status: 200,
        octets: Buffer.byteLength(first.text),
      });
      expect((await send(`${page}?${WINDOW}`, { headers })).text).toBe(first.text);
    } finally {
      await rm(directory, { recursive: true });
    }
  },
);

test(
  'health is told outside of the API’s path, under a prefix and with a fault too',
  FULL,
  async ({ start }) => {
    const server = await start({
      pathPrefix: '/api',
      wrapHandler: () => async () => Promise.reject(new Error('x')),
    });
    const { origin } = new URL(server.baseUrl);
    expect(await send(`${origin}/healthz`)).toMatchObject({ status: 200, json: { status: 'alive' } });
    expect(await send(`${origin}/readyz`)).toMatchObject({ status: 200, json: { status: 'ready' } });
    await server.interruptDatabase();
    expect((await send(`${origin}/readyz`)).status).toBe(503);
    expect((await send(`${origin}/healthz`)).status).toBe(200);
    expect((await send(`${origin}/healthz`, { method: 'POST' })).status).toBe(405);
  },
);
