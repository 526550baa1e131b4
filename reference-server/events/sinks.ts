/** Destinations of events: files and a webhook. */
import { appendFile, mkdir, open, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Sink } from './delivery.ts';
import { envelope, linesOf } from './events.ts';

/** One NDJSON file. It is truncated unless an earlier process delivered to it. */
export const fileSink = (file: string): Sink => filesSink(file, () => file);

/** One file TENANT.ndjson per tenant. */
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
