/** Fixtures of the fault and variant tests: one database per worker, with enough screenings to show a mistake. */
import { Connections } from '../store/connections.ts';
import { openDatabase, type Database } from '../store/database.ts';
import {
  defaultProvisioning,
  loadProvisioning,
  type Provisioned,
  type ProvisioningSet,
} from '../run/provisioning.ts';
import type { ScreeningStore } from '../parts.ts';
import { createMemoryStore } from '../store/memory.ts';
import { generateScreenings } from '../../fixtures/dataset/generator.ts';
import { InProcess } from '../http/in-process.ts';
import { startServer, type ReferenceServer, type ServerOptions } from '../run/start.ts';
import { test as base } from '../testing.ts';

/** Enough for every shape of screening, ties across boundaries and a dozen pages; few enough for hundreds of runs. */
const COUNT = 600;
/** No fault is in how slowly secrets are hashed. */
const CHEAP_HASH = 1_024;

export interface World {
  readonly database: Database;
  readonly provisioned: Provisioned;
  /** The same screenings without the database. */
  readonly store: ScreeningStore;
}

/** A server without sockets, over the screenings in memory: `dispatcher` takes requests to it. */
export async function startInProcess(
  { database, provisioned, store }: World,
  options: ServerOptions = {},
): Promise<ReferenceServer & { readonly dispatcher: InProcess }> {
  const dispatcher = new InProcess();
  const server = await startServer(database, provisioned, { store, ...options, inProcess: dispatcher });
  return { ...server, dispatcher };
}

/** Shared by all servers of a worker, and not stopped with any of them. */
class KeptConnections extends Connections {
  override async stop(): Promise<void> {}

  async end(): Promise<void> {
    await super.stop();
  }
}

const storeOf = ({ tenants }: ProvisioningSet): ScreeningStore =>
  createMemoryStore(
    new Map(
      tenants
        .filter(({ onboarded }) => onboarded)
        .map(({ tenantId, screenings }) => [
          tenantId,
          screenings && 'generate' in screenings
            ? generateScreenings({ tenantId, ...screenings.generate })
            : [],
        ]),
    ),
  );

export const test = base.extend<object, { readonly small: World; readonly large: World }>({
  small: [
    async ({ database: server }, use) => {
      await using database = await openDatabase({ url: server.url });
      const set = defaultProvisioning({ count: COUNT });
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
});
