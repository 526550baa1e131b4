/** Section 6: the outbox and its sinks. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { serve } from './http/http.ts';
import { type Database, openDatabase } from './store/database.ts';
import { defaultProvisioning, loadProvisioning, type Provisioned, TENANTS } from './run/provisioning.ts';
import type { ReferenceServer, ServerOptions } from './run/start.ts';
import { itemsOf, mintToken, send, starting, test as base } from './testing.ts';

const test = base.extend<{ readonly begin: (options?: ServerOptions) => Promise<ReferenceServer> }>({
  // Starts a server on a database that this test alone uses: 40 screenings of primary, 10 of the second tenant.
  begin: async ({ database }, use) => {
    await using own: Database = await openDatabase({ url: database.url });
    const set = defaultProvisioning({ count: 40, secondCount: 10 });
    await using provisioned: Provisioned = await loadProvisioning(own, set);
    await starting({ database: own, provisioned }, use);
  },
});

const later = (n: number, tenantId: string = TENANTS.primary): string =>
  `{"id":${880_000_000 + n},"tenantId":"${tenantId}","testTime":"2031-01-01T00:00:00Z"}`;
const linesOf = async (file: string): Promise<string[]> =>
  (await readFile(file, 'utf8')).split('\n').filter((line) => line !== '');

const dataOf = (line: string): string => line.slice(line.indexOf('"data":') + '"data":'.length, -1);

const walkOf = (server: ReferenceServer): Promise<string[]> =>
  itemsOf(server.target(), 'from=2024-02-01T00:00:00Z&to=2025-02-02T00:00:00Z&pageSize=1000');

test('publishes an event for every screening, with the text of REST as its data', async ({ begin }) => {
  const server = await begin();
  const lines = await linesOf(server.target().events ?? '');
  expect(lines.map(dataOf).sort()).toEqual((await walkOf(server)).sort());
});

test('appends events to the event file, also of screenings that another server stores', async ({ begin }) => {
  const directory = test.info().outputPath();
  const eventsFile = join(directory, 'events.ndjson');
  await writeFile(eventsFile, 'of other data\n');
  const one = await begin({ events: eventsFile });
  const other = await begin();
  expect(one.target().events).toBe(eventsFile);
  expect(await linesOf(eventsFile)).toHaveLength(40);
  await one.ingest([later(1)]);
  expect(await linesOf(eventsFile)).toHaveLength(41);
  await other.ingest([later(2)]);
  await expect.poll(() => linesOf(eventsFile)).toHaveLength(42);
});

test('keeps the event of a deleted screening', async ({ begin }) => {
  const directory = test.info().outputPath();
  const server = await begin();
  await server.clear(TENANTS.primary);
  expect(await walkOf(server)).toEqual([]);
  await begin({ eventsDir: directory });
  expect(await linesOf(join(directory, `${TENANTS.primary}.ndjson`))).toHaveLength(40);
  expect(await linesOf(join(directory, `${TENANTS.secondTenant}.ndjson`))).toHaveLength(10);
});

test('publishes no event for a screening that was not stored', async ({ begin }) => {
  const directory = test.info().outputPath();
  const server = await begin({ eventsDir: directory });
  await expect(server.ingest([later(1), later(1)])).rejects.toThrow(/duplicate key/);
  expect(await linesOf(join(directory, `${TENANTS.primary}.ndjson`))).toHaveLength(40);
});

test('serves an outbox to its own tenant only, from any position', async ({ begin }) => {
  const server = await begin();
  const { baseUrl, authUrl, clients } = server.target();
  const authorization = `Bearer ${await mintToken({ authUrl }, clients.primary)}`;
  const ask = (path: string, headers: Record<string, string> = { authorization }) =>
    send(new URL(path, baseUrl).href, { headers });
  const first = await ask(`/events/${TENANTS.primary}`);
  expect(first.json).toHaveLength(40);
  const next = /<(.*)>; rel="next"/.exec(first.headers.get('link') ?? '')?.[1] ?? '';
  expect((await ask(next)).json).toEqual([]);
  await server.ingest([later(1), later(2)]);
  const envelope = { source: `/tenants/${TENANTS.primary}/screenings`, type: 'screening.completed' };
  expect((await ask(next)).json).toMatchObject([
    { ...envelope, id: '880000001' },
    { ...envelope, id: '880000002' },
  ]);
  expect((await ask(`/events/${TENANTS.secondTenant}`)).status).toBe(403);
  expect((await ask(next, {})).status).toBe(401);
});

/** A webhook that stores what it acknowledges; `statusOf` is called for each delivery. */
async function receiver(statusOf: () => 204 | 503) {
  const received: string[] = [];
  const listener = await serve(async ({ body }) => {
    const status = statusOf();
    if (status === 204) received.push(body.toString());
    return { status, headers: [], body: '' };
  });
  return {
    ...listener,
    /** Without repetitions: an event may be delivered again. */
    of: (tenantId: string) => [...new Set(received.filter((body) => body.includes(`/tenants/${tenantId}/`)))],
  };
}

test('delivers every event in order per tenant to files and to a webhook that fails at times, and without a gap after an interruption', async ({
  begin,
}) => {
  const directory = test.info().outputPath();
  let asked = 0;
  let isUp = false;
  await using hook = await receiver(() => {
    asked += 1;
    return asked % 13 === 0 || (asked > 15 && !isUp) ? 503 : 204;
  });
  const options = { webhook: `${hook.origin}/events`, eventsDir: directory };
  const first = await begin(options);
  await expect.poll(() => asked).toBeGreaterThan(15);
  await first.stop();
  // Simulates a kill in the middle of a line whose position was not stored.
  const file = join(directory, `${TENANTS.primary}.ndjson`);
  const before = await readFile(file, 'utf8');
  await writeFile(file, `${before}{"specversion":"1.0","id":"88`);
  isUp = true;
  const second = await begin(options);
  await second.ingest([later(1), later(2, TENANTS.secondTenant), later(3)]);
  for (const tenantId of [TENANTS.primary, TENANTS.secondTenant]) {
    const stored = await linesOf(join(directory, `${tenantId}.ndjson`));
    await expect.poll(() => hook.of(tenantId), { timeout: 20_000 }).toEqual(stored);
  }
  const stored = await linesOf(file);
  expect(stored).toHaveLength(42);
  expect(stored.slice(0, 40)).toEqual(before.trimEnd().split('\n'));
});
