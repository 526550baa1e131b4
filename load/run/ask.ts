/** Requests of the kit itself, before and during the load: a token, a page, waiting as a limiter says. */
import { setTimeout } from 'node:timers/promises';
import type { Exchange, RequestOut } from '../../engine/client/exchange.ts';
import { member, type Json } from '../../engine/client/json.ts';
import { retryAfterMs } from '../../engine/client/retry-after.ts';
import { Transport } from '../../engine/client/transport.ts';
import type { Target } from '../../engine/target/target.ts';

/** The target does not answer as a target does: exit status 3. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

const TIMEOUT_MS = 10_000;

/** `timeoutMs`: of one request, 10 s where it is not said. */
export interface Asked extends Target {
  readonly timeoutMs?: number;
  /** Where the reference server tells its metrics. */
  readonly metricsUrl?: string;
}

/** Throws Unreachable where no answer comes, or more than is read. */
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
  // Parsed while its text can still be read.
  return { ...exchange, json: exchange.json, text: '' };
}

/** A token of a client (section 4.1). Throws Unreachable. */
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
    throw new Unreachable(`no token for ${clientId}: the token endpoint answers ${status}`);
  return token;
}

/** How often a limiter is waited out, and how long at most, all in all. */
const WAITS = 20;
const LONGEST_WAIT_MS = 90_000;

/** Waits as a 429 says: the look at a rate-limited target takes longer, and does not fail. */
async function afterWaits(send: () => Promise<Exchange>): Promise<Exchange> {
  for (let [waits, waitedMs] = [0, 0]; ; waits += 1) {
    const exchange = await send();
    if (exchange.status !== 429 || waits >= WAITS) return exchange;
    const waitMs = Math.max(200, retryAfterMs(exchange) ?? 1000);
    if ((waitedMs += waitMs) > LONGEST_WAIT_MS)
      throw new Unreachable(
        `the screenings endpoint answers 429 with a Retry-After of ${Math.round(waitMs / 1000)} s`,
      );
    await setTimeout(waitMs);
  }
}

/** A page, a limiter waited out. Throws Unreachable where none comes. */
export async function askPage(
  target: Asked,
  url: string,
  token: string,
): Promise<{ readonly items: readonly Json[]; readonly next: Json | undefined }> {
  const { json, status } = await afterWaits(() =>
    ask(target, { channel: 'rest', method: 'GET', url }, token),
  );
  if (status !== 200) throw new Unreachable(`the screenings endpoint answers ${status}`);
  const items = member(json, 'items');
  if (!Array.isArray(items)) throw new Unreachable('the screenings endpoint answers 200 without a page');
  return { items, next: member(member(json, 'links'), 'next') };
}
