/** Section 2.1: the token response. */
import { about, test } from '../fixtures/test.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { endedAtMs, type Exchange } from '../engine/client/exchange.ts';
import { member } from '../engine/client/json.ts';
import { readToken, secondsOf } from '../engine/client/token.ts';
import { differs } from '../engine/checks/mismatch.ts';
import { wholeLifetime } from '../engine/checks/token.ts';
import { claimSeconds } from '../engine/run/observers/valid-token.ts';
import { mintAll } from '../engine/run/rules/raw-request.ts';
import { Untested } from '../engine/errors.ts';

/** Long enough that `iat`, in whole seconds, distinguishes a new token from a reused one. */
const REMINT_DELAY_MS = 3_000;

const issuedAtOf = (exchange: Exchange): number => claimSeconds(readToken(exchange), 'iat');
const expiryOf = (exchange: Exchange): number => claimSeconds(readToken(exchange), 'exp');

/** `iat` of a new token advances with the clock, even if the server's clock is wrong. */
const isNewToken = (early: Exchange, late: Exchange): boolean =>
  Math.abs(issuedAtOf(late) - issuedAtOf(early) - (late.startedAtMs - early.startedAtMs) / 1000) < 1.5;

test(
  'the token response of every client has its four fields',
  about(['2.1-access_token', '2.1-token_type', '2.1-expires_in', '2.1-scope'], { needs: 'token' }),
  ({ kit }) => mintAll(kit),
);

test('a new token expires in 3600 s', about('2.1-expires_in-3600', { needs: 'token' }), async ({ kit }) => {
  const early = await kit.client.mint();
  if (kit.ledger.checks.has('2.1-expires_in-3600')) return;
  await sleep(REMINT_DELAY_MS);
  const late = await kit.client.mint();
  if (!isNewToken(early, late)) {
    throw new Untested(
      'the token endpoint returned only tokens issued earlier; run again after they have expired',
    );
  }
  kit.check('2.1-expires_in-3600', late, wholeLifetime);
});

test(
  'expires_in of a reused token is the time that is left',
  about('2.1-expires_in', { needs: 'token', access: 'disturbs', isSupplement: true }),
  async ({ kit }) => {
    const first = kit.client.firstMint;
    if (!first) return;
    const again = await kit.client.mint();
    // From the answer on: the first request may have waited for the start of the service.
    const { clock } = kit.client;
    // Either clock may have been corrected in between.
    const elapsedSeconds =
      Math.min(again.startedAtMs - endedAtMs(first), clock.atMs(again) - clock.atMs(first)) / 1000;
    // The same token, or another one that lasts no longer.
    if (elapsedSeconds < 8 || expiryOf(again) !== expiryOf(first)) return;
    const before = secondsOf(member(first.json, 'expires_in'));
    kit.check('2.1-expires_in', again, (exchange) => {
      const left = secondsOf(member(exchange.json, 'expires_in'));
      return left > before - elapsedSeconds + 6
        ? differs(
            `expires_in: about ${Math.round(before - elapsedSeconds)} for the token of ${Math.round(elapsedSeconds)} s ago`,
            `expires_in: ${left}`,
          )
        : undefined;
    });
  },
);
