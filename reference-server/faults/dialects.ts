/** Servers that understand only one client's way to write a request, or that only one kind of client finds broken. */
import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { ServiceRequest } from '../http/http.ts';
import {
  answering,
  jsonBody,
  refusal,
  refusals,
  onPages,
  tokenAnswers,
  accepting,
  withHeader,
} from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { PAGES, REFUSALS, TOKEN_CLAIMS, theme, type Fault } from './fault.ts';
import { refusing } from './forms.ts';

const { fails, failsLater } = theme([...PAGES, ...REFUSALS, ...TOKEN_CLAIMS]);

const rejected = (statusAndCode: string, isOdd: (request: ServiceRequest) => boolean): ServerOptions =>
  answering(statusAndCode, (_, request) => isOdd(request));

export const accepts = ({ headers }: ServiceRequest, coding: string): boolean =>
  (headers['accept-encoding'] ?? '').includes(coding);

const overHttp2 = (server: ServerOptions): ServerOptions => ({ ...server, offersHttp2: true });

const atHost = (text: string, host: string | undefined): string =>
  text.replace(/(?<=(<|"next":")https?:\/\/)[^/]*/, String(host));

const rawQuery = ({ path }: ServiceRequest): string => path.split('?')[1] ?? '';

export const dialects: readonly Fault[] = [
  ...fails({ '4.2-success': /200.*(400|401|403|406)/ })({
    'header names are case-sensitive': rejected('401 unauthenticated', ({ names = [] }) =>
      names.some((name) => name !== 'authorization' && name.toLowerCase() === 'authorization'),
    ),
    'a list in Accept is 406': rejected(
      '406 not_acceptable',
      ({ headers }) => headers['accept'] !== 'application/json',
    ),
    'a request without User-Agent is 400': rejected(
      '400 invalid_request',
      ({ headers }) => headers['user-agent'] === undefined,
    ),
    '%2b is no +': rejected('400 invalid_time_range', (request) => rawQuery(request).includes('%2b')),
    'from must be the first parameter': rejected('400 invalid_request', (request) =>
      /^(to|pageSize|from_id)=/.test(rawQuery(request)),
    ),
  }),
  ...fails({ '4.2-success': /200.*500/, '7.2-no-unprovoked-5xx': /no 5xx/ })({
    'a page for Accept-Language: * is 500': onPages((page, _, { headers }) =>
      headers['accept-language'] === '*' ? refusal('500 internal_error') : page,
    ),
  }),
  ...failsLater({ '2.4-utf8': /encoding that Accept-Encoding names/ })({
    'pages are compressed with gzip for every Accept-Encoding': onPages((page) =>
      withHeader({ ...page, body: gzipSync(String(page.body)) }, 'content-encoding', 'gzip'),
    ),
  }),
  ...fails({ '7.2-body': /JSON body/ })({
    'a 400 in br without Content-Encoding': refusals([400], (answer, request) =>
      accepts(request, 'br') ? { ...answer, body: brotliCompressSync(String(answer.body)) } : answer,
    ),
  }),
  ...fails({ '7.2-body': /JSON body with.*\u0131/ })({
    'codes are names in capitals, in the small letters of Accept-Language': refusals(
      [400],
      (answer, { headers }) => {
        const [language = 'en'] = /^[a-z]{2}/.exec(headers['accept-language'] ?? '') ?? [];
        const inSmall = (code: string): string => code.toUpperCase().toLocaleLowerCase(language);
        return jsonBody((error) => ({ ...error, code: inSmall(String(error['code'])) }))(answer);
      },
    ),
  }),
  ...fails({ '4.1-success': /token/ })({
    'a token response in deflate without Content-Encoding': tokenAnswers((answer, request) =>
      accepts(request, 'deflate') ? { ...answer, body: gzipSync(String(answer.body)) } : answer,
    ),
  }),
  ...fails({ '5-missing': /401.*200/ })({
    'HTTP/2 needs no token': overHttp2(accepting('unauthenticated', (_, { isHttp2 }) => isHttp2 === true)),
  }),
  ...fails({ '4.2-r6-next-target': /undefined/ })({
    'next is made of the Host header, which HTTP/2 lacks': overHttp2(
      onPages((page, _, { headers }) => ({
        ...page,
        headers: page.headers.map(([name, value]) => [name, atHost(value, headers['host'])]),
        body: atHost(String(page.body), headers['host']),
      })),
    ),
  }),
  ...fails({ '4.1-success': /400/ })({
    'the body of a token request over HTTP/2 is not read': overHttp2(
      refusing('400 invalid_request', (_, { isHttp2 }) => isHttp2 === true),
    ),
  }),
  ...fails({ '4.1-success': /200 with a token.*406/ })({
    'a token request without Accept is 406': refusing(
      '406 not_acceptable',
      (_, { headers }) => headers['accept'] === undefined,
    ),
  }),
  ...fails({ '4.1-success': /Content-Type: .*charset/ })({
    'a content type with a charset is no form': refusing(
      '400 invalid_request',
      (_, { headers }) => headers['content-type']?.includes('charset') === true,
    ),
  }),
  ...fails({ '4.1-success': /unreserved characters percent-encoded/ })({
    'a form is not percent-decoded': refusing('400 invalid_request', (_, { body }) =>
      /(grant|client|read)%/.test(body.toString()),
    ),
  }),
  ...failsLater({ '2.3-object-stable': /temperature/ })({
    'decimals have a comma for Accept-Language: tr': onPages((page, _, { headers }) =>
      headers['accept-language']?.startsWith('tr')
        ? { ...page, body: String(page.body).replace(/"temperature":(\d+)\.(\d+)/g, '"temperature":"$1,$2"') }
        : page,
    ),
  }),
];
