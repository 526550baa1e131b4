/** The start of a run: tokens, the tenants that they name, and where screenings lie. For `setup`. */
import { sleep } from 'k6';
import exec from 'k6/execution';
import http from 'k6/http';
import { b64decode } from 'k6/encoding';
import { mint, type Token } from './client.ts';
import { sharedRun, type LoadClient, type LoadConfig } from './config.ts';
import { GRID } from './histogram.ts';
import { header } from './judge.ts';
import { FAR_END, searchWindow, type Window } from './window.ts';

export interface Begun {
  /** Of each client. */
  readonly tokens: readonly Token[];
  readonly tenantIds: readonly string[];
  readonly window: Window;
  /** The moment that due moments count from, in milliseconds since the epoch. */
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

/** Results hold all that setup returns: secrets are not part of it. */
export const clientsOf = ({ clients }: LoadConfig, { tenantIds }: Begun): LoadClient[] =>
  clients.map((client, index) => ({ ...client, tenantId: tenantIds[index]! }));

function tenantOf(token: string): string {
  const claims = JSON.parse(b64decode(token.split('.')[1] ?? '', 'rawurl', 's')) as { tenant_id?: string };
  if (!claims.tenant_id) throw new Error('the token names no tenant_id: give -e TENANT_ID=…');
  return claims.tenant_id;
}

function findWindow(config: LoadConfig, tenantId: string, token: Token): Window {
  const look = (from: string) => {
    const query = `from=${encodeURIComponent(from)}&to=${encodeURIComponent(FAR_END)}&pageSize=1`;
    return http.get(`${config.baseUrl}/v1/tenants/${tenantId}/screenings?${query}`, {
      headers: { Authorization: `Bearer ${token.value}`, Accept: 'application/json' },
      timeout: `${config.timeoutSeconds}s`,
      tags: { name: 'window' },
      responseType: 'text',
    });
  };
  const search = searchWindow();
  let step = search.next();
  while (!step.done) {
    let response = look(step.value);
    for (let waits = 0; response.status === 429 && waits < WAITS; waits += 1) {
      sleep(Math.min(60, Math.max(0.2, Number(header(response.headers, 'retry-after')) || 1)));
      response = look(step.value);
    }
    if (response.status !== 200) throw new Error(`the screenings endpoint answers ${response.status}`);
    const { items = [] } = response.json() as { items?: { testTime?: string }[] };
    step = search.next(items.length === 0 ? null : items[0]!.testTime);
  }
  if (!step.value) throw new Error('the tenant has no screenings: load needs some');
  return step.value;
}
