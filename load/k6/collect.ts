/**
 * The scripts' client as a client of the service: collects one window and prints its screenings, for certify-client:
 * npm run certify-client -- --command "sh load/k6/collect.sh"
 */
import { sleep } from 'k6';
import exec from 'k6/execution';
import type { Options } from 'k6/options';
import { firstPage, mint, nextPlace, Session, type Place, type Sent, type Token } from './lib/client.ts';
import type { LoadConfig } from './lib/config.ts';

const MOST_TRIES = 6;
const LONGEST_WAIT_SECONDS = 30;
const SECRET = 'SCREENINGS_CLIENT_SECRET';

const variable = (name: string): string => __ENV[`SCREENINGS_${name}`] ?? '';

const client = { clientId: variable('CLIENT_ID'), tenantId: variable('TENANT_ID'), secretVariable: SECRET };
const config: LoadConfig = {
  scenario: 'collect',
  baseUrl: variable('BASE_URL').replace(/\/+$/, ''),
  authUrl: variable('AUTH_URL').replace(/\/+$/, ''),
  clients: [client],
  trustedOrigins: [],
  pageSize: Number(variable('PAGE_SIZE') || 100),
  timeoutSeconds: 10,
  seed: 1,
  vus: 1,
  requestsPerSecond: 1,
  seconds: 600,
  p99Ms: 1000,
  errorRate: 0,
  records: false,
};
const events = variable('EVENTS') === '' ? '' : open(variable('EVENTS'));

export const options: Options = {
  scenarios: { collect: { executor: 'per-vu-iterations', vus: 1, maxDuration: '10m' } },
};

/** Nothing but the screenings goes to standard output. */
export const handleSummary = (): Record<string, string> => ({});

const seen: Record<string, true> = {};

function collect(screening: string): void {
  const id = /"id"\s*:\s*(-?\d+)/.exec(screening)?.[1] ?? screening;
  if (seen[id]) return;
  seen[id] = true;
  console.log(screening);
}

/** The texts of the objects in a JSON array after a member's name: ids beyond 2^53 stay whole. */
function objectsBehind(name: string, text: string): string[] {
  const found: string[] = [];
  const start = text.search(new RegExp(`"${name}"\\s*:\\s*[[{]`));
  let [depth, begun, quoted] = [0, 0, false];
  for (let at = text.indexOf(':', start) + 1; start >= 0 && at < text.length; at += 1) {
    const char = text[at];
    if (quoted) {
      if (char === '\\') at += 1;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === '{' && depth++ === 0) begun = at;
    else if (char === '}' && --depth === 0) found.push(text.slice(begun, at + 1));
    else if (depth === 0 && (char === ']' || char === '}')) break;
    if (!quoted && depth === 0 && found.length > 0 && name === 'data') break;
  }
  return found;
}

const waitFor = (tries: number, retryAfterSeconds = 0): void =>
  sleep(Math.min(LONGEST_WAIT_SECONDS, Math.max(retryAfterSeconds, 0.2 * 2 ** tries)));

function patiently<T>(ask: () => T, isWorthAnotherTry: (answer: T) => number | undefined): T {
  for (let tries = 0; ; tries += 1) {
    const answer = ask();
    const seconds = isWorthAnotherTry(answer);
    if (seconds === undefined || tries >= MOST_TRIES) return answer;
    waitFor(tries, seconds);
  }
}

function firstToken(): Token {
  for (let tries = 0; ; tries += 1) {
    try {
      return mint(config, client);
    } catch (error) {
      if (tries >= 4 || !/status (0|429|5\d\d)/.test(String(error))) throw error;
      waitFor(tries);
    }
  }
}

export default function (): void {
  try {
    const session = new Session(config, client, firstToken());
    const [from, to] = [variable('FROM'), variable('TO')];
    let place: Place | undefined = firstPage(config, client, from, to, config.pageSize);
    while (place) {
      const at: Place = place;
      const sent = patiently<Sent>(
        () => session.ask(at, config.pageSize, Date.now()),
        ({ status, retryAfterSeconds = 0 }) =>
          status === 429 || status >= 500 || status === 0 ? retryAfterSeconds : undefined,
      );
      if (sent.status !== 200) throw new Error(`a page was answered ${sent.status}`);
      objectsBehind('items', sent.response?.body ?? '').forEach(collect);
      place = nextPlace(config, sent, to);
      if (sent.next !== undefined && !place) throw new Error('next leads to another origin');
    }
    for (const line of events.trim().split('\n')) objectsBehind('data', line).forEach(collect);
  } catch (error) {
    console.error(`gave up: ${String(error)}`);
    exec.test.abort('gave up');
  }
}
