/** The screening store in PostgreSQL: reads pages (4.2), stores screenings. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { inChunks, type Screening } from '../../engine/data/dataset.ts';
import { instant, toDecimal } from '../../engine/data/instant.ts';
import type { Connections } from './connections.ts';
import type { ScreeningStore } from '../parts.ts';

/** A character that neither JSON text nor a date-time contains. */
const SEPARATOR = '\u0001';
/** One range scan of the index, returned as one row of long texts, which the driver parses twice as fast as rows. */
const pageQuery = (begin: string): string =>
  `SELECT string_agg(id::text, E'\\x01') ids, string_agg(test_time, E'\\x01') times, string_agg(json, E'\\x01') texts
   FROM (SELECT id, test_time, json FROM screening WHERE tenant = $1 AND at < $3 AND ${begin}
         ORDER BY at, screening.id LIMIT $4) page`;
export const PAGE = {
  fromInstant: pageQuery('at >= $2'),
  afterScreening: pageQuery('(at, screening.id) > ($2, $5)'),
} as const;

/** `onboarded` holds the onboarded tenants' UUIDs in lower case. */
export function createScreeningStore(
  connections: Connections,
  onboarded: ReadonlySet<string>,
): ScreeningStore {
  return {
    isOnboarded: async (tenantId) => onboarded.has(tenantId.toLowerCase()),

    async page({ tenantId, from, to, fromId, pageSize }) {
      // One more than requested, to tell whether another page follows.
      const values = [tenantId, toDecimal(from), toDecimal(to), pageSize + 1];
      const [row] = await connections.query<Record<'ids' | 'times' | 'texts', string | null>>(
        fromId === undefined
          ? { name: 'page', text: PAGE.fromInstant, values }
          : { name: 'page-after', text: PAGE.afterScreening, values: [...values, String(fromId)] },
      );
      const [ids, times, texts] = [row?.ids, row?.times, row?.texts].map(
        (all) => all?.split(SEPARATOR) ?? [],
      );
      const items = texts!
        .slice(0, pageSize)
        .map((json, place) => ({ id: BigInt(ids![place]!), testTime: times![place]!, json }));
      return { items, more: texts!.length > pageSize };
    },
  };
}

/** Stores by COPY, in constant memory and one transaction, in the order of the index: the rows of a page lie together. */
export async function storeScreenings(
  connections: Connections,
  screenings: Iterable<Screening> | AsyncIterable<Screening>,
): Promise<void> {
  // Imported only here: an optional dependency of the package, which lists its faults without it.
  const { from: copyFrom } = await import('pg-copy-streams');
  await connections.transaction(async (client) => {
    await client.query(`SET LOCAL work_mem = '256MB'`);
    await client.query(
      'CREATE TEMP TABLE incoming (tenant uuid, at numeric, id bigint, test_time text, json text) ON COMMIT DROP',
    );
    const copy = client.query(copyFrom('COPY incoming FROM STDIN'));
    await pipeline(Readable.from(inChunks(copied(screenings))), copy);
    // Only one writer at a time, so that events become visible in the order of their sequence numbers.
    await client.query('LOCK TABLE event IN SHARE ROW EXCLUSIVE MODE');
    await client.query(
      `INSERT INTO screening (tenant, at, id, test_time, json)
       SELECT tenant, at, id, test_time, json FROM incoming ORDER BY tenant, at, id`,
    );
    await client.query(
      'INSERT INTO event (tenant, id, test_time, json) SELECT tenant, id, test_time, json FROM incoming',
    );
  });
}

async function* copied(screenings: Iterable<Screening> | AsyncIterable<Screening>): AsyncGenerator<string> {
  for await (const { id, tenantId, testTime, json } of screenings) {
    const text = json.replace(
      /[\\\t\n\r]/g,
      (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
    );
    yield `${tenantId}\t${toDecimal(instant(testTime))}\t${id}\t${testTime}\t${text}`;
  }
}

/** Deletes a tenant's rows from these tables. With `screening` alone, published events stay. */
export async function forgetTenant(
  connections: Connections,
  tenantId: string,
  tables: readonly string[] = ['screening', 'event', 'delivery'],
): Promise<void> {
  await connections.transaction(async (client) => {
    for (const table of tables) await client.query(`DELETE FROM ${table} WHERE tenant = $1`, [tenantId]);
  });
}
