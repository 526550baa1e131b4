/** What is known once a run begins: tokens, the tenants that they name, and where screenings lie. For `setup`. */
import { sleep } from 'k6';
import exec from 'k6/execution';
import http from 'k6/http';
import { b64decode } from 'k6/encoding';
import { mint, type Token } from './client.ts';
import { sharedRun, type LoadClient, type LoadConfig } from './config.ts';
import { GRID } from './histogram.ts';
import { header } from './judge.ts';

export interface Begun {
  /** Of each client. */
  readonly tokens: readonly Token[];
  readonly tenantIds: readonly string[];
  readonly window: { readonly from: string; readonly to: string };
  /** What due moments count from, in milliseconds since the epoch. */
  readonly startAtMs: number;
}

/** Options of every script. */
export const SETUP = {
  setupTimeout: '10m',
  summaryTrendStats: [
    ...['avg', 'min', 'med', 'p(90)', 'p(95)', 'p(99)', 'max', 'count'],
    ...(sharedRun ? GRID.map((share) => `p(${share})`) : []),
  ],
  ...(__ENV['TESTID'] ? { tags: { testid: __ENV['TESTID'] } } : {}),
};

/** How often a limiter is waited out. */
const WAITS = 20;

/** k6 puts a scenario of that name in the place of a script's own where a flag asks for it. */
export function refuseShortcuts(): void {
  if ('default' in (exec.test.options.scenarios ?? {}))
    exec.test.abort(
      'requests come at a rate here: give -e RATE=… and -e DURATION=… instead of --vus, --duration, --iterations and --stage',
    );
}

/** Throws where there is no token, or no screening. */
export function begin(config: LoadConfig, leadMs = 0): Begun {
  refuseShortcuts();
  const tokens = config.clients.map((client) => mint(config, client));
  const tenantIds = config.clients.map(({ tenantId }, index) => tenantId || tenantOf(tokens[index]!.value));
  const window = config.window ?? findWindow(config, tenantIds[0]!, tokens[0]!);
  return { tokens, tenantIds, window, startAtMs: Date.now() + leadMs };
}

/** What setup hands on is written into results: secrets stay where they were. */
export const clientsOf = ({ clients }: LoadConfig, { tenantIds }: Begun): LoadClient[] =>
  clients.map((client, index) => ({ ...client, tenantId: tenantIds[index]! }));

function tenantOf(token: string): string {
  const claims = JSON.parse(b64decode(token.split('.')[1] ?? '', 'rawurl', 's')) as { tenant_id?: string };
  if (!claims.tenant_id) throw new Error('the token names no tenant_id: give -e TENANT_ID=…');
  return claims.tenant_id;
}

/** The first screening is on the first page of all time; the end is closed in on by halving. */
function findWindow(config: LoadConfig, tenantId: string, token: Token): Begun['window'] {
  const end = '2100-01-01T00:00:00Z';
  const firstFrom = (from: string): number | undefined => {
    const query = `from=${encodeURIComponent(from)}&to=${encodeURIComponent(end)}&pageSize=1`;
    const url = `${config.baseUrl}/v1/tenants/${tenantId}/screenings?${query}`;
    const look = () =>
      http.get(url, {
        headers: { Authorization: `Bearer ${token.value}`, Accept: 'application/json' },
        timeout: `${config.timeoutSeconds}s`,
        tags: { name: 'window' },
        responseType: 'text',
      });
    let response = look();
    for (let waits = 0; response.status === 429 && waits < WAITS; waits += 1) {
      sleep(Math.min(60, Math.max(0.2, Number(header(response.headers, 'retry-after')) || 1)));
      response = look();
    }
    if (response.status !== 200) throw new Error(`the screenings endpoint answers ${response.status}`);
    const page = response.json() as { items?: { testTime?: string }[] };
    const testTime = page.items?.[0]?.testTime;
    return testTime === undefined ? undefined : Date.parse(testTime);
  };
  const first = firstFrom('1970-01-01T00:00:00Z');
  if (first === undefined) throw new Error('the tenant has no screenings: load needs some');
  let [low, high] = [first, Date.parse(end)];
  while (high - low > 60_000) {
    const middle = Math.floor((low + high) / 2);
    const found = firstFrom(new Date(middle).toISOString());
    if (found === undefined) high = middle;
    else low = Math.max(middle, found);
  }
  return { from: new Date(first).toISOString(), to: new Date(high + 1000).toISOString() };
}
