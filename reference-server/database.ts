/**
 * The database, however it is come by: given by DATABASE_URL, in a container, or embedded.
 * Everything lives in a schema of its own, which goes when the database is closed, so a given database stays clean.
 */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { StoreUnavailable } from './parts.ts';

/** auto: DATABASE_URL, else a container where an engine answers, else embedded. */
export type DatabaseChoice = 'auto' | 'embedded' | 'testcontainers' | { readonly url: string };

/** A PostgreSQL server that runs. */
export interface RunningPostgres {
  readonly url: string;
  /** For people: what it is and why it was taken. */
  readonly description: string;
  stop(): Promise<void>;
}

export interface Database extends AsyncDisposable {
  /** Leads straight to the schema, which is part of it. */
  readonly url: string;
  readonly description: string;
  /** A pool of its own for whoever asks. */
  connect(): Connections;
  stop(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 3_000;
const QUERY_TIMEOUT_MS = 10_000;

const SCHEMA = `
  CREATE TABLE screening (
    tenant    uuid    NOT NULL,
    -- Seconds since the epoch, exact: timestamptz would stop at microseconds.
    at        numeric NOT NULL,
    id        bigint  NOT NULL,
    test_time text    NOT NULL,
    json      text    NOT NULL,
    -- The order of storage: the tenant's event log (section 6).
    sequence  bigint  NOT NULL GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (tenant, id)
  );
  -- Every page is one stretch of this index, wherever it begins.
  CREATE UNIQUE INDEX screening_page ON screening (tenant, at, id);
  CREATE INDEX screening_sequence ON screening USING brin (sequence);
`;

/** Starts or finds the database and makes its schema. Throws an Error that says which way failed, and why. */
export async function openDatabase(choice: DatabaseChoice = 'auto'): Promise<Database> {
  const running = await startPostgres(choice);
  const schema = `screenings_${randomBytes(6).toString('hex')}`;
  const url = withSettings(running.url, schema);
  try {
    await once(running.url, `CREATE SCHEMA ${schema}`);
    await once(url, SCHEMA);
  } catch (error) {
    await running.stop();
    throw new Error(`${running.description}: ${reasonOf(error)}`, { cause: error });
  }
  const stop = async (): Promise<void> => {
    await once(running.url, `DROP SCHEMA ${schema} CASCADE`).catch(() => undefined);
    await running.stop();
  };
  return {
    url,
    description: running.description,
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
  // A named statement's generic plan, made for short windows, is slow on a long one.
  const settings = `-c search_path=${schema} -c plan_cache_mode=force_custom_plan`;
  target.searchParams.set('options', `${given} ${settings}`.trim());
  return target.href;
}

async function once(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_TIMEOUT_MS });
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

/** Connect errors to `localhost` come as several in one, without a message. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}

/** A pool that outlives the loss of its database, and can be cut off from it on purpose. */
export class Connections implements AsyncDisposable {
  readonly #name = `screenings-${randomBytes(6).toString('hex')}`;
  readonly #url: string;
  #pool: pg.Pool;
  #interrupted = false;

  constructor(url: string) {
    this.#url = url;
    this.#pool = this.#open();
  }

  #open(): pg.Pool {
    const pool = new pg.Pool({
      connectionString: this.#url,
      application_name: this.#name,
      max: 10,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      allowExitOnIdle: true,
    });
    // A lost idle connection leaves the pool; the next query opens another.
    pool.on('error', () => undefined);
    pool.on('connect', (client) => client.on('error', () => undefined));
    return pool;
  }

  /** Throws StoreUnavailable where the database can't be reached, and PostgreSQL's error where it refuses. */
  async query<Row extends pg.QueryResultRow>(query: pg.QueryConfig): Promise<Row[]> {
    if (this.#interrupted) throw new StoreUnavailable('the database is interrupted');
    try {
      const limited = { ...query, query_timeout: QUERY_TIMEOUT_MS };
      return (await this.#pool.query<Row>(limited)).rows;
    } catch (error) {
      throw asUnavailable(error);
    }
  }

  /** One connection for several statements in one transaction. */
  async transaction<Result>(work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
    if (this.#interrupted) throw new StoreUnavailable('the database is interrupted');
    const client = await this.#pool.connect().catch((error: unknown) => {
      throw asUnavailable(error);
    });
    try {
      await client.query('BEGIN');
      const result = await work(client);
      await client.query('COMMIT');
      client.release();
      return result;
    } catch (error) {
      // The connection may be in any state: it is closed, which rolls back.
      client.release(true);
      throw asUnavailable(error);
    }
  }

  /** Breaks every connection, queries under way included, and opens none until `restore`. */
  async interrupt(): Promise<void> {
    if (this.#interrupted) return;
    this.#interrupted = true;
    const terminate = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '${this.#name}'`;
    await once(this.#url, terminate).catch(() => undefined);
  }

  restore(): void {
    this.#interrupted = false;
  }

  async stop(): Promise<void> {
    if (!this.#pool.ended && !this.#pool.ending) await this.#pool.end().catch(() => undefined);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

/** SQLSTATE classes that speak of the server and not of the statement: connection, resources, operator. */
const SERVER_TROUBLE = /^(08|53|57P|58)/;
const SQLSTATE = /^[0-9A-Z]{5}$/;

function asUnavailable(error: unknown): unknown {
  const { code } = error as { code?: unknown };
  const refusedStatement = typeof code === 'string' && SQLSTATE.test(code) && !SERVER_TROUBLE.test(code);
  return refusedStatement ? error : new StoreUnavailable(reasonOf(error), { cause: error });
}
