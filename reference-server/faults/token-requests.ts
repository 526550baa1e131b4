/** Sections 4.1 and 7.1: token requests with more in them than there should be, and with less. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { parseForm } from '../http/form.ts';
import type { ServiceRequest } from '../http/http.ts';
import {
  claims,
  isTokenRequest,
  middleware,
  oauthError,
  queryOf,
  requests,
  tokenBody,
} from '../run/alter.ts';
import type { Fault } from './fault.ts';
import { formOf, forms } from './token-errors.ts';

export const tokenRequests: readonly Fault[] = [
  {
    name: 'a parameter that names a tenant is 403',
    trips: { '4.1-unknown-parameters': /as without the parameter.*403/ },
    server: middleware(
      () => (request, next) =>
        isTokenRequest(request) && formOf(request).has('tenant')
          ? oauthError(403, 'access_denied')
          : next(request),
    ),
  },
  {
    name: 'an audience of another API is 403',
    trips: { '4.1-unknown-parameters': /as without the parameter.*403/ },
    server: middleware(
      () => (request, next) =>
        isTokenRequest(request) && formOf(request).has('audience')
          ? oauthError(403, 'access_denied')
          : next(request),
    ),
  },
  {
    name: 'a parameter chooses the tenant of the token',
    trips: { '5-one-tenant': /whatever tenant_id asks for/ },
    mayTrip: ['2.2-tenant_id'],
    server: tenantByParameter(),
  },
  {
    name: 'a content type with a charset is no form',
    trips: { '4.1-success': /200 with Content-Type: .*charset/ },
    server: middleware(
      () => (request, next) =>
        isTokenRequest(request) && request.headers['content-type']?.includes('charset')
          ? oauthError(400, 'invalid_request')
          : next(request),
    ),
  },
  {
    name: 'aud is the client_id',
    trips: { '2.2-aud': /the identifier of the API.*the client_id/ },
    server: claims((original) => ({ ...original, aud: original['sub'] })),
  },
  {
    name: 'aud is another for every tenant',
    trips: { '2.2-aud': /as in every token before/ },
    bare: false,
    server: claims((original) => ({ ...original, aud: `urn:screenings:${String(original['tenant_id'])}` })),
  },
  {
    name: 'a scope of nothing is granted',
    trips: { '2.1-scope': /a string that names one/ },
    mayTrip: ['2.2-scope', '7.1-scope-subset'],
    server: tokenBody((body) => ({ ...body, scope: '' })),
  },
  {
    name: 'a multipart body is read like a form',
    trips: { '7.1-invalid_request-malformed': /400 invalid_request.*200/ },
    server: requests((request) => {
      if (!isTokenRequest(request) || !request.headers['content-type']?.startsWith('multipart/'))
        return request;
      const fields = [...request.body.toString().matchAll(/name="(\w+)"\r\n\r\n(.*?)\r\n--/gs)];
      const form = new URLSearchParams(
        fields.map(([, name = '', value = '']): [string, string] => [name, value]),
      );
      const headers = { ...request.headers, 'content-type': 'application/x-www-form-urlencoded' };
      return { ...request, headers, body: Buffer.from(form.toString()) };
    }),
  },
  {
    name: 'a client_secret in the query is as good as one in the form',
    trips: { '4.1-no-query-credentials': /no token.*200 with access_token/ },
    server: requests((request) => {
      const secret = queryOf(request).get('client_secret');
      if (!isTokenRequest(request) || secret === null || request.body.length === 0) return request;
      const body = Buffer.from(`${request.body.toString()}&client_secret=${encodeURIComponent(secret)}`);
      return { ...request, path: request.path.split('?')[0] ?? '', body };
    }),
  },
  {
    name: 'blanks round a client_secret are cut off',
    trips: { '7.1-invalid_client-secret': /401 invalid_client.*200/ },
    mayTrip: ['7.1-invalid_request-empty'],
    server: forms((form) => {
      const [secret] = form.get('client_secret') ?? [];
      if (secret !== undefined && form.get('client_secret')?.length === 1)
        form.set('client_secret', [secret.trim()]);
    }),
  },
  {
    name: 'an empty scope is the default scope',
    trips: { '7.1-invalid_request-empty': /400 invalid_request or 400 invalid_scope.*200/ },
    server: forms((form) => {
      if (form.get('scope')?.[0] === '') form.set('scope', ['screenings.read']);
    }),
  },
  {
    name: 'an empty grant_type is the only grant there is',
    trips: { '7.1-invalid_request-empty': /400 invalid_request or 400 unsupported_grant_type.*200/ },
    server: forms((form) => {
      if (form.get('grant_type')?.[0] === '') form.set('grant_type', ['client_credentials']);
    }),
  },
  {
    name: 'a blank client_secret is not compared',
    trips: { '7.1-invalid_request-empty': /400 invalid_request or 401 invalid_client.*200/ },
    server: middleware(() => {
      let right: readonly string[] = [];
      return async (request, next) => {
        if (!isTokenRequest(request)) return next(request);
        const form = formOf(request);
        const shown = form.get('client_secret');
        if (shown?.length === 1 && shown[0]!.trim() === '' && shown[0] !== '') {
          const pairs = [...form].map(([name, [value = '']]): [string, string] => [
            name,
            name === 'client_secret' ? right[0]! : value,
          ]);
          return next({ ...request, body: Buffer.from(new URLSearchParams(pairs).toString()) });
        }
        const answer = await next(request);
        if (answer.status === 200 && form.get('client_id')?.[0] === 'primary-client') right = shown ?? right;
        return answer;
      };
    }),
  },
];

function tenantByParameter(): NonNullable<Fault['server']> {
  const current = new AsyncLocalStorage<ServiceRequest>();
  return {
    wrapHandler: (handler) => (request) => current.run(request, () => handler(request)),
    wrapParts: (parts) => ({
      ...parts,
      tokens: {
        verify: (token, nowSeconds) => parts.tokens.verify(token, nowSeconds),
        mint: (claims) => {
          const asked = parseForm(current.getStore()?.body.toString() ?? '')?.get('tenant_id')?.[0];
          return parts.tokens.mint({ ...claims, tenant_id: asked ?? claims.tenant_id });
        },
      },
    }),
  };
}
