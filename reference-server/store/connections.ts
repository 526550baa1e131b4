/** Connections to PostgreSQL: a pool that outlives the loss of its server, and says what that means for a request. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { StoreUnavailable } from '../parts.ts';

const CONNECT_TIMEOUT_MS = 3_000;
const POOL_SIZE = 10;
/** The server gives up a statement of its own accord; a server that is gone can't, and is given up a little later. */
const STATEMENT_TIMEOUT_MS = 5_000;
const QUERY_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 2_000;

/** A pool that outlives the loss of its database, and can be cut off from it on purpose. */
export class Connections implements AsyncDisposable {
  readonly #name = `screenings-${randomBytes(6).toString('hex')}`;
  readonly #url: string;
  readonly #pool: pg.Pool;
  #interrupted = false;

  constructor(url: string) {
    this.#url = url;
    this.#pool = this.#open();
  }

  #open(): pg.Pool {
    const pool = new pg.Pool({
      connectionString: this.#url,
      application_name: this.#name,
      max: POOL_SIZE,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      allowExitOnIdle: true,
    });
    // A lost idle connection leaves the pool; the next query opens another.
    pool.on('error', () => undefined);
    pool.on('connect', (client) => client.on('error', () => undefined));
    return pool;
  }

  /** How many there are, and how many requests wait for one. */
  get counts(): { total: number; idle: number; waiting: number } {
    const { totalCount: total, idleCount: idle, waitingCount: waiting } = this.#pool;
    return { total, idle, waiting };
  }

  /** Throws StoreUnavailable where the database can't be reached, and PostgreSQL's error where it refuses. */
  async query<Row extends pg.QueryResultRow | unknown[]>(
    query: pg.QueryConfig | pg.QueryArrayConfig,
  ): Promise<Row[]> {
    if (this.#interrupted) throw new StoreUnavailable('the database is interrupted');
    try {
      const limited = { ...query, query_timeout: QUERY_TIMEOUT_MS };
      return (await this.#pool.query(limited)).rows as Row[];
    } catch (error) {
      throw asUnavailable(error);
    }
  }

  /** One connection for several statements in one transaction, which may take its time. */
  async transaction<Result>(work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
    if (this.#interrupted) throw new StoreUnavailable('the database is interrupted');
    const client = await this.#pool.connect().catch((error: unknown) => {
      throw asUnavailable(error);
    });
    try {
      await client.query('BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL enable_sort = on');
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

/** SQLSTATE classes that speak of the server and not of the statement: connection, resources, timeout, operator. */
const SERVER_TROUBLE = /^(08|53|57014|57P|58)/;
const SQLSTATE = /^[0-9A-Z]{5}$/;

function asUnavailable(error: unknown): unknown {
  const { code } = error as { code?: unknown };
  const refusedStatement = typeof code === 'string' && SQLSTATE.test(code) && !SERVER_TROUBLE.test(code);
  return refusedStatement ? error : new StoreUnavailable(reasonOf(error), { cause: error });
}

/** Connect errors to `localhost` come as several in one, without a message. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}

/** A connection for one statement. */
export async function once(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_TIMEOUT_MS });
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
