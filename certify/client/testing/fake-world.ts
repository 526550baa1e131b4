/** In-process transport and a fake clock: a request takes half a millisecond, and a sleep ends immediately. */
import { setImmediate } from 'node:timers/promises';
import { unlessAborted } from '../../../engine/clock.ts';
import { InProcess } from '../../../reference-server/http/in-process.ts';
import type { World } from '../stage.ts';

/** The simulated duration of a request's way, and of an answer's. */
const TRAVEL_MS = 0.25;

export function fakeWorld(): World {
  const inProcess = new InProcess();
  let nowMs = Date.now();
  return {
    clock: {
      now: () => nowMs,
      // Overlapping sleeps advance the clock only once.
      async sleep(ms) {
        const untilMs = nowMs + ms;
        await setImmediate();
        nowMs = Math.max(nowMs, untilMs);
      },
    },
    // TLS is not simulated, because no client in this process trusts the certificate.
    async listen(_port, tlsHost) {
      const listener = inProcess.listen();
      return { ...listener, ...(tlsHost ? { origin: `https://${tlsHost}:${listener.port}` } : {}) };
    },
    async fetch(input, { method = 'GET', headers = {}, body = null, signal: given } = {}) {
      const { origin, pathname, search } = new URL(String(input));
      const signal = given ?? new AbortController().signal;
      nowMs += TRAVEL_MS;
      const answer = inProcess.request({
        ...{ origin, path: pathname + search, method: method as 'GET', body: body as string | null },
        ...{ headers: headers as Record<string, string>, signal },
      });
      const { statusCode, headers: raw, body: content } = await unlessAborted(signal, answer);
      nowMs += TRAVEL_MS;
      const texts = (raw as unknown as Buffer[]).map((octets) => octets.toString('latin1'));
      const pairs = texts.flatMap((text, at): [string, string][] => (at % 2 ? [[texts[at - 1]!, text]] : []));
      return new Response(ReadableStream.from(content as AsyncIterable<Uint8Array>), {
        status: statusCode,
        headers: pairs,
      });
    },
  };
}
