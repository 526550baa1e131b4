/** Servers that understand only one client's way to write a request, or that only one kind of client finds broken. */
import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { ServiceRequest } from '../http/http.ts';
import {
  answering,
  oauthError,
  refusals,
  onPages,
  tokenAnswers,
  accepting,
  withHeader,
  emptyPage,
  middleware,
  queryOf,
  reading,
} from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { PAGES, pageFaults, refusalFaults, tripping, type Fault, fullFaults } from './fault.ts';
import { insteadOfToken, anyClient, anySecret } from './token-errors.ts';
import { tokenFrom } from './authentication.ts';
import { authorizationOf, verifying } from './bearer.ts';

const rejected = (statusAndCode: string, isOdd: (request: ServiceRequest) => boolean): ServerOptions =>
  answering(statusAndCode, (_, request) => isOdd(request));

const wants = ({ headers }: ServiceRequest, coding: string): boolean =>
  (headers['accept-encoding'] ?? '').includes(coding);

const overHttp2 = (server: ServerOptions): ServerOptions => ({ ...server, offersHttp2: true });

const atHost = (text: string, host: string | undefined): string =>
  text.replace(/(?<=(<|"next":")http:\/\/)[^/]*/, String(host));

const rawQuery = ({ path }: ServiceRequest): string => path.split('?')[1] ?? '';

export const dialects: readonly Fault[] = [
  ...refusalFaults({ '4.2-success': /200.*(400|401|403|406)/ })({
    'Authorization is understood in lower case alone': rejected('401 unauthenticated', ({ names = [] }) =>
      names.some((name) => name !== 'authorization' && name.toLowerCase() === 'authorization'),
    ),
    'a list in Accept is not acceptable': rejected(
      '406 not_acceptable',
      ({ headers }) => headers['accept'] !== 'application/json',
    ),
    'a request without User-Agent is rejected': rejected(
      '400 invalid_request',
      ({ headers }) => headers['user-agent'] === undefined,
    ),
    'a request with a cookie needs a session': rejected(
      '401 unauthenticated',
      ({ headers }) => headers['cookie'] !== undefined && headers['authorization'] !== undefined,
    ),
    'from has to be the first parameter': rejected('400 invalid_request', (request) =>
      /^(to|pageSize|from_id)=/.test(rawQuery(request)),
    ),
    'a percent-encoded hyphen is not decoded': rejected('400 invalid_time_range', (request) =>
      /%2d/i.test(rawQuery(request)),
    ),
  }),
  ...tripping(
    { '2.4-items': /items/ },
    { mayTrip: [...PAGES, '2.4-utf8'] },
  )({
    'br is announced where gzip is sent': onPages((page, _, request) =>
      wants(request, 'br')
        ? withHeader({ ...page, body: gzipSync(String(page.body)) }, 'content-encoding', 'br')
        : page,
    ),
  }),
  ...refusalFaults({ '7.2-body': /JSON body/ })({
    'a refusal in br has lost its Content-Encoding': refusals([400], (answer, request) =>
      wants(request, 'br') ? { ...answer, body: brotliCompressSync(String(answer.body)) } : answer,
    ),
  }),
  ...tripping(
    { '4.1-success': /token/ },
    { mayTrip: ['2.1-access_token', '2.1-token_type', '2.1-expires_in', '2.1-scope'] },
  )({
    'a token response in deflate has lost its Content-Encoding': tokenAnswers((answer, request) =>
      wants(request, 'deflate') ? { ...answer, body: gzipSync(String(answer.body)) } : answer,
    ),
  }),
  ...tripping({ '5-missing': /401.*200/ })({
    'over HTTP/2 no token is asked for': overHttp2(
      accepting('unauthenticated', (_, { isHttp2 }) => isHttp2 === true),
    ),
  }),
  ...pageFaults({ '4.2-r6-next-target': /undefined/ })({
    'next names the Host header, which HTTP/2 has not': overHttp2(
      onPages((page, _, { headers }) => ({
        ...page,
        headers: page.headers.map(([name, value]) => [name, atHost(value, headers['host'])]),
        body: atHost(String(page.body), headers['host']),
      })),
    ),
  }),
  ...tripping({ '4.1-success': /400/ })({
    'the body of a token request over HTTP/2 is not read': overHttp2(
      insteadOfToken(
        () => oauthError(400, 'invalid_request'),
        (_, { isHttp2 }) => isHttp2 === true,
      ),
    ),
    'a token request in chunks is read as an empty one': insteadOfToken(
      () => oauthError(400, 'invalid_request'),
      (_, { headers }) => headers['content-length'] === undefined,
    ),
  }),
];

// -- what only one kind of client meets: a token in another place, another language, an accented letter

const parts = (from: number, to?: number): ServerOptions =>
  verifying(() => (token, nowSeconds, real) => real(token.split('.').slice(from, to).join('.'), nowSeconds));

/** Without accents, as accent-insensitive collations of databases compare. */
const bare = (text: string): string => text.normalize('NFD').replace(/\p{M}/gu, '');

const inLanguage = (language: RegExp, change: (body: string) => string): ServerOptions =>
  onPages((answer, _, { headers }) =>
    language.test(headers['accept-language'] ?? '')
      ? { ...answer, body: change(String(answer.body)) }
      : answer,
  );

const arabic = (text: string): string =>
  text.replace(/\d/g, (digit) => String.fromCharCode(0x660 + Number(digit)));

const TRAILING_SLASH = /\/screenings\/(?=\?|$)/;

export const oversights: readonly Fault[] = [
  ...tripping({ '5-missing': /401 unauthenticated.*200/ })({
    'a token in X-Auth-Token is accepted': tokenFrom(({ headers }) => headers['x-auth-token']),
    'a token in a cookie called jwt is accepted': tokenFrom(
      ({ headers }) => /\bjwt=([^;]+)/.exec(headers['cookie'] ?? '')?.[1],
    ),
    'requests with X-Client-Id have been through the gateway': answering(
      emptyPage,
      (_, request) => authorizationOf(request) === '' && request.headers['x-client-id'] !== undefined,
    ),
  }),
  ...tripping({ '5-query-token': /401 unauthenticated.*200/ })({
    'a token in the query called jwt is accepted': tokenFrom((request) => queryOf(request).get('jwt')),
    'access_token in the query is accepted after a cursor': tokenFrom((request) =>
      queryOf(request).has('from_id') ? queryOf(request).get('access_token') : undefined,
    ),
  }),
  ...tripping({ '5-tampered': /401 unauthenticated.*200/ })({
    'the first three parts of a token are looked at': parts(0, 3),
    'the last three parts of a token are looked at': parts(-3),
    'a slash after the path takes any bearer': middleware(() => async (request, next) => {
      const answer = await next({ ...request, path: request.path.replace(TRAILING_SLASH, '/screenings') });
      const isDoor = TRAILING_SLASH.test(request.path) && authorizationOf(request) !== '';
      return isDoor && answer.status === 401 ? emptyPage() : answer;
    }),
  }),
  ...tripping(
    { '2.3-object-stable': /temperature/ },
    { needsNeighbours: true },
  )({
    'decimals have a comma for Accept-Language: de': inLanguage(/^de/, (body) =>
      body.replace(/"temperature":(\d+)\.(\d+)/g, '"temperature":"$1,$2"'),
    ),
  }),
  ...tripping(
    { '2.3-testTime': /RFC 3339/ },
    {
      mayTrip: ['4.2-r6-next-from', '4.2-window', '4.2-r5-exactly-once', '4.2-from_id', '4.2-from-inclusive'],
    },
  )({
    'times have the digits of Accept-Language: ar': inLanguage(/^ar/, (body) =>
      body.replace(/(?<="testTime":")\d{4}/g, arabic),
    ),
  }),
  ...tripping({ '7.1-invalid_client-id': /401 invalid_client.*token/ })({
    'client_ids are compared without their accents': anyClient((id, right) => bare(id) === right),
  }),
  ...fullFaults({ '7.1-invalid_client-secret': /401 invalid_client.*token/ })({
    'client_secrets are compared without their accents': anySecret((shown, right) => bare(shown) === right),
  }),
  ...tripping({ '7.2-invalid_time_range': /400 invalid_time_range.*200/ })({
    'a date alone as to is the end of that day': reading(['to'], (text) =>
      text.replace(/^\d{4}-\d\d-\d\d$/, '$&T23:59:59Z'),
    ),
  }),
  ...tripping(
    { '4.2-offsets': /200.*400/ },
    { mayTrip: ['4.2-success', '4.2-window', '4.2-r2-inverted'] },
  )({
    'offsets beyond fourteen hours are refused': answering('400 invalid_time_range', (query) =>
      ['from', 'to'].some((name) => /[+-](14:(?!00)|15:)\d*$/.test(query.get(name) ?? '')),
    ),
  }),
  ...tripping({ '2.4-utf8': /charset=iso-8859-1/ })({
    'pages say that they are in Latin-1': onPages((answer) =>
      withHeader(answer, 'content-type', 'application/json;charset=iso-8859-1'),
    ),
  }),
];
