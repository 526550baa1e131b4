/** Polls of many tenants on new connections, token requests and back-fills: npm run load -- tenants. */
import { sleep } from 'k6';
import { type DueRequest, openArrivals } from './lib/arrivals.ts';
import { type Client, mintInTurn, type PageRequest, type Sent } from './lib/client.ts';
import { readConfig } from './lib/config.ts';
import { MAX_PAGE_SIZE } from './lib/presets.ts';
import { write } from './lib/record.ts';
import { clientOfVu, runSetup, SETUP, type SetupData } from './lib/setup.ts';

const config = readConfig();
const { seconds } = config;
const { pollSeconds, backfills, tokensPerSecond } = config.tenants!;
/** Tenants poll independently, so that their polls form a Poisson process. */
const arrivals = openArrivals(config, sendPoll);

const duration = `${seconds}s`;
const perMinute = { rate: Math.max(1, Math.round(tokensPerSecond * 60)), timeUnit: '60s' };
const BESIDE = {
  backfills: { executor: 'constant-vus', exec: 'backfill', vus: backfills, gracefulStop: '2s', duration },
  tokens: {
    ...{ executor: 'constant-arrival-rate', exec: 'token', ...perMinute, duration },
    ...{ preAllocatedVUs: 2, maxVUs: 20 },
  },
};

export const options = {
  ...SETUP,
  // After a poll interval of a minute, servers have usually closed the idle connection.
  noVUConnectionReuse: true,
  scenarios: {
    polls: { ...arrivals.scenario, exec: 'poll' },
    ...(backfills > 0 ? BESIDE : { tokens: BESIDE.tokens }),
  },
};

export const setup = (): SetupData => runSetup(config);

/** The screenings since the previous poll: the window ends before the data's end by the run's remaining time. */
function pollWindow({ window }: SetupData, client: Client, leftMs: number): PageRequest {
  const toMs = Date.parse(window.to) - leftMs;
  const fromMs = Math.max(Date.parse(window.from), toMs - pollSeconds * 1000);
  const [from, to] = [fromMs, toMs].map((ms) => new Date(ms).toISOString()) as [string, string];
  return client.first(from, to, config.pageSize, 'poll');
}

/** Requests all pages of a poll. */
function sendPoll(data: SetupData, { dueAtMs, dueMs }: DueRequest) {
  const client = clientOfVu(config, data);
  const startedMs = Date.now();
  let pages = 0;
  let sent: Sent | undefined;
  let pageRequest: PageRequest | undefined = pollWindow(data, client, seconds * 1000 - dueMs);
  while (pageRequest) {
    sent = client.fetchPage(pageRequest, pages === 0 ? dueAtMs : Date.now());
    pages += 1;
    pageRequest = sent.status === 200 ? client.next(pageRequest, sent.next) : undefined;
  }
  const doneMs = Date.now();
  const { status, errorCode, retryAfterSeconds } = sent!;
  const latencyMs = Math.max(0, doneMs - dueAtMs);
  return { latencyMs, serviceMs: doneMs - startedMs, status, errorCode, retryAfterSeconds, pages };
}

export const poll = arrivals.iteration;
export default poll;

/** Traverses all screenings, repeatedly. */
export function backfill(data: SetupData): void {
  const client = clientOfVu(config, data);
  const { from, to } = data.window;
  let pageRequest: PageRequest | undefined = client.first(from, to, MAX_PAGE_SIZE);
  for (let depth = 0; pageRequest; depth += 1) {
    const sent = client.fetchPage(pageRequest, Date.now());
    const ms = Math.round(sent.serviceMs * 1000) / 1000;
    write({ kind: 'page', walk: 0, depth, items: 0, ms, status: sent.status });
    if (sent.status === 429) sleep(Math.min(60, sent.retryAfterSeconds ?? 1));
    else if (sent.status !== 200) return;
    else pageRequest = client.next(pageRequest, sent.next);
  }
}

/** k6 counts failures in http_req_failed. */
export const token = (): unknown => mintInTurn(config);
