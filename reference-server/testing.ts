/**
 * Fixtures of the tests with a reference server: one loaded database per worker, and a client without checks. All
 * worker fixtures are here, so that tests with the same ones share their workers.
 */
import { test as base } from '@playwright/test';
import { screeningsUrl } from '../engine/client/page.ts';
import { generateScreenings } from '../fixtures/dataset/generator.ts';
import { InProcess } from './http/in-process.ts';
import type { ScreeningStore } from './parts.ts';
import { Connections } from './store/connections.ts';
import { type Database, openDatabase } from './store/database.ts';
import { createMemoryStore } from './store/memory.ts';
import { findEngine } from './store/postgres-container.ts';
import { defaultProvisioning, loadProvisioning } from './run/provisioning.ts';
import type { Provisioned, ProvisioningSet } from './run/provisioning.ts';
import { itemTexts } from './run/alter.ts';
import { type ReferenceServer, type ServerOptions, startServer } from './run/start.ts';
import type { ReferenceTarget, TargetClient } from './run/target.ts';

/** Skips a test if there is no container engine. */
export async function skipWithoutEngine(): Promise<void> {
  const engine = await findEngine('unasked');
  base.skip(!('image' in engine), 'image' in engine ? '' : engine.reason);
}

/** Enough for every shape of screening, ties across page boundaries and a dozen pages. */
export const SMALL_COUNT = 300;
/** No fault is about the cost of the hash. */
const CHEAP_HASH = 2;

export interface World {
  readonly database: Database;
  readonly provisioned: Provisioned;
  readonly store: ScreeningStore;
}

/** One pool for all servers of a worker; stopping a server does not close it. */
class KeptConnections extends Connections {
  override async stop(): Promise<void> {}

  async end(): Promise<void> {
    await super.stop();
  }
}

function storeOf({ tenants }: ProvisioningSet): ScreeningStore {
  const held = tenants.flatMap(({ tenantId, onboarded, screenings: source }) => {
    const isGenerated = source !== undefined && 'generate' in source;
    const screenings = isGenerated ? generateScreenings({ tenantId, ...source.generate }) : [];
    return onboarded ? [[tenantId, screenings] as const] : [];
  });
  return createMemoryStore(new Map(held));
}

interface WorkerWorld {
  readonly database: Database;
  readonly provisioned: Provisioned;
  /** A server with default options, which no test may change. */
  readonly server: ReferenceServer;
  /** A small dataset, enough for most faults. */
  readonly small: World;
  /** The dataset of `provisioned`. */
  readonly large: World;
}

interface TestWorld {
  /** Starts a server that stops at the end of the test. */
  readonly start: (options?: ServerOptions) => Promise<ReferenceServer>;
}

export const test = base.extend<TestWorld, WorkerWorld>({
  database: [
    async ({}, use) => {
      const url = process.env['SHARED_DATABASE_URL'];
      await using database = await openDatabase(url ? { url } : 'embedded');
      await use(database);
    },
    { scope: 'worker' },
  ],
  provisioned: [
    async ({ database }, use) => {
      await using provisioned = await loadProvisioning(database, defaultProvisioning());
      await use(provisioned);
    },
    { scope: 'worker' },
  ],
  server: [
    async ({ database, provisioned }, use) => {
      await using server = await startServer(database, provisioned);
      await use(server);
    },
    { scope: 'worker' },
  ],
  small: [
    async ({ database: server }, use) => {
      await using database = await openDatabase({ url: server.url });
      const set = defaultProvisioning({ count: SMALL_COUNT });
      await using provisioned = await loadProvisioning(database, set, { hashCost: CHEAP_HASH });
      const kept = new KeptConnections(database.url);
      await use({ database: { ...database, connect: () => kept }, provisioned, store: storeOf(set) });
      await kept.end();
    },
    { scope: 'worker' },
  ],
  large: [
    async ({ database, provisioned }, use) => use({ database, provisioned, store: storeOf(provisioned.set) }),
    { scope: 'worker' },
  ],
  start: ({ database, provisioned }, use) => starting({ database, provisioned }, use),
});

/** Starts servers on a database for `use`, and stops them after it. */
export async function starting(
  { database, provisioned }: Pick<World, 'database' | 'provisioned'>,
  use: (start: TestWorld['start']) => Promise<void>,
): Promise<void> {
  const servers: ReferenceServer[] = [];
  await use(async (options) => {
    const server = await startServer(database, provisioned, options);
    servers.push(server);
    return server;
  });
  for (const server of servers) await server.stop();
}

/** Starts a server without sockets on the screenings in memory; `dispatcher` passes requests to it. */
export async function startInProcess(
  { database, provisioned, store }: World,
  options: ServerOptions = {},
): Promise<ReferenceServer & { readonly dispatcher: InProcess }> {
  const dispatcher = new InProcess();
  const server = await startServer(database, provisioned, { store, ...options, inProcess: dispatcher });
  return { ...server, dispatcher };
}

/** Whether requests go over sockets to a server on PostgreSQL, or directly to the handler with a store in memory. */
export type Stack = 'in process' | 'real';

export const startOn = async (
  stack: Stack,
  world: World,
  options?: ServerOptions,
): Promise<ReferenceServer & { readonly dispatcher?: InProcess }> =>
  stack === 'in process'
    ? startInProcess(world, options)
    : startServer(world.database, world.provisioned, options);

export interface Received {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body if it is JSON. Ids beyond 2^53 are rounded. */
  readonly json: unknown;
}

export async function send(url: string, init?: RequestInit): Promise<Received> {
  const response = await fetch(url, init);
  const text = await response.text();
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  return { status: response.status, headers: response.headers, text, json };
}

/** Posts a form; an array of pairs allows repeated names. */
export function requestToken(
  { authUrl }: Pick<ReferenceTarget, 'authUrl'>,
  form: Record<string, string> | [string, string][],
): Promise<Received> {
  return send(`${authUrl}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) });
}

export const goodForm = ({ clientId, clientSecret }: TargetClient): Record<string, string> => ({
  grant_type: 'client_credentials',
  client_id: clientId,
  client_secret: clientSecret,
  scope: 'screenings.read',
});

export async function mintToken(
  target: Pick<ReferenceTarget, 'authUrl'>,
  client: TargetClient | undefined,
): Promise<string> {
  if (!client) throw new Error('the target has no such client');
  const { json } = await requestToken(target, goodForm(client));
  return (json as { access_token: string }).access_token;
}

/** Requests pages of primary with its token; `query` begins with a question mark. */
export async function pagesOf(target: ReferenceTarget): Promise<(query: string) => Promise<Received>> {
  const { primary } = target.clients;
  const headers = { authorization: `Bearer ${await mintToken(target, primary)}` };
  return (query) => send(`${screeningsUrl(target.baseUrl, primary.tenantId)}${query}`, { headers });
}

/** The texts of all items of a client's tenant, by default primary's, that a traversal with this query returns. */
export async function itemsOf(
  target: ReferenceTarget,
  query: string,
  client: TargetClient = target.clients.primary,
): Promise<string[]> {
  const token = await mintToken(target, client);
  return walk(`${screeningsUrl(target.baseUrl, client.tenantId)}?${query}`, token);
}

/** The texts of all items of a traversal in order. */
export async function walk(firstUrl: string, token: string): Promise<string[]> {
  const items: string[] = [];
  for (let url: string | undefined = firstUrl; url !== undefined;) {
    const { status, text, json } = await send(url, { headers: { authorization: `Bearer ${token}` } });
    if (status !== 200) throw new Error(`${url}: ${status} ${text}`);
    items.push(...itemTexts(text));
    url = (json as { links: { next?: string } }).links.next;
  }
  return items;
}
