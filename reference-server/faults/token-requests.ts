/** Sections 4.1 and 7.1: faults with additional, empty or misplaced parameters of token requests. */
import type { ServiceRequest } from '../http/http.ts';
import {
  isTokenRequest,
  withRequestValue,
  minting,
  oauthError,
  queryOf,
  requests,
  tokenClaims,
  tokenMembers,
} from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { TOKEN_CLAIMS, fullFaults, tripping, type Fault } from './fault.ts';
import { first, formOf, insteadOfToken, single, uncompared } from './token-errors.ts';

const denied = (parameter: string): ServerOptions =>
  insteadOfToken(
    () => oauthError(403, 'access_denied'),
    (form) => form.has(parameter),
  );

export const tokenRequests: readonly Fault[] = [
  ...tripping({ '4.1-unknown-parameters': /as without the parameter.*403/ })({
    'a parameter that names a tenant is 403': denied('tenant'),
    'an audience of another API is 403': denied('audience'),
  }),
  ...tripping(
    { '5-one-tenant': /whatever tenant_id asks for/ },
    { mayTrip: ['2.2-tenant_id'] },
  )({
    'a parameter chooses the tenant of the token': tenantByParameter(),
  }),
  ...tripping({ '4.1-success': /Content-Type: .*charset/ })({
    'a content type with a charset is no form': insteadOfToken(
      () => oauthError(400, 'invalid_request'),
      (_, { headers }) => headers['content-type']?.includes('charset') === true,
    ),
  }),
  ...tripping({ '2.2-aud': /the identifier of the API.*the client_id/ })({
    'aud is the client_id': tokenClaims(({ sub }) => ({ aud: sub })),
  }),
  ...fullFaults({ '2.2-aud': /as in every token before/ })({
    'aud is another for every tenant': tokenClaims(({ tenant_id }) => ({
      aud: `urn:screenings:${String(tenant_id)}`,
    })),
  }),
  ...tripping(
    { '2.1-scope': /a string that names one/ },
    { mayTrip: [...TOKEN_CLAIMS, '7.1-scope-subset'] },
  )({
    'a scope of nothing is granted': tokenMembers(() => ({ scope: '' })),
  }),
  ...tripping({ '4.1-no-query-credentials': /no token.*200 with access_token/ })({
    'a client_secret in the query is as good as one in the form': requests((request) => {
      const secret = queryOf(request).get('client_secret');
      if (!isTokenRequest(request) || secret === null || request.body.length === 0) return request;
      const body = Buffer.from(`${request.body.toString()}&client_secret=${encodeURIComponent(secret)}`);
      return { ...request, path: request.path.split('?')[0] ?? '', body };
    }),
  }),
  ...tripping(
    { '7.1-invalid_client-secret': /401 invalid_client.*200/ },
    { mayTrip: ['7.1-invalid_request-empty'] },
  )({
    'blanks round a client_secret are cut off': single('client_secret', (secret) => secret.trim()),
  }),
  ...tripping({ '7.1-invalid_request-empty': /400 invalid_request or 400 invalid_scope.*200/ })({
    'an empty scope is the default scope': first('scope', (scope) => scope || 'screenings.read'),
  }),
  ...tripping({ '7.1-invalid_request-empty': /400 invalid_request or 400 unsupported_grant_type.*200/ })({
    'an empty grant_type is the only grant there is': first(
      'grant_type',
      (type) => type || 'client_credentials',
    ),
  }),
  ...tripping({ '7.1-invalid_request-empty': /400 invalid_request or 401 invalid_client.*200/ })({
    'a blank client_secret is not compared': uncompared((form, value) => {
      const [shown] = form.get('client_secret') ?? [];
      if (shown && shown.trim() === '') form.set('client_secret', [value]);
    }),
  }),
];

function tenantByParameter(): ServerOptions {
  const asked = (request: ServiceRequest) => formOf(request).get('tenant_id')?.[0];
  return withRequestValue(asked, (current) =>
    minting(() => (claims, real) => real({ ...claims, tenant_id: current() ?? claims.tenant_id })),
  );
}
