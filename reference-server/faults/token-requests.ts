/** Sections 4.1 and 7.1: faults with additional, empty or misplaced parameters of token requests. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceRequest } from '../http/http.ts';
import {
  answers,
  authenticating,
  html,
  isTokenRequest,
  jsonBody,
  middleware,
  withRequestValue,
  minting,
  oauthError,
  queryOf,
  requests,
  tokenBody,
  tokenClaims,
  tokenMembers,
} from '../run/alter.ts';
import type { Client } from '../parts.ts';
import type { ServerOptions } from '../run/start.ts';
import {
  TOKEN_CLAIMS,
  claimFaults,
  fullFaults,
  sharing,
  tokenRefusalFaults,
  tripping,
  type Fault,
} from './fault.ts';
import { first, formOf, forms, insteadOfToken, single, uncompared, withForm } from './token-errors.ts';

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
  ...tripping({ '7.1-invalid_request-duplicated': /400 invalid_request.*token/ })({
    'the first of two client_ids counts where they differ': forms((form) => {
      const [id, other = id] = form.get('client_id') ?? [];
      if (id !== undefined && id !== other) form.set('client_id', [id]);
    }),
    'duplicates are not looked for where the form has a charset': middleware(() => (request, next) => {
      const form = [...formOf(request)].map(([name, values]) => [name, values.slice(0, 1)] as const);
      return next(request.headers['content-type']?.includes('charset') ? withForm(request, form) : request);
    }),
  }),
  ...tokenRefusalFaults({ '7.1-unsupported_grant_type': /400 unsupported_grant_type.*token/ })({
    'the grant_type counts where it comes first': middleware(() => (request, next) => {
      const form = formOf(request);
      const isElsewhere = [...form.keys()].indexOf('grant_type') > 0 && form.get('grant_type')!.length === 1;
      return next(isElsewhere ? withForm(request, form.set('grant_type', ['client_credentials'])) : request);
    }),
    'values of a form are decoded twice': forms((form) =>
      form.forEach((values, name) => form.set(name, values.map(decodedAgain))),
    ),
  }),
  ...tripping({ '7.1-unsupported_grant_type': /400 unsupported_grant_type.*unauthorized_client/ })({
    'a grant that the library knows is unauthorized_client': insteadOfToken(
      () => oauthError(400, 'unauthorized_client'),
      (form) => form.get('grant_type')?.[0]?.startsWith('urn:ietf:params:oauth:grant-type:') === true,
    ),
  }),
  ...tripping({ '7.1-invalid_client-secret': /401 invalid_client.*token/ })({
    'a wrong secret is right while the right one is checked': authenticating(() => {
      const inFlight = new Set<{ readonly id: string; met?: Client }>();
      return async (id, secret, real) => {
        const check: { readonly id: string; met?: Client } = { id };
        inFlight.add(check);
        const client = await real(id, secret);
        if (client) for (const other of inFlight) if (other.id === id) other.met = client;
        await sleep(30);
        inFlight.delete(check);
        return client ?? check.met;
      };
    }),
  }),
  ...claimFaults({ '7.1-invalid_scope': /400 invalid_scope.*token/ })({
    'scopes may be separated by commas': single('scope', (scope) => scope.replaceAll(',', ' ')),
    'openid is a scope of every client': first('scope', (scope) =>
      scope === 'openid' ? 'screenings.read' : scope,
    ),
  }),
  ...tripping({ '5-no-refresh-token': /no member refresh_token/ })({
    'offline_access brings a refresh token': tokenBody((body, request) =>
      formOf(request).get('scope')?.[0]?.includes('offline_access')
        ? { ...body, refresh_token: 'kept' }
        : body,
    ),
  }),
  ...tripping({ '7.2-no-unprovoked-5xx': /no 5xx/, '7.1-invalid_client-secret': /401 invalid_client.*500/ })({
    'a client_secret beyond 72 octets is a crash: 500': crashing('client_secret', /.{73}/s),
  }),
  ...tripping({ '7.2-no-unprovoked-5xx': /no 5xx/, '7.1-invalid_client-id': /401 invalid_client.*500/ })({
    'a client_id beyond 255 octets is a crash: 500': crashing('client_id', /.{256}/s),
  }),
  ...tripping({
    '7.2-no-unprovoked-5xx': /no 5xx/,
    '7.1-unsupported_grant_type': /400 unsupported_grant_type.*500/,
  })({
    'a grant_type beyond Latin-1 is a crash: 500': crashing('grant_type', /[^\0-\xff]/),
  }),
  ...tripping({ '7.1-invalid_client-id': /401 invalid_client.*token/ })({
    'blanks after a client_id do not count': single('client_id', (id) => id.replace(/ +$/, '')),
    'a realm before the client_id is left out': single('client_id', (id) => id.split('/').at(-1)!),
    'a domain after the client_id is left out': single('client_id', (id) => id.split('@')[0]!),
  }),
  ...tokenRefusalFaults({ '7.1-body': /JSON with error/ })({
    'token errors are HTML where Accept is a list': tokenRefusals((answer, { headers }) =>
      headers['accept'] === 'application/json' ? answer : html(answer.status, 'refused'),
    ),
    'error_description is an object for Accept-Language: de': tokenRefusals((answer, { headers }) =>
      headers['accept-language']?.startsWith('de')
        ? jsonBody((body) => ({ ...body, error_description: { de: 'abgelehnt' } }))(answer)
        : answer,
    ),
  }),
  ...sharing({ needsNeighbours: true })({ '7.1-body': /JSON with error/ })({
    'a line feed in a client_id breaks the JSON of its error': tokenRefusals((answer, request) => ({
      ...answer,
      body: String(answer.body).replace('client_id', formOf(request).get('client_id')?.[0] ?? ''),
    })),
  }),
];

function decodedAgain(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

function crashing(name: string, odd: RegExp): ServerOptions {
  return insteadOfToken(
    () => oauthError(500, 'server_error'),
    (form) => odd.test(form.get(name)?.[0] ?? ''),
  );
}

function tokenRefusals(alter: Parameters<typeof answers>[0]): ServerOptions {
  return answers((answer, request) =>
    isTokenRequest(request) && [400, 401].includes(answer.status) ? alter(answer, request) : answer,
  );
}

function tenantByParameter(): ServerOptions {
  const asked = (request: ServiceRequest) => formOf(request).get('tenant_id')?.[0];
  return withRequestValue(asked, (current) =>
    minting(() => (claims, real) => real({ ...claims, tenant_id: current() ?? claims.tenant_id })),
  );
}
