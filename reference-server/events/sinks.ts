/** Where events can go: files, and a webhook. */
import { appendFile, mkdir, open, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Sink } from './delivery.ts';
import { envelope, linesOf } from './events.ts';

/** One NDJSON file. It is truncated, unless an earlier process delivered to it. */
export const fileSink = (file: string): Sink => filesSink(file, () => file);

/** TENANT.ndjson in a directory, for each tenant. */
export const directorySink = (directory: string): Sink =>
  filesSink(directory, (tenantId) => join(directory, `${tenantId}.ndjson`));

function filesSink(path: string, fileOf: (tenantId: string) => string): Sink {
  return {
    name: `file ${resolve(path)}`,
    batch: 10_000,
    async prepare(tenantId, resumed) {
      const file = fileOf(tenantId);
      await mkdir(dirname(file), { recursive: true });
      if (resumed) return cutBrokenLine(file);
      await rm(file, { force: true });
      await writeFile(file, '', { mode: 0o600 });
    },
    deliver: (tenantId, events) => appendFile(fileOf(tenantId), linesOf(events), { mode: 0o600 }),
  };
}

/** A process that was killed may have left half a line; its event comes again. */
async function cutBrokenLine(file: string): Promise<void> {
  await using handle = await open(file, 'a+', 0o600);
  const { size } = await handle.stat();
  const tail = Buffer.alloc(Math.min(size, 1_000_000));
  await handle.read(tail, 0, tail.length, size - tail.length);
  await handle.truncate(size - tail.length + tail.lastIndexOf('\n') + 1);
}

const ANSWER_WITHIN_MS = 10_000;

/** POSTs one event after the other, in structured mode (CloudEvents HTTP binding, 3.2); 2xx acknowledges. */
export function webhookSink(url: string): Sink {
  return {
    name: `webhook ${url}`,
    // Each is taken note of by itself: a receiver that refuses now and then gets on.
    batch: 1,
    async deliver(_tenantId, [event], closing) {
      const { ok, status, body } = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/cloudevents+json; charset=utf-8' },
        body: event && envelope(event),
        redirect: 'error',
        signal: AbortSignal.any([closing, AbortSignal.timeout(ANSWER_WITHIN_MS)]),
      });
      await body?.cancel();
      if (!ok) throw new Error(`the webhook answers ${status}`);
    },
  };
}
