/** Sections 2.1, 2.2 and 4.1: faults in the token response and the claims. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  both,
  concurrently,
  header,
  html,
  invalidClient,
  isScreenings,
  isTokenRequest,
  jsonBody,
  middleware,
  oauthError,
  queryOf,
  requests,
  tokenAnswers,
  tokenBody,
  tokenClaims,
  tokenMembers,
  withHeader,
} from '../run/alter.ts';
import type { ServiceAnswer } from '../http/http.ts';
import type { ServerOptions } from '../run/start.ts';
import { hasHeader, not } from '../run/conditions.ts';
import { authorizationOf } from './bearer.ts';
import { PAGES, TOKEN_CLAIMS, TOKEN_REFUSALS, full, theme, type Fault } from './fault.ts';
import { asForm, fieldOf, hasField, refusing } from './forms.ts';

const { fails, failsFull, failsLater } = theme([
  ...TOKEN_CLAIMS,
  ...TOKEN_REFUSALS,
  ...PAGES,
  '4.1-success',
  '5-forbidden',
  '7.2-not_found',
]);

const shifted = (seconds: number): ServerOptions =>
  tokenClaims(({ iat, exp }) => ({ iat: Number(iat) + seconds, exp: Number(exp) + seconds }));

/** Hands out tokens of some time ago with what is left of their life. */
export const kept = (seconds: number): ServerOptions =>
  both(
    shifted(-seconds),
    tokenMembers(({ expires_in }) => ({ expires_in: Number(expires_in) - seconds })),
  );

/** Shows clients a random token in place of each JWT. */
export const opaqueTokensFrom = (beginning: string): ServerOptions =>
  middleware(() => {
    const real = new Map<string, string>();
    return async (request, next) => {
      const shown = /^bearer +(.*)$/i.exec(authorizationOf(request))?.[1];
      const authorization = `Bearer ${real.get(shown ?? '') ?? 'unknown'}`;
      const answer = await next(
        isScreenings(request) && shown
          ? { ...request, headers: { ...request.headers, authorization } }
          : request,
      );
      if (!isTokenRequest(request) || answer.status !== 200) return answer;
      const opaque = beginning + randomBytes(24).toString('hex');
      return jsonBody((body) => {
        real.set(opaque, String(body['access_token']));
        return { ...body, access_token: opaque };
      })(answer);
    };
  });
export const opaqueTokens = opaqueTokensFrom('');

/** Mints tokens for requests of this method with a form in the query. */
const fromTokenQuery = (method: string): ServerOptions =>
  requests((request) => {
    const query = queryOf(request);
    if (!isTokenRequest(request) || request.method !== method || !query.has('client_secret')) return request;
    return asForm({ ...request, method: 'POST', path: request.path.split('?')[0]! }, query);
  });

export const tokens: readonly Fault[] = [
  ...fails({ '2.1-access_token': /a JWT in compact form/ })({ 'the access token is opaque': opaqueTokens }),
  ...fails({ '2.1-token_type': /"Bearer".*bearer/ })({
    'token_type is in lower case': tokenMembers(() => ({ token_type: 'bearer' })),
  }),
  ...fails({ '2.1-expires_in': /an integer from 1 to 3600/ })({
    'expires_in is a string': tokenMembers(({ expires_in }) => ({ expires_in: String(expires_in) })),
  }),
  ...fails({ '2.1-expires_in': /the seconds until exp/ })({
    'expires_in is 3600 for a cached token of half an hour': shifted(-1_800),
    'expires_in is 60 for an hour': tokenMembers(() => ({ expires_in: 60 })),
  }),
  ...fails({ '2.1-expires_in-3600': /3600 for a new token/ })({
    'expires_in is 3597 for a token of half an hour': tokenMembers(() => ({ expires_in: 3_597 })),
    'new tokens are backdated by a minute': kept(60),
  }),
  ...fails({ '2.1-scope': /scope: a string/ })({
    'scope is an array': tokenMembers(({ scope }) => ({ scope: [scope] })),
  }),
  ...fails({ '2.1-scope': /nothing beyond/ })({
    'scope is empty': tokenMembers(() => ({ scope: '' })),
    'scope exceeds the request': tokenMembers(({ scope }) => ({ scope: `${String(scope)} offline_access` })),
  }),
  ...fails({ '2.2-iss': /iss: http/ })({
    'iss is an internal host': tokenClaims(() => ({ iss: 'http://token-service.internal:8080' })),
  }),
  ...fails({ '2.2-aud': /aud: a non-empty string/ })({
    'aud is missing': tokenClaims(() => ({ aud: undefined })),
  }),
  ...fails({ '2.2-aud': /aud: the client_id/ })({
    'aud is the client_id': tokenClaims(({ sub }) => ({ aud: sub })),
  }),
  ...fails({ '2.2-aud': /aud: the tenant_id/ })({
    'aud is the tenant_id': tokenClaims(({ tenant_id }) => ({ aud: tenant_id })),
  }),
  ...failsFull({ '2.2-aud': /as in every token before/ })({
    'aud differs between tenants': tokenClaims(({ tenant_id }) => ({ aud: `urn:${String(tenant_id)}` })),
  }),
  ...fails({ '2.2-sub': /sub: a non-empty string/ })({
    'sub is a number': tokenClaims(() => ({ sub: 42 })),
    'sub is empty': tokenClaims(() => ({ sub: '' })),
  }),
  ...fails({ '2.2-sub-client': /the client_id/ })({
    'sub has a suffix of the identity provider': tokenClaims(({ sub }) => ({
      sub: `${String(sub)}@clients`,
    })),
  }),
  ...fails({ '2.2-iat': /epoch seconds/, '2.2-exp': /iat \+ 3600/ })({
    'iat and exp are in milliseconds': tokenClaims(({ iat, exp }) => ({
      iat: Number(iat) * 1000,
      exp: Number(exp) * 1000,
    })),
  }),
  ...fails({ '2.2-iat': /of the last hour/ })({
    'iat is in local time': shifted(7_200),
    'iat has a fraction': tokenClaims(({ iat }) => ({ iat: Number(iat) + 0.5 })),
  }),
  ...fails({ '2.2-exp': /exp: iat \+ 3600, got exp: iat \+ 86400/ })({
    'tokens last a day': { tokenLifetimeSeconds: 86_400 },
  }),
  ...fails({ '2.2-scope': /scope: a string/ })({
    'the claim scope is an array called scp': tokenClaims(({ scope }) => ({
      scope: undefined,
      scp: [scope],
    })),
  }),
  ...fails({ '2.2-scope': /as in the response/ })({
    'the claim scope exceeds the response': tokenClaims(({ scope }) => ({ scope: `${String(scope)} admin` })),
  }),
  ...fails({ '2.2-tenant_id': /tenant_id: / })({
    'the claim tenant_id is called tenantId': tokenClaims(({ tenant_id }) => ({
      tenant_id: undefined,
      tenantId: tenant_id,
    })),
    "primary's tokens are for another tenant": full(
      tokenClaims(() => ({ tenant_id: 'ffffffff-ffff-4fff-8fff-ffffffffffff' })),
    ),
  }),
  ...fails({ '4.1-success': /200.*201/ })({
    'a minted token is 201': tokenAnswers((answer) => ({ ...answer, status: 201 })),
  }),
  ...fails({ '4.1-success': /200.*409/ })({
    'a mint during another one of its client is 409': concurrently(
      fieldOf('client_id'),
      async (inFlight, request, next) => {
        const answer = await next(request);
        if (answer.status !== 200) return answer;
        // Longer than the delay between two concurrent requests on a busy machine.
        await sleep(30);
        return inFlight > 1 ? oauthError(409, 'conflict') : answer;
      },
    ),
  }),
  ...fails({ '4.1-success': /200.*400 / })({
    'a token request gets the error of a concurrent one': sharedAnswer((status) => status === 400),
  }),
  ...fails({ '7.1-unsupported_grant_type': /unsupported_grant_type.*200/ })({
    'a token request gets the token of a concurrent one': sharedAnswer((status) => status === 200),
  }),
  ...fails({ '4.1-success': /right credentials after wrong ones.*401/ })({
    'the mint after a wrong secret is invalid_client': middleware(() => {
      const guessed = new Set<string>();
      return async (request, next) => {
        const answer = await next(request);
        const id = fieldOf('client_id')(request) ?? '';
        if (answer.status === 401) guessed.add(id);
        return answer.status === 200 && guessed.delete(id) ? invalidClient() : answer;
      };
    }),
  }),
  ...fails({ '4.1-content-type': /application\/json.*text\/html/ })({
    'token responses are the HTML of a sign-in page': tokenAnswers(() =>
      html(200, 'Sign in', [['cache-control', 'no-store']]),
    ),
  }),
  ...failsLater({ '4.1-content-type': /application\/json.*form-urlencoded/ })({
    'token responses are forms where Accept names no JSON': tokenAnswers(
      (answer) =>
        withHeader(
          { ...answer, body: 'access_token=x&token_type=Bearer' },
          'content-type',
          'application/x-www-form-urlencoded',
        ),
      not(hasHeader('accept', /json/)),
    ),
  }),
  ...fails({ '4.1-no-store': /no-store.*none/ })({
    'token responses lack Cache-Control': tokenAnswers(header('cache-control')),
  }),
  ...fails({ '4.1-no-store': /no-store.*no-cache/ })({
    'token responses are no-cache and private': tokenAnswers(header('cache-control', 'no-cache, private')),
  }),
  ...fails({ '4.1-unknown-parameters': /as without the parameter.*403/ })({
    'the parameter tenant is 403': refusing('403 access_denied', hasField('tenant')),
    'the parameter audience is 403': refusing('403 access_denied', hasField('audience')),
  }),
  ...fails({ '4.1-post-only': /no token/ })({ 'GET mints a token': fromTokenQuery('GET') }),
  ...fails({ '4.1-no-query-credentials': /no token/ })({
    'credentials in the query mint a token': fromTokenQuery('POST'),
    'a client_secret in the query completes the form': requests((request) => {
      const secret = queryOf(request).get('client_secret');
      if (!isTokenRequest(request) || secret === null || request.body.length === 0) return request;
      const body = Buffer.from(`${request.body.toString()}&client_secret=${encodeURIComponent(secret)}`);
      return { ...request, path: request.path.split('?')[0] ?? '', body };
    }),
  }),
  ...fails({ '5-no-refresh-token': /no member refresh_token/ })({
    'returns a refresh token for offline_access': tokenBody((body, request) => {
      const isOffline = fieldOf('scope')(request)?.includes('offline_access');
      return isOffline ? { ...body, refresh_token: 'kept' } : body;
    }),
  }),
];

/** Concurrent token requests get the first such answer; those with wrong credentials get their own. */
function sharedAnswer(isShared: (status: number) => boolean): ServerOptions {
  return middleware(() => {
    let inFlight = 0;
    let shared: ServiceAnswer | undefined;
    return async (request, next) => {
      if (!isTokenRequest(request)) return next(request);
      if (inFlight++ === 0) shared = undefined;
      const answer = await next(request);
      if (isShared(answer.status)) shared ??= answer;
      // Longer than the delay between two concurrent requests on a busy machine.
      await sleep(30);
      inFlight--;
      while (inFlight > 0) await sleep(1);
      return isShared(answer.status) || answer.status === 401 ? answer : (shared ?? answer);
    };
  });
}
