/** Faults that only one kind of client meets: a token in another place, another language, an accented letter. */
import { answering, emptyPage, middleware, queryOf, reading, onPages, withHeader } from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { tokenFrom } from './authentication.ts';
import { authorizationOf, verifying } from './bearer.ts';
import { fullFaults, tripping, type Fault } from './fault.ts';
import { learning } from './near-misses.ts';

/** Verifies only some of the dot-separated parts of a token. */
const parts = (from: number, to?: number): ServerOptions =>
  verifying(() => (token, nowSeconds, real) => real(token.split('.').slice(from, to).join('.'), nowSeconds));

/** Compares a credential without its accents, like an accent-insensitive database collation. */
const withoutAccents = (name: 'client_id' | 'client_secret'): ServerOptions =>
  learning(
    name,
    (value, right) => value !== right && value.normalize('NFD').replace(/\p{M}/gu, '') === right,
  );

/** Changes pages for the languages that match. */
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
    'client_ids are compared without their accents': withoutAccents('client_id'),
  }),
  ...fullFaults({ '7.1-invalid_client-secret': /401 invalid_client.*token/ })({
    'client_secrets are compared without their accents': withoutAccents('client_secret'),
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
