/** Section 5: faults in checking the bearer token. */
import type { ServiceRequest } from '../http/http.ts';
import {
  answering,
  authorized,
  emptyPage,
  isScreenings,
  middleware,
  queryOf,
  refusal,
  refusals,
  requests,
  accepting,
} from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { authorizationOf, trusted, cachedBy, payloadOf, verifying } from './bearer.ts';
import { REFUSALS, fullFaults, refusalFaults, tripping, type Fault } from './fault.ts';

/** Also accepts a token from another place when the Authorization header is missing. */
export const tokenFrom = (tokenOf: (request: ServiceRequest) => string | null | undefined): ServerOptions =>
  requests((request) => {
    const token = authorizationOf(request) === '' && isScreenings(request) ? tokenOf(request) : undefined;
    return token === undefined || token === null
      ? request
      : { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } };
  });

/** Answers every request whose Authorization header ('' if absent) matches, without further checks. */
const onHeader = (authorization: RegExp, answer: Parameters<typeof answering>[0]): ServerOptions =>
  answering(answer, (_, request) => authorization.test(authorizationOf(request)));

const leeway = (seconds: number): ServerOptions =>
  verifying(() => async (token, nowSeconds, real) => {
    const exp = payloadOf(token)?.exp ?? 0;
    return real(token, exp < nowSeconds && exp + seconds > nowSeconds ? exp - 1 : nowSeconds);
  });

export const authentication: readonly Fault[] = [
  ...tripping({ '5-missing': /401 unauthenticated.*200/ })({
    'a token in a cookie is accepted': tokenFrom(
      ({ headers }) => /\btoken=([^;]+)/.exec(headers['cookie'] ?? '')?.[1],
    ),
    'a token in X-Forwarded-Access-Token is accepted': tokenFrom(
      ({ headers }) => headers['x-forwarded-access-token'],
    ),
  }),
  ...refusalFaults({ '5-missing': /401 unauthenticated.*200/ })({
    'no Authorization header is served an empty page': onHeader(/^$/, emptyPage),
    'later pages ask for no token': answering(
      emptyPage,
      (query, request) => query.has('from_id') && authorizationOf(request) === '',
    ),
  }),
  ...refusalFaults({ '5-missing': /401 unauthenticated.*403/ })({
    'no Authorization header is 403': onHeader(/^$/, '403 forbidden'),
  }),
  ...tripping({ '5-scheme': /401 unauthenticated.*200/ })({
    'a token without a scheme is accepted': authorized((value) =>
      value.replace(/^\S+\.\S+\.\S+$/, 'Bearer $&'),
    ),
    'the scheme is not looked at': authorized((value) => value.replace(/^\S+ (?=\S+\.\S+\.\S+$)/, 'Bearer ')),
    'any scheme that begins with Bearer is accepted': authorized((value) =>
      value.replace(/^Bearer\w+ /, 'Bearer '),
    ),
    'a colon after Bearer is left out': authorized((value) => value.replace(/^Bearer: /, 'Bearer ')),
    'JWT is a scheme too': authorized((value) => value.replace(/^JWT /, 'Bearer ')),
    'quotes round a token are taken off': authorized((value) =>
      value.replace(/^Bearer "(.*)"$/, 'Bearer $1'),
    ),
    'the first of several credentials counts': authorized((value) => value.split(',')[0]!.trim()),
    'client credentials by Basic are accepted in place of a token': answering(emptyPage, (_, request) => {
      const basic = /^Basic (\S+)$/.exec(authorizationOf(request))?.[1] ?? '';
      return Buffer.from(basic, 'base64').toString().startsWith('primary-client:');
    }),
  }),
  ...tripping({ '5-scheme': /401 unauthenticated.*400/ })({
    'an empty bearer is 400': onHeader(/^Bearer ?$/, '400 invalid_request'),
  }),
  ...refusalFaults({ '5-garbage': /401 unauthenticated.*500/, '7.2-no-unprovoked-5xx': /no 5xx/ })({
    'a string that is no token is a crash: 500': onHeader(/^Bearer [^.]+$/, '500 internal_error'),
  }),
  ...tripping({ '5-garbage': /401 unauthenticated.*200/ })({
    'the developers have left a token: test': onHeader(/^Bearer test$/, emptyPage),
  }),
  ...refusalFaults({ '5-garbage': /401 unauthenticated.*403/ })({
    'a string that is no token is 403': onHeader(/^Bearer [\w-]*(\.[\w-]?\.[\w-]?)?$/, '403 forbidden'),
  }),
  ...refusalFaults({ '5-tampered': /401 unauthenticated.*200/ })({
    'the claims are read, the signature is not': verifying(() => async (token, nowSeconds) => {
      const claims = payloadOf(token);
      return claims && claims.exp > nowSeconds ? claims : undefined;
    }),
    'verified tokens are kept by their header and payload': cachedBy((token) =>
      token.split('.').slice(0, 2).join('.'),
    ),
  }),
  ...tripping({ '5-tampered': /401 unauthenticated.*200/ })({
    'alg none is accepted': trusted((_, { alg }) => alg === 'none'),
    'alg none is accepted where it is spelt None': trusted((_, { alg }) => alg === 'None'),
    'an alg that is not known is not verified': trusted(
      (_, { alg = 'none' }) => !/^(none|(RS|ES|HS|PS)\d+|EdDSA)$/i.test(alg),
    ),
    'a token without signature is accepted': trusted(
      (token, { alg }) => token.endsWith('.') && alg !== 'none',
    ),
    'verified tokens are kept by their signature alone': cachedBy((token) => token.split('.')[2] ?? ''),
    'verified tokens are kept by their payload and signature': cachedBy((token) =>
      token.split('.').slice(1).join('.'),
    ),
    'the signature covers who may see what until when, and nothing else': cachedBy((token) => {
      const { tenant_id, sub, exp } = payloadOf(token) ?? {};
      return JSON.stringify([token.split('.')[2], tenant_id, sub, exp]);
    }),
    'signatures compared without regard to case': cachedBy((token) =>
      token.replace(/[^.]*$/, (signature) => signature.toLowerCase()),
    ),
    'what stands after a signature is not read': cachedBy((token) =>
      token.replace(/^([^.]*\.[^.]*\.[^.]{86})[^.]*$/, '$1'),
    ),
    'signatures are compared as far as they are given': cachedBy((token) =>
      token.replace(/^([^.]*\.[^.]*\.[^.]{20})[^.]*$/, '$1'),
    ),
  }),
  ...tripping(
    { '5-forbidden': /403 forbidden.*200/ },
    {
      mayTrip: [...REFUSALS, '4.2-r3-one-tenant'],
      bare: false,
    },
  )({
    'verified tokens are kept by the path that they were shown at': cachingTokensByPath(),
  }),
  ...fullFaults({ '5-forbidden': /403 forbidden.*200/, '5-forbidden-unknown': /403 forbidden.*200/ })({
    'later pages are served to any tenant': accepting('forbidden', (query) => query.has('from_id')),
  }),
  ...fullFaults({ '5-expired': /401 unauthenticated.*200/ })({
    'exp is not looked at': verifying(
      () => async (token, nowSeconds, real) =>
        real(token, Math.min(nowSeconds, (payloadOf(token)?.exp ?? Infinity) - 1)),
    ),
    'a leeway of twenty minutes on exp': leeway(1_200),
  }),
  ...fullFaults({ '5-expired': /401 unauthenticated.*403/ })({
    'an expired token is 403': refusals([401], (answer, request) => {
      const exp = payloadOf(authorizationOf(request))?.exp ?? Infinity;
      return exp < Date.now() / 1000 - 60 ? refusal('403 forbidden') : answer;
    }),
  }),
  ...tripping({ '5-query-token': /401 unauthenticated.*200/ })({
    'access_token in the query is accepted': tokenFrom((request) => queryOf(request).get('access_token')),
    'accessToken in the query is accepted': tokenFrom((request) => queryOf(request).get('accessToken')),
  }),
];

function cachingTokensByPath(): ServerOptions {
  return middleware(() => {
    const kept = new Map<string, string>();
    return async (request, next) => {
      const authorization = authorizationOf(request);
      if (!isScreenings(request) || !/^Bearer \S+\.\S+\.\S+$/.test(authorization)) return next(request);
      const path = request.path.split('?')[0] ?? '';
      const answer = await next(request);
      if (answer.status === 200) kept.set(path, authorization);
      const known = kept.get(path);
      return answer.status === 403 && known
        ? next({ ...request, headers: { ...request.headers, authorization: known } })
        : answer;
    };
  });
}
