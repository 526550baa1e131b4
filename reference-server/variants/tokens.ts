/** Tokens as other identity providers make them. */
import { generateKeyPairSync } from 'node:crypto';
import { claims, isTokenRequest, middleware, tokenAnswers, tokenBody, withHeader } from '../run/alter.ts';
import type { ServiceAnswer } from '../http/http.ts';
import type { Variant } from './variant.ts';

const pem = (
  make: () => { privateKey: { export(options: { type: 'pkcs8'; format: 'pem' }): unknown } },
): string => String(make().privateKey.export({ type: 'pkcs8', format: 'pem' }));

export const signed: readonly Variant[] = [
  {
    name: 'tokens signed with RSA',
    server: { signingKeyPem: pem(() => generateKeyPairSync('rsa', { modulusLength: 2048 })) },
  },
  {
    name: 'iss with a trailing slash',
    server: claims((original) => ({ ...original, iss: `${String(original['iss'])}/` })),
  },
];

export const signedOtherwise: readonly Variant[] = [
  {
    name: 'tokens signed with Ed25519',
    server: { signingKeyPem: pem(() => generateKeyPairSync('ed25519')) },
  },
  {
    name: 'an issuer of another name, which the target file gives',
    server: claims((original) => ({ ...original, iss: 'https://login.example.com/tenant' })),
    // The expired token of the reference server names its own issuer.
    target: (target) => ({
      ...target,
      issuer: 'https://login.example.com/tenant',
      expiredToken: undefined,
    }),
  },
  {
    name: 'further claims, a kid, and tenant_id in capitals',
    server: claims((original) => ({
      ...original,
      tenant_id: String(original['tenant_id']).toUpperCase(),
      jti: 'a',
      azp: null,
      roles: ['reader'],
    })),
  },
];

export const kept: readonly Variant[] = [
  {
    name: 'a token handed out again with what is left of its life',
    server: middleware(() => {
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
  },
  {
    name: 'Cache-Control with further directives, and further members',
    server: tokenAnswers((answer) => withHeader(answer, 'Cache-Control', 'private, NO-STORE, max-age=0')),
  },
];

export const clocks: readonly Variant[] = [
  {
    name: 'a clock four minutes ahead',
    server: { now: () => Date.now() + 240_000 },
  },
  {
    name: 'expires_in less a margin of three seconds',
    server: tokenBody((body) => ({ ...body, expires_in: 3_597, not_before: 0, id_token: null })),
  },
  {
    name: 'sub is an internal key of the client',
    server: claims((original) => ({ ...original, sub: `0oa-${String(original['sub'])}` })),
  },
];
