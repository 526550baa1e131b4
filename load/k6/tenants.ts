/**
 * What many tenants ask together: polls of what is new, each with a connection of its own and a window that moves on,
 * token requests, and back-fills that read everything. The kit runs it: npm run load -- tenants.
 */
import { sleep } from 'k6';
import { SharedArray } from 'k6/data';
import exec from 'k6/execution';
import { begin, clientsOf, SETUP, type Begun } from './lib/begin.ts';
import { firstPage, mint, nextPlace, Session, type Place } from './lib/client.ts';
import { readConfig, thresholdsOf } from './lib/config.ts';
import { poissonArrivals } from './lib/random.ts';
import { write } from './lib/record.ts';

const config = readConfig({ requestsPerSecond: 20, seconds: 30 });
const { seed, requestsPerSecond, seconds, vus, timeoutSeconds } = config;
const { pollSeconds, backfills, tokensPerSecond } = config.tenants ?? {
  pollSeconds: 60,
  backfills: 1,
  tokensPerSecond: requestsPerSecond / 60,
};
/** Polls of many tenants, each at its own phase, are independent of one another. */
const due = new SharedArray('due moments', () => poissonArrivals(seed, requestsPerSecond, seconds));

export const options = {
  ...SETUP,
  // A poll a minute finds its connection closed.
  noVUConnectionReuse: true,
  scenarios: {
    polls: {
      executor: 'shared-iterations',
      exec: 'poll',
      vus,
      iterations: Math.max(due.length, vus),
      maxDuration: `${Math.ceil(seconds + timeoutSeconds + 30)}s`,
    },
    ...(backfills > 0
      ? {
          backfills: {
            executor: 'constant-vus',
            exec: 'backfill',
            vus: backfills,
            duration: `${seconds}s`,
            gracefulStop: '2s',
          },
        }
      : {}),
    ...(tokensPerSecond > 0
      ? {
          tokens: {
            executor: 'constant-arrival-rate',
            exec: 'token',
            rate: Math.max(1, Math.round(tokensPerSecond * 60)),
            timeUnit: '60s',
            duration: `${seconds}s`,
            preAllocatedVUs: 2,
            maxVUs: 20,
          },
        }
      : {}),
  },
  thresholds: thresholdsOf(config, {}),
};

export const setup = (): Begun => begin(config, 500);

let sessions: Session[] | undefined;
const sessionOf = (begun: Begun): Session => {
  sessions ??= clientsOf(config, begun).map(
    (client, index) => new Session(config, client, begun.tokens[index]!),
  );
  return sessions[exec.vu.idInTest % sessions.length]!;
};

/** What came since the poll before: the window ends as much before the data's end as the run does. */
function newest({ window }: Begun, { client }: Session, leftMs: number): Place {
  const toMs = Date.parse(window.to) - leftMs;
  const fromMs = Math.max(Date.parse(window.from), toMs - pollSeconds * 1000);
  const [from, to] = [fromMs, toMs].map((ms) => new Date(ms).toISOString()) as [string, string];
  return firstPage(config, client, from, to, config.pageSize);
}

export function poll(begun: Begun): void {
  const dueMs = due[exec.scenario.iterationInTest];
  if (dueMs === undefined) return;
  const dueAtMs = begun.startAtMs + dueMs;
  const earlyMs = dueAtMs - Date.now();
  if (earlyMs > 0) sleep(earlyMs / 1000);
  const schedulerLagMs = earlyMs > 0 ? Math.max(0, Date.now() - dueAtMs) : 0;
  const session = sessionOf(begun);
  const startedMs = Date.now();
  let [status, errorCode, pages] = [0, 0, 0];
  let retry: { retryAfterSeconds?: number | undefined } = {};
  let place: Place | undefined = newest(begun, session, seconds * 1000 - dueMs);
  while (place) {
    const sent = session.tryAsk(place, config.pageSize, pages === 0 ? dueAtMs : Date.now());
    pages += 1;
    [status, errorCode] = [sent.status, sent.errorCode];
    retry = { retryAfterSeconds: sent.retryAfterSeconds };
    place = status === 200 ? nextPlace(config, sent, place.to) : undefined;
  }
  const doneMs = Date.now();
  const times = {
    dueMs,
    latencyMs: Math.max(0, doneMs - dueAtMs),
    serviceMs: doneMs - startedMs,
    schedulerLagMs,
  };
  if (config.records) write({ kind: 'arrival', ...times, status, errorCode, client: 0, pages, ...retry });
}

export default poll;

/** Everything, from the first page on, and again. */
export function backfill(begun: Begun): void {
  const session = sessionOf(begun);
  const { from, to } = begun.window;
  let place: Place | undefined = firstPage(config, session.client, from, to, MOST);
  for (let depth = 0; place; depth += 1) {
    const sent = session.tryAsk(place, MOST, Date.now());
    const ms = Math.round(sent.serviceMs * 1000) / 1000;
    const items = sent.status === 200 ? Number(sent.response!.json('items.#')) : 0;
    if (config.records) write({ kind: 'page', walk: 0, depth, items, ms, status: sent.status });
    if (sent.status === 429) sleep(Math.min(60, sent.retryAfterSeconds ?? 1));
    else if (sent.status !== 200) return;
    else place = nextPlace(config, sent, to);
  }
}

/** Whoever reads much asks for as much as a page may hold. */
const MOST = 1000;

export function token(): void {
  try {
    mint(config, config.clients[exec.scenario.iterationInTest % config.clients.length]!);
  } catch {
    // Counted by k6: http_req_failed.
  }
}
