/** Section 7.1: faults in the errors of the token endpoint. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceAnswer, ServiceRequest } from '../http/http.ts';
import {
  answers,
  authenticating,
  html,
  invalidClient,
  isTokenRequest,
  jsonBody,
  middleware,
  requests,
  tokenErrors,
  withHeader,
} from '../run/alter.ts';
import type { Client } from '../parts.ts';
import type { ServerOptions } from '../run/start.ts';
import { TOKEN_CLAIMS, TOKEN_REFUSALS, full, theme, type Fault } from './fault.ts';
import { anyClient, anySecret, field, first, formOf, forms, like, refusing } from './forms.ts';
import { single, uncompared, type Values } from './forms.ts';

const { fails, failsFull, failsLater } = theme([...TOKEN_REFUSALS, ...TOKEN_CLAIMS]);

const altered =
  (status: number, body: string) =>
  (answer: ServiceAnswer): ServiceAnswer => ({ ...answer, status, body });
const recoded = (error: string, to: string): ServerOptions =>
  tokenErrors(
    [error],
    jsonBody((body) => ({ ...body, error: to })),
  );
const restated = (error: string, status: number): ServerOptions =>
  tokenErrors([error], (answer) => ({ ...answer, status }));

const refused = (alter: Parameters<typeof answers>[0]): ServerOptions =>
  answers((answer, request) =>
    isTokenRequest(request) && [400, 401].includes(answer.status) ? alter(answer, request) : answer,
  );
const refusedBodies = (change: Parameters<typeof jsonBody>[0]): ServerOptions => refused(jsonBody(change));

const isJson = ({ headers }: ServiceRequest): boolean => headers['content-type']?.includes('json') === true;

const jsonAsForm = (isRead: (request: ServiceRequest) => boolean): ServerOptions =>
  requests((request) => {
    if (!isTokenRequest(request) || !isRead(request)) return request;
    const fields = JSON.parse(request.body.toString()) as Record<string, string>;
    const headers = { ...request.headers, 'content-type': 'application/x-www-form-urlencoded' };
    return { ...request, headers, body: Buffer.from(new URLSearchParams(fields).toString()) };
  });

const defaulted = (name: string, value: string): ServerOptions =>
  field(name, (values) => (values.length === 0 ? [value] : values));

/** Changes the values of every field. */
const everyField = (
  read: (values: Values) => Values,
  where?: (request: ServiceRequest) => boolean,
): ServerOptions => forms((form) => form.forEach((values, name) => form.set(name, read(values))), where);

const everyClient = (changes: Partial<Client>): ServerOptions =>
  authenticating(() => async (id, secret, real) => {
    const client = await real(id, secret);
    return client && { ...client, ...changes };
  });

const inAnyCase = (name: string, right: string): ServerOptions =>
  like(name, right, (shown) => shown.toLowerCase() === right);

const crashing = (name: string, odd: RegExp): ServerOptions =>
  refusing('500 server_error', (form) => odd.test(form.get(name)?.[0] ?? ''));

const isOfSecondClient = (request: ServiceRequest): boolean =>
  formOf(request).get('client_id')?.[0]?.startsWith('second') === true;

const withoutAccents = (text: string): string => text.normalize('NFD').replace(/\p{M}/gu, '');

function decodedAgain(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

const KNOWN = /^(primary|secondTenant|notOnboarded|unauthorized|invalidGrant|scratch)-client$/;

export const tokenErrorFaults: readonly Fault[] = [
  ...fails({ '7.1-body': /JSON with error and error_description/ })({
    'token errors are plain text': refused((answer) =>
      withHeader({ ...answer, body: 'refused' }, 'content-type', 'text/plain'),
    ),
    'token errors lack error_description': refusedBodies(({ error }) => ({ error })),
    'token errors are nested in problem details': refusedBodies((inner) => ({ status: 400, detail: inner })),
    'token errors are HTML where Accept is a list': refused((answer, { headers }) =>
      headers['accept'] === 'application/json' ? answer : html(answer.status, 'refused'),
    ),
    'error_description is an object for Accept-Language: de': refused((answer, { headers }) =>
      headers['accept-language']?.startsWith('de')
        ? jsonBody((body) => ({ ...body, error_description: { de: 'abgelehnt' } }))(answer)
        : answer,
    ),
  }),
  ...failsLater({ '7.1-body': /JSON with error/ })({
    'a line feed in a client_id is not escaped in error_description': refused((answer, request) => ({
      ...answer,
      body: String(answer.body).replace('client_id', formOf(request).get('client_id')?.[0] ?? ''),
    })),
  }),
  ...fails({ '7.1-body': /error_description.*<html/, '7.1-invalid_client-secret': /401 invalid_client/ })({
    'a wrong secret gets the error page of a gateway': tokenErrors(
      ['invalid_client'],
      altered(401, '<html>401</html>'),
    ),
  }),
  ...fails({ '7.1-invalid_request-missing': /400 invalid_request.*(200|token)/ })({
    'scope defaults to screenings.read': defaulted('scope', 'screenings.read'),
    'client_secret[$ne] is an operator of the database': uncompared((form, value) => {
      if (form.delete('client_secret[$ne]')) form.set('client_secret', [value]);
    }),
  }),
  ...fails({ '7.1-invalid_request-missing': /400 invalid_request.*unsupported_grant_type/ })({
    'a missing grant_type is unsupported_grant_type': defaulted('grant_type', 'none'),
  }),
  ...fails({ '7.1-invalid_request-missing': /400 invalid_request.*invalid_client/ })({
    'a missing client_secret is invalid_client': defaulted('client_secret', 'none'),
  }),
  ...fails({ '7.1-invalid_request-duplicated': /400 invalid_request.*(200|token)/ })({
    'reads the first of two values': everyField((values) => values.slice(0, 1)),
    'reads the last of two different values': everyField((values) =>
      new Set(values).size > 1 ? values.slice(-1) : values,
    ),
    'reads the first of two different client_ids': field('client_id', (values) =>
      new Set(values).size > 1 ? values.slice(0, 1) : values,
    ),
    'reads the first of two values of a form with a charset': everyField(
      (values) => values.slice(0, 1),
      ({ headers }) => headers['content-type']?.includes('charset') === true,
    ),
    'joins two scopes': field('scope', (scopes) => (scopes.length > 1 ? [scopes.join(' ')] : scopes)),
  }),
  ...fails({ '7.1-invalid_request-malformed': /400 invalid_request.*200/ })({
    'a JSON body is read like a form': jsonAsForm(isJson),
    'a form that begins with a brace is read as JSON': jsonAsForm(
      (request) => !isJson(request) && /^\{./.test(request.body.toString()),
    ),
  }),
  ...fails({
    '7.1-invalid_request-malformed': /400 invalid_request.*500/,
    '7.2-no-unprovoked-5xx': /no 5xx/,
  })({ 'a JSON body is 500': refusing('500 server_error', (_, request) => isJson(request)) }),
  ...fails({ '7.1-invalid_request-empty': /400 invalid_request or 400 invalid_scope.*200/ })({
    'an empty scope is screenings.read': first('scope', (scope) => scope || 'screenings.read'),
  }),
  ...fails({ '7.1-invalid_request-empty': /400 invalid_request or 400 unsupported_grant_type.*200/ })({
    'an empty grant_type is client_credentials': first('grant_type', (type) => type || 'client_credentials'),
  }),
  ...fails({ '7.1-invalid_request-empty': /400 invalid_request or 401 invalid_client.*200/ })({
    'a blank client_secret is not compared': uncompared((form, value) => {
      const [shown] = form.get('client_secret') ?? [];
      if (shown && shown.trim() === '') form.set('client_secret', [value]);
    }),
  }),
  ...fails({ '7.1-invalid_client-secret': /401 invalid_client.*400/ })({
    'a wrong secret is 400': restated('invalid_client', 400),
  }),
  ...fails({ '7.1-invalid_client-secret': /401 invalid_client.*access_denied/ })({
    'a wrong secret is access_denied': recoded('invalid_client', 'access_denied'),
  }),
  ...fails({ '7.1-invalid_client-secret': /401 invalid_client.*(200|token)/ })({
    'compares the first 16 characters of secrets': anySecret(
      (shown, real) => shown.slice(0, 16) === real.slice(0, 16),
    ),
    'compares secrets case-insensitively': anySecret(
      (shown, real) => shown.toLowerCase() === real.toLowerCase(),
    ),
    'compares secrets without accents': full(anySecret((shown, real) => withoutAccents(shown) === real)),
    'accepts a secret with a prefix': full(anySecret((shown, real) => shown.endsWith(real))),
    'accepts every secret': anySecret(() => true),
    'trims blanks around a client_secret': single('client_secret', (secret) => secret.trim()),
    'accepts a wrong secret while the right one is being checked': authenticating(() => {
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
  ...fails({
    '7.1-invalid_client-secret': /401 invalid_client.*200/,
    '7.1-invalid_client-id': /401 invalid_client.*200/,
  })({
    'wrong credentials are accepted the second time': middleware(() => {
      const refused = new Set<string>();
      let token: ServiceAnswer | undefined;
      return async (request, next) => {
        const answer = await next(request);
        if (!isTokenRequest(request)) return answer;
        if (answer.status === 200) token = answer;
        const form = request.body.toString();
        if (answer.status === 401 && refused.has(form) && token) return token;
        if (answer.status === 401) refused.add(form);
        return answer;
      };
    }),
  }),
  ...fails({ '7.1-invalid_client-id': /401 invalid_client.*(200|token)/ })({
    'compares client_ids case-insensitively': inAnyCase('client_id', 'primary-client'),
    'compares client_ids without accents': anyClient((id, right) => withoutAccents(id) === right),
    'accepts a client_id with a suffix': like('client_id', 'primary-client', (shown, real) =>
      shown.startsWith(real),
    ),
    'accepts the beginning of a client_id': anyClient((id, right) => id.length > 3 && right.startsWith(id)),
    'looks a client_id up with LIKE': anyClient((id) => id === '%'),
    'trims blanks after a client_id': single('client_id', (id) => id.replace(/ +$/, '')),
    'ignores a realm before the client_id': single('client_id', (id) => id.split('/').at(-1)!),
    'ignores a domain after the client_id': single('client_id', (id) => id.split('@')[0]!),
  }),
  ...fails({ '7.1-invalid_client-id': /401 invalid_client.*unauthorized_client/ })({
    'an unknown client_id is unauthorized_client': refusing('400 unauthorized_client', (form) => {
      const [id] = form.get('client_id') ?? [];
      const complete = ['grant_type', 'client_secret', 'scope'].every((name) => form.get(name)?.length === 1);
      return complete && id !== undefined && !KNOWN.test(id);
    }),
  }),
  ...fails({ '7.1-invalid_client-challenge': /WWW-Authenticate/ })({
    'invalid_client lacks WWW-Authenticate': tokenErrors(['invalid_client'], (answer) =>
      withHeader(answer, 'www-authenticate', undefined),
    ),
    'invalid_client has an empty WWW-Authenticate': tokenErrors(['invalid_client'], (answer) =>
      withHeader(answer, 'www-authenticate', ''),
    ),
  }),
  ...fails({ '7.1-unsupported_grant_type': /400 unsupported_grant_type.*(200|token)/ })({
    'ignores grant_type': single('grant_type', () => 'client_credentials'),
    'ignores a grant_type that is not the first parameter': forms((form) => {
      const isElsewhere = [...form.keys()].indexOf('grant_type') > 0 && form.get('grant_type')!.length === 1;
      if (isElsewhere) form.set('grant_type', ['client_credentials']);
    }),
    'compares grant types case-insensitively': inAnyCase('grant_type', 'client_credentials'),
    'accepts a grant_type with a suffix': like('grant_type', 'client_credentials', (shown, real) =>
      shown.startsWith(real),
    ),
    'decodes values of a form twice': everyField((values) => values.map(decodedAgain)),
    'accepts the beginning of a grant_type': single('grant_type', (grant) =>
      grant.startsWith('client_cred') ? 'client_credentials' : grant,
    ),
    'a NUL ends a grant_type': first('grant_type', (type) => type.split('\0')[0]!),
  }),
  ...fails({ '7.1-unsupported_grant_type': /400 unsupported_grant_type.*invalid_grant/ })({
    'another grant_type is invalid_grant': recoded('unsupported_grant_type', 'invalid_grant'),
  }),
  ...fails({ '7.1-unsupported_grant_type': /400 unsupported_grant_type.*unauthorized_client/ })({
    'another grant_type is unauthorized_client': recoded('unsupported_grant_type', 'unauthorized_client'),
  }),
  ...fails({ '7.1-invalid_scope': /400 invalid_scope.*(200|token)/ })({
    'grants screenings.read for every scope': single('scope', () => 'screenings.read'),
    'compares scopes case-insensitively': inAnyCase('scope', 'screenings.read'),
    'accepts a scope with a suffix': like(
      'scope',
      'screenings.read',
      (shown, real) => /^\S+$/.test(shown) && shown.startsWith(real),
    ),
    'grants all scopes for *': single('scope', (scope) => (scope === '*' ? 'screenings.read' : scope)),
    'reads the dot of a scope as any letter': single('scope', (scope) =>
      scope.replace(/^screenings.read$/, 'screenings.read'),
    ),
    'grants screenings.read for screenings': single('scope', (scope) =>
      scope === 'screenings' ? 'screenings.read' : scope,
    ),
    'grants screenings.read for openid': single('scope', (scope) =>
      scope === 'openid' ? 'screenings.read' : scope,
    ),
    'splits scopes at commas': single('scope', (scope) => scope.replaceAll(',', ' ')),
  }),
  ...fails({ '7.1-invalid_scope': /400 invalid_scope.*invalid_request/ })({
    'an unknown scope is invalid_request': recoded('invalid_scope', 'invalid_request'),
  }),
  ...fails({ '7.1-scope-subset': /screenings.read|invalid_scope/ })({
    'grants an unknown scope beside screenings.read': answers((answer, request) => {
      const [asked] = isTokenRequest(request) ? (formOf(request).get('scope') ?? []) : [];
      if (answer.status !== 200 || !asked?.includes(' ')) return answer;
      return jsonBody((inner) => ({ ...inner, scope: asked }))(answer);
    }),
    'an unknown scope beside screenings.read is invalid_request': refusing('400 invalid_request', (form) => {
      const [scope = '', ...others] = form.get('scope') ?? [];
      return others.length === 0 && scope.includes(' ') && scope.includes('screenings.read');
    }),
  }),
  ...failsFull({ '7.1-unauthorized_client': /400 unauthorized_client.*200/ })({
    'a client that may not use the grant gets a token': everyClient({ grantTypes: ['client_credentials'] }),
  }),
  ...failsFull({ '7.1-unauthorized_client': /400 unauthorized_client.*403/ })({
    'a client that may not use the grant is 403': restated('unauthorized_client', 403),
  }),
  ...failsFull({ '7.1-unauthorized_client': /400 unauthorized_client.*401 "invalid_client"/ })({
    // The empty secret gets the first 401, so later refusals look like the lockout of a client.
    'a client without the grant is invalid_client, and so is an empty secret': answers((answer, request) => {
      const isEmpty = isTokenRequest(request) && formOf(request).get('client_secret')?.[0] === '';
      return isEmpty || String(answer.body).includes('"unauthorized_client"') ? invalidClient() : answer;
    }),
  }),
  ...failsFull({ '7.1-invalid_grant': /400 invalid_grant.*invalid_client/ })({
    'a suspended grant is invalid_client': tokenErrors(['invalid_grant'], invalidClient),
  }),
  ...failsFull({ '7.1-invalid_grant': /400 invalid_grant.*200/ })({
    'a suspended grant gets a token': everyClient({ suspended: false }),
  }),
  ...failsFull({ '7.1-unsupported_grant_type': /400 unsupported_grant_type.*200/ })({
    'the second client may use every grant': forms(
      (form) => form.set('grant_type', ['client_credentials']),
      isOfSecondClient,
    ),
  }),
  ...failsFull({ '7.1-invalid_request-missing': /400 invalid_request.*200/ })({
    'the second client has a default scope': forms((form) => {
      if (!form.has('scope')) form.set('scope', ['screenings.read']);
    }, isOfSecondClient),
  }),
  ...fails({ '7.2-no-unprovoked-5xx': /no 5xx/ })({
    'a NUL in a client_id is 500': crashing('client_id', /\0/),
    'a client_id beyond 16 bits is 500': crashing('client_id', /[^\0-\uffff]/u),
    'a quote in a client_id is 500': crashing('client_id', /['"]/),
    'a quote in a scope is 500': crashing('scope', /['"]/),
    'a scope beyond 16 bits is 500': crashing('scope', /[^\0-\uffff]/u),
    'a JSON array is 500': refusing('500 server_error', (_, { body }) => body.toString().startsWith('[')),
    'a form in an unknown charset is 500': refusing('500 server_error', (_, { headers }) =>
      /charset=(?!utf-8)/i.test(headers['content-type'] ?? ''),
    ),
    'a multipart form without its boundary is 500': refusing(
      '500 server_error',
      (_, { headers }) => headers['content-type'] === 'multipart/form-data',
    ),
    'Basic that is no Base64 is 500': refusing('500 server_error', (_, { headers }) =>
      /^Basic .*[^\w+/=]/.test(headers['authorization'] ?? ''),
    ),
    'a field with the name of a prototype is 500': refusing('500 server_error', (_, { body }) =>
      body.includes('__proto__'),
    ),
    'a token request without Content-Type is 500': refusing(
      '500 server_error',
      (_, { method, headers }) => method === 'POST' && !headers['content-type'],
    ),
  }),
  ...fails({ '7.2-no-unprovoked-5xx': /no 5xx/, '7.1-invalid_client-secret': /401 invalid_client.*500/ })({
    'a client_secret beyond 72 octets is 500': crashing('client_secret', /.{73}/s),
  }),
  ...fails({ '7.2-no-unprovoked-5xx': /no 5xx/, '7.1-invalid_client-id': /401 invalid_client.*500/ })({
    'a client_id beyond 255 octets is 500': crashing('client_id', /.{256}/s),
  }),
  ...fails({
    '7.2-no-unprovoked-5xx': /no 5xx/,
    '7.1-unsupported_grant_type': /400 unsupported_grant_type.*500/,
  })({ 'a grant_type beyond Latin-1 is 500': crashing('grant_type', /[^\0-\xff]/) }),
];
