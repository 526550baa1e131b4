/** Section 6: every screening as an event in its tenant's outbox, in the order of storage, and its delivery to sinks. */
import { makeFolder } from '../engine/files.ts';
import { appendFile, rm, open, writeFile } from 'node:fs/promises';
import type { Connections } from './store/connections.ts';
import { dirname, resolve } from 'node:path';

interface StoredEvent {
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
  const rows = await connections.query<Record<keyof StoredEvent, string>>({
    text: `SELECT sequence::text, tenant::text AS "tenantId", id::text, test_time AS "testTime", json FROM event
           WHERE tenant = $1 AND event.sequence > $2 ORDER BY event.sequence LIMIT $3`,
    values: [tenantId, String(after), limit],
  });
  return rows.map((row) => ({ ...row, sequence: BigInt(row.sequence) }));
}

const BATCH = 10_000;

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

const linesOf = (events: readonly StoredEvent[]): string =>
  events.map((event) => `${envelope(event)}\n`).join('');

// -- delivery to sinks: files or a webhook ------------------------------------------------------------

export interface Sink {
  /** Key of the delivery position in the database; must be stable so that a later process resumes there. */
  readonly name: string;
  readonly batch: number;
  /** Called before the first delivery of a tenant's events. `resumed`: an earlier process delivered some. */
  prepare?(tenantId: string, resumed: boolean): Promise<void>;
  /** Resolves when the sink has stored all events. */
  deliver(tenantId: string, events: readonly StoredEvent[], signal: AbortSignal): Promise<void>;
}

export interface Delivery extends AsyncDisposable {
  /** Resolves when every event stored so far is delivered, or a delivery failed. */
  settle(): Promise<void>;
}

const POLL_INTERVAL_MS = 250;
const MAX_BACKOFF_MS = 30_000;

/** Delivers to the sink until disposed, each tenant independently. */
export function startDelivery(connections: Connections, sink: Sink, tenants: Iterable<string>): Delivery {
  const closing = new AbortController();
  const queues = [...tenants].map((tenantId) => queue(connections, sink, tenantId, closing.signal));
  const settle = async (): Promise<void> => void (await Promise.all(queues.map((drain) => drain())));
  const poll = setInterval(() => void settle(), POLL_INTERVAL_MS).unref();
  return {
    settle,
    async [Symbol.asyncDispose]() {
      clearInterval(poll);
      closing.abort();
      await settle();
    },
  };
}

/** Returns a function that delivers what is stored; it resolves when the queue is empty or a delivery failed. */
function queue(connections: Connections, sink: Sink, tenantId: string, closing: AbortSignal) {
  let after: bigint | undefined;
  let last: Promise<void> = Promise.resolve();
  let backoffMs = 0;
  let retryAtMs = 0;

  async function resume(): Promise<bigint> {
    const [position] = await connections.query<{ sequence: string }>({
      text: 'SELECT sequence::text FROM delivery WHERE sink = $1 AND tenant = $2',
      values: [sink.name, tenantId],
    });
    await sink.prepare?.(tenantId, position !== undefined);
    return BigInt(position?.sequence ?? 0);
  }

  /** Delivers one batch; false if none is left. */
  async function deliver(): Promise<boolean> {
    after ??= await resume();
    const events = await readEvents(connections, tenantId, after, sink.batch);
    const newest = events.at(-1);
    if (!newest) return false;
    await sink.deliver(tenantId, events, closing);
    await connections.query({
      text: `INSERT INTO delivery (sink, tenant, sequence) VALUES ($1, $2, $3)
             ON CONFLICT (sink, tenant) DO UPDATE SET sequence = excluded.sequence`,
      values: [sink.name, tenantId, String(newest.sequence)],
    });
    after = newest.sequence;
    return true;
  }

  const drain = async (): Promise<void> => {
    if (Date.now() < retryAtMs) return;
    try {
      while (!closing.aborted && (await deliver()));
      backoffMs = 0;
    } catch {
      // The sink or the database does not answer: retry with exponential backoff.
      backoffMs = Math.min(Math.max(POLL_INTERVAL_MS, 2 * backoffMs), MAX_BACKOFF_MS);
      retryAtMs = Date.now() + backoffMs;
    }
  };
  return () => (last = last.then(drain));
}

/** NDJSON files of `path`: it, or one for each tenant in it. They are truncated unless an earlier process delivered to them. */
export function filesSink(path: string, fileOf = (_tenantId: string): string => path): Sink {
  return {
    name: `file ${resolve(path)}`,
    batch: 10_000,
    async prepare(tenantId, resumed) {
      const file = fileOf(tenantId);
      makeFolder(dirname(file));
      if (resumed) return removePartialLine(file);
      await rm(file, { force: true });
      await writeFile(file, '', { mode: 0o600 });
    },
    deliver: (tenantId, events) => appendFile(fileOf(tenantId), linesOf(events), { mode: 0o600 }),
  };
}

/** Removes a half-written last line, which a killed process may have left; its event is delivered again. */
async function removePartialLine(file: string): Promise<void> {
  await using handle = await open(file, 'a+', 0o600);
  const { size } = await handle.stat();
  const tail = Buffer.alloc(Math.min(size, 1_000_000));
  await handle.read(tail, 0, tail.length, size - tail.length);
  await handle.truncate(size - tail.length + tail.lastIndexOf('\n') + 1);
}

const ANSWER_TIMEOUT_MS = 10_000;

/** POSTs each event in structured mode (CloudEvents HTTP binding, 3.2); a 2xx acknowledges. */
export function webhookSink(url: string): Sink {
  return {
    name: `webhook ${url}`,
    // One event at a time: a receiver that fails sometimes still makes progress.
    batch: 1,
    async deliver(_tenantId, [event], closing) {
      const { ok, status, body } = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/cloudevents+json; charset=utf-8' },
        body: event && envelope(event),
        redirect: 'error',
        signal: AbortSignal.any([closing, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]),
      });
      await body?.cancel();
      if (!ok) throw new Error(`the webhook answered ${status}`);
    },
  };
}
