/** What is known once a run begins: tokens, the tenants that they name, and where screenings lie. For `setup`. */
import { sleep } from 'k6';
import http from 'k6/http';
import { b64decode } from 'k6/encoding';
import { mint, type Token } from './client.ts';
import type { LoadClient, LoadConfig } from './config.ts';
import { header } from './judge.ts';

export interface Begun {
  readonly tokens: readonly Token[];
  readonly clients: readonly LoadClient[];
  readonly window: { readonly from: string; readonly to: string };
  readonly startAtMs: number;
}

/** How often a limiter is waited out. */
const WAITS = 20;
/** Requests are due from a moment after it on. */
const LEAD_MS = 500;

/** Throws where there is no token, or no screening. */
export function begin(config: LoadConfig): Begun {
  const tokens = config.clients.map((client) => mint(config, client));
  const clients = config.clients.map((client, index) => ({
    ...client,
    tenantId: client.tenantId || tenantOf(tokens[index]!.value),
  }));
  const window = config.window ?? findWindow(config, clients[0]!.tenantId, tokens[0]!);
  return { tokens, clients, window, startAtMs: config.startAtMs ?? Date.now() + LEAD_MS };
}

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
