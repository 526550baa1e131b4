/** Asks the questions of the limiter's probe, one VU, and writes each answer out; the runner names the limiter. */
import { sleep } from 'k6';
import http from 'k6/http';
import type { Options } from 'k6/options';
import { probeLimiter, type Observation } from '../estimate/limiter-probe.ts';
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
  batch: 50,
  batchPerHost: 50,
};

export default function (): void {
  const client = config.clients[0]!;
  const session = new Session(config, client, mint(config, client));
  // The window's end: the cheapest page there is.
  const { to } = config.window;
  const place = firstPage(config, client, to, to, config.pageSize);
  http.setResponseCallback(http.expectedStatuses(200, 429));
  // The connection is made before anything is timed.
  const originMs = Date.now();
  const probe = probeLimiter(limits);
  let step = probe.next();
  while (!step.done) {
    const { notBeforeMs, count } = step.value;
    const waitMs = originMs + notBeforeMs - Date.now();
    if (waitMs > 0) sleep(waitMs / 1000);
    const answers = session.askAtOnce(place, config.pageSize, count);
    const seen = answers.map(({ sent, startedAtMs }): Observation => {
      const halfMs = sent.serviceMs / 2;
      // Date.now() counts whole milliseconds: half of one is added to what the wait leaves open.
      return {
        atMs: startedAtMs - originMs + halfMs + 0.5,
        slackMs: halfMs + 0.5,
        ok: sent.status === 200,
        retryAfterSeconds: sent.retryAfterSeconds,
      };
    });
    for (const { atMs, slackMs, ok, retryAfterSeconds } of seen) {
      console.log(`o ${atMs.toFixed(2)} ${slackMs.toFixed(2)} ${ok ? 1 : 0} ${retryAfterSeconds ?? ''}`);
    }
    if (answers.some(({ sent }) => sent.status !== 200 && sent.status !== 429)) {
      console.log(`stopped by status ${answers.map(({ sent }) => sent.status).join(' ')}`);
      return;
    }
    step = probe.next(seen);
  }
  if (step.value.cutBy) console.log(`cut by ${step.value.cutBy}`);
}
