/** Section 5: whose signatures are accepted, and how long a token stays valid. */
import { X509Certificate, type KeyObject } from 'node:crypto';
import { importJWK, jwtVerify, type CryptoKey, type JWK } from 'jose';
import type { TokenClaims } from '../parts.ts';
import { answering, both, isScreenings, middleware, minting, refusal } from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { TENANTS } from '../run/provisioning.ts';
import {
  authorizationOf,
  trusted,
  headerOf,
  hmacKey,
  payloadOf,
  verifying,
  type TokenHeader,
} from './bearer.ts';
import { refusalFaults, tripping, type Fault } from './fault.ts';

type Key = CryptoKey | KeyObject | Uint8Array | undefined;

/** Also accepts a token that verifies with a key taken from its own header. */
const trusting = (keyOf: (header: TokenHeader) => Promise<Key> | Key): ServerOptions =>
  verifying(() => async (token, nowSeconds, real) => {
    const known = await real(token, nowSeconds);
    if (known) return known;
    try {
      const key = await keyOf(headerOf(token));
      return key && ((await jwtVerify(token, key)).payload as unknown as TokenClaims);
    } catch {
      return undefined;
    }
  });

export const forged: readonly Fault[] = [
  ...tripping({ '5-forged': /401 unauthenticated.*200/ })({
    'a key in the header of the token is believed': trusting(({ jwk, alg }) =>
      jwk ? importJWK(jwk, alg) : undefined,
    ),
    'a key set that the header of the token names is fetched and believed': trusting(async ({ jku, alg }) => {
      if (!jku) return undefined;
      const { keys } = (await (await fetch(jku)).json()) as { keys: JWK[] };
      return importJWK(keys[0]!, alg);
    }),
    'a certificate in the header of the token is believed': trusting(({ x5c }) =>
      x5c ? new X509Certificate(Buffer.from(x5c[0]!, 'base64')).publicKey : undefined,
    ),
    'tokens signed with an empty secret are believed where kid names no key': hmacKey(({ kid }) =>
      kid === undefined ? undefined : '',
    ),
    'tokens signed with the client_id are believed': hmacKey((_, { sub }) => sub),
    'kid stands as it is in the query for the secret': hmacKey(
      ({ kid = '' }) => /' UNION SELECT '(.*)$/i.exec(kid)?.[1],
    ),
    'an RSA signature is not looked at where the keys are elliptic': trusted(
      (_, { alg }) => alg?.startsWith('RS') === true,
    ),
  }),
  ...tripping({ '5-tampered': /401 unauthenticated.*200/ })({
    'a signature of zeros is right for any elliptic key': trusted(
      (token, { alg }) => alg === 'ES256' && /^A{86}$/.test(token.split('.')[2] ?? ''),
    ),
  }),
  ...refusalFaults(
    { '5-tampered': /401 unauthenticated.*200/ },
    { bare: false },
  )({
    "the signature of the second tenant's tokens is not looked at": trusted(
      (token) => payloadOf(token)?.tenant_id === TENANTS.secondTenant,
    ),
  }),
  ...tripping({ '5-forged': /401 unauthenticated.*403/ })({
    'a forged token is 403': answering(
      '403 forbidden',
      (_, request) => headerOf(authorizationOf(request).slice('Bearer '.length)).jwk !== undefined,
    ),
  }),
  ...tripping({ '5-valid-token': /401 unauthenticated, after a later one had been minted/ })({
    'a later mint ends the tokens before it': lastOnes(1),
  }),
  ...tripping(
    { '5-valid-token': /after it was issued/ },
    { needsNeighbours: true },
  )({ 'the fourth later mint ends a token': lastOnes(4) }),
  ...tripping(
    { '5-valid-token': /200: the token lasts \d+ s more.*401/ },
    { mayTrip: ['5-forbidden', '5-scheme-case'] },
  )({
    'a token is good for thirty requests': verifying(() => {
      const uses = new Map<string, number>();
      return async (token, nowSeconds, real) => {
        const claims = await real(token, nowSeconds);
        if (!claims) return undefined;
        uses.set(token, (uses.get(token) ?? 0) + 1);
        return uses.get(token)! > 30 ? undefined : claims;
      };
    }),
    'one valid request in twenty-five is 401': middleware(() => {
      let times = 0;
      return async (request, next) => {
        const answer = await next(request);
        const isOdd = isScreenings(request) && answer.status === 200 && (times += 1) % 25 === 10;
        return isOdd ? refusal('401 unauthenticated') : answer;
      };
    }),
  }),
];

/** Only the newest tokens of a client are valid. */
function lastOnes(valid: number): ServerOptions {
  const newest = new Map<string, string[]>();
  return both(
    minting(() => async (claims, real) => {
      // A random jti: two tokens minted in the same second would otherwise be equal.
      const token = await real({ ...claims, jti: String(Math.random()) } as TokenClaims);
      newest.set(claims.sub, [token, ...(newest.get(claims.sub) ?? [])].slice(0, valid));
      return token;
    }),
    verifying(() => async (token, nowSeconds, real) => {
      const claims = await real(token, nowSeconds);
      return claims && newest.get(claims.sub)?.includes(token) ? claims : undefined;
    }),
  );
}
