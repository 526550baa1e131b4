/** Stores the screenings read from standard input, dataset lines, in a reference server's database. */
import { Command } from 'commander';
import { readScreenings } from '../fixtures/data/dataset.ts';
import { Connections } from './database.ts';
import { storeScreenings } from './store.ts';

const { databaseUrl } = new Command('ingest')
  .description('Stores dataset lines from standard input while a reference server runs.')
  .requiredOption('--database-url <url>', "the database with the server's schema as its search path")
  .parse()
  .opts<{ databaseUrl: string }>();

try {
  await using connections = new Connections(databaseUrl);
  await storeScreenings(connections, readScreenings(process.stdin, 'stdin'));
} catch (error) {
  console.error(`ingest: ${(error as Error).message}`);
  process.exitCode = 1;
}
