/** Section 7.1: faults in the errors of the token endpoint. */
import { setTimeout as sleep } from 'node:timers/promises';
import { member, parseJson } from '../../engine/client/json.ts';
import type { ServiceAnswer, ServiceRequest } from '../http/http.ts';
import {
  answers,
  authenticating,
  both,
  header,
  html,
  invalidClient,
  isTokenRequest,
  jsonBody,
  middleware,
  oauthError,
  requests,
  tokenErrors,
  withHeader,
} from '../run/alter.ts';
import { hasHeader } from '../run/conditions.ts';
import type { Client } from '../parts.ts';
import type { ServerOptions } from '../run/start.ts';
import { basicOf, payloadOf, tokenOf } from './bearer.ts';
import { TOKEN_CLAIMS, TOKEN_REFUSALS, theme, type Fault } from './fault.ts';
import { anyClient, anySecret, asForm, field, fieldOf, first, forms, hasField, refusing } from './forms.ts';
import { single, uncompared, uncomparedInBasic, type Form, type Values } from './forms.ts';

const { fails, failsFull, failsLater } = theme([...TOKEN_REFUSALS, ...TOKEN_CLAIMS]);

/** Faults that answer 500 where the token endpoint must answer an error. */
const failsWith5xx = (trips: Fault['trips']) => fails({ ...trips, '7.2-no-unprovoked-5xx': /no 5xx/ });
const refused = (alter: Parameters<typeof answers>[0]): ServerOptions =>
  answers((answer, request) =>
    isTokenRequest(request) && [400, 401].includes(answer.status) ? alter(answer, request) : answer,
  );
const GRANT_URN = 'urn:ietf:params:oauth:grant-type:';
const isJson = hasHeader('content-type', /json/);
const isNoBase64 = hasHeader('authorization', /^Basic .*[^\w+/=]/);

const jsonAsForm = (isRead: (request: ServiceRequest) => boolean): ServerOptions =>
  requests((request) => {
    if (!isTokenRequest(request) || !isRead(request)) return request;
    return asForm(request, JSON.parse(request.body.toString()) as Record<string, string>);
  });

const defaulted = (name: string, value: string): ServerOptions =>
  field(name, (values) => (values.length === 0 ? [value] : values));

/** Matching requests need no client_secret. */
const needingNoSecret = (where: (request: ServiceRequest) => boolean): ServerOptions =>
  both(
    anySecret((shown) => shown === 'not needed'),
    forms((form) => form.set('client_secret', form.get('client_secret') ?? ['not needed']), where),
  );

const everyField = (read: (values: Values) => Values): ServerOptions =>
  forms((form) => form.forEach((values, name) => form.set(name, read(values))));

const everyClient = (changes: Partial<Client>): ServerOptions =>
  authenticating(() => async (id, secret, real) => {
    const client = await real(id, secret);
    return client && { ...client, ...changes };
  });

const crashing = (where: Parameters<typeof refusing>[1]): ServerOptions =>
  refusing('500 server_error', where);

/** Whether every JavaScript object has this member: a look-up in an object used as a table finds it. */
const isInherited = (form: Form, name: string): boolean => (form.get(name)?.[0] ?? '') in {};

const isUnknown = (form: Form): boolean => form.get('client_id')?.[0]?.endsWith('-client') === false;

const FIRST_CLIENT = 'primary-client';
const firstClientLike = (isLike: (id: string) => boolean): ServerOptions =>
  field('client_id', (ids) => ids.map((id) => (isLike(id) ? FIRST_CLIENT : id)));
const firstClientWhere = (isOdd: (form: Form) => boolean): ServerOptions =>
  uncompared((form, value) => {
    if (isOdd(form)) form.set('client_id', [FIRST_CLIENT]).set('client_secret', [value]);
  });

/** Exchanges an access token in this parameter for another one. */
const exchanging = (grant: string, name: string): ServerOptions =>
  forms((form) => {
    if (form.get('grant_type')?.[0] === grant && payloadOf(form.get(name)?.[0] ?? ''))
      form.set('grant_type', ['client_credentials']);
  });

function decodedAgain(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

export const tokenErrorFaults: readonly Fault[] = [
  ...fails({ '7.1-body': /JSON with error and error_description.*unescaped/ })({
    'the description of invalid_scope contains the scope unescaped': tokenErrors(
      'invalid_scope',
      (answer, request) => ({
        ...answer,
        body: `{"error":"invalid_scope","error_description":"unescaped: ${fieldOf('scope')(request)}"}`,
      }),
    ),
  }),
  ...fails({ '7.1-body': /JSON with error and error_description/ })({
    'token errors are plain text': refused((answer) =>
      withHeader({ ...answer, body: 'refused' }, 'content-type', 'text/plain'),
    ),
    'token errors lack error_description': refused(jsonBody(({ error }) => ({ error }))),
    'token errors are HTML where Accept is a list': refused((answer, { headers }) =>
      headers['accept'] === 'application/json' ? answer : html(answer.status, 'refused'),
    ),
  }),
  ...fails({ '7.1-invalid_request-missing': /400 invalid_request.*(200|token)/ })({
    'scope defaults to screenings.read': defaulted('scope', 'screenings.read'),
    'client_secret[$ne] is an operator of the database': uncompared((form, value) => {
      if (form.delete('client_secret[$ne]')) form.set('client_secret', [value]);
    }),
    'client_id[$ne] is an operator of the database': forms((form) => {
      if (form.delete('client_id[$ne]')) form.set('client_id', [FIRST_CLIENT]);
    }),
  }),
  ...fails({ '7.1-invalid_request-missing': /400 invalid_request.*token/ })({
    'an access token in Authorization replaces the client_secret': needingNoSecret(
      (request) => payloadOf(tokenOf(request)) !== undefined,
    ),
    'an assertion without a signature replaces the client_secret': needingNoSecret(({ body }) =>
      /client_assertion=[^&]+\.(&|$)/.test(body.toString()),
    ),
    'the subject of a certificate in a header replaces the client_secret': needingNoSecret(
      hasHeader('x-ssl-client-s-dn', /^CN=/),
    ),
    'a request without credentials gets a token of the first client': firstClientWhere(
      (form) => !form.has('client_id') && !form.has('client_secret'),
    ),
  }),
  ...fails({
    '7.1-invalid_request-missing': /400 invalid_request.*token/,
    '7.1-invalid_request-empty': /400 invalid_request.*token/,
  })({
    'an unknown client_id without a secret is the first client': firstClientWhere(
      (form) => isUnknown(form) && !form.get('client_secret')?.[0],
    ),
  }),
  ...fails({ '7.1-invalid_request-missing': /400 invalid_request.*unsupported_grant_type/ })({
    'a missing grant_type is unsupported_grant_type': defaulted('grant_type', 'none'),
  }),
  ...fails({ '7.1-invalid_request-duplicated': /400 invalid_request.*(200|token)/ })({
    'reads the first of two values': everyField((values) => values.slice(0, 1)),
    'reads the last of two different values': everyField((values) =>
      new Set(values).size > 1 ? values.slice(-1) : values,
    ),
    'joins two scopes': field('scope', (scopes) => (scopes.length > 1 ? [scopes.join(' ')] : scopes)),
  }),
  ...fails({ '7.1-invalid_request-malformed': /400 invalid_request.*200/ })({
    'a JSON body is read like a form': jsonAsForm(isJson),
    'a form that begins with a brace is read as JSON': jsonAsForm(
      (request) => !isJson(request) && /^\{./.test(request.body.toString()),
    ),
  }),
  ...failsWith5xx({ '7.1-invalid_request-malformed': /400 invalid_request.*500/ })({
    'a JSON body is 500': crashing(isJson),
  }),
  ...fails({ '7.1-invalid_request-empty': /400 invalid_request or 400 invalid_scope.*200/ })({
    'an empty scope is screenings.read': first('scope', (scope) => scope || 'screenings.read'),
  }),
  ...fails({ '7.1-invalid_request-empty': /400 invalid_request or 401 invalid_client.*200/ })({
    'a blank client_secret is not compared': uncompared((form, value) => {
      const [shown] = form.get('client_secret') ?? [];
      if (shown && shown.trim() === '') form.set('client_secret', [value]);
    }),
  }),
  ...fails({ '7.1-invalid_client-secret': /401 invalid_client.*400/ })({
    'a wrong secret is 400': tokenErrors('invalid_client', (answer) => ({ ...answer, status: 400 })),
  }),
  ...fails({ '7.1-invalid_client-secret': /401 invalid_client.*(200|token)/ })({
    'compares the first 16 characters of secrets': anySecret(
      (shown, real) => shown.slice(0, 16) === real.slice(0, 16),
    ),
    'compares client_secrets without their last two letters': anySecret(
      (shown, real) => shown.slice(0, -2) === real.slice(0, -2) && shown.length === real.length,
    ),
    'compares client_secrets without their first two letters': anySecret(
      (shown, real) => shown.slice(2) === real.slice(2) && shown.length === real.length,
    ),
    'accepts the client_id as client_secret': uncompared((form, value) => {
      const [id] = form.get('client_id') ?? [];
      if (id && form.get('client_secret')?.[0] === id) form.set('client_secret', [value]);
    }),
    'accepts a secret with a prefix': anySecret((shown, real) => shown.endsWith(real)),
    'a client_secret in Basic is not compared': uncomparedInBasic(),
    'an empty client_secret in Basic is not compared': uncomparedInBasic(/^$/),
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
    'concurrent requests of a client share the check of the first client_secret': authenticating(() => {
      const checks = new Map<string, Promise<Client | undefined>>();
      return (id, secret, real) => {
        const check = checks.get(id) ?? sleep(30).then(() => real(id, secret));
        checks.set(id, check);
        return check.finally(() => checks.delete(id));
      };
    }),
  }),
  ...failsFull({ '7.1-invalid_client-secret': /401 invalid_client.*(200|token)/ })({
    'accepts the client_secret of a tutorial': anySecret((shown) => shown === 'secret'),
    'normalizes a client_secret (NFKC)': single('client_secret', (secret) => secret.normalize('NFKC')),
    'trims blanks before a client_secret': single('client_secret', (secret) => secret.trimStart()),
    'client_secret is inserted into an SQL query': anySecret((shown) => /' OR '1'='1$/i.test(shown)),
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
    'compares client_ids case-insensitively': firstClientLike((id) => id.toLowerCase() === FIRST_CLIENT),
    'accepts a client_id with a suffix': firstClientLike((id) => id.startsWith(FIRST_CLIENT)),
    'normalizes a client_id (NFKC)': single('client_id', (id) => id.normalize('NFKC')),
    'trims blanks before a client_id': single('client_id', (id) => id.trimStart()),
    'client_id is inserted into an SQL query': single('client_id', (id) => id.replace(/' *--.*$/, '')),
    'looks a client_id up with LIKE': anyClient((id) => id === '%'),
  }),
  ...fails({ '7.1-invalid_client-challenge': /WWW-Authenticate/ })({
    'invalid_client lacks WWW-Authenticate': tokenErrors('invalid_client', header('www-authenticate')),
  }),
  ...failsLater({ '7.1-invalid_client-challenge': /WWW-Authenticate/ })({
    'an empty client_secret is invalid_client without WWW-Authenticate': answers(
      () => withHeader(invalidClient(), 'www-authenticate', undefined),
      (_, request) => fieldOf('client_secret')(request) === '',
    ),
  }),
  ...fails({ '7.1-unsupported_grant_type': /400 unsupported_grant_type.*(200|token)/ })({
    'ignores grant_type': single('grant_type', () => 'client_credentials'),
    'ignores a grant_type that is not the first parameter': forms((form) => {
      const isElsewhere = [...form.keys()].indexOf('grant_type') > 0 && form.get('grant_type')!.length === 1;
      if (isElsewhere) form.set('grant_type', ['client_credentials']);
    }),
    'decodes values of a form twice': everyField((values) => values.map(decodedAgain)),
    'decodes a form before it splits it': everyField((values) => values.map((value) => value.split('&')[0]!)),
    'a NUL ends a grant_type': first('grant_type', (type) => type.split('\0')[0]!),
    'an access token is a refresh token too': exchanging('refresh_token', 'refresh_token'),
    'an access token is an assertion too': exchanging(`${GRANT_URN}jwt-bearer`, 'assertion'),
    'an access token is exchanged for another one': exchanging(`${GRANT_URN}token-exchange`, 'subject_token'),
  }),
  ...fails({ '7.1-unsupported_grant_type': /400 unsupported_grant_type.*invalid_grant/ })({
    'another grant_type is invalid_grant': tokenErrors(
      'unsupported_grant_type',
      jsonBody((body) => ({ ...body, error: 'invalid_grant' })),
    ),
  }),
  ...fails({ '7.1-invalid_scope': /400 invalid_scope.*(200|token)/ })({
    'grants screenings.read for every scope': single('scope', () => 'screenings.read'),
    'grants all scopes for *': single('scope', (scope) => (scope === '*' ? 'screenings.read' : scope)),
    'reads the wildcard of a scope': single('scope', (scope) => scope.replace(/\.\*$/, '.read')),
    'reads the dot of a scope as any letter': single('scope', (scope) =>
      scope.replace(/^screenings.read$/, 'screenings.read'),
    ),
    'grants screenings.read for a scope that every object has': forms((form) => {
      if (isInherited(form, 'scope')) form.set('scope', ['screenings.read']);
    }),
    'splits scopes at commas': single('scope', (scope) => scope.replaceAll(',', ' ')),
  }),
  ...fails({ '7.1-scope-subset': /screenings.read|invalid_scope/ })({
    'grants an unknown scope beside screenings.read': answers((answer, request) => {
      const asked = fieldOf('scope')(request);
      if (answer.status !== 200 || !asked?.includes(' ')) return answer;
      return jsonBody((inner) => ({ ...inner, scope: asked }))(answer);
    }),
  }),
  ...fails({ '7.1-scope-subset': /400 invalid_scope.*invalid_request/ })({
    'an unknown scope beside screenings.read is invalid_request': refusing(
      '400 invalid_request',
      hasField('scope', / /),
    ),
  }),
  ...failsFull({ '7.1-unauthorized_client': /400 unauthorized_client.*200/ })({
    'a client that may not use the grant gets a token': everyClient({ grantTypes: ['client_credentials'] }),
  }),
  ...failsFull({ '7.1-unauthorized_client': /400 unauthorized_client.*401 "invalid_client"/ })({
    // The empty secret gets the first 401, so later refusals look like the lockout of a client.
    'a client without the grant is invalid_client, and so is an empty secret': answers((answer, request) => {
      const isEmpty = fieldOf('client_secret')(request) === '';
      return isEmpty || String(answer.body).includes('"unauthorized_client"') ? invalidClient() : answer;
    }),
  }),
  ...failsFull({ '7.1-invalid_grant': /400 invalid_grant.*invalid_client/ })({
    'a suspended grant is invalid_client': tokenErrors('invalid_grant', invalidClient),
  }),
  ...failsFull({ '7.1-invalid_grant': /400 invalid_grant.*200/ })({
    'a suspended grant gets a token': everyClient({ suspended: false }),
  }),
  ...failsFull({ '7.1-invalid_request-missing': /400 invalid_request.*200/ })({
    'the second client has a default scope': forms((form) => {
      const isOfSecond = form.get('client_id')?.[0]?.startsWith('second');
      if (isOfSecond && !form.has('scope')) form.set('scope', ['screenings.read']);
    }),
  }),
  ...fails({ '7.2-no-unprovoked-5xx': /no 5xx/ })({
    'a client_id beyond 16 bits is 500': crashing(hasField('client_id', /[^\0-\uffff]/u)),
    'Basic that is no Base64 is 500': crashing(isNoBase64),
    'Basic that is no Base64 is 500 after the form was checked': crashing(
      (request, form) => isNoBase64(request) && form.has('client_secret'),
    ),
    'Basic that is no UTF-8 is 500': crashing((request) => basicOf(request)?.includes('\ufffd') === true),
    'a client_secret beyond 4,096 octets is 500': crashing(hasField('client_secret', /.{4097}/s)),
    'a client_secret beyond ASCII is 500': crashing(hasField('client_secret', /[^\0-\x7f]/)),
    'a scope beyond 255 characters is 500': crashing(hasField('scope', /.{256}/s)),
    'a scope that is named twice is 500': crashing(hasField('scope', /^(\S+) \1$/)),
    'a wrong grant_type with a wrong scope is 500': crashing(
      (_, form) =>
        form.get('grant_type')?.[0] === 'password' &&
        form.get('scope')?.[0]?.includes('screenings') === false,
    ),
    'a field with the name of a prototype is 500': crashing(({ body }) => body.includes('__proto__')),
    'a field with the name of a method is 500': crashing(hasField('hasOwnProperty')),
    'a NUL in a scope is 500 where no field is repeated': crashing(
      (_, form) =>
        form.get('scope')?.[0]?.includes('\0') === true &&
        [...form.values()].every(({ length }) => length === 1),
    ),
    'a repeated field that is not required is 500': crashing(
      (_, form) => (form.get('resource')?.length ?? 0) > 1,
    ),
    'Basic without a colon is 500 after the grant_type was checked': crashing((request, form) => {
      const hasNoColon = basicOf(request)?.includes(':') === false;
      return hasNoColon && form.get('grant_type')?.[0] === 'client_credentials';
    }),
    'a JSON body of null is 500': crashing((request) => isJson(request) && String(request.body) === 'null'),
    'a value of JSON that is no text is 500': crashing((request) => {
      const grant = isJson(request) ? member(parseJson(request.body.toString()), 'grant_type') : undefined;
      return grant !== undefined && typeof grant !== 'string';
    }),
    'a body that is announced as JSON and is none is 500': crashing(
      (request) => isJson(request) && parseJson(request.body.toString()) === undefined,
    ),
    'a token request without Content-Type is 500': crashing(
      ({ method, headers }) => method === 'POST' && !headers['content-type'],
    ),
    'a mint with an X-Request-Id that is no UUID is 500': answers(
      () => oauthError(500, 'server_error'),
      ({ status }, request) =>
        isTokenRequest(request) && status === 200 && /^.{1,35}$/.test(request.headers['x-request-id'] ?? ''),
    ),
  }),
  ...failsWith5xx({ '7.1-invalid_request-empty': /400 invalid_request.*500/ })({
    'an unknown client_id with an empty secret is 500': crashing(
      (_, form) => isUnknown(form) && form.get('client_secret')?.[0] === '',
    ),
  }),
  ...failsWith5xx({ '7.1-invalid_client-secret': /401 invalid_client.*500/ })({
    'a client_secret beyond 72 octets is 500': crashing(hasField('client_secret', /.{73}/s)),
  }),
  ...failsWith5xx({ '7.1-unsupported_grant_type': /400 unsupported_grant_type.*500/ })({
    'a grant_type beyond Latin-1 is 500': crashing(hasField('grant_type', /[^\0-\xff]/)),
    'a grant_type that every object has is 500': crashing((_, form) => isInherited(form, 'grant_type')),
  }),
  ...failsWith5xx({ '7.1-invalid_client-id': /401 invalid_client.*500/ })({
    'a client_id that every object has is 500': crashing((_, form) => isInherited(form, 'client_id')),
  }),
];
