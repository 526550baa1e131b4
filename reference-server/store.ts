/** Screenings in PostgreSQL: pages out of it (4.2), screenings into it. */
import { from as copyFrom } from 'pg-copy-streams';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { inPieces } from '../fixtures/data/dataset.ts';
import { instant, toDecimal } from '../fixtures/data/instant.ts';
import type { Screening } from '../fixtures/data/screening.ts';
import type { Connections } from './connections.ts';
import type { ScreeningStore } from './parts.ts';

const COLUMNS = `SELECT id::text, test_time, json FROM screening WHERE tenant = $1 AND at < $3`;
/** The same stretch of the index (tenant, at, id), begun at an instant or behind a screening. */
export const PAGE = {
  fromInstant: `${COLUMNS} AND at >= $2 ORDER BY at, screening.id LIMIT $4`,
  behindScreening: `${COLUMNS} AND (at, screening.id) > ($2, $5) ORDER BY at, screening.id LIMIT $4`,
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
      const rows = await connections.query<[id: string, testTime: string, json: string]>({
        rowMode: 'array',
        ...(fromId === undefined
          ? { name: 'page', text: PAGE.fromInstant, values }
          : { name: 'page-behind', text: PAGE.behindScreening, values: [...values, String(fromId)] }),
      });
      const items = rows
        .slice(0, pageSize)
        .map(([id, testTime, json]) => ({ id: BigInt(id), testTime, json }));
      return { items, more: rows.length > pageSize };
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
