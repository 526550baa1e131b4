/** Section 5: doors that stand open beside the one that is watched. */
import { createHmac } from 'node:crypto';
import { jsonAnswer, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import { isScreenings, middleware, requests, withHeader } from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { headerOf, payloadOf, verifying } from './authentication.ts';
import type { Fault } from './fault.ts';

const emptyPage = (): ServiceAnswer => jsonAnswer(200, { items: [], links: {} });

/** Another spelling of the path is the same path, and its refusals of one status are served. */
const door = (spelling: RegExp, status: number): ServerOptions =>
  middleware(() => async (request, next) => {
    const usual = request.path.replace(spelling, '/v1/tenants/$1/screenings');
    const answer = await next({ ...request, path: usual });
    return usual !== request.path && answer.status === status ? emptyPage() : answer;
  });

const TRAILING_SLASH = /\/v1\/tenants\/([^/?]+)\/screenings\/(?=\?|$)/;
const DOUBLED_SLASH = /\/v1\/\/tenants\/([^/?]+)\/screenings(?=\?|$)/;
const SUFFIX = /\/v1\/tenants\/([^/?]+)\/screenings\.json(?=\?|$)/;

/** A request that is served where it stands in the way of no token. */
const instead401 = (isServed: (request: ServiceRequest) => boolean): ServerOptions =>
  middleware(() => async (request, next) => {
    const answer = await next(request);
    return isScreenings(request) && answer.status === 401 && isServed(request) ? emptyPage() : answer;
  });

const authorized = (change: (value: string) => string): ServerOptions =>
  requests((request) => {
    const { authorization } = request.headers;
    return authorization === undefined
      ? request
      : { ...request, headers: { ...request.headers, authorization: change(authorization) } };
  });

/** Tokens that are signed with a secret that anybody knows. */
const believing = (
  secretOf: (header: { jwk?: { k?: string } }) => string | Buffer | undefined,
): ServerOptions =>
  verifying(() => async (token, nowSeconds, real) => {
    const [head, body, signature] = token.split('.');
    const secret = secretOf(headerOf(token) as { jwk?: { k?: string } });
    const isRight =
      secret !== undefined &&
      createHmac('sha256', secret).update(`${head}.${body}`).digest('base64url') === signature;
    return isRight ? payloadOf(token) : real(token, nowSeconds);
  });

const OPEN = { '5-missing': /401.*200/ } as const;
const WRONG_TENANT = { '5-forbidden': /403.*200/ } as const;

export const doors: readonly Fault[] = [
  {
    name: 'HEAD asks for no token',
    trips: OPEN,
    server: instead401(({ method }) => method === 'HEAD'),
  },
  { name: 'a slash after the path asks for no token', trips: OPEN, server: door(TRAILING_SLASH, 401) },
  { name: 'a doubled slash asks for no token', trips: OPEN, server: door(DOUBLED_SLASH, 401) },
  { name: 'a path that ends in .json asks for no token', trips: OPEN, server: door(SUFFIX, 401) },
  {
    name: 'a slash after the path opens every tenant',
    trips: WRONG_TENANT,
    bare: false,
    server: door(TRAILING_SLASH, 403),
  },
  {
    name: 'a cookie that a page has set stands in for the token',
    trips: OPEN,
    server: middleware(() => async (request, next) => {
      const answer = await next(request);
      if (!isScreenings(request)) return answer;
      if (answer.status === 401 && /session=known/.test(request.headers['cookie'] ?? '')) return emptyPage();
      return answer.status === 200
        ? withHeader(answer, 'set-cookie', 'session=known; Path=/; HttpOnly')
        : answer;
    }),
  },
  {
    name: 'a page that has not changed is told so without a token',
    trips: { '5-missing': /401.*304/ },
    server: middleware(() => async (request, next) => {
      if (isScreenings(request) && request.headers['if-none-match'] !== undefined)
        return { status: 304, headers: [['etag', '"page"']], body: '' };
      const answer = await next(request);
      return isScreenings(request) && answer.status === 200 ? withHeader(answer, 'etag', '"page"') : answer;
    }),
  },
  {
    name: 'requests from this machine need no token, as X-Forwarded-For has it',
    trips: OPEN,
    server: instead401(({ headers }) => headers['x-forwarded-for'] === '127.0.0.1'),
  },
  {
    name: 'a token of a tenant that is not onboarded opens every path',
    trips: WRONG_TENANT,
    bare: false,
    server: middleware(() => async (request, next) => {
      const answer = await next(request);
      const { tenant_id } = payloadOf((request.headers['authorization'] ?? '').replace(/^Bearer /, '')) ?? {};
      const own = answer.status === 403 && tenant_id !== undefined;
      const shown = await next({
        ...request,
        path: request.path.replace(/tenants\/[^/]+/, `tenants/${tenant_id}`),
      });
      return own && isScreenings(request) && shown.status === 404 ? emptyPage() : answer;
    }),
  },
  {
    name: 'the scheme is taken for one of six letters',
    trips: { '5-scheme': /401.*200/ },
    server: authorized((value) => `Bearer ${value.slice('Bearer '.length)}`),
  },
  {
    name: 'text after the token is left out',
    trips: { '5-scheme': /401.*200/ },
    server: authorized((value) => value.split(' ').slice(0, 2).join(' ')),
  },
  {
    name: 'letters that are not of base64url are left out of the signature',
    trips: { '5-tampered': /401.*200/ },
    server: authorized((value) => value.replace(/[^\w.~+/= -]/g, '')),
  },
  {
    name: 'TRACE repeats the request',
    trips: { '5-no-echo': /token/ },
    server: middleware(() => (request, next) => {
      if (request.method !== 'TRACE') return next(request);
      const lines = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}\r\n`);
      return {
        status: 200,
        headers: [['content-type', 'message/http']],
        body: `TRACE ${request.path}\r\n${lines.join('')}`,
      };
    }),
  },
  {
    name: 'tokens signed with the key "password" are believed',
    trips: { '5-forged': /401 unauthenticated.*200/ },
    server: believing(() => 'password'),
  },
  {
    name: 'a symmetric key in the header of the token is believed',
    trips: { '5-forged': /401 unauthenticated.*200/ },
    server: believing(({ jwk }) => (jwk?.k === undefined ? undefined : Buffer.from(jwk.k, 'base64url'))),
  },
];
