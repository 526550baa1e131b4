/**
 * The database, however it is come by: given by DATABASE_URL, in a container, or embedded.
 * Everything lives in a schema of its own, which goes when the database is closed, so a given database stays clean.
 */
import { randomBytes } from 'node:crypto';
import { Connections, once, reasonOf } from './connections.ts';
import type { Outage, RunningPostgres } from './running-postgres.ts';

/** auto: DATABASE_URL, else a container where an engine answers, else embedded. */
export type DatabaseChoice = 'auto' | 'embedded' | 'testcontainers' | { readonly url: string };

export interface Database extends AsyncDisposable {
  /** Leads straight to the schema, which is part of it. */
  readonly url: string;
  readonly description: string;
  readonly outage?: Outage;
  /** A new pool for each caller. */
  connect(): Connections;
  stop(): Promise<void>;
}

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS screening (
    tenant    uuid    NOT NULL,
    -- Seconds since the epoch, exact: timestamptz would stop at microseconds.
    at        numeric NOT NULL,
    id        bigint  NOT NULL,
    test_time text    NOT NULL,
    json      text    NOT NULL,
    PRIMARY KEY (tenant, id)
  );
  -- Every page is one stretch of this index, wherever it begins.
  CREATE UNIQUE INDEX IF NOT EXISTS screening_page ON screening (tenant, at, id);
  -- The outbox (section 6): written in the transaction that stores the screening, and kept where that is deleted.
  CREATE TABLE IF NOT EXISTS event (
    tenant    uuid   NOT NULL,
    -- The order of storage.
    sequence  bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    id        bigint NOT NULL,
    test_time text   NOT NULL,
    json      text   NOT NULL,
    PRIMARY KEY (tenant, sequence)
  );
  -- The last event of a tenant that a way out has acknowledged.
  CREATE TABLE IF NOT EXISTS delivery (
    sink      text   NOT NULL,
    tenant    uuid   NOT NULL,
    sequence  bigint NOT NULL,
    PRIMARY KEY (sink, tenant)
  );
`;

/**
 * Starts or finds the database and makes its schema. `keep` names a schema that stays, and whose data is served again:
 * only where the database itself stays. Throws an Error that says which way failed, and why.
 */
export async function openDatabase(choice: DatabaseChoice = 'auto', keep?: string): Promise<Database> {
  const running = await startPostgres(choice);
  const schema = keep ?? `screenings_${randomBytes(6).toString('hex')}`;
  const url = withSettings(running.url, schema);
  try {
    if (keep !== undefined && running.outage)
      throw new Error('it ends with the server, so it can keep nothing');
    await once(running.url, `CREATE SCHEMA IF NOT EXISTS ${schema}`);
    await once(url, SCHEMA);
  } catch (error) {
    await running.stop();
    throw new Error(`${running.description}: ${reasonOf(error)}`, { cause: error });
  }
  const stop = async (): Promise<void> => {
    if (keep === undefined) await once(running.url, `DROP SCHEMA ${schema} CASCADE`).catch(() => undefined);
    await running.stop();
  };
  return {
    url,
    description: running.description,
    ...(running.outage ? { outage: running.outage } : {}),
    connect: () => new Connections(url),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function startPostgres(choice: DatabaseChoice): Promise<RunningPostgres> {
  const given = typeof choice === 'object' ? choice.url : process.env['DATABASE_URL'];
  if (typeof choice === 'object' || (choice === 'auto' && given)) {
    return { url: given as string, description: 'the database of DATABASE_URL', stop: async () => {} };
  }
  let why = '';
  if (choice !== 'embedded') {
    const { findEngine, startContainer } = await import('./postgres-container.ts');
    const engine = await findEngine(choice === 'testcontainers' ? 'asked' : 'unasked');
    if ('image' in engine) return startContainer(engine.image);
    if (choice === 'testcontainers') throw new Error(`no PostgreSQL in a container: ${engine.reason}`);
    why = ` (${engine.reason.trim()})`;
  }
  const { startEmbedded } = await import('./postgres-embedded.ts');
  const embedded = await startEmbedded();
  return { ...embedded, description: `${embedded.description}${why}` };
}

/** The same database with the session's settings in its address, so that they hold for other processes too. */
function withSettings(url: string, schema: string): string {
  const target = new URL(url);
  const given = target.searchParams.get('options') ?? '';
  // A page is planned once a connection, and only in its one good way: along the index, whose order is the page's.
  // Left to itself, the plan for any window would sort (it hopes that windows are short).
  const settings = `-c search_path=${schema} -c plan_cache_mode=force_generic_plan -c enable_sort=off`;
  target.searchParams.set('options', `${given} ${settings}`.trim());
  return target.href;
}
