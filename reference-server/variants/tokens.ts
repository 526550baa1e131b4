/** Tokens like those of other identity providers. */
import { generateKeyPairSync } from 'node:crypto';
import {
  isTokenRequest,
  middleware,
  tokenAnswers,
  tokenClaims,
  tokenMembers,
  withHeader,
} from '../run/alter.ts';
import type { ServiceAnswer } from '../http/http.ts';
import { variants, type Variant } from './variant.ts';

const pem = (
  make: () => { privateKey: { export(options: { type: 'pkcs8'; format: 'pem' }): unknown } },
): string => String(make().privateKey.export({ type: 'pkcs8', format: 'pem' }));

export const signed = variants({
  'tokens signed with RSA': { signingKeyPem: pem(() => generateKeyPairSync('rsa', { modulusLength: 2048 })) },
  'iss with a trailing slash': tokenClaims(({ iss }) => ({ iss: `${String(iss)}/` })),
});

export const signedOtherwise: readonly Variant[] = [
  ...variants({
    'tokens signed with Ed25519': { signingKeyPem: pem(() => generateKeyPairSync('ed25519')) },
  }),
  {
    name: 'an issuer of another name, which the target file gives',
    server: tokenClaims(() => ({ iss: 'https://login.example.com/tenant' })),
    // The reference server's expired token has its own issuer.
    target: (target) => ({
      ...target,
      issuer: 'https://login.example.com/tenant',
      expiredToken: undefined,
    }),
  },
  ...variants({
    'further claims, a kid, and tenant_id in capitals': tokenClaims(({ tenant_id }) => ({
      tenant_id: String(tenant_id).toUpperCase(),
      jti: 'a',
      azp: null,
      roles: ['reader'],
    })),
  }),
];

export const kept = variants({
  'a token handed out again with what is left of its life': middleware(() => {
    const held = new Map<string, ServiceAnswer & { readonly sinceMs: number }>();
    return async (request, next) => {
      const answer = await next(request);
      if (!isTokenRequest(request) || answer.status !== 200) return answer;
      const key = request.body.toString();
      const first = held.get(key) ?? { ...answer, sinceMs: Date.now() };
      held.set(key, first);
      const body = JSON.parse(String(first.body)) as { expires_in: number };
      const left = body.expires_in - Math.round((Date.now() - first.sinceMs) / 1000);
      return { ...first, body: JSON.stringify({ ...body, expires_in: left }) };
    };
  }),
  'Cache-Control with further directives, and further members': tokenAnswers((answer) =>
    withHeader(answer, 'Cache-Control', 'private, NO-STORE, max-age=0'),
  ),
});

export const clocks = variants({
  'a clock four minutes ahead': { now: () => Date.now() + 240_000 },
  'expires_in less a margin of three seconds': tokenMembers(() => ({
    expires_in: 3_597,
    not_before: 0,
    id_token: null,
    refresh_token: '',
  })),
  'sub is an internal key of the client': tokenClaims(({ sub }) => ({ sub: `0oa-${String(sub)}` })),
});
