/** Section 7.2, behind everything else: the rate limit, where there is leave to provoke it, and a failing server. */
import { about, test } from '../fixtures/test.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { retryAfterMs } from '../engine/client/retry-after.ts';
import type { Exchange, RequestOut } from '../engine/client/exchange.ts';
import { SOME_WINDOW } from '../engine/client/page.ts';
import { differs } from '../engine/checks/mismatch.ts';
import type { Kit } from '../engine/run/kit.ts';
import { codesOf, sayRefusal } from '../engine/checks/errors.ts';
import { rawQuery, encoded } from '../engine/run/rules/raw-request.ts';
import { sampleDataOf } from '../engine/run/walk/survey.ts';
import { pageOf } from '../engine/client/page.ts';
import { SupplyUnusable, Untested } from '../engine/errors.ts';

/** Side by side: enough for some hundred requests a second, however far away the target is. */
const AT_ONCE = { least: 8, most: 32, eachMs: 2 } as const;
const LONGEST_HONEST_WAIT_MS = 65_000;
const FAULT_LAG_MS = 30_000;
const FAULT_PAUSE_MS = 500;

async function validRequest(kit: Kit): Promise<RequestOut> {
  const query = rawQuery({ ...encoded(SOME_WINDOW), pageSize: '1' });
  return kit.request(await kit.tenantOf(), query, { kind: 'client', client: 'primary' });
}

/** Asks as fast as it may until a 429, and no further. */
async function provoke(kit: Kit): Promise<Exchange | undefined> {
  const { maxRequests, maxSeconds } = kit.target.rateLimit!;
  const request = await validRequest(kit);
  const until = Date.now() + maxSeconds * 1000;
  let sent = 0;
  let limited: Exchange | undefined;
  const ask = async (): Promise<Exchange> => {
    sent++;
    const exchange = await kit.client.send(request, { keep429: true });
    if (exchange.status === 429) limited ??= exchange;
    return exchange;
  };
  const worker = async (): Promise<void> => {
    while (!limited && sent < maxRequests && Date.now() < until) await ask();
  };
  const { durationMs } = await ask();
  const { least, most, eachMs } = AT_ONCE;
  const atOnce = Math.min(most, Math.max(least, Math.ceil(durationMs / eachMs)));
  await Promise.all(Array.from({ length: atOnce }, worker));
  kit.ledger.atLeast('requestsToTheLimit', sent);
  return limited;
}

async function rateLimit(kit: Kit): Promise<void> {
  if (!kit.target.rateLimit) {
    if (kit.ledger.checks.has('7.2-rate_limited')) return;
    throw new Untested('supply rateLimit.probe: leave to provoke 429 (with maxRequests and maxSeconds)');
  }
  const limited = await kit.once('provoked', () => provoke(kit));
  if (!limited && !kit.ledger.checks.has('7.2-rate_limited')) {
    const { maxRequests, maxSeconds } = kit.target.rateLimit;
    throw new Untested(
      `no limit was met within ${maxRequests} requests or ${maxSeconds} s; raise rateLimit.maxRequests`,
    );
  }
}

async function honestWait(kit: Kit): Promise<void> {
  await rateLimit(kit);
  const limited = kit.target.rateLimit && (await provoke(kit));
  if (!limited) throw new Untested('supply rateLimit.probe: leave to provoke 429 and to wait as it says');
  const waitMs = retryAfterMs(limited);
  if (waitMs === undefined) throw new Untested('the 429 says no time to wait');
  if (waitMs > LONGEST_HONEST_WAIT_MS)
    throw new Untested(`the 429 asks to wait ${Math.round(waitMs / 1000)} s, longer than the kit does`);
  await sleep(Math.max(0, limited.startedAtMs + limited.durationMs + waitMs - Date.now()) + 50);
  const exchange = await kit.client.send(await validRequest(kit), { keep429: true });
  kit.ledger.check('7.2-retry-after-honest');
  if (exchange.status === 429) {
    kit.fail({
      id: '7.2-retry-after-honest',
      cause: 'probe',
      mismatch: differs(`a request served after the ${waitMs / 1000} s of Retry-After`, sayRefusal(exchange)),
      exchange,
    });
  }
}

/** Answered with a screening: an empty page may hide a failure. Of a tenant that has none, any valid request. */
async function telling(kit: Kit): Promise<RequestOut> {
  try {
    const { from, to } = (await sampleDataOf(kit)).window;
    const query = rawQuery({ ...encoded({ from, to }), pageSize: '1' });
    return kit.request(await kit.tenantOf(), query, { kind: 'client', client: 'primary' });
  } catch (error) {
    if (!(error instanceof Untested)) throw error;
    return validRequest(kit);
  }
}

/** The screenings of a page, to tell whether another shows the same ones; undefined where it is no page. */
const idsOn = (exchange: Exchange): string | undefined =>
  exchange.status === 200
    ? pageOf(exchange)
        .items?.map(({ id }) => id)
        .join()
    : undefined;

async function failingServer(kit: Kit): Promise<void> {
  const { fault } = kit.target;
  if (!fault)
    throw new Untested('supply fault.start and fault.stop: commands that make the server fail, and heal it');
  const seconds = kit.patienceMs(FAULT_LAG_MS) / 1000;
  const request: RequestOut = { ...(await telling(kit)), provoked: true };
  const isFailure = (exchange: Exchange): boolean =>
    exchange.status >= 500 &&
    codesOf(exchange, kit.target.errorCodePointer).some((code) =>
      ['internal_error', 'service_unavailable'].includes(code),
    );
  const before = await kit.client.send(request);
  try {
    await fault.start().catch((error: Error) => {
      throw new SupplyUnusable(`fault.start: ${error.message}`);
    });
    const last = await within(
      kit,
      request,
      isFailure,
      '5xx with internal_error or service_unavailable while the fault is on',
      // As if nothing were wrong: then nothing is.
      (exchange) => idsOn(exchange) !== undefined && idsOn(exchange) === idsOn(before),
    );
    if (last === 'pardoned')
      throw new SupplyUnusable(
        `fault.start: the server still answers as before after ${seconds} s: it does not fail`,
      );
  } finally {
    await fault.stop().catch((error: Error) => {
      throw new SupplyUnusable(`fault.stop: ${error.message}`);
    });
  }
  await within(
    kit,
    request,
    ({ status }) => status === 200,
    `200 within ${seconds} s of the end of the fault`,
  );
}

/** Asks now and then until the answer is as it must be, for half a minute; what is pardoned then is no failure. */
async function within(
  kit: Kit,
  request: RequestOut,
  good: (exchange: Exchange) => boolean,
  expected: string,
  pardoned: (exchange: Exchange) => boolean = () => false,
): Promise<'good' | 'bad' | 'pardoned'> {
  const until = Date.now() + kit.patienceMs(FAULT_LAG_MS);
  for (;;) {
    const exchange = await kit.client.send(request);
    const over = Date.now() > until;
    if (pardoned(exchange)) {
      if (over) return 'pardoned';
      await sleep(FAULT_PAUSE_MS);
      continue;
    }
    kit.ledger.check('7.2-server-error');
    if (good(exchange)) return 'good';
    if (over) {
      const mismatch = differs(expected, sayRefusal(exchange, kit.target.errorCodePointer));
      kit.fail({ id: '7.2-server-error', cause: expected, mismatch, exchange });
      return 'bad';
    }
    await sleep(FAULT_PAUSE_MS);
  }
}

test(
  'requests past the limit',
  about(['7.2-rate_limited', '7.2-retry-after'], { needs: 'page', access: 'disturbs' }),
  ({ kit }) => rateLimit(kit),
);

test(
  'a wait as long as Retry-After says',
  about('7.2-retry-after-honest', { needs: 'page', access: 'disturbs' }),
  ({ kit }) => honestWait(kit),
);

test(
  'a server that fails and heals',
  about('7.2-server-error', { needs: 'page', access: 'disturbs' }),
  ({ kit }) => failingServer(kit),
);
