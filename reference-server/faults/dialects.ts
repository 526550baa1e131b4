/** What is understood of one client only, since it was tried with no other. */
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { errorAnswer, type ServiceRequest } from '../http/http.ts';
import {
  answers,
  instead,
  isScreenings,
  isTokenRequest,
  middleware,
  oauthError,
  withHeader,
} from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import type { Fault } from './fault.ts';

const VALID = { '4.2-success': /200.*(400|401|403|406)/ } as const;

const rejected = (status: number, code: string, isOdd: (request: ServiceRequest) => boolean): ServerOptions =>
  instead((request) =>
    isOdd(request) ? errorAnswer(status, code, 'no', [['www-authenticate', 'Bearer']]) : undefined,
  );

const wants = ({ headers }: ServiceRequest, coding: string): boolean =>
  (headers['accept-encoding'] ?? '').includes(coding);

const rawQuery = ({ path }: ServiceRequest): string => path.split('?')[1] ?? '';

/** Wrong for refusals too: what they say is another requirement's. */
const AND_REFUSALS = [
  '5-valid-token',
  '5-forbidden',
  '5-forbidden-unknown',
  '7.2-not_found',
  '7.2-invalid_request',
  '7.2-invalid_time_range',
  '7.2-page_size_out_of_range',
  '4.2-from-required',
  '4.2-to-required',
  '4.2-r1-zero-width',
  '4.2-r2-inverted',
] as const;

export const dialects: readonly Fault[] = [
  {
    name: 'Authorization is understood in lower case alone',
    trips: { '4.2-success': VALID['4.2-success'] },
    mayTrip: AND_REFUSALS,
    server: rejected(401, 'unauthenticated', ({ names = [] }) =>
      names.some((name) => name !== 'authorization' && name.toLowerCase() === 'authorization'),
    ),
  },
  {
    name: 'a list in Accept is not acceptable',
    trips: VALID,
    mayTrip: AND_REFUSALS,
    server: rejected(406, 'not_acceptable', ({ headers }) => headers['accept'] !== 'application/json'),
  },
  {
    name: 'a request without User-Agent is rejected',
    trips: VALID,
    mayTrip: AND_REFUSALS,
    server: rejected(400, 'invalid_request', ({ headers }) => headers['user-agent'] === undefined),
  },
  {
    name: 'from has to be the first parameter',
    trips: VALID,
    mayTrip: AND_REFUSALS,
    server: rejected(400, 'invalid_request', (request) => /^(to|pageSize|from_id)=/.test(rawQuery(request))),
  },
  {
    name: 'a percent-encoded hyphen is not decoded',
    trips: VALID,
    mayTrip: AND_REFUSALS,
    server: rejected(400, 'invalid_time_range', (request) => /%2d/i.test(rawQuery(request))),
  },
  {
    name: 'br is announced where gzip is sent',
    trips: { '2.4-items': /items/ },
    mayTrip: ['2.4-links', '2.4-utf8', '4.2-r5-exactly-once'],
    server: answers((answer, request) =>
      isScreenings(request) && answer.status === 200 && wants(request, 'br')
        ? withHeader({ ...answer, body: gzipSync(String(answer.body)) }, 'content-encoding', 'br')
        : answer,
    ),
  },
  {
    name: 'a refusal in br has lost its Content-Encoding',
    trips: { '7.2-body': /JSON body/ },
    mayTrip: [...AND_REFUSALS, '7.2-unauthenticated', '7.2-forbidden'],
    server: answers((answer, request) =>
      isScreenings(request) && answer.status === 400 && wants(request, 'br')
        ? { ...answer, body: brotliCompressSync(String(answer.body)) }
        : answer,
    ),
  },
  {
    name: 'a token response in deflate has lost its Content-Encoding',
    trips: { '4.1-success': /token/ },
    mayTrip: ['2.1-access_token', '2.1-token_type', '2.1-expires_in', '2.1-scope'],
    server: answers((answer, request) =>
      isTokenRequest(request) && answer.status === 200 && wants(request, 'deflate')
        ? { ...answer, body: gzipSync(String(answer.body)) }
        : answer,
    ),
  },
  {
    name: 'a token request in chunks is read as an empty one',
    trips: { '4.1-success': /400/ },
    server: middleware(
      () => (request, next) =>
        isTokenRequest(request) && request.headers['content-length'] === undefined
          ? oauthError(400, 'invalid_request')
          : next(request),
    ),
  },
];
