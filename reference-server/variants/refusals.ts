/** Refusals in every shape and with every code that the specification leaves open. */
import type { Target } from '../../engine/target/target.ts';
import {
  answers,
  instead,
  isScreenings,
  isTokenRequest,
  middleware,
  queryOf,
  refusals as refusalsOf,
  withHeader,
} from '../run/alter.ts';
import { parseForm } from '../http/form.ts';
import { jsonAnswer, type ServiceAnswer } from '../http/http.ts';
import type { ServerOptions } from '../run/start.ts';
import type { Variant } from './variant.ts';

const ALL = [400, 401, 403, 404, 429, 500, 503];

/** Another shape of error body; the target file then says nothing of the code's place, or says it. */
const shaped = (
  name: string,
  shape: (code: string, status: number) => unknown,
  pointer?: string,
  type = 'application/json',
): Variant => ({
  name,
  server: refusalsOf(ALL, (answer) => {
    const { code } = JSON.parse(String(answer.body)) as { code: string };
    const body = JSON.stringify(shape(code, answer.status));
    return withHeader({ ...answer, body }, 'content-type', type);
  }),
  target: (target): Target => ({ ...target, errorCodePointer: pointer }),
});

const refusal = (code: string, status = 400): ServiceAnswer => jsonAnswer(status, { code });
const where = (matches: (query: URLSearchParams) => boolean, answer: () => ServiceAnswer): ServerOptions =>
  middleware(() => async (request, next) => {
    const given = await next(request);
    // Unauthorized requests are rejected first.
    return isScreenings(request) && [200, 400].includes(given.status) && matches(queryOf(request))
      ? answer()
      : given;
  });

const either =
  (matches: (text: string) => boolean) =>
  (query: URLSearchParams): boolean =>
    ['from', 'to'].some((name) => matches(query.get(name) ?? '2026-03-01T00:00:00Z'));

export const bodies: readonly Variant[] = [
  shaped('errors as {"error":{"code"}}, the place unnamed', (code) => ({ error: { code, details: [] } })),
];
export const lists: readonly Variant[] = [
  shaped(
    'errors as {"errors":[{"code"}]}, the place named',
    (code) => ({ errors: [{ code, field: 'x' }] }),
    '/errors/0/code',
  ),
];
export const problems: readonly Variant[] = [
  shaped(
    'problem details with a general code beside the particular one',
    (code, status) => ({
      type: 'about:blank',
      title: 'Refused',
      status,
      general: 'invalid_request',
      errorCode: code,
    }),
    undefined,
    'application/problem+json; charset=utf-8',
  ),
];
export const texts: readonly Variant[] = [
  shaped('errors as a JSON array of one object', (code) => [{ message: 'refused', code }]),
];

export const codes: readonly Variant[] = [
  {
    name: 'a missing from or to is invalid_time_range',
    server: where(
      (query) => !query.has('from') || !query.has('to'),
      () => refusal('invalid_time_range'),
    ),
  },
  {
    name: 'an unknown tenant is 404 not_found, and so is another than the own in upper case',
    server: middleware(() => async (request, next) => {
      const answer = await next(request);
      const known = /7d0c5a52|1b9e2c40|42f6d0aa|c3a8e6f4/.test(request.path);
      return isScreenings(request) && answer.status === 403 && !known ? refusal('not_found', 404) : answer;
    }),
  },
  {
    name: 'a pageSize of 1.5, +5, 1e2 or nothing is page_size_out_of_range',
    server: where(
      (query) => /^(1\.5|10\.0|\+5|1e2|)$/.test(query.get('pageSize') ?? '1'),
      () => refusal('page_size_out_of_range'),
    ),
  },
  {
    name: 'a pageSize beyond 64 bits is invalid_request',
    server: where(
      (query) => /^\d{19,}$/.test(query.get('pageSize') ?? ''),
      () => refusal('invalid_request'),
    ),
  },
  {
    name: 'an empty or undecodable from or to is invalid_request',
    server: middleware(() => async (request, next) => {
      const answer = await next(request);
      const odd = /[?&](from|to)=(&|$)|%(?![0-9a-f]{2})/i.test(request.path);
      return isScreenings(request) && answer.status === 400 && odd ? refusal('invalid_request') : answer;
    }),
  },
  {
    name: 'a negative from_id is invalid_request',
    server: where(
      (query) => (query.get('from_id') ?? '').startsWith('-'),
      () => refusal('invalid_request'),
    ),
  },
];

export const dates: readonly Variant[] = [
  {
    name: 'leap seconds, -00:00, offsets beyond 18 hours and the year 0000 are refused',
    server: where(
      either((text) => /:60(\.\d+)?(Z|[+-])|-00:00$|[+-](1[89]|2\d):\d\d$|^0000/i.test(text)),
      () => refusal('invalid_time_range'),
    ),
  },
  {
    name: 'a space for the T is accepted',
    server: middleware(
      () => (request, next) =>
        next({ ...request, path: request.path.replace(/(\d{4}-\d\d-\d\d)(?:%20|\+)(?=\d\d%3A)/gi, '$1T') }),
    ),
  },
];

export const tokenEndpoint: readonly Variant[] = [
  {
    name: 'a body that is no form is 415 with a page of HTML',
    server: middleware(
      () => (request, next) =>
        isTokenRequest(request) &&
        request.method === 'POST' &&
        !request.headers['content-type']?.includes('urlencoded')
          ? { status: 415, headers: [['content-type', 'text/html']], body: '<h1>Unsupported Media Type</h1>' }
          : next(request),
    ),
  },
  {
    name: 'GET and other methods are 404 without a body',
    server: answers((answer) => (answer.status === 405 ? { status: 404, headers: [], body: '' } : answer)),
  },
  {
    name: 'a scope too many is invalid_scope',
    server: middleware(() => (request, next) => {
      const scope = isTokenRequest(request) ? parseForm(request.body.toString())?.get('scope') : undefined;
      return scope?.length === 1 &&
        scope[0]?.trim().includes(' ') &&
        request.headers['content-type']?.includes('urlencoded')
        ? jsonAnswer(400, { error: 'invalid_scope', error_description: 'one scope only', error_uri: '/docs' })
        : next(request);
    }),
  },
  {
    name: 'further members in token errors, and a challenge of another scheme',
    server: answers((answer, request) =>
      isTokenRequest(request) && answer.status === 401
        ? withHeader(
            {
              ...answer,
              body: JSON.stringify({
                ...(JSON.parse(String(answer.body)) as object),
                error_uri: '/docs',
                trace: 1,
              }),
            },
            'WWW-Authenticate',
            'Custom realm="x"',
          )
        : answer,
    ),
  },
];

export const methods: readonly Variant[] = [
  {
    name: 'a path that holds no UUID is 400',
    server: instead((request) =>
      /\/tenants\/[0-9a-f-]{36}\//i.test(request.path) ? undefined : refusal('invalid_request'),
    ),
  },
  {
    name: 'HEAD and OPTIONS are 204',
    server: middleware(
      () => (request, next) =>
        ['HEAD', 'OPTIONS'].includes(request.method) ? { status: 204, headers: [], body: '' } : next(request),
    ),
  },
];

const ODD_PATH = /\/\/|\/\.\/|\/(\?|$)|\.json|;|%|SCREENINGS/;

/** Odd spellings of a path are a gateway's to answer, and so is TRACE. */
export const oddPaths: readonly Variant[] = [
  {
    name: 'a gateway answers 400 with HTML to odd paths and 501 to TRACE',
    server: middleware(() => (request, next) => {
      const html = { headers: [['content-type', 'text/html']] as const, body: '<h1>No</h1>' };
      if (request.method === 'TRACE') return { ...html, status: 501 };
      return ODD_PATH.test(request.path.split('?')[0]!) ? { ...html, status: 400 } : next(request);
    }),
  },
];

/** Odd spellings of a path are the usual one, with the same checks; a page that has not changed is told so after them. */
export const normalizedPaths: readonly Variant[] = [
  {
    name: 'odd paths are normalised, pages have an ETag, and HEAD is answered to anybody with HTML',
    server: middleware(() => async (request, next) => {
      const [path, query = ''] = request.path.split('?') as [string, string?];
      if (request.method === 'HEAD')
        return { status: 200, headers: [['content-type', 'text/html']], body: '' };
      const usual = path.replace(/\/\.?(?=\/)/g, '').replace(/(\/|\.json|;[^/]*)$/, '');
      const answer = await next({ ...request, path: `${usual}?${query}` });
      if (answer.status !== 200) return answer;
      const known = request.headers['if-none-match'] !== undefined;
      return withHeader(known ? { status: 304, headers: [], body: '' } : answer, 'etag', '"page"');
    }),
  },
];
