import { expect } from '@playwright/test';
import { generateScreenings } from '../../fixtures/dataset/generator.ts';
import { TENANTS } from './provisioning.ts';
import type { ReferenceServer } from './start.ts';
import { mintToken, screeningsUrl, send, test, walk } from '../testing.ts';

const WINDOW = 'from=2024-02-01T00:00:00Z&to=2025-02-02T00:00:00Z';

async function walkOf(server: ReferenceServer, role: 'primary' | 'scratch'): Promise<string[]> {
  const target = server.target();
  const client = target.clients[role] ?? target.clients.primary;
  const url = `${screeningsUrl(target, client.tenantId)}?${WINDOW}&pageSize=1000`;
  return (await walk(url, await mintToken(target, client))).items;
}

test('serves each path at one of two origins, and keeps the path prefix in next', async ({ start }) => {
  const server = await start({ separateOrigins: true, pathPrefix: '/api' });
  const target = server.target();
  expect(new URL(target.baseUrl).origin).not.toBe(new URL(target.authUrl).origin);
  expect(target.baseUrl).toMatch(/\/api$/);
  expect(await walkOf(server, 'primary')).toHaveLength(3_500);

  const post = { method: 'POST', body: new URLSearchParams({ grant_type: 'client_credentials' }) };
  expect((await send(`${target.baseUrl}/oauth/token`, post)).status).toBe(404);
  expect((await send(screeningsUrl({ baseUrl: target.authUrl }, TENANTS.primary))).status).toBe(404);
  expect((await send(`${new URL(target.authUrl).origin}/oauth/token`, post)).status).toBe(404);
});

test.describe('ingestion while the server runs', () => {
  test.describe.configure({ mode: 'serial' });
  const screenings = [...generateScreenings({ tenantId: TENANTS.scratch, count: 60, seed: 5, bigIds: true })];
  const lines = screenings.map(({ json }) => json);

  test('stores screenings in the same process, and deletes them', async ({ start }) => {
    const server = await start();
    expect(await walkOf(server, 'scratch')).toEqual([]);
    await server.ingest(screenings.slice(0, 30));
    await server.ingest(lines.slice(30));
    expect((await walkOf(server, 'scratch')).sort()).toEqual([...lines].sort());
    await server.clear(TENANTS.scratch);
    expect(await walkOf(server, 'scratch')).toEqual([]);
  });

  test('stores nothing if a line is not a screening', async ({ start }) => {
    const server = await start();
    await expect(server.ingest([...lines.slice(0, 3), '{}'])).rejects.toThrow('"id" must be an integer');
    expect(await walkOf(server, 'scratch')).toEqual([]);
  });
});
