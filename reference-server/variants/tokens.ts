/** Tokens like those of other identity providers. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import {
  answers,
  both,
  header,
  isTokenRequest,
  middleware,
  perServer,
  tokenAnswers,
  tokenClaims,
  tokenMembers,
  withHeader,
} from '../run/alter.ts';
import { kept } from '../faults/tokens.ts';
import { createTokenIssuer } from '../auth.ts';
import type { ServiceAnswer } from '../http/http.ts';
import type { TokenIssuer } from '../parts.ts';
import type { ServerOptions } from '../run/start.ts';
import { dated } from './health.ts';
import type { Groups } from './variant.ts';

const signedWith = ({ privateKey }: { privateKey: KeyObject }): ServerOptions => ({
  signingKeyPem: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
});

const rsa = signedWith(generateKeyPairSync('rsa', { modulusLength: 2048 }));

const AHEAD_MS = 75_000;

/** The issuer hands out the first token of each form again. */
const cachedTokensBy = (now: () => number): ServerOptions =>
  middleware(() => {
    const held = new Map<string, ServiceAnswer & { readonly sinceMs: number }>();
    return async (request, next) => {
      const answer = await next(request);
      if (!isTokenRequest(request) || answer.status !== 200) return answer;
      const key = request.body.toString();
      const first = held.get(key) ?? { ...answer, sinceMs: now() };
      held.set(key, first);
      const body = JSON.parse(String(first.body)) as { expires_in: number };
      const left = body.expires_in - Math.round((now() - first.sinceMs) / 1000);
      return { ...first, body: JSON.stringify({ ...body, expires_in: left }) };
    };
  });
const cachedTokens = cachedTokensBy(Date.now);

const SET_BACK_AFTER_MS = 3_000;

/** The clock is set back, and tokens of before are handed out again, with what is left of their life by then. */
const setBack = perServer(() => {
  const untilMs = Date.now() + SET_BACK_AFTER_MS;
  const now = (): number => Date.now() + (Date.now() < untilMs ? AHEAD_MS : 0);
  return both(
    { wrapParts: (parts) => ({ ...parts, now }) },
    cachedTokensBy(now),
    answers((answer) => withHeader(answer, 'date', new Date(now()).toUTCString())),
  );
});

const FORMER_KEY = 10;

/** After FORMER_KEY tokens the issuer has another key; the API accepts both. */
const rotated = (signingKeyPem: string | undefined): ServerOptions => ({
  wrapParts: (parts) => {
    const { tokens } = parts;
    const later = createTokenIssuer({ ...parts, signingKeyPem });
    let minted = 0;
    const either: TokenIssuer = {
      mint: (claims) => (minted++ < FORMER_KEY ? tokens : later).mint(claims),
      verify: async (...token) => (await later.verify(...token)) ?? tokens.verify(...token),
    };
    return { ...parts, tokens: either };
  },
});

const ISSUER = 'https://login.example.com/tenant';

export const tokens: Groups = {
  'behind a gateway': {
    'tokens signed with RSA': rsa,
    'iss with a trailing slash': tokenClaims(({ iss }) => ({ iss: `${String(iss)}/` })),
  },
  'with a rate limit': {
    'tokens signed with Ed25519': signedWith(generateKeyPairSync('ed25519')),
    'an issuer that the target file names': {
      server: tokenClaims(() => ({ iss: ISSUER })),
      // The reference server's expired token has its own issuer.
      target: (target) => ({ ...target, issuer: ISSUER, expiredToken: undefined }),
    },
    'further claims, a kid, and tenant_id in capitals': tokenClaims(({ tenant_id }) => ({
      tenant_id: String(tenant_id).toUpperCase(),
      jti: 'a',
      azp: null,
      roles: ['reader'],
    })),
  },
  'with short pages': {
    'a cached token with the rest of its lifetime': cachedTokens,
    'tokens that were kept for 90 s, and a clock 75 s ahead of the kit’s, as its Date says': both(
      kept(90),
      dated(AHEAD_MS),
      { now: () => Date.now() + AHEAD_MS },
    ),
    'Cache-Control with further directives': tokenAnswers(
      header('Cache-Control', 'private, NO-STORE, max-age=0'),
    ),
  },
  'with a quota and a wrong Date': { 'tokens that were kept for 90 s': kept(90) },
  'with relative links': {
    'a key of another kind after ten tokens': rotated(rsa.signingKeyPem),
    'tokens that were kept for 90 s, and a proxy whose Date is 30 s ahead': both(kept(90), dated(30_000)),
  },
  'with a cache': {
    'cached tokens, and a proxy whose Date is 30 s late': both(cachedTokens, dated(-30_000)),
  },
  'with normalised paths': { 'a clock that is set back, and cached tokens': setBack },
  'with its own spelling': {
    'a clock four minutes ahead': { now: () => Date.now() + 240_000 },
    'expires_in less a margin of three seconds, and further members': tokenMembers(() => ({
      expires_in: 3_597,
      not_before: 0,
      id_token: null,
      refresh_token: '',
    })),
    // It cuts the other scopes out of the requested text.
    'a space after the granted scope': tokenMembers(({ scope }) => ({ scope: `${String(scope)} ` })),
    'sub is an internal key of the client': tokenClaims(({ sub }) => ({ sub: `0oa-${String(sub)}` })),
  },
};
