/** Section 6: every screening as an event of its tenant's queue, in the order of storage. */
import { appendFile } from 'node:fs/promises';
import type { Connections } from './connections.ts';

export interface StoredEvent {
  readonly sequence: bigint;
  readonly tenantId: string;
  readonly id: string;
  readonly testTime: string;
  readonly json: string;
}

/** The CloudEvents 1.0 envelope in its JSON format. `data` is the text that REST returns, character by character. */
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

const BATCH = 10_000;

/** The events of a tenant behind a sequence number, oldest first. */
export async function* readEvents(
  connections: Connections,
  tenantId: string,
  after = 0n,
): AsyncGenerator<StoredEvent> {
  let last = after;
  for (;;) {
    const rows = await connections.query<Record<'sequence' | 'tenant' | 'id' | 'test_time' | 'json', string>>(
      {
        text: `SELECT sequence::text, tenant::text, id::text, test_time, json FROM screening
             WHERE tenant = $1 AND screening.sequence > $2 AND screening.sequence <= $2 + ${BATCH}
             ORDER BY screening.sequence`,
        values: [tenantId, String(last)],
      },
    );
    for (const row of rows) {
      last = BigInt(row.sequence);
      yield {
        sequence: last,
        tenantId: row.tenant,
        id: row.id,
        testTime: row.test_time,
        json: row.json,
      };
    }
    if (rows.length > 0) continue;
    // Nothing in this stretch of the sequence: on to the tenant's next event, if there is one.
    const [next] = await connections.query<{ next: string | null }>({
      text: 'SELECT min(sequence)::text AS next FROM screening WHERE tenant = $1 AND sequence > $2',
      values: [tenantId, String(last)],
    });
    if (!next?.next) return;
    last = BigInt(next.next) - 1n;
  }
}

/** Appends a tenant's events to an NDJSON file; each call appends what was stored since the last. */
export function createEventFile(
  path: string,
  tenantId: string,
  connections: Connections,
): { append(): Promise<void> } {
  let after = 0n;
  let turn: Promise<void> = Promise.resolve();
  const append = async (): Promise<void> => {
    let lines: string[] = [];
    const flush = async (): Promise<void> => {
      await appendFile(path, lines.map((line) => `${line}\n`).join(''), { mode: 0o600 });
      lines = [];
    };
    for await (const event of readEvents(connections, tenantId, after)) {
      lines.push(envelope(event));
      after = event.sequence;
      if (lines.length === BATCH) await flush();
    }
    if (lines.length > 0 || after === 0n) await flush();
  };
  return { append: () => (turn = turn.catch(() => undefined).then(append)) };
}
