/** Sections 2.1, 2.2 and 4.1: the token response and its claims. */
import { randomBytes } from 'node:crypto';
import {
  claims,
  invalidClient,
  isScreenings,
  isTokenRequest,
  middleware,
  tokenAnswers,
  tokenBody,
  withHeader,
} from '../run/alter.ts';
import type { Fault } from './fault.ts';

const HALF_AN_HOUR = 1_800;

export const tokens: readonly Fault[] = [
  {
    name: 'an opaque access token',
    trips: { '2.1-access_token': /a JWT in compact form/ },
    server: middleware(() => {
      const real = new Map<string, string>();
      return async (request, next) => {
        const shown = /^Bearer (.*)$/.exec(request.headers['authorization'] ?? '')?.[1];
        const authorization = `Bearer ${real.get(shown ?? '') ?? 'unknown'}`;
        const answer = await next(
          isScreenings(request) && shown
            ? { ...request, headers: { ...request.headers, authorization } }
            : request,
        );
        if (!isTokenRequest(request) || answer.status !== 200) return answer;
        const body = JSON.parse(String(answer.body)) as Record<string, unknown>;
        const opaque = randomBytes(24).toString('hex');
        real.set(opaque, String(body['access_token']));
        return { ...answer, body: JSON.stringify({ ...body, access_token: opaque }) };
      };
    }),
  },
  {
    name: 'the access token under the name accessToken',
    trips: { '2.1-access_token': /a JWT in compact form/ },
    mayTrip: ['4.1-success'],
    server: tokenBody(({ access_token, ...body }) => ({ accessToken: access_token, ...body })),
  },
  {
    name: 'token_type in lower case',
    trips: { '2.1-token_type': /"Bearer".*bearer/ },
    server: tokenBody((body) => ({ ...body, token_type: 'bearer' })),
  },
  {
    name: 'token_type is JWT',
    trips: { '2.1-token_type': /"Bearer".*JWT/ },
    server: tokenBody((body) => ({ ...body, token_type: 'JWT' })),
  },
  {
    name: 'expires_in is a string',
    trips: { '2.1-expires_in': /an integer from 1 to 3600/ },
    mayTrip: ['2.1-expires_in-3600'],
    server: tokenBody((body) => ({ ...body, expires_in: String(body['expires_in']) })),
  },
  {
    name: 'expires_in in milliseconds',
    trips: { '2.1-expires_in': /an integer from 1 to 3600/ },
    mayTrip: ['2.1-expires_in-3600'],
    server: tokenBody((body) => ({ ...body, expires_in: 3_600_000 })),
  },
  {
    name: 'a kept token handed out with its whole lifetime although half of it is over',
    trips: { '2.1-expires_in': /the seconds until exp/ },
    server: claims((original) => ({
      ...original,
      iat: Number(original['iat']) - HALF_AN_HOUR,
      exp: Number(original['exp']) - HALF_AN_HOUR,
    })),
  },
  {
    name: 'expires_in says 60 for an hour',
    trips: { '2.1-expires_in': /the seconds until exp/ },
    mayTrip: ['2.1-expires_in-3600'],
    server: tokenBody((body) => ({ ...body, expires_in: 60 })),
  },
  {
    name: 'scope is an array',
    trips: { '2.1-scope': /scope: a string/ },
    mayTrip: ['2.2-scope'],
    server: tokenBody((body) => ({ ...body, scope: [body['scope']] })),
  },
  {
    name: 'more scopes than requested',
    trips: { '2.1-scope': /nothing beyond/ },
    mayTrip: ['2.2-scope', '7.1-scope-subset'],
    server: tokenBody((body) => ({ ...body, scope: `${String(body['scope'])} offline_access` })),
  },
  {
    name: 'the response without scope',
    trips: { '2.1-scope': /scope: a string/ },
    server: tokenBody(({ scope: _, ...body }) => body),
  },
  {
    name: 'iss is an internal host',
    trips: { '2.2-iss': /iss: http/ },
    server: claims((original) => ({ ...original, iss: 'http://token-service.internal:8080' })),
  },
  {
    name: 'iss is the address of the token path',
    trips: { '2.2-iss': /oauth\/token/ },
    server: claims((original) => ({ ...original, iss: `${String(original['iss'])}/oauth/token` })),
  },
  {
    name: 'aud is missing',
    trips: { '2.2-aud': /aud: a non-empty string/ },
    server: claims(({ aud: _, ...original }) => original),
  },
  {
    name: 'aud is an array',
    trips: { '2.2-aud': /aud: a non-empty string/ },
    server: claims((original) => ({ ...original, aud: [original['aud']] })),
  },
  {
    name: 'sub is the number of the client in the database',
    trips: { '2.2-sub': /sub: a non-empty string/ },
    mayTrip: ['2.2-sub-client'],
    server: claims((original) => ({ ...original, sub: 42 })),
  },
  {
    name: 'sub is empty, since there is no user',
    trips: { '2.2-sub': /sub: a non-empty string/ },
    mayTrip: ['2.2-sub-client'],
    server: claims((original) => ({ ...original, sub: '' })),
  },
  {
    name: 'iat and exp in milliseconds',
    trips: { '2.2-iat': /epoch seconds/, '2.2-exp': /iat \+ 3600/ },
    mayTrip: ['2.1-expires_in'],
    server: claims((original) => ({
      ...original,
      iat: Number(original['iat']) * 1000,
      exp: Number(original['exp']) * 1000,
    })),
  },
  {
    name: 'iat with a fraction',
    trips: { '2.2-iat': /epoch seconds/ },
    mayTrip: ['2.2-exp'],
    server: claims((original) => ({ ...original, iat: Number(original['iat']) + 0.123 })),
  },
  {
    name: 'iat in local time',
    trips: { '2.2-iat': /of the last hour/ },
    mayTrip: ['2.2-exp', '2.1-expires_in'],
    server: claims((original) => ({
      ...original,
      iat: Number(original['iat']) + 7_200,
      exp: Number(original['exp']) + 7_200,
    })),
  },
  {
    name: 'tokens last a day',
    trips: { '2.2-exp': /exp: iat \+ 3600, got exp: iat \+ 86400/ },
    mayTrip: ['2.1-expires_in', '2.1-expires_in-3600'],
    server: { tokenLifetimeSeconds: 86_400 },
  },
  {
    name: 'exp is missing',
    trips: { '2.2-exp': /exp: integer epoch seconds/ },
    server: claims(({ exp: _, ...original }) => original),
  },
  {
    name: 'scope of the token is an array called scp',
    trips: { '2.2-scope': /scope: a string/ },
    server: claims(({ scope, ...original }) => ({ ...original, scp: [scope] })),
  },
  {
    name: 'the token holds more scopes than the response says',
    trips: { '2.2-scope': /as in the response/ },
    server: claims((original) => ({ ...original, scope: `${String(original['scope'])} admin` })),
  },
  {
    name: 'the tenant claim is called tenantId',
    trips: { '2.2-tenant_id': /tenant_id: / },
    mayTrip: ['5-one-tenant'],
    server: claims(({ tenant_id, ...original }) => ({ ...original, tenantId: tenant_id })),
  },
  {
    name: 'the tenant claim is a name',
    trips: { '2.2-tenant_id': /tenant_id: .*acme/ },
    mayTrip: ['5-one-tenant'],
    server: claims((original) => ({ ...original, tenant_id: 'acme' })),
  },
  {
    name: "primary's tokens are another tenant's",
    trips: { '2.2-tenant_id': /tenant_id: / },
    mayTrip: ['5-one-tenant', '5-forbidden', '4.2-success', '4.2-r3-one-tenant'],
    bare: false,
    server: claims((original) => ({ ...original, tenant_id: 'ffffffff-ffff-4fff-8fff-ffffffffffff' })),
  },
  {
    name: 'a token is created: 201',
    trips: { '4.1-success': /200.*201/ },
    server: tokenAnswers((answer) => ({ ...answer, status: 201 })),
  },
  {
    name: 'a valid secret is refused every third time',
    trips: { '4.1-success': /200.*401/ },
    mayTrip: [
      '2.1-access_token',
      '5-one-tenant',
      '7.1-invalid_client-secret',
      '7.1-scope-subset',
      '7.1-unsupported_grant_type',
      '7.1-invalid_scope',
    ],
    server: middleware(() => {
      let asked = 0;
      return async (request, next) => {
        const answer = await next(request);
        if (!isTokenRequest(request) || answer.status !== 200) return answer;
        asked += 1;
        return asked % 3 === 2 ? invalidClient() : answer;
      };
    }),
  },
  {
    name: 'tokens are text/html',
    trips: { '4.1-content-type': /application\/json.*text\/html/ },
    server: tokenAnswers((answer) => withHeader(answer, 'content-type', 'text/html')),
  },
  {
    name: 'tokens may be stored',
    trips: { '4.1-no-store': /no-store.*none/ },
    server: tokenAnswers((answer) => withHeader(answer, 'cache-control', undefined)),
  },
  {
    name: 'tokens are no-cache and private but not no-store',
    trips: { '4.1-no-store': /no-store.*no-cache/ },
    server: tokenAnswers((answer) => withHeader(answer, 'cache-control', 'no-cache, private')),
  },
  {
    name: 'a refresh token',
    trips: { '5-no-refresh-token': /no member refresh_token/ },
    server: tokenBody((body) => ({ ...body, refresh_token: randomBytes(16).toString('hex') })),
  },
];
