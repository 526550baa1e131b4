/** Asks the questions of the limiter's probe, one VU, and writes each answer out; by hand it names the limiter itself. */
import { check } from 'k6';
import http from 'k6/http';
import { identifyLimiter } from '../estimate/limiter-fit.ts';
import { placeReplies, probeLimiter, type Probed, type Reply } from '../estimate/limiter-probe.ts';
import { begin, clientsOf, SETUP, type Begun } from './lib/begin.ts';
import { firstPage, Session, type Sent } from './lib/client.ts';
import { byKit, readConfig, thresholdsOf } from './lib/config.ts';
import { write } from './lib/record.ts';

const config = readConfig({ pageSize: 1, records: byKit });
const limits = config.probe ?? { maxRequests: 2000, maxSeconds: 60 };

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
  thresholds: thresholdsOf(config, { findings: ['count<1'], ...(byKit ? {} : { checks: ['rate>=1'] }) }),
  // Connections that are kept, so that a burst need not dial anew.
  batch: 64,
  batchPerHost: 64,
};

export const setup = (): Begun => begin(config);

export default async function (begun: Begun): Promise<void> {
  const sessionOf = (client: number): Session =>
    new Session(config, clientsOf(config, begun)[client]!, begun.tokens[client]!);
  const session = sessionOf(0);
  // The window's end: the cheapest page there is.
  const { to } = begun.window;
  const place = firstPage(config, session.client, to, to, config.pageSize);
  http.setResponseCallback(http.expectedStatuses(200, 429));
  const originMs = Date.now();
  if (config.probe?.other) {
    await bothAsk(session, sessionOf(config.probe.other.client), config.probe.other, to, originMs);
    return;
  }
  const probe = probeLimiter(limits);
  const replies: Reply[] = [];
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
      tell(sent, sentAtMs - originMs);
    }
    const other = answers.find(({ sent }) => sent.status !== 200 && sent.status !== 429);
    if (other) {
      if (byKit) write({ kind: 'end', status: other.sent.status });
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
  if (byKit && step.value.cutBy) write({ kind: 'end', cutBy: step.value.cutBy });
  if (!byKit) tellLimiter(replies, step.value.cutBy);
}

function tellLimiter(replies: readonly Reply[], cutBy: Probed['cutBy']): void {
  const {
    kind,
    limit,
    windowSeconds,
    burst,
    ratePerSecond,
    alternatives,
    requests,
    retryAfterHonest,
    shaper,
    atOnce,
  } = identifyLimiter({ seen: placeReplies(replies), ...(cutBy ? { cutBy } : {}) });
  console.log(
    JSON.stringify({
      kind,
      limit,
      windowSeconds,
      burst,
      ratePerSecond,
      alternatives,
      requests,
      shaper,
      atOnce,
      cutBy,
    }),
  );
  check(replies, {
    'requests are served': (all) => all.some(({ ok }) => ok),
    'the answers name a limiter, or show none': () =>
      kind !== 'cannot-tell' || shaper !== undefined || atOnce !== undefined,
    'Retry-After is long enough wherever it was waited for': () => retryAfterHonest !== false,
  });
}

/** Waits while answers to what was sent before may come in. */
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

/**
 * One uses up what there is, then the other asks: refused as well, it uses the same. Then the one again: let through, it
 * has been given anew what it used, and maybe before the other asked.
 */
async function bothAsk(
  one: Session,
  another: Session,
  { client, count }: { client: number; count: number },
  to: string,
  originMs: number,
): Promise<void> {
  const ask = async (session: Session, times: number, who: number): Promise<number> => {
    const place = firstPage(config, session.client, to, to, config.pageSize);
    const sending = Array.from({ length: times }, () => session.askAhead(place, config.pageSize));
    const answers = await Promise.all(sending);
    for (const { sent, sentAtMs } of answers) tell(sent, sentAtMs - originMs, who);
    return answers.filter(({ sent }) => sent.status === 200).length;
  };
  // Its connections are there when it counts.
  await ask(another, 1, client);
  let sent = 0;
  for (let batch = 1; sent < limits.maxRequests; batch = Math.min(LARGEST_BATCH, batch * 2)) {
    sent += batch;
    if ((await ask(one, batch, 0)) < batch) break;
  }
  await ask(another, count, client);
  await ask(one, count, 0);
}
