/** Sections 2.1, 2.2 and 4.1: faults in the token response and the claims. */
import { randomBytes } from 'node:crypto';
import {
  invalidClient,
  isScreenings,
  isTokenRequest,
  jsonBody,
  middleware,
  tokenAnswers,
  tokenClaims,
  tokenMembers,
  withHeader,
} from '../run/alter.ts';
import { authorizationOf } from './bearer.ts';
import { formOf } from './token-errors.ts';
import { TOKEN_CLAIMS, TOKEN_REFUSALS, claimFaults, tripping, type Fault } from './fault.ts';

const shifted = (seconds: number) =>
  tokenClaims(({ iat, exp }) => ({ iat: Number(iat) + seconds, exp: Number(exp) + seconds }));

const header = (name: string, value: string | undefined) =>
  tokenAnswers((answer) => withHeader(answer, name, value));

/** Shows clients a random token in place of each JWT. */
export const opaqueTokens = middleware(() => {
  const real = new Map<string, string>();
  return async (request, next) => {
    const shown = /^Bearer (.*)$/.exec(authorizationOf(request))?.[1];
    const authorization = `Bearer ${real.get(shown ?? '') ?? 'unknown'}`;
    const answer = await next(
      isScreenings(request) && shown
        ? { ...request, headers: { ...request.headers, authorization } }
        : request,
    );
    if (!isTokenRequest(request) || answer.status !== 200) return answer;
    const opaque = randomBytes(24).toString('hex');
    return jsonBody((body) => {
      real.set(opaque, String(body['access_token']));
      return { ...body, access_token: opaque };
    })(answer);
  };
});

export const tokens: readonly Fault[] = [
  ...tripping({ '2.1-access_token': /a JWT in compact form/ })({ 'an opaque access token': opaqueTokens }),
  ...tripping(
    { '2.1-access_token': /a JWT in compact form/ },
    { mayTrip: ['4.1-success'] },
  )({
    'the access token under the name accessToken': tokenMembers(({ access_token }) => ({
      accessToken: access_token,
      access_token: undefined,
    })),
  }),
  ...tripping({ '2.1-token_type': /"Bearer".*bearer/ })({
    'token_type in lower case': tokenMembers(() => ({ token_type: 'bearer' })),
  }),
  ...claimFaults({ '2.1-expires_in': /an integer from 1 to 3600/ })({
    'expires_in is a string': tokenMembers(({ expires_in }) => ({ expires_in: String(expires_in) })),
    'expires_in in milliseconds': tokenMembers(() => ({ expires_in: 3_600_000 })),
  }),
  ...tripping({ '2.1-expires_in': /the seconds until exp/ })({
    'a kept token handed out with its whole lifetime although half of it is over': shifted(-1_800),
  }),
  ...claimFaults({ '2.1-expires_in': /the seconds until exp/ })({
    'expires_in says 60 for an hour': tokenMembers(() => ({ expires_in: 60 })),
  }),
  ...claimFaults({ '2.1-scope': /scope: a string/ })({
    'scope is an array': tokenMembers(({ scope }) => ({ scope: [scope] })),
    'the response without scope': tokenMembers(() => ({ scope: undefined })),
  }),
  ...tripping(
    { '2.1-scope': /nothing beyond/ },
    { mayTrip: [...TOKEN_CLAIMS, '7.1-scope-subset'] },
  )({
    'more scopes than requested': tokenMembers(({ scope }) => ({ scope: `${String(scope)} offline_access` })),
  }),
  ...tripping({ '2.2-iss': /iss: http/ })({
    'iss is an internal host': tokenClaims(() => ({ iss: 'http://token-service.internal:8080' })),
  }),
  ...tripping({ '2.2-iss': /oauth\/token/ })({
    'iss is the address of the token path': tokenClaims(({ iss }) => ({ iss: `${String(iss)}/oauth/token` })),
  }),
  ...tripping({ '2.2-aud': /aud: a non-empty string/ })({
    'aud is missing': tokenClaims(() => ({ aud: undefined })),
    'aud is an array': tokenClaims(({ aud }) => ({ aud: [aud] })),
  }),
  ...claimFaults({ '2.2-sub': /sub: a non-empty string/ })({
    'sub is the number of the client in the database': tokenClaims(() => ({ sub: 42 })),
    'sub is empty, since there is no user': tokenClaims(() => ({ sub: '' })),
  }),
  ...claimFaults({ '2.2-iat': /epoch seconds/, '2.2-exp': /iat \+ 3600/ })({
    'iat and exp in milliseconds': tokenClaims(({ iat, exp }) => ({
      iat: Number(iat) * 1000,
      exp: Number(exp) * 1000,
    })),
  }),
  ...claimFaults({ '2.2-iat': /epoch seconds/ })({
    'iat with a fraction': tokenClaims(({ iat }) => ({ iat: Number(iat) + 0.123 })),
  }),
  ...claimFaults({ '2.2-iat': /of the last hour/ })({ 'iat in local time': shifted(7_200) }),
  ...claimFaults({ '2.2-exp': /exp: iat \+ 3600, got exp: iat \+ 86400/ })({
    'tokens last a day': { tokenLifetimeSeconds: 86_400 },
  }),
  ...tripping({ '2.2-exp': /exp: integer epoch seconds/ })({
    'exp is missing': tokenClaims(() => ({ exp: undefined })),
  }),
  ...tripping({ '2.2-scope': /scope: a string/ })({
    'scope of the token is an array called scp': tokenClaims(({ scope }) => ({
      scope: undefined,
      scp: [scope],
    })),
  }),
  ...tripping({ '2.2-scope': /as in the response/ })({
    'the token holds more scopes than the response says': tokenClaims(({ scope }) => ({
      scope: `${String(scope)} admin`,
    })),
  }),
  ...claimFaults({ '2.2-tenant_id': /tenant_id: / })({
    'the tenant claim is called tenantId': tokenClaims(({ tenant_id }) => ({
      tenant_id: undefined,
      tenantId: tenant_id,
    })),
  }),
  ...claimFaults({ '2.2-tenant_id': /tenant_id: .*acme/ })({
    'the tenant claim is a name': tokenClaims(() => ({ tenant_id: 'acme' })),
  }),
  ...tripping(
    { '2.2-tenant_id': /tenant_id: / },
    { mayTrip: ['5-one-tenant', '5-forbidden', '4.2-success', '4.2-r3-one-tenant'], bare: false },
  )({
    "primary's tokens are another tenant's": tokenClaims(() => ({
      tenant_id: 'ffffffff-ffff-4fff-8fff-ffffffffffff',
    })),
  }),
  ...tripping({ '4.1-success': /200.*201/ })({
    'a token is created: 201': tokenAnswers((answer) => ({ ...answer, status: 201 })),
  }),
  ...tripping(
    { '4.1-success': /200.*401/ },
    { mayTrip: [...TOKEN_REFUSALS, '2.1-access_token', '5-one-tenant'] },
  )({
    'a valid secret is refused every third time': middleware(() => {
      let asked = 0;
      return async (request, next) => {
        const answer = await next(request);
        if (!isTokenRequest(request) || answer.status !== 200) return answer;
        asked += 1;
        return asked % 3 === 2 ? invalidClient() : answer;
      };
    }),
  }),
  ...tripping(
    { '4.1-success': /right credentials after wrong ones.*401/ },
    { mayTrip: TOKEN_CLAIMS },
  )({
    'the right secret is refused once after a wrong one': middleware(() => {
      const guessed = new Set<string>();
      return async (request, next) => {
        const answer = await next(request);
        const id = isTokenRequest(request) ? (formOf(request).get('client_id')?.[0] ?? '') : '';
        if (answer.status === 401) guessed.add(id);
        return answer.status === 200 && guessed.delete(id) ? invalidClient() : answer;
      };
    }),
  }),
  ...tripping({ '4.1-content-type': /application\/json.*text\/html/ })({
    'tokens are text/html': header('content-type', 'text/html'),
  }),
  ...tripping({ '4.1-no-store': /no-store.*none/ })({
    'tokens may be stored': header('cache-control', undefined),
  }),
  ...tripping({ '4.1-no-store': /no-store.*no-cache/ })({
    'tokens are no-cache and private but not no-store': header('cache-control', 'no-cache, private'),
  }),
  ...tripping({ '5-no-refresh-token': /no member refresh_token/ })({
    'a refresh token': tokenMembers(() => ({ refresh_token: randomBytes(16).toString('hex') })),
  }),
];
