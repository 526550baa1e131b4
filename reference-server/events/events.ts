/** Section 6: every screening as an event in its tenant's outbox, in the order of storage. */
import { appendFile, rm } from 'node:fs/promises';
import type { Connections } from '../store/connections.ts';

export interface StoredEvent {
  readonly sequence: bigint;
  readonly tenantId: string;
  readonly id: string;
  readonly testTime: string;
  readonly json: string;
}

/** The CloudEvents 1.0 envelope in JSON format. `data` is exactly the text that the REST API returns. */
export function envelope({ tenantId, id, testTime, json }: Omit<StoredEvent, 'sequence'>): string {
  const attributes = JSON.stringify({
    specversion: '1.0',
    id,
    source: `/tenants/${tenantId}/screenings`,
    type: 'screening.completed',
    subject: id,
    time: testTime.toUpperCase(),
    datacontenttype: 'application/json',
  });
  return `${attributes.slice(0, -1)},"data":${json}}`;
}

/** Returns the next events of a tenant's outbox after a sequence number, oldest first; empty at the end. */
export async function readEvents(
  connections: Connections,
  tenantId: string,
  after: bigint,
  limit: number,
): Promise<StoredEvent[]> {
  const rows = await connections.query<Record<'sequence' | 'tenant' | 'id' | 'test_time' | 'json', string>>({
    text: `SELECT sequence::text, tenant::text, id::text, test_time, json FROM event
           WHERE tenant = $1 AND event.sequence > $2 ORDER BY event.sequence LIMIT $3`,
    values: [tenantId, String(after), limit],
  });
  return rows.map(({ sequence, tenant, id, test_time, json }) => ({
    sequence: BigInt(sequence),
    tenantId: tenant,
    id,
    testTime: test_time,
    json,
  }));
}

const BATCH = 10_000;

/** Writes the current outbox of a tenant to an NDJSON file. */
export async function writeEvents(path: string, connections: Connections, tenantId: string): Promise<void> {
  await rm(path, { force: true });
  await appendFile(path, '', { mode: 0o600 });
  let after = 0n;
  for (;;) {
    const events = await readEvents(connections, tenantId, after, BATCH);
    const last = events.at(-1);
    if (!last) return;
    await appendFile(path, linesOf(events));
    after = last.sequence;
  }
}

export const linesOf = (events: readonly StoredEvent[]): string =>
  events.map((event) => `${envelope(event)}\n`).join('');
