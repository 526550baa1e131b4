import { expect } from '@playwright/test';
import pg from 'pg';
import { byTurns } from '../../fixtures/own-tests/tiers.ts';
import { type Database, type DatabaseChoice, openDatabase } from './database.ts';
import { PAGE } from './store.ts';
import { sockets } from '../non-implementations/tools.ts';
import { defaultProvisioning, loadProvisioning, TENANTS } from '../run/provisioning.ts';
import { startServer } from '../run/start.ts';
import { itemsOf, skipWithoutEngine, test } from '../testing.ts';

const WINDOW = 'from=2024-02-01T00:00:00Z&to=2025-02-01T00:00:00Z';

/** Traverses primary's 50 screenings, one of which is at the excluded end of the window. The database is closed then. */
async function walkWith(database: DatabaseChoice): Promise<Database> {
  await using opened = await openDatabase(database);
  const set = defaultProvisioning({ count: 50, secondCount: 30 });
  await using provisioned = await loadProvisioning(opened, set);
  await using server = await startServer(opened, provisioned);
  expect(await itemsOf(server.target(), `${WINDOW}&pageSize=7`)).toHaveLength(49);
  return opened;
}

test.describe('each kind of database serves a traversal', () => {
  test('testcontainers', byTurns('testcontainers', 3), async () => {
    test.setTimeout(300_000);
    await skipWithoutEngine();
    expect((await walkWith('testcontainers')).description).toMatch(/^PostgreSQL in a container/);
  });

  test('DATABASE_URL, which keeps no schema afterwards', async ({ database }) => {
    const url = new URL(database.url);
    url.search = '';
    const { description, url: used } = await walkWith({ url: url.href });
    expect(description).toBe('the database of DATABASE_URL');
    // Other tests make and drop schemas in the same database meanwhile.
    expect(await hasSchemaOf(database.url, url.href)).toBe(true);
    expect(await hasSchemaOf(used, url.href)).toBe(false);
  });
});

/** Whether the database at `url` still has the schema that the settings of `used` name. */
async function hasSchemaOf(used: string, url: string): Promise<boolean> {
  const schema = /search_path=(\w+)/.exec(new URL(used).searchParams.get('options') ?? '')?.[1];
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema]);
  await client.end();
  return rows.length > 0;
}

test('reports an unreachable database with its address', async () => {
  await expect(openDatabase({ url: 'postgres://nobody@127.0.0.1:9/none' })).rejects.toThrow(
    /^the database of DATABASE_URL: connect ECONNREFUSED 127\.0\.0\.1:9/,
  );
});

test('reports a timeout for a database that never answers', async () => {
  await using mute = await sockets(() => undefined);
  const { port } = new URL(mute.origin);
  await expect(openDatabase({ url: `postgres://nobody@127.0.0.1:${port}/none` })).rejects.toThrow(/timeout/);
});

test('reads any page of any window by one range scan of the index', async ({ database, server }) => {
  expect(server.target().clients.primary.tenantId).toBe(TENANTS.primary);
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  for (const text of [PAGE.fromInstant, PAGE.afterScreening.replace('$5', '17')]) {
    await client.query(`PREPARE page (uuid, numeric, numeric, int) AS ${text}`);
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(
      `EXPLAIN EXECUTE page ('${TENANTS.primary}', 1706745600, 1738368000, 101)`,
    );
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    expect(plan).toContain('Index Scan using screening_page');
    expect(plan, 'the plan is generic').toContain('$3');
    expect(plan).not.toMatch(/Filter|Sort/);
    await client.query('DEALLOCATE page');
  }
  await client.end();
});
