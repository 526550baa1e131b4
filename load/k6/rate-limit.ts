/** Sends the limiter's probe from one VU and records the answers; by hand it also identifies the limiter. */
import { check } from 'k6';
import http from 'k6/http';
import { identifyLimiter } from '../estimate/limiter-fit.ts';
import { placeReplies, probeLimiter, type Probed, type Reply } from '../estimate/limiter-probe.ts';
import { runSetup, clientsOf, SETUP, type SetupData } from './lib/setup.ts';
import { Client, firstPage, type PageRequest, type Sent } from './lib/client.ts';
import { readConfig, thresholdsOf, type LoadConfig } from './lib/config.ts';
import { write } from './lib/record.ts';

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
  const askerOf = (index: number): Asker => {
    const client = new Client(config, clientsOf(config, data)[index]!, data.tokens[index]!);
    // An empty window, the cheapest page.
    const { to } = data.window;
    return { index, client, pageRequest: firstPage(config, client.credentials, to, to, config.pageSize) };
  };
  const { client, pageRequest } = askerOf(0);
  http.setResponseCallback(http.expectedStatuses(200, 429));
  const originMs = Date.now();
  const { other: second } = limits;
  if (second) return compareClients(askerOf(0), askerOf(second.client), second.count, originMs);
  const probe = probeLimiter(limits);
  const replies: Reply[] = [];
  let step = probe.next();
  while (!step.done) {
    const { notBeforeMs, count, spacingMs } = step.value;
    await until(originMs + notBeforeMs);
    // Sends at fixed intervals without waiting for answers, so that latency does not reduce the rate.
    const startMs = Date.now();
    const sending = [];
    for (let index = 0; index < count; index += 1) {
      if (index > 0) await until(startMs + index * spacingMs);
      sending.push(client.fetchPageAsync(pageRequest));
    }
    const answers = await Promise.all(sending);
    for (const { sentAtMs, sent } of answers) tell(sent, sentAtMs - originMs);
    const other = answers.find(({ sent }) => sent.status !== 200 && sent.status !== 429);
    if (other) {
      if (config.records) write({ kind: 'end', status: other.sent.status });
      return;
    }
    const these = answers.map(({ sentAtMs, sent }): Reply => ({
      sentMs: sentAtMs - originMs,
      rttMs: sent.serviceMs,
      ok: sent.status === 200,
      retryAfterSeconds: sent.retryAfterSeconds,
    }));
    replies.push(...these);
    step = probe.next(these);
  }
  const { cutBy } = step.value;
  if (!config.records) tellLimiter(replies, cutBy);
  else if (cutBy) write({ kind: 'end', cutBy });
}

function tellLimiter(replies: readonly Reply[], cutBy: Probed['cutBy']): void {
  const found = identifyLimiter({ seen: placeReplies(replies), ...(cutBy ? { cutBy } : {}) });
  const { kind, shaper, atOnce, retryAfterHonest } = found;
  console.log(JSON.stringify({ ...found, cutBy }));
  check(replies, {
    'requests are served': (all) => all.some(({ ok }) => ok),
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

function tell(sent: Sent, sentMs: number, client = 0): void {
  if (!config.records) return;
  const { status, retryAfterSeconds, policy } = sent;
  write({
    kind: 'answer',
    client,
    sentMs,
    rttMs: Math.round(sent.serviceMs * 100) / 100,
    status,
    retryAfterSeconds,
    policy,
  });
}

const LARGEST_BATCH = 50;

interface Asker {
  readonly index: number;
  readonly client: Client;
  readonly pageRequest: PageRequest;
}

/**
 * The first client sends until it is rejected, then the second: if that is rejected too, both share a limit. Then the
 * first again: if it is admitted, its limit was reset, maybe before the second one's requests.
 */
async function compareClients(one: Asker, another: Asker, count: number, originMs: number): Promise<void> {
  const ask = async ({ index, client, pageRequest }: Asker, times: number): Promise<number> => {
    const answers = await Promise.all(
      Array.from({ length: times }, () => client.fetchPageAsync(pageRequest)),
    );
    for (const { sent, sentAtMs } of answers) tell(sent, sentAtMs - originMs, index);
    return answers.filter(({ sent }) => sent.status === 200).length;
  };
  // Opens its connections before they are needed.
  await ask(another, 1);
  let sent = 0;
  for (let batch = 1; sent < limits.maxRequests; batch = Math.min(LARGEST_BATCH, batch * 2)) {
    sent += batch;
    if ((await ask(one, batch)) < batch) break;
  }
  await ask(another, count);
  await ask(one, count);
}
