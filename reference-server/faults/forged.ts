/** Section 5: whose signatures are accepted, and how long a token stays valid. */
import { generateKeyPairSync, X509Certificate, type KeyObject } from 'node:crypto';
import { importJWK, jwtVerify, SignJWT, type CryptoKey, type JWK } from 'jose';
import type { TokenClaims } from '../parts.ts';
import {
  answers,
  both,
  intercepting,
  isTokenRequest,
  minting,
  perServer,
  tokenBody,
  verifying,
} from '../run/alter.ts';
import { SELF_SIGNED } from '../http/certificates.ts';
import { jsonAnswer, type ServiceRequest } from '../http/http.ts';
import { fieldOf } from './forms.ts';
import type { ServerOptions } from '../run/start.ts';
import { TENANTS } from '../run/provisioning.ts';
import { verified, trusted, headerOf, hmacKey, payloadOf, signedWith, type TokenHeader } from './bearer.ts';
import { full, REFUSALS, theme, type Fault } from './fault.ts';

const { fails, failsLater } = theme([...REFUSALS, '4.2-success']);

type Key = CryptoKey | KeyObject | Uint8Array | undefined;

interface Issued {
  readonly alg: string;
  readonly typ?: string;
  readonly kid?: string;
}

/** Also accepts a token like the issuer's that verifies with a key taken from its own header. */
const trusting = (
  keyOf: (header: TokenHeader, claims: Partial<TokenClaims>) => Promise<Key> | Key,
  { alg, typ }: Issued = { alg: 'ES256' },
): ServerOptions =>
  verifying(() => async (token, nowSeconds, real) => {
    const known = await real(token, nowSeconds);
    if (known) return known;
    try {
      const key = await keyOf(headerOf(token), payloadOf(token) ?? {});
      const options = { algorithms: [alg], ...(typ ? { typ } : {}) };
      return key && ((await jwtVerify(token, key, options)).payload as unknown as TokenClaims);
    } catch {
      return undefined;
    }
  });

let generated: Record<'publicKey' | 'privateKey', KeyObject> | undefined;
const rsaKeys = (): NonNullable<typeof generated> =>
  (generated ??= generateKeyPairSync('rsa', { modulusLength: 2048 }));

/** Signs with RSA, and admits only tokens with this header. */
const issuing = (header: Issued): ServerOptions =>
  both(
    minting(
      () => (claims) =>
        new SignJWT({ ...claims }).setProtectedHeader({ ...header }).sign(rsaKeys().privateKey),
    ),
    verifying(() => async () => undefined),
    trusting(() => rsaKeys().publicKey, header),
  );

/** Publishes the next key, with which nothing is signed yet, and the present one with a certificate. */
const publishing = (kid: string): ServerOptions => {
  const next = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey;
  const jwk = (key: KeyObject, kid: string): JWK => ({ ...key.export({ format: 'jwk' }), kid });
  const x5c = [SELF_SIGNED.replace(/-----.*|\n/g, '')];
  return intercepting(
    () => jsonAnswer(200, { keys: [jwk(next, 'next'), { ...jwk(rsaKeys().publicKey, kid), x5c }] }),
    ({ path }) => path.endsWith('/.well-known/jwks.json'),
  );
};

const AT_JWT = { alg: 'PS384', typ: 'at+jwt' };
const RS256 = { alg: 'RS256', kid: 'now' };

async function firstKeyOf(address: string, alg: string | undefined): Promise<Key> {
  const { keys } = (await (await fetch(address)).json()) as { keys: JWK[] };
  return importJWK(keys[0]!, alg);
}

export const forged: readonly Fault[] = [
  ...fails({ '5-forged': /401 unauthenticated.*200/ })({
    'trusts jwk in the header of the token': trusting(({ jwk, alg }) => jwk && importJWK(jwk, alg)),
    'admits the type at+jwt and PS384 alone, and trusts jwk in the header of the token': both(
      issuing(AT_JWT),
      trusting(({ jwk, alg }) => jwk && importJWK(jwk, alg), AT_JWT),
    ),
    'trusts the key set that jku in the header of the token names': trusting(({ jku, alg }) =>
      jku ? firstKeyOf(jku, alg) : undefined,
    ),
    'trusts the certificate x5c in the header of the token': both(
      issuing(RS256),
      trusting(({ x5c }) => x5c && new X509Certificate(Buffer.from(x5c[0]!, 'base64')).publicKey, RS256),
    ),
    'the public key, published after the next one, is an HMAC key too': both(
      issuing(RS256),
      hmacKey(() => String(rsaKeys().publicKey.export({ type: 'spki', format: 'pem' }))),
      publishing(RS256.kid),
    ),
    'the published certificate is an HMAC key too': both(
      issuing(RS256),
      hmacKey(() => SELF_SIGNED),
      publishing(RS256.kid),
    ),
    'an unknown kid selects an empty HMAC key': hmacKey(({ kid }) => (kid === undefined ? undefined : '')),
    'an empty HMAC key verifies HS384': hmacKey(({ alg }) => (alg === 'HS384' ? '' : undefined), 'sha384'),
    'an empty HMAC key verifies HS512': hmacKey(({ alg }) => (alg === 'HS512' ? '' : undefined), 'sha512'),
    'kid is inserted into the SQL query for the HMAC key': hmacKey(
      ({ kid = '' }) => /' UNION SELECT '(.*)$/i.exec(kid)?.[1],
    ),
    'the HMAC key is the tenant_id': hmacKey((_, { tenant_id }) => tenant_id),
    'the HMAC key is the client_id': hmacKey((_, { sub }) => sub),
    'the HMAC key is "password"': hmacKey(() => 'password'),
    'tokens are signed with the secret of a tutorial': signedWith(
      'HS256',
      'my-32-character-ultra-secure-and-ultra-long-secret',
    ),
    'tokens are signed with the well-known Base64 of a tutorial': signedWith(
      'HS256',
      Buffer.from('404E635266556A586E3272357538782F413F4428472B4B6250645367566B5970', 'base64'),
    ),
    'tokens are signed with the tenant_id': signedWith('HS512', TENANTS.primary),
    'trusts the keys of the issuer that the token names': trusting(async (_, { iss }) => {
      const metadata = await fetch(`${iss}/.well-known/openid-configuration`);
      const { jwks_uri } = (await metadata.json()) as { jwks_uri: string };
      return firstKeyOf(jwks_uri, 'ES256');
    }),
    'accepts RSA signatures without verifying': trusted((_, { alg }) => /^RS/.test(String(alg))),
  }),
  ...fails({ '5-tampered': /401 unauthenticated.*200/ })({
    'accepts an ECDSA signature of zeros': trusted(
      (token, { alg }) => alg === 'ES256' && /^A{86}$/.test(token.split('.')[2] ?? ''),
    ),
    "accepts the second tenant's tokens without verifying": full(
      trusted((token) => payloadOf(token)?.tenant_id === TENANTS.secondTenant),
    ),
  }),
  ...fails({ '5-valid-token': /401 unauthenticated, after a later one had been minted/ })({
    'a mint revokes earlier tokens': perServer(() => lastOnes(1)),
  }),
  ...fails({ '5-valid-token': /401 unauthenticated, after a wrong client_secret/ })({
    'a wrong client_secret revokes the tokens of the client': perServer(revokedByGuesses),
  }),
  ...fails({ '5-valid-token': /401 unauthenticated, although the scope was granted/ })({
    'a token of a part of the requested scopes is refused': perServer(() =>
      refusedIfIssued((request) => fieldOf('scope')(request)?.includes(' ')),
    ),
  }),
  ...failsLater({ '5-valid-token': /after it was issued/ })({
    'the eighth later mint revokes a token': perServer(() => lastOnes(8)),
  }),
  ...fails({ '5-valid-token': /200: the token lasts \d+ s more.*401/ })({
    'a token can be used for thirty requests': verifying(() => {
      const uses = new Map<string, number>();
      return async (token, nowSeconds, real) => {
        uses.set(token, (uses.get(token) ?? 0) + 1);
        return uses.get(token)! > 30 ? undefined : real(token, nowSeconds);
      };
    }),
  }),
];

/** A client's tokens are valid until a token request with its id is answered 401. */
function revokedByGuesses(): ServerOptions {
  const ages = new Map<string, number>();
  const issuedIn = new Map<string, number>();
  const ageOf = (id = ''): number => ages.get(id) ?? 0;
  return both(
    minting(() => async (claims, real) => {
      const token = await real({ ...claims, jti: String(Math.random()) } as TokenClaims);
      issuedIn.set(token, ageOf(claims.sub));
      return token;
    }),
    verified((claims, token) => (issuedIn.get(token) === ageOf(claims.sub) ? claims : undefined)),
    answers(
      (answer, request) => {
        const id = fieldOf('client_id')(request)!;
        ages.set(id, ageOf(id) + 1);
        return answer;
      },
      ({ status }, request) => status === 401 && isTokenRequest(request),
    ),
  );
}

/** Refuses the tokens that matching token requests have earned. */
function refusedIfIssued(isOdd: (request: ServiceRequest) => boolean | undefined): ServerOptions {
  const odd = new Set<string>();
  return both(
    verified((claims, token) => (odd.has(token) ? undefined : claims)),
    tokenBody((body, request) => {
      if (isOdd(request)) odd.add(String(body['access_token']));
      return body;
    }),
  );
}

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
    verified((claims, token) => (newest.get(claims.sub)?.includes(token) ? claims : undefined)),
  );
}
