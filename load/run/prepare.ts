/** From a target to what scenarios need: who asks, where screenings lie; a look at the target before any load. */
import { member } from '../../engine/client/json.ts';
import { pageUrl } from '../../engine/client/page.ts';
import { formatInstant, parseInstant, shift, type Instant } from '../../engine/data/instant.ts';
import type { LoadClient, LoadConfig } from '../k6/lib/config.ts';
import { askPage, mint, Unreachable, type Asked } from './ask.ts';

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
  /** What the kit itself asks, and how the target is made to fail. */
  readonly target: Asked;
}

export type Window = NonNullable<LoadConfig['window']>;

/** Mints a token for each client that load may use, and finds the window, unless any will do. Throws Unreachable. */
export async function prepare(target: Asked, anyWindow?: Window): Promise<Prepared> {
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
    : (anyWindow ?? (await findWindow(target, clients[0]!.tenantId, token)));
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
    target,
  };
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

/** Looks for the window: the first screening is on the first page of all time, the last is closed in on by halving. */
async function findWindow(target: Asked, tenantId: string, token: string): Promise<Window> {
  const far = { from: '1970-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' };
  const firstOf = async (from: string): Promise<Instant | undefined> => {
    const url = pageUrl(target.baseUrl, tenantId, { from, to: far.to, pageSize: 1 });
    const { items } = await askPage(target, url, token);
    if (items.length === 0) return undefined;
    const testTime = member(items[0], 'testTime');
    const at = typeof testTime === 'string' ? parseInstant(testTime) : undefined;
    if (!at) throw new Unreachable('a screening has no testTime that can be read');
    return at;
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
