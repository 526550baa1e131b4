/** A world without sockets and real waiting: its clock advances when client and server only wait. */
import { setImmediate } from 'node:timers/promises';
import { unlessAborted } from '../../../engine/clock.ts';
import { InProcess } from '../../../reference-server/http/in-process.ts';
import type { World } from '../stage.ts';

/** A client needs fewer turns of the event loop between an answer and its next request. */
const QUIET_TURNS = 20;
/** The simulated duration of a request's way, and of an answer's. */
const TRAVEL_MS = 0.5;

export function fakeWorld(): World {
  const inProcess = new InProcess();
  const sleepers = new Set<{ readonly untilMs: number; readonly wake: () => void }>();
  let nowMs = Date.now();
  /** Requests in progress that do not sleep: signing a token runs in a thread. */
  let working = 0;
  let changes = 0;
  let onIdle = (): void => {};
  const count = (more: 1 | -1): void => {
    working += more;
    changes += 1;
    if (working === 0) onIdle();
  };
  let isMoving = false;

  const move = async (): Promise<void> => {
    if (isMoving) return;
    isMoving = true;
    while (sleepers.size > 0) {
      let before = changes;
      for (let quiet = 0; quiet < QUIET_TURNS; quiet = before === changes ? quiet + 1 : 0) {
        before = changes;
        if (working > 0) await new Promise<void>((resolve) => (onIdle = resolve));
        await setImmediate();
      }
      const [next] = [...sleepers].sort((one, other) => one.untilMs - other.untilMs);
      nowMs = Math.max(nowMs, next?.untilMs ?? nowMs);
      next?.wake();
    }
    isMoving = false;
  };

  const sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
    if (signal?.aborted) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        sleepers.delete(sleeper);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const sleeper = { untilMs: nowMs + ms, wake };
      sleepers.add(sleeper);
      signal?.addEventListener('abort', wake);
      void move();
    });
  };

  return {
    clock: { now: () => nowMs, sleep },
    serverClock: {
      now: () => nowMs,
      async sleep(ms, signal) {
        count(-1);
        await sleep(ms, signal);
        count(1);
      },
    },
    // TLS is not simulated, because no client in this process trusts the certificate.
    async listen(_port, tlsHost) {
      const listener = inProcess.listen();
      const handle: typeof listener.handle = (handler) =>
        listener.handle((request) => {
          count(1);
          nowMs += TRAVEL_MS;
          return handler(request).finally(() => {
            count(-1);
            nowMs += TRAVEL_MS;
          });
        });
      return { ...listener, handle, ...(tlsHost ? { origin: `https://${tlsHost}:${listener.port}` } : {}) };
    },
    async fetch(input, { method = 'GET', headers = {}, body = null, signal: given } = {}) {
      const { origin, pathname, search } = new URL(String(input));
      const signal = given ?? new AbortController().signal;
      const answer = inProcess.request({
        ...{ origin, path: pathname + search, method: method as 'GET', body: body as string | null },
        ...{ headers: headers as Record<string, string>, signal },
      });
      const { statusCode, headers: raw, body: content } = await unlessAborted(signal, answer);
      const texts = (raw as unknown as Buffer[]).map((octets) => octets.toString('latin1'));
      const pairs = texts.flatMap((text, at): [string, string][] => (at % 2 ? [[texts[at - 1]!, text]] : []));
      return new Response(ReadableStream.from(content as AsyncIterable<Uint8Array>), {
        status: statusCode,
        headers: pairs,
      });
    },
  };
}
