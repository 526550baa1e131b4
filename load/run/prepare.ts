/** Prepares a run: tokens, clients and window of the target, before any load. */
import { pageUrl } from '../../engine/client/page.ts';
import { tokenOfText } from '../../engine/client/token.ts';
import { formatInstant } from '../../engine/data/instant.ts';
import type { LoadClient } from '../k6/lib/config.ts';
import { FAR_END, searchWindow, type Window } from '../k6/lib/window.ts';
import { askPage, mint, Unreachable, type Asked } from './ask.ts';

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
    name: target.name,
    base: {
      baseUrl: target.baseUrl,
      authUrl: target.authUrl,
      clients,
      trustedOrigins: target.trustedOrigins.map((origin) => origin.toLowerCase()),
      window,
    },
    /** k6's environment: secrets and headers. */
    env,
    /** Texts that must not appear in any output. */
    secrets: [...Object.values(env), ...Object.values(target.headers)],
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
