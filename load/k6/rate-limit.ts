/** Asks the questions of the limiter's probe, one VU, and writes each answer out; the runner names the limiter. */
import http from 'k6/http';
import type { Options } from 'k6/options';
import { probeLimiter, type Reply } from '../estimate/limiter-probe.ts';
import { firstPage, mint, Session } from './lib/client.ts';
import { readConfig } from './lib/config.ts';
export { handleSummary } from './lib/summary.ts';

const config = readConfig();
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
  thresholds: Object.fromEntries(
    Object.entries(config.thresholds).map(([name, rules]) => [name, [...rules]]),
  ),
  // Connections that are kept, so that a burst need not dial anew.
  batch: 64,
  batchPerHost: 64,
};

export default async function (): Promise<void> {
  const client = config.clients[config.probe?.client ?? 0]!;
  const session = new Session(config, client, mint(config, client));
  // The window's end: the cheapest page there is.
  const { to } = config.window;
  const place = firstPage(config, client, to, to, config.pageSize);
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
      const fields = [
        sentAtMs - originMs,
        sent.serviceMs.toFixed(2),
        sent.status,
        sent.retryAfterSeconds ?? '',
      ];
      console.log(`o ${fields.join(' ')}`);
    }
    if (answers.some(({ sent }) => sent.status !== 200 && sent.status !== 429)) {
      console.log(`stopped by status ${answers.map(({ sent }) => sent.status).join(' ')}`);
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
  if (step.value.cutBy) console.log(`cut by ${step.value.cutBy}`);
}

/** Waits while answers to what was sent before may come in. */
function until(atMs: number): Promise<void> {
  const waitMs = atMs - Date.now();
  return waitMs <= 0 ? Promise.resolve() : new Promise((done) => setTimeout(done, waitMs));
}
