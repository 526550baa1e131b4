/** Servers that understand only one client's way to write a request, or that only one kind of client finds broken. */
import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { ServiceAnswer } from '../http/http.ts';
import { answering, jsonBody, refusal, refusals, onPages, tokenAnswers, withHeader } from '../run/alter.ts';
import { hasHeader, not } from '../run/conditions.ts';
import type { ServerOptions } from '../run/start.ts';
import { anonymous } from './bearer.ts';
import { PAGES, REFUSALS, TOKEN_CLAIMS, theme, type Fault } from './fault.ts';
import { refusing } from './forms.ts';

const { fails, failsLater } = theme([...PAGES, ...REFUSALS, ...TOKEN_CLAIMS]);

export const accepts = (coding: string) => hasHeader('accept-encoding', RegExp(coding));

/** The answer in a coding, without the octets at its end that are lost. */
export const compressed = (answer: ServiceAnswer, coding: 'gzip' | 'br', octetsLost = 0): ServiceAnswer => {
  const body = { gzip: gzipSync, br: brotliCompressSync }[coding](String(answer.body));
  const shown = { ...answer, body: body.subarray(0, body.length - octetsLost) };
  return withHeader(shown, 'content-encoding', coding);
};

const overHttp2 = (server: ServerOptions): ServerOptions => ({ ...server, offersHttp2: true });

const atHost = (text: string, host: string | undefined): string =>
  text.replace(/(?<=(<|"next":")https?:\/\/)[^/]*/, String(host));

export const dialects: readonly Fault[] = [
  ...fails({ '4.2-success': /200.*(400|401|403|406)/ })({
    'header names are case-sensitive': answering('401 unauthenticated', ({ names = [] }) =>
      names.some((name) => name !== 'authorization' && name.toLowerCase() === 'authorization'),
    ),
    'a list in Accept is 406': answering(
      '406 not_acceptable',
      not(hasHeader('accept', /^application\/json$/)),
    ),
    'a request without User-Agent is 400': answering('400 invalid_request', not(hasHeader('user-agent'))),
    '%2b is no +': answering('400 invalid_time_range', ({ path }) => path.includes('%2b')),
    'from must be the first parameter': answering('400 invalid_request', ({ path }) =>
      /\?(to|pageSize|from_id)=/.test(path),
    ),
  }),
  ...fails({ '4.2-success': /200.*500/, '7.2-no-unprovoked-5xx': /no 5xx/ })({
    'a page for Accept-Language: * is 500': onPages(
      () => refusal('500 internal_error'),
      hasHeader('accept-language', /^\*$/),
    ),
  }),
  ...failsLater({ '2.4-utf8': /encoding that Accept-Encoding names/ })({
    'pages are compressed with gzip for every Accept-Encoding': onPages((page) => compressed(page, 'gzip')),
  }),
  ...fails({ '7.2-body': /JSON body/ })({
    'a 400 in br without Content-Encoding': refusals(
      [400],
      (answer) => ({ ...answer, body: compressed(answer, 'br').body }),
      accepts('br'),
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
    'a token response in deflate without Content-Encoding': tokenAnswers(
      (answer) => ({ ...answer, body: compressed(answer, 'gzip').body }),
      accepts('deflate'),
    ),
  }),
  ...fails({ '5-missing': /401.*200/ })({
    'HTTP/2 needs no token': overHttp2(anonymous(({ isHttp2 }) => isHttp2 === true)),
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
      refusing('400 invalid_request', ({ isHttp2 }) => isHttp2 === true),
    ),
  }),
  ...fails({ '4.1-success': /200 with a token.*406/ })({
    'a token request without Accept is 406': refusing('406 not_acceptable', not(hasHeader('accept'))),
  }),
  ...fails({ '4.1-success': /Content-Type: .*charset/ })({
    'a content type with a charset is no form': refusing(
      '400 invalid_request',
      hasHeader('content-type', /charset/),
    ),
  }),
  ...fails({ '4.1-success': /unreserved characters percent-encoded/ })({
    'a form is not percent-decoded': refusing('400 invalid_request', ({ body }) =>
      /(grant|client|read)%/.test(body.toString()),
    ),
  }),
  ...failsLater({ '2.3-object-stable': /temperature/ })({
    'decimals have a comma for Accept-Language: tr': onPages(
      (page) => ({
        ...page,
        body: String(page.body).replace(/"temperature":(\d+)\.(\d+)/g, '"temperature":"$1,$2"'),
      }),
      hasHeader('accept-language', /^tr/),
    ),
  }),
];
