/** From a target to what scenarios need: who asks, where screenings lie; a look at the target before any load. */
import { setTimeout } from 'node:timers/promises';
import { fetch, type RequestInit, type Response } from 'undici';
import { openDispatcher } from '../../fixtures/client/dispatchers.ts';
import { formatInstant, parseInstant, shift, type Instant } from '../../fixtures/data/instant.ts';
import type { Target } from '../../fixtures/target/target.ts';
import type { LoadClient, LoadConfig } from '../k6/lib/config.ts';

/** The target does not answer as a target does: exit status 3. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

export interface Prepared {
  readonly name: string;
  readonly base: Pick<LoadConfig, 'baseUrl' | 'authUrl' | 'clients' | 'trustedOrigins'> & {
    readonly window: Window;
  };
  /** What k6 gets in its environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Certificates in PEM that are trusted beside the system's. */
  readonly ca?: string | undefined;
  /** What no output may hold. */
  readonly secrets: readonly string[];
}

type Window = NonNullable<LoadConfig['window']>;

const TIMEOUT_MS = 10_000;

/** Mints a token for each client that load may use, and finds the window. Throws Unreachable. */
export async function prepare(target: Target): Promise<Prepared> {
  const clients: LoadClient[] = [];
  const env: Record<string, string> = {};
  let token = '';
  for (const [index, credentials] of [target.clients.primary, target.clients.secondTenant].entries()) {
    if (!credentials) continue;
    const secretVariable = `SCREENINGS_CLIENT_SECRET_${index}`;
    const minted = await mint(target, credentials.clientId, credentials.clientSecret);
    token ||= minted;
    const tenantId = credentials.tenantId ?? tenantOf(minted);
    if (!tenantId) throw new Unreachable(`the token of ${credentials.clientId} names no tenant_id`);
    clients.push({ clientId: credentials.clientId, tenantId, secretVariable });
    env[secretVariable] = credentials.clientSecret;
  }
  if (Object.keys(target.headers).length > 0) env['SCREENINGS_HEADERS'] = JSON.stringify(target.headers);
  const window = target.window
    ? { from: formatInstant(target.window.from), to: formatInstant(target.window.to) }
    : await findWindow(target, clients[0]!.tenantId, token);
  return {
    name: target.name,
    base: {
      baseUrl: target.baseUrl,
      authUrl: target.authUrl,
      clients,
      trustedOrigins: target.trustedOrigins.map((origin) => origin.toLowerCase()),
      window,
    },
    env,
    ca: target.ca,
    secrets: [...Object.values(env), ...Object.values(target.headers)],
  };
}

async function ask(target: Target, url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, {
      ...init,
      headers: { ...target.headers, ...(init.headers as Record<string, string>) },
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
      dispatcher: openDispatcher({ timeoutMs: TIMEOUT_MS, ca: target.ca }, false),
    });
  } catch (error) {
    const cause = (error as { cause?: { code?: string } }).cause?.code ?? (error as Error).name;
    throw new Unreachable(`${new URL(url).origin} does not answer (${cause})`);
  }
}

/** A token of a client (section 4.1). Throws Unreachable. */
export async function mint(target: Target, clientId: string, clientSecret: string): Promise<string> {
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret };
  const response = await ask(target, `${target.authUrl}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ ...form, scope: 'screenings.read' }),
  });
  const body = (await response.json().catch(() => ({}))) as { access_token?: unknown };
  if (response.status !== 200 || typeof body.access_token !== 'string') {
    throw new Unreachable(`no token for ${clientId}: the token endpoint answers ${response.status}`);
  }
  return body.access_token;
}

function tenantOf(token: string): string | undefined {
  try {
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<
      string,
      unknown
    >;
    return typeof claims['tenant_id'] === 'string' ? claims['tenant_id'] : undefined;
  } catch {
    return undefined;
  }
}

/** How often a limiter is waited out, and how long at most each time. */
const WAITS = 20;
const LONGEST_WAIT_S = 60;

/** Waits a 429 out, as it says: a look at a target that is limited takes longer, and is not refused. */
async function patiently(send: () => Promise<Response>): Promise<Response> {
  for (let waits = 0; ; waits += 1) {
    const response = await send();
    if (response.status !== 429 || waits >= WAITS) return response;
    await response.body?.cancel();
    const seconds = Number(response.headers.get('retry-after') ?? 1);
    await setTimeout(1000 * Math.min(LONGEST_WAIT_S, Math.max(0.2, Number.isNaN(seconds) ? 1 : seconds)));
  }
}

/** Looks for the window: the first screening is on the first page of all time, the last is closed in on by halving. */
async function findWindow(target: Target, tenantId: string, token: string): Promise<Window> {
  const far = { from: '1970-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' };
  const firstOf = async (from: string): Promise<Instant | undefined> => {
    const query = new URLSearchParams({ from, to: far.to, pageSize: '1' });
    const response = await patiently(() =>
      ask(target, `${target.baseUrl}/v1/tenants/${tenantId}/screenings?${query}`, {
        headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
      }),
    );
    if (response.status !== 200) throw new Unreachable(`the screenings endpoint answers ${response.status}`);
    const page = (await response.json().catch(() => ({}))) as { items?: { testTime?: unknown }[] };
    return parseInstant(String(page.items?.[0]?.testTime ?? ''));
  };
  const first = await firstOf(far.from);
  if (!first) throw new Unreachable(`tenant ${tenantId} has no screenings: load needs some`);
  let [low, high] = [first.seconds, parseInstant(far.to)!.seconds];
  while (high - low > 60n) {
    const middle = (low + high) / 2n;
    const found = await firstOf(formatInstant({ seconds: middle, fraction: '' }));
    if (found) low = found.seconds > middle ? found.seconds : middle;
    else high = middle;
  }
  return { from: formatInstant(first), to: formatInstant(shift({ seconds: high, fraction: '' }, 1n, 0)) };
}
