/** The kit's own requests before and during the load: tokens and pages, with retries after 429. */
import { setTimeout } from 'node:timers/promises';
import type { Exchange, RequestOut } from '../../engine/client/exchange.ts';
import { member } from '../../engine/client/json.ts';
import { retryAfterMs } from '../../engine/client/failures.ts';
import { pageOf } from '../../engine/client/page.ts';
import { Transport } from '../../engine/client/transport.ts';
import type { Target } from '../../engine/target/target.ts';

/** The target does not answer as specified: exit status 3. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

const TIMEOUT_MS = 10_000;

/** `timeoutMs` per request; default 10 s. */
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
  // `json` is parsed here, before `text` is dropped.
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
export async function askPage(target: Asked, url: string, token: string) {
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
