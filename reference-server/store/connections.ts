/** Connections to PostgreSQL: a pool that survives a restart of the database, maps its errors, and can be interrupted. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { StoreUnavailable } from '../parts.ts';

const CONNECT_TIMEOUT_MS = 3_000;
const POOL_SIZE = 10;
/** PostgreSQL cancels a slow statement itself; the client's timeout is longer, for a server that no longer answers. */
const STATEMENT_TIMEOUT_MS = 5_000;
const QUERY_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 2_000;
/** A statement that changes the schema may wait for another connection's lock. */
const EXECUTE_TIMEOUT_MS = 30_000;

export class Connections implements AsyncDisposable {
  readonly #name = `screenings-${randomBytes(6).toString('hex')}`;
  readonly #url: string;
  readonly #pool: pg.Pool;
  #interrupted = false;

  constructor(url: string) {
    this.#url = url;
    this.#pool = new pg.Pool({
      connectionString: url,
      application_name: this.#name,
      max: POOL_SIZE,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      allowExitOnIdle: true,
    });
    // The pool discards a lost idle connection; the next query opens another.
    this.#pool.on('error', () => undefined);
    this.#pool.on('connect', (client) => client.on('error', () => undefined));
  }

  /** The number of connections, and of requests that wait for one. */
  get counts(): { total: number; idle: number; waiting: number } {
    const { totalCount: total, idleCount: idle, waitingCount: waiting } = this.#pool;
    return { total, idle, waiting };
  }

  /** Throws StoreUnavailable if the database does not answer, and PostgreSQL's error if it rejects the statement. */
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

  /** Runs `work` in one transaction without a statement timeout. */
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
      // The state of the connection is unknown: close it, which rolls back.
      client.release(true);
      throw asUnavailable(error);
    }
  }

  /** Terminates every connection, also during a query, and opens none until `restore`. */
  async interrupt(): Promise<void> {
    if (this.#interrupted) return;
    this.#interrupted = true;
    const terminate = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '${this.#name}'`;
    await execute(this.#url, terminate).catch(() => undefined);
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

/** SQLSTATE classes for errors of the server, not of the statement: connection, resources, cancellation, operator. */
const SERVER_ERROR = /^(08|53|57014|57P|58)/;
const SQLSTATE = /^[0-9A-Z]{5}$/;

function asUnavailable(error: unknown): unknown {
  const { code } = error as { code?: unknown };
  const isStatementError = typeof code === 'string' && SQLSTATE.test(code) && !SERVER_ERROR.test(code);
  return isStatementError ? error : new StoreUnavailable(reasonOf(error), { cause: error });
}

/** A failed connection to `localhost` throws an AggregateError without a message, one error per address. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}

/** Executes a statement over a connection of its own. Throws an Error if it fails, or takes half a minute. */
export async function execute(url: string, sql: string): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: EXECUTE_TIMEOUT_MS,
  });
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
