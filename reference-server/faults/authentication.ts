/** Section 5: faults in checking the bearer token. */
import { PARAMETERS } from '../../engine/client/page.ts';
import type { ServiceRequest } from '../http/http.ts';
import {
  accepting,
  answering,
  both,
  crashing,
  emptyPage,
  header,
  isScreenings,
  isTokenRequest,
  middleware,
  queryOf,
  refusals,
  requests,
  verifying,
} from '../run/alter.ts';
import { every, hasHeader, hasParameter, isAfterCursor, type Where } from '../run/conditions.ts';
import type { ServerOptions } from '../run/start.ts';
import {
  anonymous,
  authorizationOf,
  authorized,
  basicOf,
  cachedBy,
  cookieOf,
  hasExpired,
  headerOf,
  payloadOf,
  tokenOf,
  trusted,
} from './bearer.ts';
import { REFUSALS, theme, type Fault } from './fault.ts';
import { formOf } from './forms.ts';

const { fails, failsFull } = theme([...REFUSALS, '4.2-r3-one-tenant']);

/** Also accepts a token from another place when the Authorization header is missing. */
const tokenFrom = (otherToken: (request: ServiceRequest) => string | null | undefined): ServerOptions =>
  requests((request) => {
    const token = authorizationOf(request) === '' && isScreenings(request) && otherToken(request);
    return token
      ? { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } }
      : request;
  });
const tokenInHeader = (name: string): ServerOptions =>
  tokenFrom(({ headers }) => headers[name]?.replace('Bearer ', ''));
/** Rejects parameters before it authenticates the client, except those that the API has and `further`. */
export const refusingUnknownParameters = (...further: readonly string[]): ServerOptions =>
  answering('400 invalid_request', (_, query) =>
    [...query.keys()].some((name) => ![...PARAMETERS, ...further].includes(name)),
  );
const tokenInQuery = (name: string, where: Where = () => true): ServerOptions =>
  tokenFrom((request) => (where(request, queryOf(request)) ? queryOf(request).get(name) : undefined));

/** Answers every request whose Authorization header ('' if absent) matches, without further checks. */
const onHeader = (authorization: RegExp, answer: Parameters<typeof answering>[0]): ServerOptions =>
  answering(answer, (request) => authorization.test(authorizationOf(request)));

const authorizedAs = (spelling: RegExp, usual: string): ServerOptions =>
  authorized((value) => value.replace(spelling, usual));

const isAfterSmallBearer = hasHeader('authorization', /^bearer /);

const cachedWithout = (ignored: RegExp): ServerOptions => cachedBy((token) => token.replace(ignored, ''));

export const authentication: readonly Fault[] = [
  ...fails({ '5-missing': /401 unauthenticated.*200/ })({
    'accepts a token in the cookie token': tokenFrom((request) => cookieOf(request, 'token')),
    'accepts a token in X-Forwarded-Access-Token': tokenInHeader('x-forwarded-access-token'),
    'accepts a token in the header Token': tokenInHeader('token'),
    'accepts a token in X-Amzn-Oidc-Data': tokenInHeader('x-amzn-oidc-data'),
    'accepts a token in X-Forwarded-Authorization': tokenInHeader('x-forwarded-authorization'),
    'an empty Authorization header needs no token': anonymous(hasHeader('authorization', /^$/)),
    'debug=true needs no token': anonymous(hasParameter('debug', /^true$/)),
    'other unknown parameters are 400, and debug=true needs no token': both(
      anonymous(hasParameter('debug', /^true$/)),
      refusingUnknownParameters('debug'),
    ),
    'X-Amzn-Oidc-Data is 400, and accepts a token in X-Forwarded-Authorization': both(
      tokenInHeader('x-forwarded-authorization'),
      answering('400 invalid_request', hasHeader('x-amzn-oidc-data')),
    ),
    'public=true needs no token': anonymous(hasParameter('public', /^true$/)),
    'a URL with /health needs no token': anonymous(({ path }) => path.includes('/health')),
    'a request without a token gets an empty page': onHeader(/^$/, emptyPage),
  }),
  ...fails({ '4.2-success': /200.*401 unauthenticated/ })({
    'a proxy removes the Authorization header': authorized(() => ''),
  }),
  ...fails({ '5-missing': /401 unauthenticated.*403/ })({
    'a request without a token is 403': onHeader(/^$/, '403 forbidden'),
  }),
  ...fails({ '5-scheme': /401 unauthenticated.*200/ })({
    'accepts a token without a scheme': authorizedAs(/^\S+\.\S+\.\S+$/, 'Bearer $&'),
    'ignores the scheme': authorizedAs(/^\S+ (?=\S+\.\S+\.\S+$)/, 'Bearer '),
    'replaces the first six characters by Bearer': authorized((value) => `Bearer ${value.slice(7)}`),
    'takes what follows seven characters that begin with Bearer': authorizedAs(/^Bearer.(?=\S+$)/, 'Bearer '),
    'accepts the scheme JWT': authorizedAs(/^JWT /, 'Bearer '),
    'reads the first of several credentials': authorized((value) => value.split(',')[0]!.trim()),
    'reads the last of several words after Bearer': authorizedAs(/^Bearer .* (?=\S+$)/, 'Bearer '),
    'ignores text after the token': authorized((value) => value.split(' ').slice(0, 2).join(' ')),
    'accepts client credentials by Basic instead of a token': answering(
      emptyPage,
      (request) => basicOf(request)?.startsWith('primary-client:') === true,
    ),
  }),
  ...fails({ '5-scheme': /401 unauthenticated.*400/ })({
    'an empty bearer is 400': onHeader(/^Bearer ?$/, '400 invalid_request'),
  }),
  ...fails({ '5-scheme-case': /200.*401/ })({
    'the scheme must be Bearer with its capital': authorized((value) =>
      /^bearer /i.test(value) && !value.startsWith('Bearer ') ? 'Unknown x' : value,
    ),
  }),
  ...fails({ '5-challenge': /WWW-Authenticate/ })({
    'a 401 of the REST API lacks WWW-Authenticate': refusals([401], header('www-authenticate')),
    'WWW-Authenticate of a 401 of the REST API is empty': refusals([401], header('www-authenticate', '')),
  }),
  ...fails({ '5-garbage': /401 unauthenticated.*500/, '7.2-no-unprovoked-5xx': /no 5xx/ })({
    'a bearer that is no JWT is 500': onHeader(/^Bearer [^.]+$/, '500 internal_error'),
    'an encrypted token is 500': onHeader(/^Bearer ([^.]*\.){4}[^.]*$/, '500 internal_error'),
    'an alg that is no string is 500': crashing((request) => {
      const { alg } = headerOf(tokenOf(request));
      return alg !== undefined && typeof alg !== 'string';
    }),
    'a kid that is no string is 500 where alg is one': crashing((request) => {
      const { alg, kid } = headerOf(tokenOf(request));
      return typeof alg === 'string' && kid !== undefined && typeof kid !== 'string';
    }),
    'a token whose tenant_id is no UUID is 500': crashing((request) =>
      /^[^-]+$/.test(payloadOf(tokenOf(request))?.tenant_id ?? ''),
    ),
    'a token whose payload is null is 500': crashing((request) =>
      /^[^.]*\.bnVsbA(\.|$)/.test(tokenOf(request)),
    ),
  }),
  ...fails({ '5-garbage': /401 unauthenticated.*200/ })({
    'accepts the token "test" of the developers': onHeader(/^Bearer test$/, emptyPage),
    'accepts a client_id as a bearer': onHeader(/^Bearer primary-client$/, emptyPage),
    'accepts a client_secret as a bearer': secretAsBearer(),
    'accepts a tenantId as a bearer': onHeader(/^Bearer [\da-f-]{36}$/i, emptyPage),
  }),
  ...fails({ '5-tampered': /401 unauthenticated.*200/ })({
    'decodes claims without verifying the signature': verifying(() => async (token, nowSeconds) => {
      const claims = payloadOf(token);
      return claims && claims.exp > nowSeconds ? claims : undefined;
    }),
    'accepts alg none': trusted((_, { alg }) => alg === 'none'),
    'accepts alg None': trusted((_, { alg }) => alg === 'None'),
    'accepts an empty signature': trusted((token, { alg }) => token.endsWith('.') && alg !== 'none'),
    'caches verified tokens by header and payload': cachedWithout(/\.[^.]*$/),
    'caches verified tokens by payload and signature': cachedWithout(/^[^.]*\./),
    'caches verified tokens by signature, tenant_id, sub and exp': cachedBy((token) => {
      const { tenant_id, sub, exp } = payloadOf(token) ?? {};
      return JSON.stringify([token.split('.')[2], tenant_id, sub, exp]);
    }),
    'caches verified tokens by the sum of their characters': cachedBy((token) =>
      String([...token].reduce((sum, letter) => sum + letter.charCodeAt(0), 0)),
    ),
    'caches verified tokens by header, payload and the letters of the signature in any order': cachedBy(
      (token) => token.replace(/[^.]*$/, (signature) => [...signature].sort().join('')),
    ),
    'compares the first 20 characters of signatures': cachedWithout(/(?<=^[^.]*\.[^.]*\.[^.]{20})[^.]*$/),
    'verifies the first three parts of a token with more': verifying(
      () => (token, nowSeconds, real) => real(token.split('.').slice(0, 3).join('.'), nowSeconds),
    ),
    'does not verify a token of two parts': trusted((token) => token.split('.').length === 2),
    // A gateway that compares the scheme with its capital lets the request pass.
    'does not verify a token after bearer in lower case': anonymous(
      every(isAfterSmallBearer, (request) => payloadOf(authorizationOf(request)) !== undefined),
    ),
  }),
  ...failsFull({ '5-forbidden': /403 forbidden.*200/ })({
    'does not compare the tenant after bearer in lower case': accepting('forbidden', isAfterSmallBearer),
  }),
  ...failsFull({ '5-forbidden': /403 forbidden.*200/, '5-forbidden-unknown': /403 forbidden.*200/ })({
    'pages after a cursor are served to every tenant': accepting('forbidden', isAfterCursor),
  }),
  ...failsFull({ '5-expired': /401 unauthenticated.*200/ })({
    'does not compare exp after bearer in lower case': anonymous(every(isAfterSmallBearer, hasExpired)),
    'accepts tokens for twenty minutes after exp': verifying(() => async (token, nowSeconds, real) => {
      const exp = payloadOf(token)?.exp ?? 0;
      return real(token, exp < nowSeconds && exp + 1_200 > nowSeconds ? exp - 1 : nowSeconds);
    }),
  }),
  ...fails({ '5-query-token': /401 unauthenticated.*200/ })({
    'accepts access_token in the query': tokenInQuery('access_token'),
    'accepts token in the query': tokenInQuery('token'),
    'accepts jwt in the query': tokenInQuery('jwt'),
    'accepts id_token in the query': tokenInQuery('id_token'),
    'other unknown parameters are 400, and accepts jwt in the query': both(
      tokenInQuery('jwt'),
      refusingUnknownParameters('jwt'),
    ),
    'accepts access_token in the query after a cursor': tokenInQuery('access_token', isAfterCursor),
  }),
];

/** Accepts the client_secret of any earlier token request that was served. */
function secretAsBearer(): ServerOptions {
  return middleware(() => {
    const known = new Set<string | undefined>();
    return async (request, next) => {
      const answer = await next(request);
      if (isTokenRequest(request) && answer.status === 200)
        known.add(formOf(request).get('client_secret')?.[0]);
      return answer.status === 401 && isScreenings(request) && known.has(tokenOf(request))
        ? emptyPage()
        : answer;
    };
  });
}
