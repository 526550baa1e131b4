/**
 * `npm run bench`: what the reference server's pages and tokens cost, as ratios, which mean the same on any machine.
 * Writes bench.json; exits 0 where every goal is reached, 1 where not.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Command } from 'commander';
import { generateScreenings } from '../fixtures/data/generator.ts';
import { resolveTarget } from '../fixtures/target/target.ts';
import { openDatabase } from '../reference-server/database.ts';
import { TENANTS } from '../reference-server/provisioning.ts';
import { storeScreenings } from '../reference-server/store.ts';
import { guessRow, pageRows, tokenRow, type Row, type Subject } from './bench/pages.ts';
import type { Place } from './bench/peers.ts';
import { mint } from './run/prepare.ts';
import { startReference } from './run/reference.ts';
import { textTable } from './scenarios/words.ts';

const SMALL = 10_000;
const PLACES = 500;
/** In the database that the servers share. */
const SCHEMA = 'bench';

const flags = new Command('bench')
  .description("What the reference server's pages and tokens cost, as ratios.")
  .option('--screenings <n>', 'of the large tenant', Number, 1_000_000)
  .option('--rounds <n>', 'of which the median is taken', Number, 5)
  .option('--seconds <n>', 'of each measurement', Number, 1.5)
  .option('--report-dir <dir>', 'where bench.json goes', 'reports')
  .parse()
  .opts<{ screenings: number; rounds: number; seconds: number; reportDir: string }>();

const tell = (line: string): void => console.error(line);
const plan = { rounds: flags.rounds, seconds: flags.seconds, tell };

await using embedded = await openDatabase('embedded');
const shared = new URL(embedded.url);
shared.search = '';
await using database = await openDatabase({ url: shared.href }, SCHEMA);
const connections = database.connect();

/** Stores a tenant's screenings; gives places all over them. */
async function fill(tenantId: string, count: number, idOffset: bigint): Promise<Place[]> {
  await storeScreenings(
    connections,
    generateScreenings({ tenantId, count, seed: 1, bigIds: false, idOffset }),
  );
  // The last page is full: no place is nearer to the end than the largest page.
  return connections.query<Place & Record<string, unknown>>({
    text: `SELECT at::text, id::text, (n - 1)::int AS offset
           FROM (SELECT at, id, row_number() OVER (ORDER BY at, id) AS n FROM screening WHERE tenant = $1) placed
           WHERE n <= $2 - 1001 ORDER BY random() LIMIT ${PLACES}`,
    values: [tenantId, count],
  });
}

tell(`${flags.screenings} screenings are stored`);
const places = await fill(TENANTS.primary, flags.screenings, 0n);
const smallPlaces = await fill(TENANTS.secondTenant, SMALL, 500_000_000n);
await connections.query({ text: 'VACUUM ANALYZE screening' });
await connections.stop();

process.env['DATABASE_URL'] = shared.href;
await using running = await startReference(1, ['--keep', SCHEMA], tell);
const target = await resolveTarget(running.target, { label: 'reference server' });
const { primary, secondTenant } = target.clients;
const subject: Subject = {
  port: Number(new URL(target.baseUrl).port),
  token: await mint(target, primary.clientId, primary.clientSecret),
  form: new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: primary.clientId,
    client_secret: primary.clientSecret,
    scope: 'screenings.read',
  }).toString(),
  databaseUrl: database.url,
  tenantId: TENANTS.primary,
  small: {
    tenantId: TENANTS.secondTenant,
    token: await mint(target, secondTenant!.clientId, secondTenant!.clientSecret),
    places: smallPlaces,
  },
  places,
  screenings: flags.screenings,
};

const rows: Row[] = [];
for (const size of [100, 1_000]) rows.push(...(await pageRows(subject, size, plan)));
rows.push(...(await tokenRow(subject, plan)), ...(await guessRow(subject.port, primary.clientId, plan)));

await mkdir(flags.reportDir, { recursive: true });
const file = join(flags.reportDir, 'bench.json');
await writeFile(file, `${JSON.stringify({ rows }, null, 2)}\n`);
console.log(
  textTable(
    ['row', 'ratio', 'goal', 'reached'],
    rows.map(({ name, ratio, goal, reached }) => [
      name,
      ratio.toFixed(2),
      goal.toFixed(2),
      reached ? 'yes' : 'no',
    ]),
  ),
);
console.log(file);
process.exitCode = rows.every(({ reached }) => reached) ? 0 : 1;
