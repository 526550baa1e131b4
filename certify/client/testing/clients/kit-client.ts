/** The kit's own client as a command: `Client` handles tokens, 401 and 429; the walk and the retries of 5xx are here. */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'lossless-json';
import { Client } from '../../../../engine/client/client.ts';
import type { Exchange } from '../../../../engine/client/exchange.ts';
import { integerOf, member, parseJson, type Json } from '../../../../engine/client/json.ts';
import { pageOf, pageUrl } from '../../../../engine/client/page.ts';
import { resolveTarget } from '../../../../engine/target/target.ts';

const variable = (name: string): string => process.env[`SCREENINGS_${name}`] ?? '';

const target = await resolveTarget({
  baseUrl: variable('BASE_URL'),
  authUrl: variable('AUTH_URL'),
  clients: {
    primary: {
      clientId: variable('CLIENT_ID'),
      clientSecret: variable('CLIENT_SECRET'),
      tenantId: variable('TENANT_ID'),
    },
  },
});
await using client = new Client(target, { timeoutMs: 10_000, maxRequests: 10_000, onExchange: () => {} });

const MOST_RETRIES = 4;

async function page(url: string): Promise<Exchange> {
  for (let retry = 0; ; retry += 1) {
    const exchange = await client.send(
      {
        channel: 'rest',
        method: 'GET',
        url,
        headers: { accept: 'application/json' },
        authorization: { kind: 'client', client: 'primary' },
      },
      // Returns a 5xx instead of examining it, so that this client can retry it.
      { keep5xx: true },
    );
    if (exchange.status === 200) return exchange;
    if (exchange.status < 500 || retry >= MOST_RETRIES) {
      throw new Error(`a page was answered ${exchange.status || 'by a broken connection'}`);
    }
    await sleep(200 * 2 ** retry);
  }
}

const seen = new Set<string>();

function collect(screening: Json): void {
  const id = String(integerOf(member(screening, 'id')));
  if (seen.has(id)) return;
  seen.add(id);
  process.stdout.write(`${stringify(screening)}\n`);
}

const pageSize = variable('PAGE_SIZE') === '' ? undefined : Number(variable('PAGE_SIZE'));
const window = { from: variable('FROM'), to: variable('TO') };
let url: string | undefined = pageUrl(target.baseUrl, variable('TENANT_ID'), { ...window, pageSize });
try {
  while (url !== undefined) {
    const { items, nextUrl } = pageOf(await page(url));
    items?.forEach(({ json }) => collect(json));
    url = nextUrl;
  }
  if (variable('EVENTS') !== '') {
    for (const line of (await readFile(variable('EVENTS'), 'utf8')).trim().split('\n')) {
      collect(member(parseJson(line), 'data')!);
    }
  }
} catch (error) {
  console.error(`gave up: ${(error as Error).message}`);
  process.exitCode = 1;
}
