/** Section 7.1: faults in the errors of the token endpoint. */
import { parseForm, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import {
  authenticating,
  both,
  intercepting,
  invalidClient,
  isTokenRequest,
  jsonBody,
  middleware,
  oauthError,
  requests,
  tokenErrors,
  withHeader,
} from '../run/alter.ts';
import type { Client } from '../parts.ts';
import type { ServerOptions } from '../run/start.ts';
import { claimFaults, fullFaults, tokenRefusalFaults, tripping, type Fault } from './fault.ts';

type Form = Map<string, readonly string[]>;
type Values = readonly string[];

export const formOf = (request: ServiceRequest): Form => new Map(parseForm(request.body.toString()) ?? []);

export const withForm = (
  request: ServiceRequest,
  form: Iterable<readonly [string, Values]>,
): ServiceRequest => {
  const pairs = [...form].flatMap(([name, values]) => values.map((value): [string, string] => [name, value]));
  return { ...request, body: Buffer.from(new URLSearchParams(pairs).toString()) };
};

export const forms = (change: (form: Form) => void): ServerOptions =>
  requests((request) => {
    const isForm = request.headers['content-type']?.includes('urlencoded');
    if (!isTokenRequest(request) || request.method !== 'POST' || !isForm) return request;
    const form = formOf(request);
    change(form);
    return withForm(request, form);
  });

/** Reads other values for one field; `read` gets an empty array if the field is absent. */
const field = (name: string, read: (values: Values) => Values): ServerOptions =>
  forms((form) => {
    const values = read(form.get(name) ?? []);
    if (values.length > 0) form.set(name, values);
  });

export const single = (name: string, read: (text: string) => string): ServerOptions =>
  field(name, (values) => (values.length === 1 ? values.map(read) : values));

/** Where `read` changes the first value of a field, it replaces all values. */
export const first = (name: string, read: (text: string) => string): ServerOptions =>
  field(name, (values) => {
    const [shown = ''] = values;
    return values.length > 0 && read(shown) !== shown ? [read(shown)] : values;
  });

/** Also accepts credentials that are like those of an earlier successful request. */
const alike = (
  isLike: (
    shown: readonly [id: string, secret: string],
    right: readonly [id: string, secret: string],
  ) => boolean,
): ServerOptions =>
  authenticating(() => {
    const rights = new Map<string, string>();
    return async (id, secret, real) => {
      const client = await real(id, secret);
      if (client) rights.set(id, secret);
      const right = client ? undefined : [...rights].find((known) => isLike([id, secret], known));
      return right ? real(...right) : client;
    };
  });
export const anySecret = (isLike: (shown: string, right: string) => boolean): ServerOptions =>
  alike(([id, secret], [rightId, right]) => id === rightId && isLike(secret, right));
export const anyClient = (isLike: (shown: string, right: string) => boolean): ServerOptions =>
  alike(([id], [right]) => id !== right && isLike(id, right));

/** In place of a client_secret that is not compared. */
const UNCOMPARED = 'not compared';
/** Takes the client_secret of the forms that `change` gives the value UNCOMPARED for right. */
export const uncompared = (change: (form: Form, value: string) => void): ServerOptions =>
  both(
    anySecret((shown) => shown === UNCOMPARED),
    forms((form) => change(form, UNCOMPARED)),
  );

export const insteadOfToken = (
  answer: () => ServiceAnswer,
  where: (form: Form, request: ServiceRequest) => boolean,
): ServerOptions =>
  intercepting(answer, (request) => isTokenRequest(request) && where(formOf(request), request));

const recoded = (error: string, to: string): ServerOptions =>
  tokenErrors(
    [error],
    jsonBody((body) => ({ ...body, error: to })),
  );

const ALL = [
  'invalid_request',
  'invalid_client',
  'unauthorized_client',
  'invalid_grant',
  'unsupported_grant_type',
  'invalid_scope',
];
const SHAPE = { '7.1-body': /JSON with error and error_description/ };

export const tokenErrorFaults: readonly Fault[] = [
  ...tokenRefusalFaults({ '7.1-body': /JSON with error and error_description.*no JSON/ })({
    'token errors as plain text': tokenErrors(ALL, (answer) =>
      withHeader({ ...answer, body: 'refused' }, 'content-type', 'text/plain'),
    ),
  }),
  ...tripping(SHAPE)({
    'token errors without error_description': tokenErrors(
      ALL,
      jsonBody(({ error }) => ({ error })),
    ),
  }),
  ...tokenRefusalFaults(SHAPE)({
    'token errors one level down, in problem details': tokenErrors(
      ALL,
      jsonBody((inner) => ({ status: 400, detail: inner })),
    ),
  }),
  ...tokenRefusalFaults({
    '7.1-body': /JSON with error and error_description.*<html/,
    '7.1-invalid_client-secret': /401 invalid_client/,
  })({
    'the error page of a gateway for a wrong secret': tokenErrors(['invalid_client'], (answer) => ({
      ...answer,
      body: '<html>401</html>',
    })),
  }),
  ...tripping({ '7.1-invalid_request-missing': /400 invalid_request.*200/ })({
    'a missing scope is the default scope': absent('scope', 'screenings.read'),
  }),
  ...tripping({ '7.1-invalid_request-missing': /400 invalid_request.*unsupported_grant_type/ })({
    'a missing grant_type is unsupported': absent('grant_type', 'none'),
  }),
  ...tripping({ '7.1-invalid_request-missing': /400 invalid_request.*invalid_client/ })({
    'a missing client_secret is an invalid client': absent('client_secret', 'none'),
  }),
  ...tripping({ '7.1-invalid_request-duplicated': /400 invalid_request.*200/ })({
    'the first of two values counts': everyField((values) => values.slice(0, 1)),
    'the last of two values counts where they differ': everyField((values) =>
      new Set(values).size > 1 ? values.slice(-1) : values,
    ),
    'two scopes are joined': field('scope', (scopes) => (scopes.length > 1 ? [scopes.join(' ')] : scopes)),
  }),
  ...tripping({ '7.1-invalid_request-malformed': /400 invalid_request.*200/ })({
    'a JSON body is read like a form': jsonAsForm(isJson),
    'a form that begins with a brace is read as JSON': jsonAsForm(
      (request) => !isJson(request) && /^\{./.test(request.body.toString()),
    ),
  }),
  ...tripping({
    '7.1-invalid_request-malformed': /400 invalid_request.*500/,
    '7.2-no-unprovoked-5xx': /no 5xx/,
  })({
    'a JSON body is a crash: 500': insteadOfToken(
      () => oauthError(500, 'server_error'),
      (_, request) => isJson(request),
    ),
  }),
  ...tokenRefusalFaults({ '7.1-invalid_client-secret': /401 invalid_client.*400/ })({
    'a wrong secret is 400': tokenErrors(['invalid_client'], (answer) => ({ ...answer, status: 400 })),
  }),
  ...tokenRefusalFaults({ '7.1-invalid_client-secret': /401 invalid_client.*access_denied/ })({
    'a wrong secret is access_denied': recoded('invalid_client', 'access_denied'),
  }),
  ...tripping({ '7.1-invalid_client-id': /401 invalid_client.*200/ })({
    'client_ids compared without regard to case': inAnyCase('client_id', 'primary-client'),
    'a prefix of the client_id will do': oneOf('client_id', 'primary-client', (shown, real, all) =>
      all[0]!.startsWith(real),
    ),
  }),
  ...tripping({ '7.1-unsupported_grant_type': /400 unsupported_grant_type.*200/ })({
    'grant types compared without regard to case': inAnyCase('grant_type', 'client_credentials'),
    'grant types compared by their beginning': oneOf('grant_type', 'client_credentials', (shown, real) =>
      shown.startsWith(real),
    ),
  }),
  ...tokenRefusalFaults({ '7.1-unsupported_grant_type': /400 unsupported_grant_type.*200/ })({
    'grant_type is not looked at': single('grant_type', () => 'client_credentials'),
  }),
  ...tripping({ '7.1-unsupported_grant_type': /400 unsupported_grant_type.*invalid_grant/ })({
    'another grant_type is invalid_grant': recoded('unsupported_grant_type', 'invalid_grant'),
  }),
  ...tripping({ '7.1-invalid_scope': /400 invalid_scope.*200/ })({
    'scopes compared without regard to case': inAnyCase('scope', 'screenings.read'),
    'scopes compared by their beginning': oneOf(
      'scope',
      'screenings.read',
      (shown, real) => /^\S+$/.test(shown) && shown.startsWith(real),
    ),
  }),
  ...tripping(
    { '7.1-invalid_scope': /400 invalid_scope.*200/ },
    { mayTrip: ['7.1-invalid_request-empty', '2.1-scope', '2.2-scope'] },
  )({ 'an unknown scope is granted nothing, with a token': single('scope', () => 'screenings.read') }),
  ...tripping({ '7.1-invalid_scope': /400 invalid_scope.*invalid_request/ })({
    'an unknown scope is invalid_request': recoded('invalid_scope', 'invalid_request'),
  }),
  ...tripping({ '7.1-invalid_client-secret': /401 invalid_client.*200/ })({
    'secrets compared by their first sixteen characters': anySecret(
      (shown, real) => shown.slice(0, 16) === real.slice(0, 16),
    ),
    'secrets compared without regard to case': anySecret(
      (shown, real) => shown.toLowerCase() === real.toLowerCase(),
    ),
    'any secret will do': anySecret(() => true),
  }),
  ...tripping({
    '7.1-invalid_client-secret': /401 invalid_client.*200/,
    '7.1-invalid_client-id': /401 invalid_client.*200/,
  })({
    'what was refused before is taken for checked': middleware(() => {
      const checked = new Set<string>();
      let token: ServiceAnswer | undefined;
      return async (request, next) => {
        const answer = await next(request);
        if (!isTokenRequest(request)) return answer;
        if (answer.status === 200) token = answer;
        const form = request.body.toString();
        if (answer.status === 401 && checked.has(form) && token) return token;
        if (answer.status === 401) checked.add(form);
        return answer;
      };
    }),
  }),
  ...tokenRefusalFaults({ '7.1-invalid_client-id': /401 invalid_client.*unauthorized_client/ })({
    'an unknown client_id is unauthorized_client': unknownClient(() =>
      oauthError(400, 'unauthorized_client'),
    ),
  }),
  ...tripping({ '7.1-invalid_client-challenge': /WWW-Authenticate/ })({
    'invalid_client without WWW-Authenticate': tokenErrors(['invalid_client'], (answer) =>
      withHeader(answer, 'www-authenticate', undefined),
    ),
    'invalid_client with an empty WWW-Authenticate': tokenErrors(['invalid_client'], (answer) =>
      withHeader(answer, 'www-authenticate', ''),
    ),
  }),
  ...claimFaults({ '7.1-scope-subset': /screenings.read|invalid_scope/ })({
    'an unknown scope in addition to the right one is granted too': middleware(
      () => async (request, next) => {
        const answer = await next(request);
        const [asked] = isTokenRequest(request) ? (formOf(request).get('scope') ?? []) : [];
        if (answer.status !== 200 || !asked?.includes(' ')) return answer;
        return jsonBody((inner) => ({ ...inner, scope: asked }))(answer);
      },
    ),
  }),
  ...tripping({ '7.1-scope-subset': /invalid_scope/ })({
    'an unknown scope in addition to the right one is invalid_request': insteadOfToken(
      () => oauthError(400, 'invalid_request'),
      (form) => {
        const [scope = '', ...others] = form.get('scope') ?? [];
        return others.length === 0 && scope.includes(' ') && scope.includes('screenings.read');
      },
    ),
  }),
  ...fullFaults({ '7.1-unauthorized_client': /400 unauthorized_client.*200/ })({
    'a client that may not use the grant gets a token': everyClient({ grantTypes: ['client_credentials'] }),
  }),
  ...fullFaults({ '7.1-unauthorized_client': /400 unauthorized_client.*403/ })({
    'a client that may not use the grant is 403': tokenErrors(['unauthorized_client'], (answer) => ({
      ...answer,
      status: 403,
    })),
  }),
  ...fullFaults({ '7.1-unauthorized_client': /400 unauthorized_client.*401 "invalid_client"/ })({
    // The empty secret gets the first 401, so later refusals look like the lockout of a client.
    'a client without the grant is invalid_client, and so is an empty secret': middleware(
      () => async (request, next) => {
        const answer = await next(request);
        const isRefused =
          isTokenRequest(request) &&
          (answer.body?.toString().includes('"unauthorized_client"') ||
            formOf(request).get('client_secret')?.[0] === '');
        return isRefused ? invalidClient() : answer;
      },
    ),
  }),
  ...fullFaults({ '7.1-invalid_grant': /400 invalid_grant.*invalid_client/ })({
    'a suspended grant is invalid_client': tokenErrors(['invalid_grant'], invalidClient),
  }),
  ...fullFaults({ '7.1-invalid_grant': /400 invalid_grant.*200/ })({
    'a suspended grant gets a token': everyClient({ suspended: false }),
  }),
];

function jsonAsForm(isRead: (request: ServiceRequest) => boolean): ServerOptions {
  return requests((request) => {
    if (!isTokenRequest(request) || !isRead(request)) return request;
    const fields = JSON.parse(request.body.toString()) as Record<string, string>;
    const headers = { ...request.headers, 'content-type': 'application/x-www-form-urlencoded' };
    return { ...request, headers, body: Buffer.from(new URLSearchParams(fields).toString()) };
  });
}

function isJson({ headers }: ServiceRequest): boolean {
  return headers['content-type']?.includes('json') === true;
}

function absent(name: string, value: string): ServerOptions {
  return field(name, (values) => (values.length === 0 ? [value] : values));
}

function everyField(read: (values: Values) => Values): ServerOptions {
  return forms((form) => form.forEach((values, name) => form.set(name, read(values))));
}

function everyClient(changes: Partial<Client>): ServerOptions {
  return authenticating(() => async (id, secret, real) => {
    const client = await real(id, secret);
    return client && { ...client, ...changes };
  });
}

function inAnyCase(name: string, right: string): ServerOptions {
  return oneOf(name, right, (shown, real) => shown.toLowerCase() === real);
}

function oneOf(
  name: string,
  real: string,
  isLike: (shown: string, real: string, all: Values) => boolean,
): ServerOptions {
  return field(name, (values) => values.map((shown) => (isLike(shown, real, values) ? real : shown)));
}

function unknownClient(answer: () => ServiceAnswer): ServerOptions {
  const known = /^(primary|secondTenant|notOnboarded|unauthorized|invalidGrant|scratch)-client$/;
  return insteadOfToken(answer, (form) => {
    const [id] = form.get('client_id') ?? [];
    const complete = ['grant_type', 'client_secret', 'scope'].every((name) => form.get(name)?.length === 1);
    return complete && id !== undefined && !known.test(id);
  });
}
