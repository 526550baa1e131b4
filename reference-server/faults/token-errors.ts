/** Section 7.1: what the token endpoint refuses, and how. */
import { parseForm } from '../http/form.ts';
import type { ServiceAnswer, ServiceRequest } from '../http/http.ts';
import {
  invalidClient,
  isTokenRequest,
  middleware,
  oauthError,
  requests,
  tokenErrors,
  withHeader,
} from '../run/alter.ts';
import type { Fault } from './fault.ts';

const OTHERS = [
  '7.1-invalid_request-missing',
  '7.1-invalid_request-duplicated',
  '7.1-invalid_request-malformed',
  '7.1-invalid_client-secret',
  '7.1-invalid_client-id',
  '7.1-invalid_client-challenge',
  '7.1-unsupported_grant_type',
  '7.1-invalid_scope',
  '7.1-scope-subset',
  '7.1-unauthorized_client',
  '7.1-invalid_grant',
] as const;

export const formOf = (request: ServiceRequest): Map<string, readonly string[]> =>
  new Map(parseForm(request.body.toString()) ?? []);

/** Changes the form of every form POST. */
export const forms = (change: (form: Map<string, readonly string[]>) => void): NonNullable<Fault['server']> =>
  requests((request) => {
    const isForm = request.headers['content-type']?.includes('urlencoded');
    if (!isTokenRequest(request) || request.method !== 'POST' || !isForm) return request;
    const form = formOf(request);
    change(form);
    const pairs = [...form].flatMap(([name, values]) =>
      values.map((value): [string, string] => [name, value]),
    );
    return { ...request, body: Buffer.from(new URLSearchParams(pairs).toString()) };
  });

const body =
  (change: (body: Record<string, unknown>) => unknown) =>
  (answer: ServiceAnswer): ServiceAnswer => ({
    ...answer,
    body: JSON.stringify(change(JSON.parse(String(answer.body)) as Record<string, unknown>)),
  });

const ALL = [
  'invalid_request',
  'invalid_client',
  'unauthorized_client',
  'invalid_grant',
  'unsupported_grant_type',
  'invalid_scope',
];

export const tokenErrorFaults: readonly Fault[] = [
  {
    name: 'token errors as plain text',
    trips: { '7.1-body': /JSON with error and error_description.*no JSON/ },
    mayTrip: ['7.1-invalid_request-empty', ...OTHERS, '7.1-body'],
    server: tokenErrors(ALL, (answer) =>
      withHeader({ ...answer, body: 'refused' }, 'content-type', 'text/plain'),
    ),
  },
  {
    name: 'token errors without error_description',
    trips: { '7.1-body': /JSON with error and error_description/ },
    server: tokenErrors(
      ALL,
      body(({ error }) => ({ error })),
    ),
  },
  {
    name: 'the error page of a gateway for a wrong secret',
    trips: {
      '7.1-body': /JSON with error and error_description.*<html/,
      '7.1-invalid_client-secret': /401 invalid_client/,
    },
    mayTrip: [...OTHERS],
    server: tokenErrors(['invalid_client'], (answer) => ({ ...answer, body: '<html>401</html>' })),
  },
  {
    name: 'token errors one level down, in problem details',
    trips: { '7.1-body': /JSON with error and error_description/ },
    mayTrip: ['7.1-invalid_request-empty', ...OTHERS],
    server: tokenErrors(
      ALL,
      body((inner) => ({ status: 400, detail: inner })),
    ),
  },
  {
    name: 'a missing scope is the default scope',
    trips: { '7.1-invalid_request-missing': /400 invalid_request.*200/ },
    server: forms((form) => form.set('scope', form.get('scope') ?? ['screenings.read'])),
  },
  {
    name: 'a missing grant_type is unsupported',
    trips: { '7.1-invalid_request-missing': /400 invalid_request.*unsupported_grant_type/ },
    server: forms((form) => form.set('grant_type', form.get('grant_type') ?? ['none'])),
  },
  {
    name: 'a missing client_secret is an invalid client',
    trips: { '7.1-invalid_request-missing': /400 invalid_request.*invalid_client/ },
    server: forms((form) => form.set('client_secret', form.get('client_secret') ?? ['none'])),
  },
  {
    name: 'the first of two values counts',
    trips: { '7.1-invalid_request-duplicated': /400 invalid_request.*200/ },
    server: forms((form) => {
      for (const [name, values] of form) form.set(name, values.slice(0, 1));
    }),
  },
  {
    name: 'the last of two values counts where they differ',
    trips: { '7.1-invalid_request-duplicated': /400 invalid_request.*200/ },
    server: forms((form) => {
      for (const [name, values] of form) if (new Set(values).size > 1) form.set(name, values.slice(-1));
    }),
  },
  {
    name: 'two scopes are joined',
    trips: { '7.1-invalid_request-duplicated': /400 invalid_request.*200/ },
    server: forms((form) => form.has('scope') && form.set('scope', [form.get('scope')!.join(' ')])),
  },
  {
    name: 'a JSON body is read like a form',
    trips: { '7.1-invalid_request-malformed': /400 invalid_request.*200/ },
    server: requests((request) => {
      if (!isTokenRequest(request) || !request.headers['content-type']?.includes('json')) return request;
      const fields = JSON.parse(request.body.toString()) as Record<string, string>;
      const headers = { ...request.headers, 'content-type': 'application/x-www-form-urlencoded' };
      return { ...request, headers, body: Buffer.from(new URLSearchParams(fields).toString()) };
    }),
  },
  {
    name: 'a JSON body is a crash: 500',
    trips: { '7.1-invalid_request-malformed': /400 invalid_request.*500/, '7.2-no-unprovoked-5xx': /no 5xx/ },
    server: middleware(
      () => (request, next) =>
        isTokenRequest(request) && request.headers['content-type']?.includes('json')
          ? oauthError(500, 'server_error')
          : next(request),
    ),
  },
  {
    name: 'a wrong secret is 400',
    trips: { '7.1-invalid_client-secret': /401 invalid_client.*400/ },
    mayTrip: ['7.1-invalid_client-id', '7.1-invalid_client-challenge'],
    server: tokenErrors(['invalid_client'], (answer) => ({ ...answer, status: 400 })),
  },
  {
    name: 'a wrong secret is access_denied',
    trips: { '7.1-invalid_client-secret': /401 invalid_client.*access_denied/ },
    mayTrip: ['7.1-invalid_client-id'],
    server: tokenErrors(
      ['invalid_client'],
      body((inner) => ({ ...inner, error: 'access_denied' })),
    ),
  },
  {
    name: 'client_ids compared without regard to case',
    trips: { '7.1-invalid_client-id': /401 invalid_client.*200/ },
    server: oneOf('client_id', 'primary-client', (shown, real) => shown.toLowerCase() === real),
  },
  {
    name: 'grant types compared without regard to case',
    trips: { '7.1-unsupported_grant_type': /400 unsupported_grant_type.*200/ },
    server: oneOf('grant_type', 'client_credentials', (shown, real) => shown.toLowerCase() === real),
  },
  {
    name: 'grant types compared by their beginning',
    trips: { '7.1-unsupported_grant_type': /400 unsupported_grant_type.*200/ },
    server: oneOf('grant_type', 'client_credentials', (shown, real) => shown.startsWith(real)),
  },
  {
    name: 'scopes compared without regard to case',
    trips: { '7.1-invalid_scope': /400 invalid_scope.*200/ },
    server: oneOf('scope', 'screenings.read', (shown, real) => shown.toLowerCase() === real),
  },
  {
    name: 'scopes compared by their beginning',
    trips: { '7.1-invalid_scope': /400 invalid_scope.*200/ },
    server: oneOf('scope', 'screenings.read', (shown, real) => /^\S+$/.test(shown) && shown.startsWith(real)),
  },
  {
    name: 'secrets compared by their first sixteen characters',
    trips: { '7.1-invalid_client-secret': /401 invalid_client.*200/ },
    server: anySecret((shown, real) => shown.slice(0, 16) === real.slice(0, 16)),
  },
  {
    name: 'secrets compared without regard to case',
    trips: { '7.1-invalid_client-secret': /401 invalid_client.*200/ },
    server: anySecret((shown, real) => shown.toLowerCase() === real.toLowerCase()),
  },
  {
    name: 'any secret will do',
    trips: { '7.1-invalid_client-secret': /401 invalid_client.*200/ },
    server: anySecret(() => true),
  },
  {
    name: 'an unknown client_id is unauthorized_client',
    mayTrip: ['7.1-invalid_request-empty'],
    trips: { '7.1-invalid_client-id': /401 invalid_client.*unauthorized_client/ },
    server: unknownClient(() => oauthError(400, 'unauthorized_client')),
  },
  {
    name: 'an unknown client_id is 404',
    mayTrip: ['7.1-invalid_request-empty'],
    trips: { '7.1-invalid_client-id': /401 invalid_client.*404/ },
    server: unknownClient(() => oauthError(404, 'not_found')),
  },
  {
    name: 'a prefix of the client_id will do',
    trips: { '7.1-invalid_client-id': /401 invalid_client.*200/ },
    server: forms((form) => {
      const [id] = form.get('client_id') ?? [];
      if (id?.startsWith('primary-client'))
        form.set(
          'client_id',
          form.get('client_id')!.map(() => 'primary-client'),
        );
    }),
  },
  {
    name: 'invalid_client without WWW-Authenticate',
    trips: { '7.1-invalid_client-challenge': /WWW-Authenticate/ },
    server: tokenErrors(['invalid_client'], (answer) => withHeader(answer, 'www-authenticate', undefined)),
  },
  {
    name: 'another grant_type is invalid_grant',
    trips: { '7.1-unsupported_grant_type': /400 unsupported_grant_type.*invalid_grant/ },
    server: tokenErrors(
      ['unsupported_grant_type'],
      body((inner) => ({ ...inner, error: 'invalid_grant' })),
    ),
  },
  {
    name: 'grant_type is not looked at',
    mayTrip: ['7.1-invalid_request-empty'],
    trips: { '7.1-unsupported_grant_type': /400 unsupported_grant_type.*200/ },
    server: forms((form) => {
      if (form.get('grant_type')?.length === 1) form.set('grant_type', ['client_credentials']);
    }),
  },
  {
    name: 'an unknown scope is granted nothing, with a token',
    trips: { '7.1-invalid_scope': /400 invalid_scope.*200/ },
    mayTrip: ['7.1-invalid_request-empty', '2.1-scope', '2.2-scope'],
    server: forms((form) => {
      if (form.get('scope')?.length === 1) form.set('scope', ['screenings.read']);
    }),
  },
  {
    name: 'an unknown scope is invalid_request',
    trips: { '7.1-invalid_scope': /400 invalid_scope.*invalid_request/ },
    server: tokenErrors(
      ['invalid_scope'],
      body((inner) => ({ ...inner, error: 'invalid_request' })),
    ),
  },
  {
    name: 'an unknown scope beside the right one is granted too',
    trips: { '7.1-scope-subset': /screenings.read|invalid_scope/ },
    mayTrip: ['2.2-scope', '2.1-scope'],
    server: everyScope(),
  },
  {
    name: 'an unknown scope beside the right one is invalid_request',
    trips: { '7.1-scope-subset': /invalid_scope/ },
    server: middleware(() => (request, next) => {
      const scope = isTokenRequest(request) ? formOf(request).get('scope') : undefined;
      return scope?.length === 1 && scope[0]?.includes(' ') && scope[0].includes('screenings.read')
        ? oauthError(400, 'invalid_request')
        : next(request);
    }),
  },
  {
    name: 'a client that may not use the grant gets a token',
    trips: { '7.1-unauthorized_client': /400 unauthorized_client.*200/ },
    bare: false,
    server: everyClient({ grantTypes: ['client_credentials'] }),
  },
  {
    name: 'a client that may not use the grant is 403',
    trips: { '7.1-unauthorized_client': /400 unauthorized_client.*403/ },
    bare: false,
    server: tokenErrors(['unauthorized_client'], (answer) => ({ ...answer, status: 403 })),
  },
  {
    name: 'a suspended grant is invalid_client',
    trips: { '7.1-invalid_grant': /400 invalid_grant.*invalid_client/ },
    bare: false,
    server: tokenErrors(['invalid_grant'], invalidClient),
  },
  {
    name: 'a client without the grant is invalid_client, and so is an empty secret',
    trips: { '7.1-unauthorized_client': /400 unauthorized_client.*401 "invalid_client"/ },
    bare: false,
    // An empty secret is the first 401: whatever is refused after it may look like a lockout.
    server: middleware(() => async (request, next) => {
      const answer = await next(request);
      const isRefused =
        isTokenRequest(request) &&
        (answer.body?.toString().includes('"unauthorized_client"') ||
          formOf(request).get('client_secret')?.[0] === '');
      return isRefused ? invalidClient() : answer;
    }),
  },
  {
    name: 'a suspended grant gets a token',
    trips: { '7.1-invalid_grant': /400 invalid_grant.*200/ },
    bare: false,
    server: everyClient({ suspended: false }),
  },
];

/** The right secret of a client is known once it was shown. */
function anySecret(same: (shown: string, real: string) => boolean): NonNullable<Fault['server']> {
  return {
    wrapParts: (parts) => {
      const shown = new Map<string, string>();
      return {
        ...parts,
        clients: {
          async authenticate(id, secret) {
            const client = await parts.clients.authenticate(id, secret);
            if (client) shown.set(id, secret);
            const real = shown.get(id);
            return (
              client ??
              (real !== undefined && same(secret, real) ? parts.clients.authenticate(id, real) : undefined)
            );
          },
        },
      };
    },
  };
}

function everyClient(changes: { grantTypes?: string[]; suspended?: boolean }): NonNullable<Fault['server']> {
  return {
    wrapParts: (parts) => ({
      ...parts,
      clients: {
        async authenticate(id, secret) {
          const client = await parts.clients.authenticate(id, secret);
          return client && { ...client, ...changes };
        },
      },
    }),
  };
}

/** A field whose value is taken for the right one where it is like it. */
function oneOf(
  name: string,
  real: string,
  isLike: (shown: string, real: string) => boolean,
): NonNullable<Fault['server']> {
  return forms((form) => {
    const values = form.get(name)?.map((shown) => (isLike(shown, real) ? real : shown));
    if (values) form.set(name, values);
  });
}

function unknownClient(answer: () => ServiceAnswer): NonNullable<Fault['server']> {
  return middleware(() => (request, next) => {
    const form = isTokenRequest(request) ? formOf(request) : new Map<string, readonly string[]>();
    const [id] = form.get('client_id') ?? [];
    const complete = ['grant_type', 'client_secret', 'scope'].every((name) => form.get(name)?.length === 1);
    const known = /^(primary|secondTenant|notOnboarded|unauthorized|invalidGrant|scratch)-client$/;
    return complete && id !== undefined && !known.test(id) ? answer() : next(request);
  });
}

/** Grants whatever is asked for beside the scope that is offered. */
function everyScope(): NonNullable<Fault['server']> {
  return middleware(() => async (request, next) => {
    const answer = await next(request);
    const [asked] = isTokenRequest(request) ? (formOf(request).get('scope') ?? []) : [];
    if (answer.status !== 200 || !asked?.includes(' ')) return answer;
    return body((inner) => ({ ...inner, scope: asked }))(answer);
  });
}
