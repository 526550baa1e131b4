/** Section 7.2, late in the run: the rate limit, if the target file permits to provoke it. */
import { about, test } from '../fixtures/test.ts';
import { header, type Exchange } from '../engine/client/exchange.ts';
import { countOf, pageOf } from '../engine/client/page.ts';
import { retryAfterMs } from '../engine/client/failures.ts';
import { differs } from '../engine/checks/mismatch.ts';
import type { Kit } from '../engine/run/kit.ts';
import { sayRefusal } from '../engine/checks/errors.ts';
import { distinctRequests } from '../engine/run/rules/raw-request.ts';
import { Untested } from '../engine/errors.ts';

/** Enough requests in flight for a few hundred per second at any latency. */
const IN_FLIGHT = { least: 8, most: 32, eachMs: 2 } as const;
/** A rate limit that answers otherwise than 429 admits a similar number in each series of sequential requests. */
const SERIES = { count: 3, pauseMs: 2_000, spread: 3 } as const;
/** A limiter rejects again immediately; a request that failed by chance succeeds on retry. */
const REJECTIONS = { least: 2, most: 10 } as const;
/** This number of other refusals is no accident. */
const OTHERS = 3;
const LONGEST_HONEST_WAIT_MS = 65_000;

/** Sends as fast as allowed until the first 429. Returns it, or why there is none. */
async function provoke(kit: Kit): Promise<Exchange | string> {
  const { maxRequests, maxSeconds } = kit.target.rateLimit!;
  const next = await distinctRequests(kit);
  const startedAtMs = kit.clock.now();
  const untilMs = startedAtMs + maxSeconds * 1000;
  let sent = 0;
  const seen: {
    limited?: Exchange;
    /** Refused otherwise than with 429. */
    others: Exchange[];
    cached?: boolean;
    /** The page with the most items so far; the first one may be past the limit already. */
    fullest?: Exchange;
    /** Another answer to the same query as an earlier `fullest`. */
    odd?: { exchange: Exchange; fullest: Exchange };
  } = { others: [] };
  const send = async (isExclusive = false): Promise<Exchange> => {
    sent++;
    const { fullest } = seen;
    const exchange = await kit.send(next(), { keep429: true, ownBudget: true, isExclusive });
    if (fullest && isRefusedOrLost(exchange, fullest)) seen.odd ??= { exchange, fullest };
    return exchange;
  };
  const isOver = (): boolean =>
    (seen.limited ?? seen.cached) !== undefined ||
    seen.others.length >= OTHERS ||
    sent >= maxRequests ||
    kit.clock.now() >= untilMs;
  const look = (exchange: Exchange): void => {
    if (exchange.status === 429) seen.limited ??= exchange;
    if (isOtherRefusal(exchange)) seen.others.push(exchange);
    if (Number(header(exchange, 'age') ?? 0) > 0) seen.cached = true;
    if (exchange.status === 200 && !(seen.fullest && countOf(exchange) <= countOf(seen.fullest)))
      seen.fullest = exchange;
  };
  const first = await send();
  look(first);
  const { least, most, eachMs } = IN_FLIGHT;
  const inFlight = Math.min(most, Math.max(least, Math.ceil(first.durationMs / eachMs)));
  const worker = async (): Promise<void> => {
    while (!isOver()) look(await send());
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  const pace = (sent * 1000) / Math.max(1, kit.clock.now() - startedAtMs);
  if (seen.limited) kit.ledger.raiseTo('requestsToTheLimit', sent);
  if (seen.odd) {
    kit.ledger.check('7.2-rate_limited');
    kit.fail({
      id: '7.2-rate_limited',
      cause: 'one of many requests',
      mismatch: differs(
        `429 rate_limited beyond a rate limit, and ${sayPage(seen.odd.fullest)} within it`,
        sayPage(seen.odd.exchange),
      ),
      exchange: seen.odd.exchange,
    });
  }
  const { limited, others, cached } = seen;
  if (limited) return limited;
  if (others.length >= OTHERS) return limitedOtherwise(kit, others[0]!, maxRequests - sent, () => send(true));
  return cached
    ? `after ${sent} requests a cache answered (Age) although each had another URL, so that nothing is counted: name an address without the cache`
    : `no limit was met within ${sent} requests at ${Math.round(pace)}/s (rateLimit.maxRequests ${maxRequests}, maxSeconds ${maxSeconds}); raise rateLimit.${sent < maxRequests ? 'maxSeconds' : 'maxRequests'}, or lower a limit above that rate for the run`;
}

/** Whether a valid request is refused as invalid, or its page ends with fewer items than before. */
const isRefusedOrLost = (exchange: Exchange, fullest: Exchange): boolean =>
  [400, 404].includes(exchange.status) ||
  (exchange.status === 200 && countOf(exchange) < countOf(fullest) && pageOf(exchange).nextUrl === undefined);

/** 400, 404 and pages are judged immediately, 401 by the observers. */
const isOtherRefusal = ({ status, transportError }: Exchange): boolean =>
  transportError
    ? transportError.kind !== 'timeout'
    : status >= 300 && ![400, 401, 404, 429].includes(status);

const sayPage = (exchange: Exchange): string =>
  exchange.status === 200 ? `200 with ${countOf(exchange)} items` : sayRefusal(exchange);

/**
 * Checks whether it is a rate limit that refuses: then it rejects sequential requests too, not only one of them, and
 * admits some after a pause.
 */
async function limitedOtherwise(
  kit: Kit,
  refused: Exchange,
  allowed: number,
  send: () => Promise<Exchange>,
): Promise<string> {
  const said = sayRefusal(refused, kit.target.errorCodePointer);
  const unclear = `${said} came before any 429 and not for requests one at a time: where that is the rate limit, 429 is due`;
  const pauseMs = Math.max(retryAfterMs(refused, kit.client.clock.atMs(refused)) ?? 0, SERIES.pauseMs);
  if (pauseMs > LONGEST_HONEST_WAIT_MS) return unclear;
  const most = allowed / SERIES.count - REJECTIONS.most;
  const admitted: number[] = [];
  while (admitted.length < SERIES.count) {
    await kit.clock.sleep(pauseMs, kit.options.signal);
    let count = 0;
    while (count < most && (await send()).status === 200) count++;
    if (count === 0 || count >= most) return unclear;
    let rejected = 0;
    for (let tries = 0; tries < REJECTIONS.most && rejected < REJECTIONS.least; tries++)
      if ((await send()).status !== 200) rejected++;
    if (rejected < REJECTIONS.least) return unclear;
    admitted.push(count);
  }
  if (Math.max(...admitted) > SERIES.spread * Math.min(...admitted)) return unclear;
  const { status } = refused;
  const mismatch = differs(
    '429 rate_limited past the rate limit, and no 5xx',
    `${said} after ${admitted.join(', ')} requests one at a time, and 200 after ${pauseMs / 1000} s: a rate limiter that answers ${status === 503 ? '503 (limit_req of nginx does, unless limit_req_status is 429)' : 'otherwise'}`,
  );
  const isFailure = status >= 500 || status === 0;
  for (const id of [
    '7.2-rate_limited',
    ...(isFailure ? (['7.2-no-unprovoked-5xx'] as const) : []),
  ] as const) {
    kit.ledger.check(id);
    kit.fail({ id, cause: 'a rate limiter that answers otherwise', mismatch, exchange: refused });
  }
  return `the rate limit answers ${said}, not 429`;
}

async function checkRateLimit(kit: Kit): Promise<void> {
  if (!kit.target.rateLimit) {
    if (kit.ledger.checks.has('7.2-rate_limited')) return;
    throw new Untested(
      'supply rateLimit.probe: it permits the kit to provoke 429 (with maxRequests and maxSeconds)',
    );
  }
  const provoked = await kit.once('provoked', () => provoke(kit));
  if (typeof provoked === 'string' && !kit.ledger.checks.has('7.2-rate_limited'))
    throw new Untested(provoked);
}

test(
  'rate_limited: requests beyond the limit',
  about(['7.2-rate_limited', '7.2-retry-after'], { needs: 'page', access: 'provokes' }),
  ({ kit }) => checkRateLimit(kit),
);

test(
  'a request is served after the wait that Retry-After names',
  about('7.2-retry-after-honest', { needs: 'page', access: 'provokes' }),
  async ({ kit }) => {
    await checkRateLimit(kit);
    if (!kit.target.rateLimit)
      throw new Untested('supply rateLimit.probe: permission to provoke 429 and to wait for its Retry-After');
    const before = await kit.once('provoked', () => provoke(kit));
    const limited = typeof before === 'string' ? before : await provoke(kit);
    if (typeof limited === 'string') throw new Untested(limited);
    const waitMs = retryAfterMs(limited, kit.client.clock.atMs(limited));
    if (waitMs === undefined) throw new Untested('the 429 has no readable Retry-After');
    if (waitMs > LONGEST_HONEST_WAIT_MS)
      throw new Untested(`the 429 asks to wait ${Math.round(waitMs / 1000)} s, longer than the kit waits`);
    await kit.clock.sleep(waitMs + 50, kit.options.signal);
    const exchange = await kit.send((await distinctRequests(kit))(), { keep429: true });
    kit.ledger.check('7.2-retry-after-honest');
    if (exchange.status === 429) {
      kit.fail({
        id: '7.2-retry-after-honest',
        cause: 'probe',
        mismatch: differs(
          `a request served after the ${waitMs / 1000} s of Retry-After`,
          sayRefusal(exchange),
        ),
        exchange,
      });
    }
  },
);
