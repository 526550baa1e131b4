/** Floods of wrong secrets, and secrets in requests that logs and metrics must not contain. */
import { screeningsUrl } from '../../engine/client/page.ts';
import { FULL } from '../../fixtures/own-tests/tiers.ts';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from '@playwright/test';
import { accessLog, createMetrics } from './observation.ts';
import { goodForm, mintToken, requestToken, send, test } from '../testing.ts';

const WINDOW = 'from=2024-02-01T00:00:00Z&to=2025-02-01T00:00:00Z&pageSize=3';

test('answers a flood of wrong secrets with 429, and still accepts a right one', FULL, async ({ start }) => {
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
  // A client whose secret was not checked before: it has to be hashed while all others wait.
  expect((await requestToken(target, goodForm(scratch!))).status).toBe(200);
  const answers = await Promise.all(guesses);
  const statuses = answers.map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([401, 429]));
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(150);
  const refused = answers.find(({ status }) => status === 429);
  expect(refused?.headers.get('retry-after')).toBe('1');
  expect(refused?.json).toMatchObject({ error: 'temporarily_unavailable' });
  expect((await requestToken(target, goodForm(primary))).status).toBe(200);
});

test('writes no secret, token or forged line to logs and metrics', FULL, async ({ start }) => {
  const file = test.info().outputPath('access.log');
  const log = accessLog(file);
  const server = await start({
    observe(counts) {
      const { observer, metrics } = createMetrics(counts);
      return { observer: (outcome) => [observer, log].forEach((tell) => tell(outcome)), metrics };
    },
  });
  const target = server.target();
  const { primary } = target.clients;
  const token = await mintToken(target, primary);
  const secrets = [primary.clientSecret, token];
  const page = screeningsUrl(target.baseUrl, primary.tenantId);
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
  expect(metrics.text).toMatch(/^http_requests_total\{endpoint="screenings",method="GET",status="200"\} 1$/m);
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
});

test('serves health outside the path of the API, also with a prefix and a fault', FULL, async ({ start }) => {
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
});
