/** Sends the limiter's probe from one VU; by hand it also identifies the limiter. */
import { check } from 'k6';
import http from 'k6/http';
import { identifyLimiter } from '../estimate/limiter-fit.ts';
import { probeLimiter, type Probed } from '../estimate/limiter-probe.ts';
import type { Client } from './lib/client.ts';
import { MAX_PAGE_SIZE, readConfig, thresholdsOf, type LoadConfig } from './lib/config.ts';
import type { RatePolicy } from './lib/judge.ts';
import { write } from './lib/record.ts';
import { FAR_END, FIRST } from './lib/window.ts';
import { clientOf, runSetup, SETUP, type SetupData } from './lib/setup.ts';

const config = readConfig({ pageSize: 1 });
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
  thresholds: thresholdsOf(config, {
    findings: ['count<1'],
    ...(config.records ? {} : { checks: ['rate>=1'] }),
  }),
  // Keeps connections open, so that a burst need not connect first.
  batch: 64,
  batchPerHost: 64,
};

export const setup = (): SetupData => runSetup(config);

export default async function (data: SetupData): Promise<void> {
  http.setResponseCallback(http.expectedStatuses(200, 429));
  const fetchOf = (index: number): Fetch => {
    const client = clientOf(config, data, index);
    // An empty window, the cheapest page.
    const { to } = data.window;
    const pageRequest = client.first(to, to, config.pageSize);
    return () => client.fetchPageAsync(pageRequest);
  };
  const { other, pages } = limits;
  if (pages) return readPages(data, pages);
  if (other) return compareClients(fetchOf(0), fetchOf(other.client), other.count);
  const fetch = fetchOf(0);
  const originMs = Date.now();
  const probe = probeLimiter(limits);
  const policies: RatePolicy[] = [];
  let step = probe.next();
  while (!step.done) {
    const { notBeforeMs, count, spacingMs } = step.value;
    await until(originMs + notBeforeMs);
    // Sends at fixed intervals without waiting for answers, so that latency does not reduce the rate.
    const startMs = Date.now();
    const sending = [];
    for (let index = 0; index < count; index += 1) {
      if (index > 0) await until(startMs + index * spacingMs);
      sending.push(fetch());
    }
    const answers = await Promise.all(sending);
    const unexpected = answers.find(({ sent: { status } }) => status !== 200 && status !== 429);
    if (unexpected) {
      if (config.records) write({ kind: 'probe', status: unexpected.sent.status });
      return;
    }
    policies.push(...answers.flatMap(({ sent }) => sent.policy ?? []));
    step = probe.next(
      answers.map(({ sentAtMs, sent }) => ({
        sentMs: sentAtMs - originMs,
        rttMs: sent.serviceMs,
        ok: sent.status === 200,
        retryAfterSeconds: sent.retryAfterSeconds,
      })),
    );
  }
  if (config.records) write({ kind: 'probe', probed: step.value, policies });
  else tellLimiter(step.value);
}

function tellLimiter(probed: Probed): void {
  const found = identifyLimiter(probed);
  const { kind, shaper, atOnce, retryAfterHonest } = found;
  console.log(JSON.stringify({ ...found, cutBy: probed.cutBy }));
  check(probed, {
    'requests are served': ({ seen }) => seen.some(({ ok }) => ok),
    'the limiter is identified or absent': () =>
      kind !== 'cannot-tell' || shaper !== undefined || atOnce !== undefined,
    'Retry-After is long enough': () => retryAfterHonest !== false,
  });
}

/** Waits without blocking, so that answers can arrive. */
function until(atMs: number): Promise<void> {
  const waitMs = atMs - Date.now();
  return waitMs <= 0 ? Promise.resolve() : new Promise((done) => setTimeout(done, waitMs));
}

/** Reads the first page of all screenings, or an empty page, again and again until it is rejected. */
function readPages(data: SetupData, { isFull, count }: NonNullable<typeof limits.pages>): void {
  const client = clientOf(config, data, 0);
  const { to } = data.window;
  const page = isFull ? client.first(FIRST, FAR_END, MAX_PAGE_SIZE) : client.first(to, to, 1);
  let [admitted, items, bytes] = [0, 0, 0];
  while (admitted < count) {
    const { status, response, retryAfterSeconds } = client.fetchPage(page, Date.now(), admitted === 0);
    if (status === 429)
      return write({ kind: 'pages', admitted, isRejected: true, retryAfterSeconds, items, bytes });
    if (status !== 200) return;
    if (admitted === 0) [items, bytes] = [Number(response!.json('items.#')), response!.body.length];
    admitted += 1;
  }
  write({ kind: 'pages', admitted, isRejected: false, items, bytes });
}

const LARGEST_BATCH = 50;

type Fetch = () => ReturnType<Client['fetchPageAsync']>;

/**
 * The first client sends until it is rejected, then the second: if that is rejected too, both share a limit. Then the
 * first again: if it is admitted, its limit was reset, maybe before the second one's requests.
 */
async function compareClients(one: Fetch, other: Fetch, count: number): Promise<void> {
  /** Returns the share of concurrent requests that were admitted. */
  const admitted = async (fetch: Fetch, times: number): Promise<number> => {
    const answers = await Promise.all(Array.from({ length: times }, fetch));
    return answers.filter(({ sent }) => sent.status === 200).length / times;
  };
  // Opens its connections before they are needed.
  await admitted(other, 1);
  let sent = 0;
  for (let batch = 1; sent < limits.maxRequests; batch = Math.min(LARGEST_BATCH, batch * 2)) {
    sent += batch;
    if ((await admitted(one, batch)) === 1) continue;
    write({ kind: 'compared', other: await admitted(other, count), again: await admitted(one, count) });
    return;
  }
}
