/** Errors with every shape and code that the specification leaves open. */
import {
  answering,
  answers,
  html,
  intercepting,
  isTokenRequest,
  jsonBody,
  middleware,
  refusal,
  refusals as refusalsOf,
  tokenErrors,
  withHeader,
  withoutBody,
} from '../run/alter.ts';
import { hasHeader, hasParameter, type Where } from '../run/conditions.ts';
import { refusing } from '../faults/forms.ts';
import { edgeLike } from '../faults/window.ts';
import { TENANTS } from '../run/provisioning.ts';
import type { ServerOptions } from '../run/start.ts';
import type { Groups } from './variant.ts';

const ALL = [400, 401, 403, 404, 429, 500, 503];

/** Another shape of error body; the target file gives the code's JSON pointer or leaves it out. */
const shaped = (
  shape: (code: string, status: number) => unknown,
  pointer?: string,
  type = 'application/json',
): Groups[string][string] => ({
  server: refusalsOf(ALL, (answer) => {
    const { code } = JSON.parse(String(answer.body)) as { code: string };
    const body = JSON.stringify(shape(code, answer.status));
    return withHeader({ ...answer, body }, 'content-type', type);
  }),
  target: (target) => ({ ...target, errorCodePointer: pointer }),
});

/** Answers 400 with this code to matching requests; authentication comes first. */
const refused = (code: string, where: Where): ServerOptions =>
  refusalsOf([200, 400], () => refusal(`400 ${code}`), where);

const isForm = hasHeader('content-type', /urlencoded/);

const namesTenant = (path: string): boolean => Object.values(TENANTS).some((id) => path.includes(id));

const ODD_PATH = /\/\/|\/\.\/|\/(\?|$)|\.json|;|%|SCREENINGS/;

export const refusals: Groups = {
  'behind a gateway': {
    'problem details with a general code in addition to the particular one': shaped(
      (code, status) => ({
        ...{ type: 'about:blank', title: 'Refused', status },
        ...{ general: 'invalid_request', errorCode: code },
      }),
      undefined,
      'application/problem+json; charset=utf-8',
    ),
  },
  'with its own spelling': {
    'errors as {"errors":[{"code"}]}, the place named': shaped(
      (code) => ({ errors: [{ code, field: 'x' }] }),
      '/errors/0/code',
    ),
  },
  'with relative links': {
    'errors as a JSON array of one object': shaped((code) => [{ message: 'refused', code }]),
    'a missing from or to is invalid_time_range': refused(
      'invalid_time_range',
      (_, query) => !query.has('from') || !query.has('to'),
    ),
    'an unknown tenant is 404 not_found, and so is another than the own in upper case': refusalsOf(
      [403],
      () => refusal('404 not_found'),
      ({ path }) => !namesTenant(path),
    ),
    'an unknown tenant is 404 not_found before the token is checked': refusalsOf(
      [401],
      () => refusal('404 not_found'),
      ({ path }) => !namesTenant(path.toLowerCase()),
    ),
    'a pageSize of 1.5, +5, 1e2 or nothing is page_size_out_of_range': refused(
      'page_size_out_of_range',
      (_, query) => /^(1\.5|10\.0|\+5|1e2|)$/.test(query.get('pageSize') ?? '1'),
    ),
    'a pageSize beyond 64 bits is invalid_request': refused(
      'invalid_request',
      hasParameter('pageSize', /^\d{19,}$/),
    ),
    'an empty or undecodable from or to is invalid_request': refusalsOf(
      [400],
      () => refusal('400 invalid_request'),
      ({ path }) => /[?&](from|to)=(&|$)|%(?![0-9a-f]{2})/i.test(path),
    ),
    'a negative from_id is invalid_request': refused('invalid_request', hasParameter('from_id', /^-/)),
  },
  'with a rate limit': {
    'errors as {"error":{"code"}}, the place unnamed': shaped((code) => ({ error: { code, details: [] } })),
    'leap seconds, -00:00, offsets beyond 18 hours and the year 0000 are refused': refused(
      'invalid_time_range',
      edgeLike(/:60(\.\d+)?(Z|[+-])|-00:00$|[+-](1[89]|2\d):\d\d$|^0000/i),
    ),
    'a space for the T is accepted': middleware(
      () => (request, next) =>
        next({ ...request, path: request.path.replace(/(\d{4}-\d\d-\d\d)(?:%20|\+)(?=\d\d%3A)/gi, '$1T') }),
    ),
  },
  'with short pages': {
    'a body that is no form is 415 with a page of HTML': intercepting(
      () => html(415, 'Unsupported Media Type'),
      (request) => isTokenRequest(request) && request.method === 'POST' && !isForm(request),
    ),
    'GET and other methods are 404 without a body': answers((answer) =>
      answer.status === 405 ? withoutBody(404) : answer,
    ),
    'a scope too many is invalid_scope': refusing('400 invalid_scope', (request, form) => {
      const scope = form.get('scope');
      return isForm(request) && scope?.length === 1 && scope[0]!.trim().includes(' ');
    }),
    'further members in token errors, and a challenge of another scheme': tokenErrors(
      'invalid_client',
      (answer) =>
        withHeader(
          jsonBody((body) => ({ ...body, error_uri: '/docs', trace: 1 }))(answer),
          'WWW-Authenticate',
          'Custom realm="x"',
        ),
    ),
    'a path that holds no UUID is 400': answering(
      '400 invalid_request',
      ({ path }) => !/\/tenants\/[0-9a-f-]{36}\//i.test(path),
    ),
    'HEAD and OPTIONS are 204': intercepting(
      () => withoutBody(204),
      ({ method }) => ['HEAD', 'OPTIONS'].includes(method),
    ),
  },
  'with a gateway for odd paths': {
    'a gateway answers 400 with HTML to odd paths and 501 to TRACE': middleware(() => (request, next) => {
      if (request.method === 'TRACE') return html(501, 'No');
      return ODD_PATH.test(request.path.split('?')[0]!) ? html(400, 'No') : next(request);
    }),
  },
  // Unusual spellings of a path are normalised before the checks; a conditional request gets its 304 after them.
  'with normalised paths': {
    'odd paths are normalised, pages have an ETag, and HEAD is answered to anybody with HTML': middleware(
      () => async (request, next) => {
        const [path, query = ''] = request.path.split('?') as [string, string?];
        if (request.method === 'HEAD') return withoutBody(200, [['content-type', 'text/html']]);
        const usual = path.replace(/\/\.?(?=\/)/g, '').replace(/(\/|\.json|;[^/]*)$/, '');
        const answer = await next({ ...request, path: `${usual}?${query}` });
        if (answer.status !== 200) return answer;
        const known = request.headers['if-none-match'] !== undefined;
        return withHeader(known ? withoutBody(304) : answer, 'etag', '"page"');
      },
    ),
  },
};
