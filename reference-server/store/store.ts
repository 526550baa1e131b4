/** Screenings in PostgreSQL: pages out of it (4.2), screenings into it. */
import { from as copyFrom } from 'pg-copy-streams';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { inPieces } from '../../engine/data/dataset.ts';
import { instant, toDecimal } from '../../engine/data/instant.ts';
import type { Screening } from '../../engine/data/screening.ts';
import type { Connections } from './connections.ts';
import type { ScreeningStore } from '../parts.ts';

/** What no JSON text and no date-time holds. */
const SEPARATOR = '\u0001';
/**
 * A page is one stretch of the index (tenant, at, id). It comes as a single row of three long texts: a driver takes
 * those apart in half the time that it needs for a thousand rows.
 */
const pageQuery = (begin: string): string =>
  `SELECT string_agg(id::text, E'\\x01') ids, string_agg(test_time, E'\\x01') times, string_agg(json, E'\\x01') texts
   FROM (SELECT id, test_time, json FROM screening WHERE tenant = $1 AND at < $3 AND ${begin}
         ORDER BY at, screening.id LIMIT $4) page`;
export const PAGE = {
  fromInstant: pageQuery('at >= $2'),
  afterScreening: pageQuery('(at, screening.id) > ($2, $5)'),
} as const;

/** `onboarded` holds the tenants of the Sessions API, in lower case. */
export function createScreeningStore(
  connections: Connections,
  onboarded: ReadonlySet<string>,
): ScreeningStore {
  return {
    isOnboarded: async (tenantId) => onboarded.has(tenantId.toLowerCase()),

    async page({ tenantId, from, to, fromId, pageSize }) {
      // One more than asked tells whether another page follows.
      const values = [tenantId, toDecimal(from), toDecimal(to), pageSize + 1];
      const [row] = await connections.query<Record<'ids' | 'times' | 'texts', string | null>>({
        ...(fromId === undefined
          ? { name: 'page', text: PAGE.fromInstant, values }
          : { name: 'page-after', text: PAGE.afterScreening, values: [...values, String(fromId)] }),
      });
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

/**
 * Stores screenings by COPY, in constant memory, in one transaction. They are sorted on their way in: rows that are
 * read together then lie together, and the index grows at its end only.
 */
export async function storeScreenings(
  connections: Connections,
  screenings: Iterable<Screening> | AsyncIterable<Screening>,
): Promise<void> {
  await connections.transaction(async (client) => {
    await client.query(`SET LOCAL work_mem = '256MB'`);
    await client.query(
      'CREATE TEMP TABLE incoming (tenant uuid, at numeric, id bigint, test_time text, json text) ON COMMIT DROP',
    );
    const copy = client.query(copyFrom('COPY incoming FROM STDIN'));
    await pipeline(Readable.from(inPieces(copyLines(screenings))), copy);
    // One writer at a time: readers of the outbox then never see a later sequence before an earlier one.
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

async function* copyLines(
  screenings: Iterable<Screening> | AsyncIterable<Screening>,
): AsyncGenerator<string> {
  for await (const { id, tenantId, testTime, json } of screenings) {
    const text = json.replace(/[\\\t\n\r]/g, (character) => COPY_ESCAPES[character] as string);
    yield `${tenantId}\t${toDecimal(instant(testTime))}\t${id}\t${testTime}\t${text}`;
  }
}

const COPY_ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
};

/** Takes a tenant's screenings away; their events were published and stay. */
export async function removeScreenings(connections: Connections, tenantId: string): Promise<void> {
  await connections.transaction(async (client) => {
    await client.query('DELETE FROM screening WHERE tenant = $1', [tenantId]);
  });
}

/** As if the tenant had never had a screening. */
export async function forgetTenant(connections: Connections, tenantId: string): Promise<void> {
  await connections.transaction(async (client) => {
    for (const table of ['screening', 'event', 'delivery']) {
      await client.query(`DELETE FROM ${table} WHERE tenant = $1`, [tenantId]);
    }
  });
}
