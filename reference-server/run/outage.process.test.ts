/** Requests and traversals while a database is killed. */
import { screeningsUrl } from '../../engine/client/page.ts';
import { FULL } from '../../fixtures/own-tests/tiers.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from '@playwright/test';
import pg from 'pg';
import { openDatabase } from '../store/database.ts';
import { loadProvisioning, defaultProvisioning } from './provisioning.ts';
import { startServer } from './start.ts';
import { mintToken, pagesOf, send, skipWithoutEngine, test } from '../testing.ts';

const WINDOW = 'from=2024-02-01T00:00:00Z&to=2025-02-02T00:00:00Z';

/** Traverses, and retries after a 503. Returns the texts of the pages and the number of retries. */
async function persistentWalk(url: string, token: string): Promise<{ pages: string[]; refusals: number }> {
  const pages: string[] = [];
  let refusals = 0;
  for (let at: string | undefined = url; at !== undefined;) {
    const { status, json, text } = await send(at, { headers: { authorization: `Bearer ${token}` } });
    if (status === 503) {
      expect(json).toMatchObject({ code: 'service_unavailable' });
      refusals += 1;
      await sleep(30);
      continue;
    }
    expect(status).toBe(200);
    pages.push(text);
    at = (json as { links: { next?: string } }).links.next;
  }
  return { pages, refusals };
}

for (const way of ['embedded', 'testcontainers'] as const)
  test(`walks lose and repeat no item while PostgreSQL (${way}) is killed and restarted`, FULL, async () => {
    test.setTimeout(300_000);
    if (way === 'testcontainers') await skipWithoutEngine();
    await using database = await openDatabase(way);
    const set = defaultProvisioning({ count: 600, secondCount: 0 });
    await using provisioned = await loadProvisioning(database, set);
    await using server = await startServer(database, provisioned);
    const target = server.target();
    const { primary } = target.clients;
    const token = await mintToken(target, primary);
    const url = `${screeningsUrl(target.baseUrl, primary.tenantId)}?${WINDOW}&pageSize=7`;
    const { pages: expected } = await persistentWalk(url, token);

    let over = false;
    let refusals = 0;
    let walks = 0;
    const walker = async (): Promise<void> => {
      while (!over) {
        const seen = await persistentWalk(url, token);
        expect(seen.pages).toEqual(expected);
        refusals += seen.refusals;
        walks += 1;
      }
    };
    const walkers = Promise.all(Array.from({ length: 4 }, walker));
    for (let time = 0; time < 2; time += 1) {
      await sleep(300);
      await database.outage?.begin();
      await sleep(300);
      expect((await send(url, { headers: { authorization: `Bearer ${token}` } })).status).toBe(503);
      await database.outage?.end();
    }
    await sleep(300);
    over = true;
    await walkers;
    expect(refusals).toBeGreaterThan(0);
    expect(walks).toBeGreaterThanOrEqual(4);
  });

test('returns 503 after the timeout of a statement or of a connection', FULL, async ({ start, database }) => {
  const pages = await pagesOf((await start()).target());
  const query = `?${WINDOW}&pageSize=3`;
  const blocker = new pg.Client({ connectionString: database.url });
  await blocker.connect();
  try {
    await blocker.query('BEGIN; LOCK TABLE screening IN ACCESS EXCLUSIVE MODE');
    const answers = await Promise.all(Array.from({ length: 25 }, () => pages(query)));
    for (const { status, json } of answers) {
      expect(status).toBe(503);
      expect(json).toMatchObject({ code: 'service_unavailable' });
    }
  } finally {
    // Ends its transaction too.
    await blocker.end();
  }
  expect((await pages(query)).status).toBe(200);
});

test('a stopping server answers requests in flight and accepts no new ones', FULL, async ({ start }) => {
  let begun = 0;
  const server = await start({
    wrapHandler: (handler) => async (request) => {
      begun += 1;
      await sleep(500);
      return handler(request);
    },
  });
  const answers = Promise.all([1, 2, 3].map((n) => send(`${server.baseUrl}/${n}`)));
  await expect.poll(() => begun).toBe(3);
  const stopped = server.stop(10_000);
  await expect(send(server.baseUrl)).rejects.toThrow();
  expect((await answers).map(({ status }) => status)).toEqual([404, 404, 404]);
  await stopped;
});
