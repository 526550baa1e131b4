/**
 * The ways out of the outbox. Each is delivered every tenant's events in their order, and a place is taken note of
 * when its event was acknowledged: after any failure in between an event is delivered again and none is lost.
 */
import type { Connections } from '../store/connections.ts';
import { readEvents, type StoredEvent } from './events.ts';

/** Where events go. */
export interface Sink {
  /** Names it in the database, so that a later process goes on where an earlier one ended. */
  readonly name: string;
  /** Events per batch. */
  readonly batch: number;
  /** Before the first delivery of a tenant's events. `resumed`: an earlier process delivered some. */
  prepare?(tenantId: string, resumed: boolean): Promise<void>;
  /** Resolves when all of them are safe there. */
  deliver(tenantId: string, events: readonly StoredEvent[], signal: AbortSignal): Promise<void>;
}

export interface Delivery extends AsyncDisposable {
  /** Resolves when every event stored so far is delivered, or a sink refused. */
  settle(): Promise<void>;
}

const LOOK_EVERY_MS = 250;
const LONGEST_PAUSE_MS = 30_000;

/** Delivers to a sink until it is disposed of. Tenants don't wait for one another. */
export function startDelivery(connections: Connections, sink: Sink, tenants: Iterable<string>): Delivery {
  const closing = new AbortController();
  const queues = [...tenants].map((tenantId) => new Queue(connections, sink, tenantId, closing.signal));
  const look = setInterval(() => queues.forEach((queue) => void queue.drain()), LOOK_EVERY_MS).unref();
  return {
    settle: async () => void (await Promise.all(queues.map((queue) => queue.drain()))),
    async [Symbol.asyncDispose]() {
      clearInterval(look);
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
  /** The last event that was acknowledged. */
  #after: bigint | undefined;
  #turn: Promise<void> = Promise.resolve();
  #pauseMs = 0;
  #pausedUntil = 0;

  constructor(connections: Connections, sink: Sink, tenantId: string, closing: AbortSignal) {
    this.#connections = connections;
    this.#sink = sink;
    this.#tenantId = tenantId;
    this.#closing = closing;
  }

  /** One after the other. Resolves when nothing is left, or the sink refused. */
  drain(): Promise<void> {
    return (this.#turn = this.#turn.then(async () => {
      if (Date.now() < this.#pausedUntil) return;
      try {
        while (!this.#closing.aborted && (await this.#step()));
        this.#pauseMs = 0;
      } catch {
        // The sink or the database does not answer: again later, and ever later.
        this.#pauseMs = Math.min(Math.max(LOOK_EVERY_MS, 2 * this.#pauseMs), LONGEST_PAUSE_MS);
        this.#pausedUntil = Date.now() + this.#pauseMs;
      }
    }));
  }

  /** Whether there was something to deliver. */
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
