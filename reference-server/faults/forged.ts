/** Section 5: whose signature is believed, and for how long a token is good. */
import { createHmac, X509Certificate } from 'node:crypto';
import { importJWK, jwtVerify, type CryptoKey, type JWK } from 'jose';
import type { KeyObject } from 'node:crypto';
import { errorAnswer, type ServiceAnswer } from '../http/http.ts';
import type { TokenClaims } from '../parts.ts';
import { instead, isScreenings, middleware } from '../run/alter.ts';
import { headerOf, payloadOf, verifying } from './authentication.ts';
import type { Fault } from './fault.ts';

type Key = CryptoKey | KeyObject | Uint8Array;
type Header = { alg?: string; jwk?: JWK; jku?: string; x5c?: string[]; kid?: string };

/** A token that a key found by way of its header verifies is believed too. */
const trusting = (keyOf: (header: Header, token: string) => Promise<Key | undefined> | Key | undefined) =>
  verifying(() => async (token, nowSeconds, real) => {
    const known = await real(token, nowSeconds);
    if (known) return known;
    try {
      const header = headerOf(token) as Header;
      const key = await keyOf(header, token);
      return key && ((await jwtVerify(token, key)).payload as unknown as TokenClaims);
    } catch {
      return undefined;
    }
  });

/** The same for shared secrets, however short. */
const sharing = (secretOf: (claims: TokenClaims, header: Header) => string | undefined) =>
  verifying(() => async (token, nowSeconds, real) => {
    const [head, body, signature] = token.split('.');
    const header = headerOf(token) as Header;
    const claims = payloadOf(token);
    const secret = claims && header.alg === 'HS256' ? secretOf(claims, header) : undefined;
    const right =
      secret !== undefined &&
      createHmac('sha256', secret).update(`${head}.${body}`).digest('base64url') === signature;
    return right ? claims : real(token, nowSeconds);
  });

const unauthenticated = (): ServiceAnswer =>
  errorAnswer(401, 'unauthenticated', 'no', [['www-authenticate', 'Bearer']]);

const BELIEVED = { '5-forged': /401 unauthenticated.*200/ } as const;

export const forged: readonly Fault[] = [
  {
    name: 'a key in the header of the token is believed',
    trips: BELIEVED,
    server: trusting(({ jwk, alg }) => (jwk ? (importJWK(jwk, alg) as Promise<CryptoKey>) : undefined)),
  },
  {
    name: 'a key set that the header of the token names is fetched and believed',
    trips: BELIEVED,
    server: trusting(async ({ jku, alg }) => {
      if (!jku) return undefined;
      const { keys } = (await (await fetch(jku)).json()) as { keys: JWK[] };
      return importJWK(keys[0]!, alg) as Promise<CryptoKey>;
    }),
  },
  {
    name: 'a certificate in the header of the token is believed',
    trips: BELIEVED,
    server: trusting(({ x5c }) =>
      x5c ? new X509Certificate(Buffer.from(x5c[0]!, 'base64')).publicKey : undefined,
    ),
  },
  {
    name: 'tokens signed with an empty secret are believed where kid names no key',
    trips: BELIEVED,
    server: sharing((_, { kid }) => (kid === undefined ? undefined : '')),
  },
  {
    name: 'tokens signed with the client_id are believed',
    trips: BELIEVED,
    server: sharing(({ sub }) => sub),
  },
  {
    name: 'kid stands as it is in the query for the secret',
    trips: BELIEVED,
    server: sharing((_, { kid = '' }) => /' UNION SELECT '(.*)$/i.exec(kid)?.[1]),
  },
  {
    name: 'a signature of zeros is right for any elliptic key',
    trips: { '5-tampered': /401 unauthenticated.*200/ },
    server: verifying(
      () => async (token, nowSeconds, real) =>
        headerOf(token).alg === 'ES256' && /^A{86}$/.test(token.split('.')[2] ?? '')
          ? payloadOf(token)
          : real(token, nowSeconds),
    ),
  },
  {
    name: 'an RSA signature is not looked at where the keys are elliptic',
    trips: BELIEVED,
    server: verifying(
      () => async (token, nowSeconds, real) =>
        headerOf(token).alg?.startsWith('RS') ? payloadOf(token) : real(token, nowSeconds),
    ),
  },
  {
    name: 'a forged token is 403',
    trips: { '5-forged': /401 unauthenticated.*403/ },
    server: instead((request) => {
      const { jwk } = headerOf((request.headers['authorization'] ?? '').slice('Bearer '.length)) as Header;
      return jwk ? errorAnswer(403, 'forbidden', 'unknown key') : undefined;
    }),
  },
  {
    name: 'a later mint ends the tokens before it',
    trips: { '5-valid-token': /401 unauthenticated, after a later one had been minted/ },
    server: lastOnly(),
  },
  {
    name: 'a token is good for thirty requests',
    trips: { '5-valid-token': /200: the token lasts \d+ s more.*401/ },
    mayTrip: ['5-scheme-case'],
    server: limitedUses(30),
  },
  {
    name: 'one valid request in twenty-five is 401',
    trips: { '5-valid-token': /200: the token lasts \d+ s more.*401/ },
    mayTrip: ['5-forbidden', '5-scheme-case'],
    server: middleware(() => {
      let served = 0;
      return async (request, next) => {
        const answer = await next(request);
        return isScreenings(request) && answer.status === 200 && (served += 1) % 25 === 10
          ? unauthenticated()
          : answer;
      };
    }),
  },
];

/** One token a client: the newest. */
function lastOnly(): NonNullable<Fault['server']> {
  return {
    wrapParts: (parts) => {
      const newest = new Map<string, string>();
      const { tokens } = parts;
      return {
        ...parts,
        tokens: {
          async mint(claims) {
            // Two in one second are not told apart by their claims.
            const token = await tokens.mint({ ...claims, jti: String(Math.random()) } as TokenClaims);
            newest.set(claims.sub, token);
            return token;
          },
          async verify(token, nowSeconds) {
            const claims = await tokens.verify(token, nowSeconds);
            return claims && newest.get(claims.sub) === token ? claims : undefined;
          },
        },
      };
    },
  };
}

function limitedUses(limit: number): NonNullable<Fault['server']> {
  return verifying(() => {
    const uses = new Map<string, number>();
    return async (token, nowSeconds, real) => {
      const claims = await real(token, nowSeconds);
      if (!claims) return undefined;
      uses.set(token, (uses.get(token) ?? 0) + 1);
      return uses.get(token)! > limit ? undefined : claims;
    };
  });
}
