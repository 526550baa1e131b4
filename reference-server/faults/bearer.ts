/** Building blocks for faults in verifying bearer tokens. */
import { createHmac } from 'node:crypto';
import type { JWK } from 'jose';
import { encodePart } from '../../engine/client/altered-token.ts';
import type { ServiceRequest } from '../http/http.ts';
import type { TokenClaims } from '../parts.ts';
import { accepting, both, minting, requests, verifying } from '../run/alter.ts';
import { type Where } from '../run/conditions.ts';
import type { ServerOptions } from '../run/start.ts';

export const authorizationOf = ({ headers }: ServiceRequest): string => headers['authorization'] ?? '';
/** The text after `Bearer `. */
export const tokenOf = (request: ServiceRequest): string => authorizationOf(request).replace(/^Bearer /, '');
/** The decoded `id:secret` of a Basic Authorization header; undefined without one. */
export const basicOf = (request: ServiceRequest): string | undefined => {
  const [, basic] = /^Basic (\S+)$/.exec(authorizationOf(request)) ?? [];
  return basic && Buffer.from(basic, 'base64').toString();
};
export const cookieOf = ({ headers }: ServiceRequest, name: string): string | undefined =>
  new RegExp(`\\b${name}=([^;]+)`).exec(headers['cookie'] ?? '')?.[1];

/** Serves matching requests without a valid token. */
export const anonymous = (where: Where): ServerOptions => accepting('unauthenticated', where);

/** Changes the Authorization header, if there is one. */
export const authorized = (change: (authorization: string) => string): ServerOptions =>
  requests((request) => {
    const { authorization } = request.headers;
    return authorization === undefined
      ? request
      : { ...request, headers: { ...request.headers, authorization: change(authorization) } };
  });

export type TokenHeader = { alg?: string; jwk?: JWK; jku?: string; x5c?: string[]; kid?: string };

const part = (token: string, index: number): unknown => {
  try {
    return JSON.parse(Buffer.from(token.split('.')[index] ?? '', 'base64url').toString());
  } catch {
    return undefined;
  }
};

export function payloadOf(token: string): TokenClaims | undefined {
  const parsed = part(token, 1);
  return typeof parsed === 'object' && parsed !== null && 'tenant_id' in parsed
    ? (parsed as TokenClaims)
    : undefined;
}

export const hasExpired = (request: ServiceRequest): boolean =>
  (payloadOf(tokenOf(request))?.exp ?? Infinity) < Date.now() / 1000;

export const headerOf = (token: string): TokenHeader => (part(token, 0) as TokenHeader | undefined) ?? {};

/** Changes the claims of valid tokens; undefined rejects the token. */
export const verified = (
  change: (claims: TokenClaims, token: string) => TokenClaims | undefined,
): ServerOptions =>
  verifying(() => async (token, nowSeconds, real) => {
    const claims = await real(token, nowSeconds);
    return claims && change(claims, token);
  });

export const trusted = (isBelieved: (token: string, header: TokenHeader) => boolean): ServerOptions =>
  verifying(
    () => async (token, nowSeconds, real) =>
      isBelieved(token, headerOf(token)) ? payloadOf(token) : real(token, nowSeconds),
  );

/** Also accepts tokens signed with HMAC and the given secret, even an empty one. */
export const hmacKey = (
  secretOf: (header: TokenHeader, claims: TokenClaims) => string | Buffer | undefined,
  hash = 'sha256',
): ServerOptions =>
  trusted((token, header) => {
    const [head, body, signature] = token.split('.');
    const claims = payloadOf(token);
    const secret = claims && secretOf(header, claims);
    if (secret === undefined) return false;
    return createHmac(hash, secret).update(`${head}.${body}`).digest('base64url') === signature;
  });

/** Signs tokens with HMAC and this secret, and accepts only those. */
export const signedWith = (alg: 'HS256' | 'HS512', secret: string | Buffer): ServerOptions => {
  const hash = alg.replace('HS', 'sha');
  const sign = (content: string): string =>
    `${content}.${createHmac(hash, secret).update(content).digest('base64url')}`;
  return both(
    minting(() => async (claims) => sign(`${encodePart({ alg, typ: 'JWT' })}.${encodePart(claims)}`)),
    verifying(() => async (token, nowSeconds) => {
      const claims = payloadOf(token);
      const isValid = sign(token.split('.').slice(0, 2).join('.')) === token;
      return claims && isValid && claims.exp > nowSeconds ? claims : undefined;
    }),
  );
};

/** Caches verified claims under a key that covers only a part of the token. */
export const cachedBy = (keyOf: (token: string) => string): ServerOptions =>
  verifying(() => {
    const kept = new Map<string, TokenClaims>();
    return async (token, nowSeconds, real) => {
      const key = keyOf(token);
      const claims = kept.get(key) ?? (await real(token, nowSeconds));
      if (claims) kept.set(key, claims);
      return claims;
    };
  });
