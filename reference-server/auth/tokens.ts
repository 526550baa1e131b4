/** Access tokens: signed JWTs (section 2.2). */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { jwtVerify, SignJWT } from 'jose';
import type { TokenClaims, TokenIssuer } from '../parts.ts';

interface TokenOptions {
  readonly issuer: string;
  readonly audience: string;
  /** A private key in PEM: RSA, EC P-256 or Ed25519. Default: a new P-256 key. */
  readonly signingKeyPem?: string;
}

/** Size of the cache of verified tokens, which saves verifying the signature again for every page. */
const MAX_CACHED_TOKENS = 1_000;

/** Throws an Error for any other kind of key. */
export function createTokenIssuer({ issuer, audience, signingKeyPem }: TokenOptions): TokenIssuer {
  const privateKey = signingKeyPem
    ? createPrivateKey(signingKeyPem)
    : generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const publicKey = createPublicKey(privateKey);
  const alg = algorithmOf(privateKey);
  const verified = new Map<string, TokenClaims>();

  return {
    mint: (claims) => new SignJWT({ ...claims }).setProtectedHeader({ alg, typ: 'JWT' }).sign(privateKey),

    async verify(token, nowSeconds) {
      const known = verified.get(token);
      if (known) return nowSeconds < known.exp ? known : undefined;
      try {
        const { payload } = await jwtVerify(token, publicKey, {
          algorithms: [alg],
          issuer,
          audience,
          currentDate: new Date(nowSeconds * 1000),
          requiredClaims: ['sub', 'iat', 'exp', 'scope', 'tenant_id'],
        });
        const claims = payload as unknown as TokenClaims;
        if (verified.size >= MAX_CACHED_TOKENS) verified.delete(verified.keys().next().value as string);
        verified.set(token, claims);
        return claims;
      } catch {
        return undefined;
      }
    },
  };
}

function algorithmOf(key: KeyObject): 'RS256' | 'ES256' | 'EdDSA' {
  const { asymmetricKeyType, asymmetricKeyDetails } = key;
  const curve = asymmetricKeyDetails?.namedCurve;
  if (asymmetricKeyType === 'rsa') return 'RS256';
  if (asymmetricKeyType === 'ed25519') return 'EdDSA';
  if (asymmetricKeyType === 'ec' && curve === 'prime256v1') return 'ES256';
  const kind = [asymmetricKeyType, curve].filter(Boolean).join(' ');
  throw new Error(`cannot sign tokens with a key of type ${kind}: use RSA, EC P-256 or Ed25519`);
}
