/** Exchanges, a clock and a target for tests. */
import { setImmediate } from 'node:timers/promises';
import { exchangeOf, type Exchange, type RequestOut } from './client/exchange.ts';
import type { Clock } from './clock.ts';

/** A GET without a token. */
export const getOf = (url: string): RequestOut => ({
  channel: 'rest',
  method: 'GET',
  url,
  headers: {},
  authorization: { kind: 'none' },
});

export const answerTo = (request: RequestOut, text: string, status = 200, startedAtMs = 0): Exchange =>
  exchangeOf({ seq: 1, request, status, headers: [], text, startedAtMs, durationMs: 1 });

/** A target file with addresses at which nothing listens. */
export const UNREACHABLE = {
  baseUrl: 'http://127.0.0.1:1',
  authUrl: 'http://127.0.0.1:1',
  clients: { primary: { clientId: 'unknown', clientSecret: 'unknown secret' } },
};

/**
 * A clock whose sleeps take no time and advance it; overlapping sleeps advance it only once.
 *
 * @param base the time that it is ahead of: `Date.now`, or by default a time that stands still
 */
export function fakeClock(base = (): number => 0): Clock & { advance(ms: number): void } {
  let aheadMs = 0;
  const now = (): number => base() + aheadMs;
  return {
    now,
    async sleep(ms) {
      const untilMs = now() + ms;
      await setImmediate();
      // Whole milliseconds, as those of Date.now.
      aheadMs += Math.ceil(Math.max(0, untilMs - now()));
    },
    advance: (ms) => void (aheadMs += ms),
  };
}
