/** Section 5: paths, methods and headers that bypass authentication. */
import { jsonAnswer, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import {
  answering,
  answers,
  both,
  emptyPage,
  header,
  html,
  isScreenings,
  itemTexts,
  middleware,
  nextQuery,
  onPages,
  accepting,
  refusals,
  requests,
  tokenAnswers,
  withHeader,
  withoutBody,
} from '../run/alter.ts';
import { hasHeader, hasParameter } from '../run/conditions.ts';
import type { ServerOptions } from '../run/start.ts';
import { TENANTS } from '../run/provisioning.ts';
import { anonymous, authorizationOf, cookieOf, payloadOf, tokenOf } from './bearer.ts';
import { PAGES, REFUSALS, theme, type Fault } from './fault.ts';
import { formOf } from './forms.ts';
import { claiming } from './tenants.ts';

const { fails, failsFull } = theme([...PAGES, ...REFUSALS]);

/** Serves another spelling of the path, and an empty page where the usual path is answered with `status`. */
const spelled = (
  spelling: RegExp,
  status: number,
  where: (request: ServiceRequest) => boolean = () => true,
): ServerOptions =>
  middleware(() => async (request, next) => {
    const usual = request.path.replace(spelling, '/v1/tenants/$1/screenings');
    const answer = await next({ ...request, path: usual });
    return usual !== request.path && answer.status === status && where(request) ? emptyPage() : answer;
  });

const TRAILING_SLASH = /\/v1\/tenants\/([^/?]+)\/screenings\/(?=\?|$)/;

/** Replaces a tenant in the path that is like the token's tenant by the token's tenant. */
const tenantsLike = (isLike: (shown: string, own: string) => boolean): ServerOptions =>
  requests((request) => {
    const own = payloadOf(tokenOf(request))?.tenant_id;
    const path = request.path.replace(
      /(\/tenants\/)([^/?]+)(?=\/screenings(\?|$))/,
      (whole, before: string, shown: string) =>
        own !== undefined && isLike(shown.toLowerCase(), own) ? `${before}${own}` : whole,
    );
    return { ...request, path };
  });

/**
 * Also serves each screening that a page has shown by its id, where the collection is answered with 200 or `status`.
 * `keyOf` is what it looks up of the path.
 */
const byId = (status: number, keyOf = (path: string): string => path): ServerOptions =>
  middleware(() => {
    const shown = new Map<string, string>();
    return async (request, next) => {
      const single = /^(.*\/screenings)\/(\d+)$/.exec(request.path);
      const answer = await next(request);
      const path = request.path.split('?')[0]!;
      if (isScreenings(request) && answer.status === 200)
        for (const text of itemTexts(String(answer.body)))
          shown.set(keyOf(`${path}/${/^\{"id":(\d+)/.exec(text)?.[1]}`), text);
      const item = shown.get(keyOf(request.path));
      if (!single || item === undefined || request.method !== 'GET') return answer;
      const collection = await next({ ...request, path: `${single[1]}?${EMPTY}` });
      return [200, status].includes(collection.status) ? jsonAnswer(200, item) : collection;
    };
  });

/** Alters the pages of URLs that were requested with this method before. */
const afterwards = (method: string, alter: (page: ServiceAnswer) => ServiceAnswer): ServerOptions =>
  middleware(() => {
    const asked = new Set<string>();
    return async (request, next) => {
      if (request.method === method) asked.add(request.path);
      const answer = await next(request);
      return request.method === 'GET' && answer.status === 200 && asked.has(request.path)
        ? alter(answer)
        : answer;
    };
  });

const isFromHere = hasHeader('x-forwarded-for', /^127\.0\.0\.1$/);

const EMPTY = 'from=2026-03-01T00:00:00Z&to=2026-03-01T00:00:00Z';

export const bypasses: readonly Fault[] = [
  ...fails({ '5-missing': /401.*200/ })({
    'HEAD needs no token': anonymous(({ method }) => method === 'HEAD'),
    'OPTIONS is served like GET and needs no token': middleware(() => async (request, next) => {
      if (request.method !== 'OPTIONS' || !isScreenings(request)) return next(request);
      const answer = await next({ ...request, method: 'GET' });
      return authorizationOf(request) === '' ? emptyPage() : answer;
    }),
    'a preflight request is served like GET and needs no token': middleware(() => (request, next) => {
      const isPreflight = request.method === 'OPTIONS' && 'access-control-request-method' in request.headers;
      return isPreflight && isScreenings(request) ? emptyPage() : next(request);
    }),
    'a trailing slash bypasses authentication': spelled(TRAILING_SLASH, 401),
    'a path in capitals or percent-encoded letters bypasses authentication': spelled(
      /^\/+(?:%761|V1)\/(?:%74enants|TENANTS)\/([^/?]+)\/(?:%73creenings|SCREENINGS)(?=\?|$)/,
      401,
    ),
    'the path without its version bypasses authentication': spelled(
      /^\/tenants\/([^/?]+)\/screenings(?=\?|$)/,
      401,
    ),
    'X-HTTP-Method-Override makes a POST a GET without authentication': answering(
      emptyPage,
      hasHeader('x-http-method-override', /^GET$/),
    ),
    'X-HTTP-Method makes a POST a GET without authentication': answering(
      emptyPage,
      hasHeader('x-http-method', /^GET$/),
    ),
    '_method in a form makes a POST a GET without authentication': answering(
      emptyPage,
      (request) => formOf(request).get('_method')?.[0] === 'GET',
    ),
    'an unknown method is served like GET and needs no token': answering(
      emptyPage,
      ({ method }) => !/^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE)$/.test(method),
    ),
    'parameters of path segments bypass authentication': spelled(
      /^\/v1;[^/]*\/tenants;[^/]*\/([^;/?]+);[^/]*\/screenings;[^/?]*(?=\?|$)/,
      401,
    ),
    'X-Forwarded-For 127.0.0.1 bypasses authentication': anonymous(isFromHere),
    'X-Remote-Addr 127.0.0.1 bypasses authentication': anonymous(
      hasHeader('x-remote-addr', /^127\.0\.0\.1$/),
    ),
    'X-Webauth-User bypasses authentication': anonymous(hasHeader('x-webauth-user', /^primary-client$/)),
    'X-Debug bypasses authentication': anonymous(hasHeader('x-debug', /^true$/)),
    'X-Auth-Request-User bypasses authentication': anonymous(
      hasHeader('x-auth-request-user', /^primary-client$/),
    ),
    'X-Original-URL of a health check bypasses authentication': anonymous(
      hasHeader('x-original-url', /^\/health$/),
    ),
    'health checks are answered ok, and X-Forwarded-User bypasses authentication': both(
      anonymous(hasHeader('x-forwarded-user')),
      answering(() => html(200, 'ok'), hasHeader('user-agent', /HealthChecker/)),
    ),
    'X-HTTP-Method-Override is honoured, and PUT needs no token': both(
      answering(emptyPage, ({ method }) => method === 'PUT'),
      requests((request) => ({
        ...request,
        method: request.headers['x-http-method-override'] ?? request.method,
      })),
    ),
    'a screening by its id needs no token': byId(401),
    'a session cookie that a page set replaces the token': both(
      onPages(header('set-cookie', 'session=known; Path=/; HttpOnly')),
      anonymous((request) => cookieOf(request, 'session') === 'known'),
    ),
    'a session cookie that a token response set replaces the token': both(
      tokenAnswers(header('set-cookie', 'session=known; Path=/; HttpOnly')),
      anonymous((request) => cookieOf(request, 'session') === 'known'),
    ),
    'a next needs no token because it is signed': both(
      anonymous(hasParameter('signature', /^right$/)),
      nextQuery((query) => query.set('signature', 'right')),
    ),
  }),
  ...fails({ '5-missing': /401.*206/ })({
    'a part of a page needs no token': answers(
      () => ({ ...emptyPage(), status: 206 }),
      ({ status }, { headers }) => status === 401 && headers['range'] !== undefined,
    ),
  }),
  ...fails({ '2.4-items': /an array/ })({
    'a cache answers GET with the stored answer to HEAD': afterwards('HEAD', (page) => ({
      ...page,
      body: '',
    })),
  }),
  ...fails({ '4.2-success': /200.*204/ })({
    'a cache answers GET with the stored answer to OPTIONS': afterwards('OPTIONS', (page) => ({
      ...page,
      status: 204,
      body: '',
    })),
  }),
  ...fails({ '4.2-window': /on the page|only items in/ })({
    'a session cookie selects the page before it again': middleware(() => {
      let latest: string | undefined;
      return async (request, next) => {
        const isKnown = cookieOf(request, 'session') === 'known' && latest !== undefined;
        const answer = await next(isKnown ? { ...request, path: latest! } : request);
        if (!isScreenings(request) || answer.status !== 200) return answer;
        latest = request.path;
        return withHeader(answer, 'set-cookie', 'session=known; Path=/; HttpOnly');
      };
    }),
  }),
  ...fails({ '5-missing': /401.*304/ })({
    'If-None-Match is answered with 304 before authentication': both(
      onPages(header('etag', '"page"')),
      answering(() => withoutBody(304, [['etag', '"page"']]), hasHeader('if-none-match')),
    ),
    'If-Modified-Since is answered with 304 before authentication': refusals(
      [401],
      () => withoutBody(304),
      hasHeader('if-modified-since'),
    ),
  }),
  ...fails({ '5-tampered': /401 unauthenticated.*200/ })({
    'a trailing slash accepts every bearer': spelled(
      TRAILING_SLASH,
      401,
      (request) => authorizationOf(request) !== '',
    ),
  }),
  ...fails({ '5-forbidden-unknown': /no page at .*200/ })({
    'compares the tenant before it resolves dots in the path': spelled(
      /\/v1\/tenants\/([^/]+)\/\.\.\/[^/?]+\/screenings/,
      200,
    ),
    'compares the tenant before it removes parameters from dots in the path': spelled(
      /\/v1\/tenants\/([^/]+)\/\.\.;\/[^/?]+\/screenings/,
      200,
    ),
    'compares the tenant before it reads a backslash as a slash': spelled(
      /\/v1\/tenants\/([^/%]+)%5C\.\.%5C[^/?]+\/screenings/,
      200,
    ),
    'compares the tenant before it decodes the path twice': spelled(
      /\/v1\/tenants\/([^/%]+)%252F\.\.%252F[^/?]+\/screenings/,
      200,
    ),
    'the tenant * is the tenant of the token': tenantsLike((shown) => shown === '*'),
    'the tenant me is the tenant of the token': tenantsLike((shown) => shown === 'me'),
    'the client_id in the path is the tenant of the token': tenantsLike(
      (shown) => shown === 'primary-client',
    ),
    'compares the first and the last group of a tenant': tenantsLike((shown, own) =>
      [0, -1].every((place) => shown.split('-').at(place) === own.split('-').at(place)),
    ),
    'accepts a path tenant that contains the tenant of the token': tenantsLike((shown, own) =>
      shown.includes(own),
    ),
  }),
  ...fails({ '5-forbidden-unknown': /403 forbidden.*200/ })({
    'a trailing slash opens the path of an unknown tenant': {
      server: spelled(TRAILING_SLASH, 403),
      target: ({ clients: { secondTenant: _, ...clients }, ...target }) => ({ ...target, clients }),
    },
  }),
  ...failsFull({ '5-forbidden-unknown': /403 forbidden.*200/ })({
    'the path of a tenant that is not onboarded is an empty page for every tenant': accepting(
      'forbidden',
      ({ path }) => path.toLowerCase().includes(TENANTS.notOnboarded),
    ),
  }),
  ...failsFull({ '5-forbidden': /403.*(200|304)/ })({
    'a trailing slash opens the path of every tenant': spelled(TRAILING_SLASH, 403),
    'X-Forwarded-For 127.0.0.1 opens the path of every tenant': accepting('forbidden', isFromHere),
    'a firewall rejects X-Original-URL, and X-Forwarded-For 127.0.0.1 opens the path of every tenant': both(
      accepting('forbidden', isFromHere),
      answering(() => html(403, 'Forbidden'), hasHeader('x-original-url')),
    ),
    'If-None-Match is answered with 304 before the tenant is compared': refusals(
      [403],
      () => withoutBody(304),
      hasHeader('if-none-match'),
    ),
    'a screening by its id is served to every tenant': byId(403),
    'the tenant of a session cookie replaces that of the token': both(
      claiming((request) => cookieOf(request, 'session')),
      onPages((page, _, request) =>
        withHeader(page, 'set-cookie', `session=${payloadOf(tokenOf(request))?.tenant_id}; Path=/`),
      ),
    ),
    'a token of a tenant that is not onboarded opens every path': middleware(() => async (request, next) => {
      const answer = await next(request);
      const tenant = payloadOf(tokenOf(request))?.tenant_id;
      if (answer.status !== 403 || tenant === undefined || !isScreenings(request)) return answer;
      const path = request.path.replace(/tenants\/[^/]+/, `tenants/${tenant}`);
      return (await next({ ...request, path })).status === 404 ? emptyPage() : answer;
    }),
  }),
  ...failsFull({ '4.2-r3-one-tenant': /no screening of another tenant.*200/ })({
    'a screening by its id is looked up without its tenant': byId(200, (path) => path.replace(/.*\//, '')),
  }),
  ...fails({ '5-no-echo': /token/ })({
    'TRACE repeats the request': middleware(() => (request, next) => {
      if (request.method !== 'TRACE') return next(request);
      const lines = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}\r\n`);
      const body = `TRACE ${request.path}\r\n${lines.join('')}`;
      return { status: 200, headers: [['content-type', 'message/http']], body };
    }),
  }),
];
