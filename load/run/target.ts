/** The kit's own requests before and after the load: tokens, the window, and the stored screenings. */
import { setTimeout } from 'node:timers/promises';
import type { Exchange, RequestOut } from '../../engine/client/exchange.ts';
import { member } from '../../engine/client/json.ts';
import { retryAfterMs } from '../../engine/client/failures.ts';
import { isOrdered, MAX_PAGE_SIZE, pageOf, pageUrl } from '../../engine/client/page.ts';
import { tokenOfText } from '../../engine/client/token.ts';
import { Transport } from '../../engine/client/transport.ts';
import { compareInstants, formatInstant, instant } from '../../engine/data/instant.ts';
import { type Key, Oracle } from '../../engine/data/oracle.ts';
import type { Target } from '../../engine/target/target.ts';
import type { LoadClient } from '../k6/lib/config.ts';
import { FAR_END, searchWindow, type Window } from '../k6/lib/window.ts';

/** The target does not answer as specified: exit status 3. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

const TIMEOUT_MS = 10_000;

export interface Asked extends Target {
  readonly timeoutMs?: number;
  /** URL of the reference server's metrics. */
  readonly metricsUrl?: string;
}

/** Throws Unreachable if there is no answer, or if it is too long. */
async function ask(
  { headers, ca, timeoutMs = TIMEOUT_MS }: Asked,
  request: Pick<RequestOut, 'channel' | 'method' | 'url' | 'form'>,
  token?: string,
): Promise<Exchange> {
  await using transport = new Transport({ timeoutMs, ca });
  const exchange = await transport.send(
    {
      ...request,
      headers: {
        ...headers,
        ...(request.form ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
        accept: 'application/json',
      },
      authorization: { kind: 'none' },
    },
    token && `Bearer ${token}`,
  );
  if (exchange.transportError)
    throw new Unreachable(
      `${new URL(request.url).origin} does not answer (${exchange.transportError.message})`,
    );
  // Parsed now: the transport keeps a large text in a file, and removes it when this function ends.
  return { ...exchange, json: exchange.json, text: '' };
}

/** Mints a token (section 4.1). Throws Unreachable. */
export async function mint(target: Asked, clientId: string, clientSecret: string): Promise<string> {
  const { json, status } = await ask(target, {
    channel: 'token',
    method: 'POST',
    url: `${target.authUrl}/oauth/token`,
    form: [
      ['grant_type', 'client_credentials'],
      ['client_id', clientId],
      ['client_secret', clientSecret],
      ['scope', 'screenings.read'],
    ],
  });
  const token = member(json, 'access_token');
  if (status !== 200 || typeof token !== 'string')
    throw new Unreachable(`no token for ${clientId}: the token endpoint answered ${status}`);
  return token;
}

/** Limit for waiting after 429, in all. */
const MAX_TOTAL_WAIT_MS = 90_000;

/** Requests a page, after a 429 again when Retry-After has passed. Throws Unreachable if there is none. */
async function askPage(target: Asked, url: string, token: string) {
  for (let waitedMs = 0; ;) {
    const exchange = await ask(target, { channel: 'rest', method: 'GET', url }, token);
    if (exchange.status === 429) {
      const waitMs = Math.max(200, retryAfterMs(exchange) ?? 1000);
      const seconds = Math.round(waitMs / 1000);
      if ((waitedMs += waitMs) > MAX_TOTAL_WAIT_MS)
        throw new Unreachable(`the screenings endpoint answered 429 with a Retry-After of ${seconds} s`);
      await setTimeout(waitMs);
      continue;
    }
    if (exchange.status !== 200) throw new Unreachable(`the screenings endpoint answered ${exchange.status}`);
    const { items, next } = pageOf(exchange);
    if (!items) throw new Unreachable('the screenings endpoint answered 200 without a page');
    return { items, next };
  }
}

export type Prepared = Awaited<ReturnType<typeof prepare>>;

/** Mints a token for each client and finds the window, unless `anyWindow` suffices. Throws Unreachable. */
export async function prepare(target: Asked, anyWindow?: Window) {
  const clients: LoadClient[] = [];
  const env: Record<string, string> = {};
  let token = '';
  for (const [index, credentials] of [target.clients.primary, target.clients.secondTenant].entries()) {
    if (!credentials) continue;
    const secretVariable = `SCREENINGS_CLIENT_SECRET_${index}`;
    const minted = await mint(target, credentials.clientId, credentials.clientSecret);
    token ||= minted;
    const tenantId = credentials.tenantId ?? tokenOfText(minted).tenantId;
    if (!tenantId) throw new Unreachable(`the token of ${credentials.clientId} names no tenant_id`);
    clients.push({ clientId: credentials.clientId, tenantId, secretVariable });
    env[secretVariable] = credentials.clientSecret;
  }
  if (Object.keys(target.headers).length > 0) env['SCREENINGS_HEADERS'] = JSON.stringify(target.headers);
  const window = target.window
    ? { from: formatInstant(target.window.from), to: formatInstant(target.window.to) }
    : (anyWindow ?? (await findWindow(target, clients[0]!.tenantId, token)));
  return {
    base: {
      baseUrl: target.baseUrl,
      authUrl: target.authUrl,
      clients,
      trustedOrigins: target.trustedOrigins.map((origin) => origin.toLowerCase()),
      window,
    },
    /** k6's environment: secrets and headers. */
    env,
    /** The target for the kit's own requests, with its fault commands. */
    target,
  };
}

async function findWindow(target: Asked, tenantId: string, token: string): Promise<Window> {
  const search = searchWindow();
  let step = search.next();
  while (!step.done) {
    const url = pageUrl(target.baseUrl, tenantId, { from: step.value, to: FAR_END, pageSize: 1 });
    const { items } = await askPage(target, url, token);
    try {
      step = search.next(items[0] ? items[0].testTime : null);
    } catch (error) {
      throw new Unreachable((error as Error).message);
    }
  }
  if (!step.value) throw new Unreachable(`tenant ${tenantId} has no screenings: load tests need some`);
  return step.value;
}

type Item = Key & { readonly testTime: string };

export interface Stored {
  /** The window that was read completely. */
  readonly window: Window;
  /** The screenings of each client, in the order of the pages. */
  readonly items: readonly (readonly Item[])[];
}

/** Limit per tenant, so that large datasets are read quickly. */
const MAX_ITEMS = 50_000;

/** Reads the beginning of the window for each client. Throws Unreachable if a page is rejected or invalid. */
export async function readStored(prepared: Prepared, window: Window = prepared.base.window): Promise<Stored> {
  const read = [];
  for (const client of prepared.base.clients) read.push(await readClient(prepared, client, window));
  // Cut to the shortest window that was read for a tenant.
  const to = read.reduce(
    (least, { to }) => (compareInstants(instant(to), instant(least)) < 0 ? to : least),
    window.to,
  );
  return {
    window: { from: window.from, to },
    items: read.map(({ items }) => items.filter(({ at }) => compareInstants(at, instant(to)) < 0)),
  };
}

export function oracleOf(items: readonly Item[]): Oracle {
  const oracle = new Oracle(true);
  for (const item of items) oracle.add(item, 0);
  return oracle;
}

async function readClient(
  { base, target, env }: Prepared,
  client: LoadClient,
  { from, to }: Window,
): Promise<{ items: readonly Item[]; to: string }> {
  const token = await mint(target, client.clientId, env[client.secretVariable]!);
  const items: Item[] = [];
  for (let after: Item | undefined; ;) {
    const url = pageUrl(base.baseUrl, client.tenantId, {
      from: after?.testTime ?? from,
      to,
      pageSize: MAX_PAGE_SIZE,
      fromId: after?.id,
    });
    const page = await askPage(target, url, token);
    if (!page.items.every(isOrdered)) throw new Unreachable('a screening has no valid id or testTime');
    // A screening with an instant has a testTime.
    items.push(...page.items.map(({ id, at, testTime }) => ({ id, at, testTime: testTime! })));
    after = items.at(-1);
    if (page.items.length === 0 || page.next === undefined) return { items, to };
    if (items.length >= MAX_ITEMS) return { items, to: after!.testTime };
  }
}

/** Screenings that have disappeared, and whether there are new ones. */
export function changes(before: Stored, after: Stored): { lost: readonly Item[]; added: boolean } {
  const keyOf = (client: number, { at, id }: Item): string => `${client} ${at.seconds}.${at.fraction} ${id}`;
  const keysOf = ({ items }: Stored): Set<string> =>
    new Set(items.flatMap((of, client) => of.map((item) => keyOf(client, item))));
  const [now, then] = [keysOf(after), keysOf(before)];
  return {
    lost: before.items.flatMap((of, client) => of.filter((item) => !now.has(keyOf(client, item)))),
    added: [...now].some((one) => !then.has(one)),
  };
}
