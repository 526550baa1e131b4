/** The kit's own requests before and after the load: tokens, the window, and the stored screenings. */
import { Client } from '../../engine/client/client.ts';
import type { RequestOut } from '../../engine/client/exchange.ts';
import { isOrdered, MAX_PAGE_SIZE, pageOf, pageUrl } from '../../engine/client/page.ts';
import { compareInstants, formatInstant, instant } from '../../engine/data/instant.ts';
import { type Key, Oracle, type OracleItem } from '../../engine/data/oracle.ts';
import { Untested } from '../../engine/errors.ts';
import type { ClientName, Target } from '../../engine/target/target.ts';
import type { LoadClient } from '../k6/lib/config.ts';
import { TIMEOUT_SECONDS } from '../k6/lib/presets.ts';
import { FAR_END, searchWindow, type Window } from '../k6/lib/window.ts';

/** The target does not answer as specified: exit status 3. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

interface Asked extends Target {
  readonly timeoutMs?: number;
  /** URL of the reference server's metrics. */
  readonly metricsUrl?: string;
}

/** The client of the kit's own requests, which no observer judges. */
function clientOf(target: Asked): Client {
  const { timeoutMs = TIMEOUT_SECONDS * 1000 } = target;
  return new Client(target, { timeoutMs, maxRequests: Infinity, onExchange: () => {} });
}

/** Throws Unreachable if the client cannot get an answer. */
const reached = <Result>(answer: Promise<Result>): Promise<Result> =>
  answer.catch((error: unknown) => {
    throw error instanceof Untested ? new Unreachable(error.message) : error;
  });

/** Mints a token (section 4.1). Throws Unreachable. */
export async function mint(target: Target, name: ClientName = 'primary'): Promise<string> {
  await using client = clientOf(target);
  return (await reached(client.token(name))).text;
}

const requestOf = ({ target }: Client, url: string, client: ClientName = 'primary'): RequestOut => ({
  ...{ channel: 'rest', method: 'GET', url },
  headers: { ...target.headers, accept: 'application/json' },
  authorization: { kind: 'client', client },
});

/** Requests a page, after a 429 again when Retry-After has passed. Throws Unreachable if there is none. */
async function askPage(client: Client, url: string, name?: ClientName) {
  const request = requestOf(client, url, name);
  const exchange = await reached(client.send(request, { keep5xx: true, unjudged: true }));
  const { status, transportError } = exchange;
  if (transportError)
    throw new Unreachable(`${new URL(url).origin} does not answer (${transportError.message})`);
  if (status !== 200) throw new Unreachable(`the screenings endpoint answered ${status}`);
  const { items, next } = pageOf(exchange);
  if (!items) throw new Unreachable('the screenings endpoint answered 200 without a page');
  return { items, next };
}

/** Whether the first page of a window is served without a screening. */
async function isEmpty(client: Client, name: ClientName, tenantId: string, window: Window): Promise<boolean> {
  const url = pageUrl(client.target.baseUrl, tenantId, { ...window, pageSize: 1 });
  const request = requestOf(client, url, name);
  const kept = { keep429: true, keep5xx: true, unjudged: true };
  const exchange = await client.send(request, kept).catch(() => undefined);
  return exchange?.status === 200 && pageOf(exchange).items?.length === 0;
}

export type Prepared = Awaited<ReturnType<typeof prepare>>;

/** The clients whose load is measured. */
const CLIENTS = ['primary', 'secondTenant'] as const;

/** Mints a token for each client and finds the window, unless `anyWindow` suffices. Throws Unreachable. */
export async function prepare(target: Asked, anyWindow?: Window) {
  await using own = clientOf(target);
  const clients: LoadClient[] = [];
  const env: Record<string, string> = {};
  for (const [index, name] of CLIENTS.entries()) {
    const credentials = target.clients[name];
    if (!credentials) continue;
    const secretVariable = `SCREENINGS_CLIENT_SECRET_${index}`;
    const token = await reached(own.token(name));
    // The path must equal the claim, which the target file may spell otherwise.
    const tenantId = token.tenantId ?? credentials.tenantId;
    if (!tenantId) throw new Unreachable(`the token of ${credentials.clientId} names no tenant_id`);
    clients.push({ clientId: credentials.clientId, tenantId, secretVariable });
    env[secretVariable] = credentials.clientSecret;
  }
  if (Object.keys(target.headers).length > 0) env['SCREENINGS_HEADERS'] = JSON.stringify(target.headers);
  const given = target.window && {
    from: formatInstant(target.window.from),
    to: formatInstant(target.window.to),
  };
  const { tenantId } = clients[0]!;
  const window = given ?? anyWindow ?? (await findWindow(own, tenantId));
  // Whether pages are served is shown by the load; but empty ones would be measured as if they were full.
  if (given && !anyWindow && (await isEmpty(own, 'primary', tenantId, given)))
    throw new Unreachable(
      `tenant ${tenantId} has no screenings in the target file's window: load tests need some`,
    );
  const second = clients[1];
  if (second && !anyWindow && (await isEmpty(own, 'secondTenant', second.tenantId, window))) clients.pop();
  const { baseUrl, authUrl } = target;
  const trustedOrigins = target.trustedOrigins.map((origin) => origin.toLowerCase());
  return {
    base: { baseUrl, authUrl, clients, trustedOrigins, window },
    /** k6's environment: secrets and headers. */
    env,
    /** The target for the kit's own requests, with its fault commands. */
    target,
  };
}

async function findWindow(client: Client, tenantId: string): Promise<Window> {
  const search = searchWindow();
  let step = search.next();
  while (!step.done) {
    const url = pageUrl(client.target.baseUrl, tenantId, { from: step.value, to: FAR_END, pageSize: 1 });
    const { items } = await askPage(client, url);
    try {
      step = search.next(items[0] ? items[0].testTime : null);
    } catch (error) {
      throw new Unreachable((error as Error).message);
    }
  }
  if (!step.value) throw new Unreachable(`tenant ${tenantId} has no screenings: load tests need some`);
  return step.value;
}

export interface Stored {
  /** The window that was read completely. */
  readonly window: Window;
  /** The screenings of each client. */
  readonly oracles: readonly Oracle[];
}

/** Limit per tenant, so that large datasets are read quickly. */
const MAX_ITEMS = 50_000;

/** Reads the beginning of the window for each client. Throws Unreachable if a page is rejected or invalid. */
export async function readStored(prepared: Prepared, window: Window = prepared.base.window): Promise<Stored> {
  await using client = clientOf(prepared.target);
  const read = [];
  for (const [index, { tenantId }] of prepared.base.clients.entries())
    read.push(await readTenant(client, CLIENTS[index]!, tenantId, window));
  // Cut to the shortest window that was read for a tenant.
  const ends = [window.to, ...read.map((one) => one.to)];
  const to = ends.sort((a, b) => compareInstants(instant(a), instant(b)))[0]!;
  const isBefore = ({ at }: Key): boolean => compareInstants(at, instant(to)) < 0;
  const oracles = read.map(({ items }) => Oracle.of(items.filter(isBefore)));
  return { window: { from: window.from, to }, oracles };
}

async function readTenant(client: Client, name: ClientName, tenantId: string, { from, to }: Window) {
  const items: (Key & { readonly testTime: string })[] = [];
  for (;;) {
    const after = items.at(-1);
    const query = { from: after?.testTime ?? from, to, pageSize: MAX_PAGE_SIZE, fromId: after?.id };
    const page = await askPage(client, pageUrl(client.target.baseUrl, tenantId, query), name);
    if (!page.items.every(isOrdered)) throw new Unreachable('a screening has no valid id or testTime');
    // A screening with an instant has a testTime.
    items.push(...page.items.map(({ id, at, testTime }) => ({ id, at, testTime: testTime! })));
    if (page.items.length === 0 || page.next === undefined) return { items, to };
    if (items.length >= MAX_ITEMS) return { items, to: items.at(-1)!.testTime };
  }
}

/** Screenings that have disappeared, and whether there are new ones. */
export function changes(before: Stored, after: Stored) {
  const onlyIn = (one: Stored, other: Stored): OracleItem[] =>
    one.oracles.flatMap(({ items }, client) =>
      items.filter(({ id, at }) => !other.oracles[client]!.has(id, at)),
    );
  return { lost: onlyIn(before, after), added: onlyIn(after, before).length > 0 };
}
