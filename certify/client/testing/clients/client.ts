/** A client of the Screenings API in TypeScript: tokens by oauth4webapi, pages by undici, ids kept whole. */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLosslessNumber, parse, stringify } from 'lossless-json';
import * as oauth from 'oauth4webapi';
import { request } from 'undici';

const variable = (name: string): string | undefined => process.env[`SCREENINGS_${name}`];
const needed = (name: string): string => {
  const value = variable(name);
  if (value === undefined) throw new Error(`SCREENINGS_${name} is not set`);
  return value;
};

const MARGIN_MS = 60_000;
const MOST_RETRIES = 5;
const FIRST_WAIT_MS = 150;

interface Page {
  readonly items: readonly Screening[];
  readonly links: { readonly next?: string };
}

interface Screening {
  readonly id: unknown;
}

let held: { readonly text: string; readonly renewAtMs: number } | undefined;

/** The token, kept until a minute before it expires (section 5.6). */
async function token(): Promise<string> {
  if (held && Date.now() < held.renewAtMs) return held.text;
  const issuer = needed('AUTH_URL');
  const server: oauth.AuthorizationServer = { issuer, token_endpoint: `${issuer}/oauth/token` };
  const client: oauth.Client = { client_id: needed('CLIENT_ID') };
  const askedAtMs = Date.now();
  const response = await oauth.clientCredentialsGrantRequest(
    server,
    client,
    oauth.ClientSecretPost(needed('CLIENT_SECRET')),
    new URLSearchParams({ scope: 'screenings.read' }),
    { [oauth.allowInsecureRequests]: true },
  );
  const body = await oauth.processClientCredentialsResponse(server, client, response);
  const lifetimeMs = 1000 * (body.expires_in ?? 0);
  const margin = lifetimeMs > MARGIN_MS ? MARGIN_MS : 0;
  held = { text: body.access_token, renewAtMs: askedAtMs + lifetimeMs - margin };
  return held.text;
}

function waitNamed(value: string | string[] | undefined, retry: number): number {
  if (typeof value !== 'string') return FIRST_WAIT_MS * 2 ** retry;
  return /^\d+$/.test(value) ? 1000 * Number(value) : Math.max(0, Date.parse(value) - Date.now());
}

async function pageAt(url: string): Promise<Page> {
  let [refused, limited, failed] = [0, 0, 0];
  for (;;) {
    const { statusCode, headers, body } = await request(url, {
      headers: { authorization: `Bearer ${await token()}`, accept: 'application/json' },
    });
    const text = await body.text();
    if (statusCode === 200) return parse(text) as Page;
    if (statusCode === 401 && refused++ < 1) held = undefined;
    else if (statusCode === 429 && limited < MOST_RETRIES) {
      await sleep(waitNamed(headers['retry-after'], limited++));
    } else if (statusCode >= 500 && failed < MOST_RETRIES) {
      await sleep((0.5 + Math.random() / 2) * FIRST_WAIT_MS * 2 ** failed++);
    } else throw new Error(`a page was answered ${statusCode}`);
  }
}

const seen = new Set<string>();

/** Each screening once, whichever way it came. */
function collect(screening: Screening): void {
  const id = isLosslessNumber(screening.id) ? screening.id.value : String(screening.id);
  if (seen.has(id)) return;
  seen.add(id);
  process.stdout.write(`${stringify(screening)}\n`);
}

async function main(): Promise<void> {
  const query = new URLSearchParams({ from: needed('FROM'), to: needed('TO') });
  const pageSize = variable('PAGE_SIZE');
  if (pageSize !== undefined) query.set('pageSize', pageSize);
  const first = `${needed('BASE_URL')}/v1/tenants/${needed('TENANT_ID')}/screenings?${query}`;
  for (let url: string | undefined = first; url !== undefined;) {
    const page: Page = await pageAt(url);
    page.items.forEach(collect);
    url = page.links.next === undefined ? undefined : new URL(page.links.next, url).href;
  }
  const events = variable('EVENTS');
  if (events === undefined) return;
  for (const line of (await readFile(events, 'utf8')).trim().split('\n')) {
    collect((parse(line) as { data: Screening }).data);
  }
}

await main().catch((error: unknown) => {
  console.error(`gave up: ${(error as Error).message}`);
  process.exitCode = 1;
});
