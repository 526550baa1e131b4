/** Asks the questions of the limiter's probe, one VU, and writes each answer out; the runner names the limiter. */
import http from 'k6/http';
import type { Options } from 'k6/options';
import { probeLimiter, type Reply } from '../estimate/limiter-probe.ts';
import { begin, type Begun } from './lib/begin.ts';
import { firstPage, Session } from './lib/client.ts';
import { readConfig, thresholdsOf } from './lib/config.ts';
import { write } from './lib/record.ts';
export { handleSummary } from './lib/summary.ts';

const config = readConfig({ pageSize: 1, records: true });
const limits = config.probe ?? { maxRequests: 2000, maxSeconds: 60 };

export const options: Options = {
  scenarios: {
    probe: {
      executor: 'per-vu-iterations',
      vus: 1,
      iterations: 1,
      maxDuration: `${Math.ceil(limits.maxSeconds * 1.5 + 30)}s`,
    },
  },
  thresholds: thresholdsOf(config, { findings: ['count<1'] }),
  // Connections that are kept, so that a burst need not dial anew.
  batch: 64,
  batchPerHost: 64,
};

export const setup = (): Begun => begin(config);

export default async function (begun: Begun): Promise<void> {
  const which = config.probe?.client ?? 0;
  const session = new Session(config, begun.clients[which]!, begun.tokens[which]!);
  // The window's end: the cheapest page there is.
  const { to } = begun.window;
  const place = firstPage(config, session.client, to, to, config.pageSize);
  http.setResponseCallback(http.expectedStatuses(200, 429));
  const originMs = Date.now();
  const probe = probeLimiter(limits);
  let step = probe.next();
  while (!step.done) {
    const { notBeforeMs, count, spacingMs } = step.value;
    await until(originMs + notBeforeMs);
    // Sent one after the other whether or not answers have come: a long way does not make the questions fewer.
    const startMs = Date.now();
    const sending = [];
    for (let index = 0; index < count; index += 1) {
      if (index > 0) await until(startMs + index * spacingMs);
      sending.push(session.askAhead(place, config.pageSize));
    }
    const answers = await Promise.all(sending);
    for (const { sentAtMs, sent } of answers) {
      const { status, retryAfterSeconds } = sent;
      const rttMs = Math.round(sent.serviceMs * 100) / 100;
      write({ kind: 'answer', sentMs: sentAtMs - originMs, rttMs, status, retryAfterSeconds });
    }
    const other = answers.find(({ sent }) => sent.status !== 200 && sent.status !== 429);
    if (other) {
      write({ kind: 'end', status: other.sent.status });
      return;
    }
    step = probe.next(
      answers.map(({ sentAtMs, sent }): Reply => ({
        sentMs: sentAtMs - originMs,
        rttMs: sent.serviceMs,
        ok: sent.status === 200,
        retryAfterSeconds: sent.retryAfterSeconds,
      })),
    );
  }
  if (step.value.cutBy) write({ kind: 'end', cutBy: step.value.cutBy });
}

/** Waits while answers to what was sent before may come in. */
function until(atMs: number): Promise<void> {
  const waitMs = atMs - Date.now();
  return waitMs <= 0 ? Promise.resolve() : new Promise((done) => setTimeout(done, waitMs));
}
