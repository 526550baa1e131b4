/** Section 6: every screening as an event in its tenant's outbox, in the order of storage, and its delivery to sinks. */
import { appendFile, rm, mkdir, open, writeFile } from 'node:fs/promises';
import type { Connections } from './store/connections.ts';
import { dirname, join, resolve } from 'node:path';

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
  const queues = [...tenants].map((tenantId) => new Queue(connections, sink, tenantId, closing.signal));
  const poll = setInterval(() => queues.forEach((queue) => void queue.drain()), POLL_INTERVAL_MS).unref();
  return {
    settle: async () => void (await Promise.all(queues.map((queue) => queue.drain()))),
    async [Symbol.asyncDispose]() {
      clearInterval(poll);
      closing.abort();
      await Promise.all(queues.map((queue) => queue.drain()));
    },
  };
}

class Queue {
  readonly #connections: Connections;
  readonly #sink: Sink;
  readonly #tenantId: string;
  readonly #closing: AbortSignal;
  #after: bigint | undefined;
  #last: Promise<void> = Promise.resolve();
  #backoffMs = 0;
  #retryAtMs = 0;

  constructor(connections: Connections, sink: Sink, tenantId: string, closing: AbortSignal) {
    this.#connections = connections;
    this.#sink = sink;
    this.#tenantId = tenantId;
    this.#closing = closing;
  }

  /** Runs one after the other. Resolves when the queue is empty or a delivery failed. */
  drain(): Promise<void> {
    return (this.#last = this.#last.then(async () => {
      if (Date.now() < this.#retryAtMs) return;
      try {
        while (!this.#closing.aborted && (await this.#step()));
        this.#backoffMs = 0;
      } catch {
        // The sink or the database does not answer: retry with exponential backoff.
        this.#backoffMs = Math.min(Math.max(POLL_INTERVAL_MS, 2 * this.#backoffMs), MAX_BACKOFF_MS);
        this.#retryAtMs = Date.now() + this.#backoffMs;
      }
    }));
  }

  async #step(): Promise<boolean> {
    this.#after ??= await this.#resume();
    const events = await readEvents(this.#connections, this.#tenantId, this.#after, this.#sink.batch);
    const last = events.at(-1);
    if (!last) return false;
    await this.#sink.deliver(this.#tenantId, events, this.#closing);
    await this.#connections.query({
      text: `INSERT INTO delivery (sink, tenant, sequence) VALUES ($1, $2, $3)
             ON CONFLICT (sink, tenant) DO UPDATE SET sequence = excluded.sequence`,
      values: [this.#sink.name, this.#tenantId, String(last.sequence)],
    });
    this.#after = last.sequence;
    return true;
  }

  async #resume(): Promise<bigint> {
    const [place] = await this.#connections.query<{ sequence: string }>({
      text: 'SELECT sequence::text FROM delivery WHERE sink = $1 AND tenant = $2',
      values: [this.#sink.name, this.#tenantId],
    });
    await this.#sink.prepare?.(this.#tenantId, place !== undefined);
    return BigInt(place?.sequence ?? 0);
  }
}

/** One NDJSON file. It is truncated unless an earlier process delivered to it. */
export const fileSink = (file: string): Sink => filesSink(file, () => file);

export const directorySink = (directory: string): Sink =>
  filesSink(directory, (tenantId) => join(directory, `${tenantId}.ndjson`));

function filesSink(path: string, fileOf: (tenantId: string) => string): Sink {
  return {
    name: `file ${resolve(path)}`,
    batch: 10_000,
    async prepare(tenantId, resumed) {
      const file = fileOf(tenantId);
      await mkdir(dirname(file), { recursive: true });
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
