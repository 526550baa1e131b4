/** Section 5: paths, methods and headers that bypass authentication. */
import type { ServiceRequest } from '../http/http.ts';
import {
  answering,
  authorized,
  both,
  emptyPage,
  isScreenings,
  middleware,
  nextQuery,
  onPages,
  accepting,
  withHeader,
} from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { authorizationOf, payloadOf, hmacKey } from './bearer.ts';
import { fullFaults, pageFaults, tripping, type Fault } from './fault.ts';

/** Accepts another spelling of the path, and answers an empty page where the usual path answers `status`. */
const bypass = (spelling: RegExp, status: number): ServerOptions =>
  middleware(() => async (request, next) => {
    const usual = request.path.replace(spelling, '/v1/tenants/$1/screenings');
    const answer = await next({ ...request, path: usual });
    return usual !== request.path && answer.status === status ? emptyPage() : answer;
  });

const TRAILING_SLASH = /\/v1\/tenants\/([^/?]+)\/screenings\/(?=\?|$)/;
const DOUBLED_SLASH = /\/v1\/\/tenants\/([^/?]+)\/screenings(?=\?|$)/;
const SUFFIX = /\/v1\/tenants\/([^/?]+)\/screenings\.json(?=\?|$)/;

const BRACES = /\/v1\/tenants\/%7B([^/?]+)%7D\/screenings(?=\?|$)/i;

const anonymous = (isServed: (request: ServiceRequest) => boolean): ServerOptions =>
  accepting('unauthenticated', (_, request) => isServed(request));

const methodsOpen = (...methods: string[]): ServerOptions =>
  middleware(() => async (request, next) => {
    if (!methods.includes(request.method) || !isScreenings(request)) return next(request);
    const answer = await next({ ...request, method: 'GET' });
    return authorizationOf(request) === '' ? emptyPage() : answer;
  });

export const bypasses: readonly Fault[] = [
  ...tripping(
    { '5-missing': /401.*200/ },
    { mayTrip: ['5-tampered'] },
  )({
    'HEAD asks for no token': anonymous(({ method }) => method === 'HEAD'),
    'OPTIONS asks for no token, and any method is served': middleware(() => async (request, next) => {
      if (request.method !== 'OPTIONS' || !isScreenings(request)) return next(request);
      const answer = await next({ ...request, method: 'GET' });
      return answer.status === 401 ? emptyPage() : answer;
    }),
    'POST asks for no token, and is served like GET': methodsOpen('POST'),
    'PUT and DELETE ask for no token, and are served like GET': methodsOpen('PUT', 'DELETE'),
    'a slash after the path asks for no token': bypass(TRAILING_SLASH, 401),
    'a path that does not begin with /v1/ asks for no token': bypass(
      /^\/+(?:%761|V1)\/(?:%74enants|TENANTS)\/([^/?]+)\/(?:%73creenings|SCREENINGS)(?=\?|$)/,
      401,
    ),
    'two slashes before the version ask for no token': bypass(
      /^\/\/v1\/tenants\/([^/?]+)\/screenings(?=\?|$)/,
      401,
    ),
    'requests that name localhost as the forwarded host need no token': anonymous(
      ({ headers }) => headers['x-forwarded-host'] === 'localhost',
    ),
    'a doubled slash asks for no token': bypass(DOUBLED_SLASH, 401),
    'a tenant in braces asks for no token': bypass(BRACES, 401),
    'a path that ends in .json asks for no token': bypass(SUFFIX, 401),
    'a cookie that a page has set stands in for the token': both(
      onPages((page) => withHeader(page, 'set-cookie', 'session=known; Path=/; HttpOnly')),
      anonymous(({ headers }) => /session=known/.test(headers['cookie'] ?? '')),
    ),
    'requests from this machine need no token, as X-Forwarded-For has it': anonymous(
      ({ headers }) => headers['x-forwarded-for'] === '127.0.0.1',
    ),
  }),
  ...tripping(
    { '5-missing': /401.*304/ },
    { mayTrip: ['5-forbidden'] },
  )({
    'a page that has not changed is told so without a token': both(
      onPages((page) => withHeader(page, 'etag', '"page"')),
      answering(
        () => ({ status: 304, headers: [['etag', '"page"']], body: '' }),
        (_, { headers }) => headers['if-none-match'] !== undefined,
      ),
    ),
  }),
  ...pageFaults({ '5-missing': /401.*200/ })({
    'a next needs no token, since it is signed': both(
      accepting('unauthenticated', (query) => query.get('signature') === 'right'),
      nextQuery((query) => query.set('signature', 'right')),
    ),
  }),
  ...tripping({ '5-forbidden-unknown': /no page at .*200/ })({
    'a path is compared before its dots are resolved': middleware(() => async (request, next) => {
      const own = request.path.replace(/(\/tenants\/[^/]+)\/\.\.\/[^/?]+/, '$1');
      const answer = await next({ ...request, path: own });
      return own !== request.path && answer.status === 200 ? emptyPage() : answer;
    }),
  }),
  ...fullFaults({ '5-forbidden': /403.*(200|304)/ })({
    'a slash after the path opens every tenant': bypass(TRAILING_SLASH, 403),
    'If-None-Match is compared before the tenant': middleware(() => async (request, next) => {
      const answer = await next(request);
      const isKnown = answer.status === 403 && request.headers['if-none-match'] !== undefined;
      return isKnown && isScreenings(request) ? { status: 304, headers: [], body: '' } : answer;
    }),
    'a token of a tenant that is not onboarded opens every path': middleware(() => async (request, next) => {
      const answer = await next(request);
      const { tenant_id } = payloadOf(authorizationOf(request).replace(/^Bearer /, '')) ?? {};
      if (answer.status !== 403 || tenant_id === undefined || !isScreenings(request)) return answer;
      const path = request.path.replace(/tenants\/[^/]+/, `tenants/${tenant_id}`);
      return (await next({ ...request, path })).status === 404 ? emptyPage() : answer;
    }),
  }),
  ...tripping({ '5-scheme': /401.*200/ })({
    'the scheme is taken for one of six letters': authorized(
      (value) => `Bearer ${value.slice('Bearer '.length)}`,
    ),
    'text after the token is left out': authorized((value) => value.split(' ').slice(0, 2).join(' ')),
  }),
  ...tripping({ '5-tampered': /401.*200/ })({
    'letters that are not of base64url are left out of the signature': authorized((value) =>
      value.replace(/[^\w.~+/= -]/g, ''),
    ),
  }),
  ...tripping({ '5-no-echo': /token/ })({
    'TRACE repeats the request': middleware(() => (request, next) => {
      if (request.method !== 'TRACE') return next(request);
      const lines = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}\r\n`);
      const body = `TRACE ${request.path}\r\n${lines.join('')}`;
      return { status: 200, headers: [['content-type', 'message/http']], body };
    }),
  }),
  ...tripping({ '5-forged': /401 unauthenticated.*200/ })({
    'tokens signed with the key "password" are believed': hmacKey(() => 'password'),
    'a symmetric key in the header of the token is believed': hmacKey(({ jwk }) =>
      jwk?.k === undefined ? undefined : Buffer.from(jwk.k, 'base64url'),
    ),
  }),
];
