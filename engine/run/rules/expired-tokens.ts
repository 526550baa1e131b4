/** Expired tokens (class expiry): supplied, kept from an earlier run, or waited for; and which of them prove something. */
import { setTimeout as sleep } from 'node:timers/promises';
import { canonical, integerOf, member, type JsonObject } from '../../client/json.ts';
import { SOME_WINDOW } from '../../client/page.ts';
import { claimsOf, readToken, secondsOf, tokenOfText, type Token } from '../../client/token.ts';
import { SupplyUnusable, TargetGone, Untested, unlessUntested } from '../../errors.ts';
import type { Kit } from '../kit.ts';
import { refusalOf, tokenHeader } from '../observers/valid-token.ts';
import { keep, keptByEarlierRun } from '../state/kept.ts';
import { decodeProtectedHeader } from 'jose';

/** The last use of a token before its exp: a minute earlier, or less for tokens that live less than an hour. */
const LAST_USE_SHARE = 60;
/** For tokens that live less than an hour, the leeway after exp is a tenth of their life at most. */
const LEEWAY_SHARE = 10;

/** Tokens of a run that were waited for. */
const awaited = new WeakMap<Kit, string>();

interface ExpiredToken {
  readonly text: string;
  readonly label: string;
}

/**
 * An expired token; the run's own token is left in the file of `keepToken` for the next run. Throws Untested with
 * what to supply, and SupplyUnusable if the supplied token is not an expired valid one.
 */
export const expiredTokenOf = async (kit: Kit): Promise<string> =>
  awaited.get(kit) ?? (await knownTokens(kit))[0]!.text;

/**
 * All expired tokens. With --wait-for-expiry the last one is a token of the run, after its exp: the target has verified
 * it before, so that a cache of verified tokens shows. Throws like expiredTokenOf.
 */
export async function expiredTokensOf(kit: Kit): Promise<readonly ExpiredToken[]> {
  if (!kit.options.waitForExpiry) return knownTokens(kit);
  const known = await knownTokens(kit).catch((error: unknown) => {
    if (error instanceof Untested && !(error instanceof SupplyUnusable)) return [];
    throw error;
  });
  const text = await waitedFor(kit, await kit.token());
  awaited.set(kit, text);
  return [...known, { text, label: 'the first token of the run, after its exp' }];
}

const knownTokens = (kit: Kit): Promise<readonly ExpiredToken[]> =>
  kit.once('expired tokens', () => findExpiredTokens(kit));

async function findExpiredTokens(kit: Kit): Promise<readonly ExpiredToken[]> {
  const { expiredToken, keepToken } = kit.target;
  const current = await kit.token();
  const unusable = (text: string): string | undefined => whyNoExpiredToken(text, current, kit.client);
  const kept = keepToken ? await keptToken(kit, current, unusable) : {};
  const keptLabel = 'the expired token of an earlier run';
  if (expiredToken) {
    const why = unusable(expiredToken);
    if (why) throw new SupplyUnusable(`${why}; supply a token of clients.primary that has expired`);
    const supplied = { text: await beyondLeeway(kit, expiredToken), label: 'the expired token' };
    // The target may never have verified the supplied one; it has verified the kept one.
    const other = kept.token === undefined ? undefined : await unlessUntested(beyondLeeway(kit, kept.token));
    return other === undefined || other === expiredToken
      ? [supplied]
      : [supplied, { text: other, label: keptLabel }];
  }
  if (kept.token !== undefined) return [{ text: await beyondLeeway(kit, kept.token), label: keptLabel }];
  throw new Untested(
    kept.why ??
      'supply expiredToken (a token of clients.primary from more than an hour ago), or keepToken (a file where a run leaves one for the next), or wait for one (--wait-for-expiry)',
  );
}

/**
 * The token; throws SupplyUnusable if the target accepts it within the longest usual leeway after its exp, because that
 * neither proves nor disproves anything.
 */
async function beyondLeeway(kit: Kit, text: string): Promise<string> {
  const exp = Number(member(claimsOf(text) ?? {}, 'exp'));
  const seconds = Math.round(kit.client.clock.nowMs() / 1000 - exp);
  if (seconds > LEEWAY_SECONDS) return text;
  const authorization = tokenHeader(tokenOfText(text), 'the expired one');
  const { status } = await kit.send(kit.request(await kit.tenantOf(), SOME_WINDOW, authorization));
  if (status !== 200) return text;
  throw new SupplyUnusable(
    `a token is accepted ${seconds} s after its exp, which the leeway of a verifier may explain; supply expiredToken from more than an hour ago`,
  );
}

/** The token in the file, if it has expired; the file gets the current token unless its token has yet to expire. */
async function keptToken(
  kit: Kit,
  current: Token,
  unusable: (text: string) => string | undefined,
): Promise<{ token?: string; why?: string }> {
  const { token: text } = await keptByEarlierRun(kit);
  const why =
    text === '' ? 'none was kept yet' : unusable(text)?.replaceAll('expiredToken', 'the kept token');
  if (text !== '' && why?.includes('has not expired yet')) return { why: `${why}; run again in an hour` };
  await keep(kit, { token: current.text });
  return why === undefined
    ? { token: text }
    : { why: `${why}; a token was left in keepToken: run again when it has expired, in an hour` };
}

/** The first token of the run, after it has expired by the target's clock. */
async function waitedFor(kit: Kit, current: Token): Promise<string> {
  const token = (kit.client.firstMint && readToken(kit.client.firstMint)) ?? current;
  const [iat, exp] = ['iat', 'exp'].map((name) => secondsOf(member(token.claims, name)));
  if (!Number.isFinite(exp! - iat!))
    throw new Untested('the tokens have no exp, so the kit cannot wait until one has expired');
  const shareOf = (share: number): number => Math.ceil((exp! - iat!) / share);
  const until = async (seconds: number): Promise<void> => {
    const { signal } = kit.options;
    const waitMs = seconds * 1000 - kit.client.clock.nowMs();
    await sleep(Math.max(0, waitMs), undefined, signal ? { signal } : {}).catch(() => {
      throw new TargetGone(String(signal?.reason));
    });
  };
  // At half of its lifetime, and shortly before its end.
  for (const seconds of [(iat! + exp!) / 2, exp! - shareOf(LAST_USE_SHARE)]) {
    await until(seconds);
    await kit.checkAll({ id: '5-valid-token', cause: 'while expiry was waited for' }, () =>
      refusalOf(kit, token, 'the first one of the run'),
    );
  }
  await until(exp! + Math.min(LEEWAY_SECONDS, shareOf(LEEWAY_SHARE)));
  return token.text;
}

/** The longest usual leeway of verifiers (.NET: 5 minutes; RFC 7519, section 4.1.4), and half a minute for differing clocks. */
const LEEWAY_SECONDS = 330;
const SKEW_SECONDS = 60;

/**
 * Why a refusal of this token would prove nothing about expiry: a server refuses tokens that it never issued for
 * other reasons. Undefined if the token is usable (section 2.2, section 5 rule 3).
 */
function whyNoExpiredToken(
  supplied: string,
  current: Token,
  { clock, issued }: Kit['client'],
): string | undefined {
  const claims = claimsOf(supplied);
  if (!claims) return 'expiredToken is no JWT, so its expiry is unknown';
  const exp = integerOf(member(claims, 'exp'));
  if (exp === undefined) return 'expiredToken has no exp, so it never expires';
  if (Number(exp) > clock.nowMs() / 1000 - SKEW_SECONDS) return 'expiredToken has not expired yet';
  const other = otherClaim(claims, current);
  if (other) return `expiredToken has another ${other} than the tokens of clients.primary`;
  if (!current.claims) return undefined;
  const was = signatureOf(supplied);
  // A new key of the issuer, or one of another instance, may be of another kind.
  const alike = [...issued]
    .filter(claimsOf)
    .map(signatureOf)
    .filter(({ alg }) => alg === was.alg);
  if (alike.length === 0)
    return `expiredToken is signed with alg ${was.alg}, the tokens of clients.primary with ${signatureOf(current.text).alg}`;
  // A truncated token would be refused because of its signature.
  return alike.every(({ length }) => was.length < length)
    ? 'expiredToken is cut off: its signature is shorter than those of clients.primary'
    : undefined;
}

/** The first claim which shows that a token is from another issuer, or for another API or tenant. */
export const otherClaim = (claims: JsonObject, current: Token): string | undefined =>
  ['iss', 'aud', 'tenant_id'].find(
    (name) => current.claims && comparable(claims, name) !== comparable(current.claims, name),
  );

const signatureOf = (token: string): { alg: string | undefined; length: number } => ({
  alg: decodeProtectedHeader(token).alg,
  length: token.split('.')[2]!.length,
});

/** Ignores a trailing slash and the case of a UUID. */
function comparable(claims: JsonObject, name: string): string {
  const value = member(claims, name);
  return typeof value === 'string' ? value.replace(/\/+$/, '').toLowerCase() : canonical(value);
}
