/** Sends the limiter's probe from one VU; by hand it also identifies the limiter. */
import { check } from 'k6';
import http from 'k6/http';
import { identifyLimiter } from '../estimate/limiter-fit.ts';
import { type Ask, probeLimiter, type Probed, type Reply } from '../estimate/limiter-probe.ts';
import type { PagesRead } from '../estimate/other-limits.ts';
import type { Client, PageRequest, Sent } from './lib/client.ts';
import { MAX_PAGE_SIZE } from './lib/presets.ts';
import { areRecordsRead, readConfig, thresholdsOf, type LoadConfig } from './lib/config.ts';
import type { RatePolicy } from '../estimate/step.ts';
import { write } from './lib/record.ts';
import { FAR_END, FIRST, shortlyBefore } from './lib/window.ts';
import { clientOf, runSetup, SETUP, type SetupData } from './lib/setup.ts';

const config = readConfig();
const limits: NonNullable<LoadConfig['probe']> = config.probe ?? { maxRequests: 2000, maxSeconds: 60 };

export const options = {
  ...SETUP,
  scenarios: {
    probe: {
      executor: 'per-vu-iterations',
      vus: 1,
      iterations: 1,
      maxDuration: `${Math.ceil(limits.maxSeconds * 1.5 + 30)}s`,
    },
  },
  thresholds: thresholdsOf({ findings: ['count<1'], checks: ['rate>=1'] }),
  // Keeps connections open, so that a burst need not connect first.
  batch: 64,
  batchPerHost: 64,
};

export const setup = (): SetupData => runSetup(config);

let emptyPages = 0;
/** The cheapest page, at another instant each time. */
function emptyPage(client: Client, { window: { to } }: SetupData): PageRequest {
  const at = shortlyBefore(Date.parse(to), emptyPages++ / 1e6);
  return client.first(at, at, 1);
}

export default async function (data: SetupData): Promise<void> {
  http.setResponseCallback(http.expectedStatuses(200, 429));
  if (limits.reads) return readPages(data, limits.reads);
  const client = clientOf(config, data, 0);
  const originMs = Date.now();
  const policies: RatePolicy[] = [];
  let status: number | undefined;
  const ask = async ({ notBeforeMs, count, spacingMs }: Ask): Promise<Reply[]> => {
    await until(originMs + notBeforeMs);
    // Sends at fixed intervals without waiting for answers, so that latency does not reduce the rate.
    const startMs = Date.now();
    const sending = [];
    for (let index = 0; index < count; index += 1) {
      if (index > 0) await until(startMs + index * spacingMs);
      sending.push(client.fetchPageAsync(emptyPage(client, data)));
    }
    const answers = await Promise.all(sending);
    status = answers.map(({ sent }) => sent.status).find((one) => one !== 200 && one !== 429);
    if (status !== undefined) throw new Error(`the probe was stopped by status ${status}`);
    policies.push(...answers.flatMap(({ sent }) => sent.policy ?? []));
    return answers.map(({ sentAtMs, sent }) => ({
      sentMs: sentAtMs - originMs,
      rttMs: sent.serviceMs,
      ok: sent.status === 200,
      retryAfterSeconds: sent.retryAfterSeconds,
    }));
  };
  const probed = await probeLimiter(limits, ask).catch((error: unknown) => {
    if (status === undefined) throw error;
    return undefined;
  });
  if (areRecordsRead) write({ kind: 'probe', probed, policies, status });
  else if (probed) tellLimiter(probed);
}

function tellLimiter(probed: Probed): void {
  const found = identifyLimiter(probed);
  const { kind, shaper, concurrencyLimit, retryAfterHonest } = found;
  console.log(JSON.stringify({ ...found, cutBy: probed.cutBy }));
  check(probed, {
    'requests are served': ({ seen }) => seen.some(({ ok }) => ok),
    'the limiter is identified or absent': () =>
      kind !== 'cannot-tell' || shaper !== undefined || concurrencyLimit !== undefined,
    'Retry-After is long enough': () => retryAfterHonest !== false,
  });
}

/** Waits without blocking, so that answers can arrive. */
function until(atMs: number): Promise<void> {
  const waitMs = atMs - Date.now();
  return waitMs <= 0 ? Promise.resolve() : new Promise((done) => setTimeout(done, waitMs));
}

/** Reads pages by one client after the other, each in growing batches until one is rejected. */
async function readPages(data: SetupData, asked: NonNullable<typeof limits.reads>): Promise<void> {
  const reads: PagesRead[] = [];
  for (const { client, isFull, count, concurrency } of asked) {
    const by = clientOf(config, data, client);
    const page = (): PageRequest => (isFull ? by.first(FIRST, FAR_END, MAX_PAGE_SIZE) : emptyPage(by, data));
    let [admitted, items, bytes] = [0, 0, 0];
    let rejected: Sent | undefined;
    for (let batch = 1; admitted < count && !rejected; batch = Math.min(concurrency, batch * 2)) {
      const isFirst = admitted === 0;
      const length = Math.min(batch, count - admitted);
      const answers = await Promise.all(Array.from({ length }, () => by.fetchPageAsync(page(), isFirst)));
      rejected = answers.find(({ sent }) => sent.status !== 200)?.sent;
      if (rejected && rejected.status !== 429) return;
      const { response } = answers[0]!.sent;
      if (isFirst && !rejected) [items, bytes] = [Number(response!.json('items.#')), response!.body.length];
      admitted += answers.filter(({ sent }) => sent.status === 200).length;
    }
    const { retryAfterSeconds } = rejected ?? {};
    reads.push({ admitted, isRejected: rejected !== undefined, retryAfterSeconds, items, bytes });
  }
  write({ kind: 'pages', reads });
}
