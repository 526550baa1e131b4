/** Servers that understand only one client's way to write a request. */
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
} from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { PAGES, pageFaults, refusalFaults, tripping, type Fault } from './fault.ts';
import { insteadOfToken } from './token-errors.ts';

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
