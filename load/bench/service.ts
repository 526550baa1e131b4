/** The reference server against others on the same data: pages and tokens. */
import { generateScreenings } from '../../fixtures/dataset/generator.ts';
import { resolveTarget } from '../../engine/target/target.ts';
import { openDatabase } from '../../reference-server/store/database.ts';
import { TENANTS } from '../../reference-server/run/provisioning.ts';
import { storeScreenings } from '../../reference-server/store/store.ts';
import { mint } from '../run/ask.ts';
import { startReference } from '../run/reference.ts';
import { guessRow, pageRows, tokenRow, type Plan, type Row, type Subject } from './pages.ts';
import type { Place } from './peers.ts';

const SMALL = 10_000;
const PLACES = 500;
/** In the database that the servers share. */
const SCHEMA = 'bench';

/** `screenings`: of the large tenant. */
export async function serviceRows(screenings: number, plan: Plan): Promise<Row[]> {
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

  plan.tell(`${screenings} screenings are stored`);
  const places = await fill(TENANTS.primary, screenings, 0n);
  const smallPlaces = await fill(TENANTS.secondTenant, SMALL, 500_000_000n);
  await connections.query({ text: 'VACUUM ANALYZE screening' });
  await connections.stop();

  await using running = await startReference(1, ['--keep', SCHEMA], plan.tell, { DATABASE_URL: shared.href });
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
    screenings,
  };

  const rows: Row[] = [];
  for (const size of [100, 1_000]) rows.push(...(await pageRows(subject, size, plan)));
  return [
    ...rows,
    ...(await tokenRow(subject, plan)),
    ...(await guessRow(subject.port, primary.clientId, plan)),
  ];
}
