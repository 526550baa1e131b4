/** Opens the database (DATABASE_URL, a container or embedded), with all data in a schema that is dropped on close. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Connections, execute, reasonOf } from './connections.ts';
import type { RunningPostgres } from './postgres-embedded.ts';

/** auto: DATABASE_URL, else a container if an engine answers, else embedded. */
export type DatabaseChoice = 'auto' | 'embedded' | 'testcontainers' | { readonly url: string };

/** The URL includes the schema. */
export interface Database extends Omit<RunningPostgres, 'stop'>, AsyncDisposable {
  connect(): Connections;
}

const SCHEMA = readFileSync(new URL('schema.sql', import.meta.url), 'utf8');

/** Opens it and makes the schema, or keeps that of `keep`, which needs DATABASE_URL. Throws an Error with its kind. */
export async function openDatabase(choice: DatabaseChoice = 'auto', keep?: string): Promise<Database> {
  const running = await startPostgres(choice);
  const schema = keep ?? `screenings_${randomBytes(6).toString('hex')}`;
  const url = withSettings(running.url, schema);
  try {
    if (keep !== undefined && running.outage)
      throw new Error('it is deleted when the server stops, so --keep needs DATABASE_URL');
    await execute(running.url, `CREATE SCHEMA IF NOT EXISTS ${schema}`);
    await execute(url, SCHEMA);
  } catch (error) {
    await running.stop();
    throw new Error(`${running.description}: ${reasonOf(error)}`, { cause: error });
  }
  return {
    url,
    description: running.description,
    outage: running.outage,
    connect: () => new Connections(url),
    async [Symbol.asyncDispose]() {
      if (keep === undefined)
        await execute(running.url, `DROP SCHEMA ${schema} CASCADE`).catch(() => undefined);
      await running.stop();
    },
  };
}

async function startPostgres(choice: DatabaseChoice): Promise<RunningPostgres> {
  const given = typeof choice === 'object' ? choice.url : process.env['DATABASE_URL'];
  if (typeof choice === 'object' || (choice === 'auto' && given))
    return { url: given as string, description: 'the database of DATABASE_URL', stop: async () => {} };
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

/** Adds the session settings to the URL, so that other processes use them too. */
function withSettings(url: string, schema: string): string {
  const target = new URL(url);
  const given = target.searchParams.get('options') ?? '';
  // The generic plan is made once per connection; without sorting, it is a range scan of the index. By default
  // PostgreSQL assumes short windows and sorts.
  const settings = `-c search_path=${schema} -c plan_cache_mode=force_generic_plan -c enable_sort=off`;
  target.searchParams.set('options', `${given} ${settings}`.trim());
  return target.href;
}
