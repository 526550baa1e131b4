/** Section 7.2: what the REST API refuses, and how. */
import { setTimeout } from 'node:timers/promises';
import { errorAnswer, jsonAnswer, type ServiceAnswer } from '../http/http.ts';
import {
  answers,
  instead,
  isScreenings,
  middleware,
  queryOf,
  refusals,
  requests,
  withHeader,
  withQuery,
} from '../run/alter.ts';
import type { Fault } from './fault.ts';

const REFUSALS = [
  '5-missing',
  '5-scheme',
  '5-garbage',
  '5-tampered',
  '5-expired',
  '5-query-token',
  '5-forbidden',
  '5-forbidden-unknown',
  '7.2-body',
  '7.2-unauthenticated',
  '7.2-forbidden',
  '7.2-invalid_request',
  '7.2-invalid_time_range',
  '7.2-page_size_out_of_range',
  '7.2-not_found',
  '4.2-from-required',
  '4.2-to-required',
  '4.2-r2-inverted',
] as const;

const emptyPage = (): ServiceAnswer => jsonAnswer(200, { items: [], links: {} });
const refusal = (code: string, status = 400): ServiceAnswer => errorAnswer(status, code, 'refused');
const recoded = (code: string) => (): ServiceAnswer => refusal(code);

/** Alters the 400s of one code. */
const of = (code: string, alter: (answer: ServiceAnswer) => ServiceAnswer): NonNullable<Fault['server']> =>
  refusals([400], (answer) => (String(answer.body).includes(`"${code}"`) ? alter(answer) : answer));

const text = (request: Parameters<typeof queryOf>[0], name: string): string =>
  queryOf(request).get(name) ?? '';

export const restErrors: readonly Fault[] = [
  {
    name: 'REST errors as plain text',
    trips: { '7.2-body': /a JSON body with/ },
    mayTrip: REFUSALS,
    server: refusals([400, 401, 403, 404], (answer) =>
      withHeader({ ...answer, body: 'refused' }, 'content-type', 'text/plain'),
    ),
  },
  {
    name: 'REST errors without a code, the status alone',
    trips: { '7.2-body': /a JSON body with/ },
    mayTrip: REFUSALS,
    server: refusals([400, 401, 403, 404], (answer) => ({
      ...answer,
      body: JSON.stringify({ status: answer.status, message: 'refused' }),
    })),
  },
  {
    name: 'codes in capitals',
    trips: { '7.2-body': /a JSON body with/ },
    mayTrip: REFUSALS,
    server: refusals([400, 401, 403, 404], (answer) => ({
      ...answer,
      body: String(answer.body).replace(
        /"code":"([^"]*)"/,
        (_, code: string) => `"code":"${code.toUpperCase()}"`,
      ),
    })),
  },
  {
    name: 'the code stands elsewhere than the target file says',
    trips: { '7.2-body': /a JSON body with.*at \/code/ },
    mayTrip: REFUSALS,
    bare: false,
    server: refusals([400, 401, 403, 404], (answer) => ({
      ...answer,
      body: JSON.stringify({ error: JSON.parse(String(answer.body)) as unknown }),
    })),
  },
  {
    name: 'a 401 carries another code',
    trips: { '7.2-unauthenticated': /401 unauthenticated/ },
    mayTrip: REFUSALS,
    server: refusals([401], (answer) => ({ ...answer, body: '{"code":"invalid_token"}' })),
  },
  {
    name: 'a 403 carries another code',
    trips: { '7.2-forbidden': /403 forbidden/ },
    mayTrip: REFUSALS,
    server: refusals([403], (answer) => ({ ...answer, body: '{"code":"access_denied"}' })),
  },
  {
    name: 'a pageSize that is no integer is the default',
    trips: { '7.2-invalid_request': /400 invalid_request.*200/ },
    server: requests((request) =>
      isScreenings(request) && /^[a-z]/.test(text(request, 'pageSize'))
        ? withQuery(request, (query) => query.delete('pageSize'))
        : request,
    ),
  },
  {
    name: 'pageSize read up to the first letter',
    trips: { '7.2-invalid_request': /400 invalid_request.*200/ },
    server: requests((request) =>
      isScreenings(request) && /^\d+[a-z]+$/.test(text(request, 'pageSize'))
        ? withQuery(request, (query) =>
            query.set('pageSize', String(Math.max(1, parseInt(text(request, 'pageSize'))))),
          )
        : request,
    ),
  },
  {
    name: 'a from_id of null is as if absent',
    trips: { '7.2-invalid_request': /400 invalid_request.*200/ },
    server: requests((request) =>
      isScreenings(request) && text(request, 'from_id') === 'null'
        ? withQuery(request, (query) => query.delete('from_id'))
        : request,
    ),
  },
  {
    name: 'a from_id that is no integer is ignored',
    trips: { '7.2-invalid_request': /400 invalid_request.*200/ },
    server: requests((request) =>
      isScreenings(request) && /[^\d-]/.test(text(request, 'from_id'))
        ? withQuery(request, (query) => query.delete('from_id'))
        : request,
    ),
  },
  ...lenientInteger('underscores between digits are left out', 'pageSize', /^[\d_]+_\d+$/, '10'),
  ...lenientInteger('an exponent is not read', 'pageSize', /^\d+e\d+$/, '1'),
  ...lenientInteger('a from_id with a sign is ignored', 'from_id', /^\+\d+$/),
  {
    name: 'a malformed parameter is 422',
    trips: { '7.2-invalid_request': /400 invalid_request.*422/ },
    mayTrip: ['4.2-from-required', '4.2-to-required', '7.2-invalid_time_range'],
    server: of('invalid_request', (answer) => ({ ...answer, status: 422 })),
  },
  {
    name: 'a malformed pageSize is out of range',
    trips: { '7.2-invalid_request': /400 invalid_request.*page_size_out_of_range/ },
    server: instead((request) =>
      /^[a-z]/.test(text(request, 'pageSize')) ? refusal('page_size_out_of_range') : undefined,
    ),
  },
  {
    name: 'a malformed time is invalid_request',
    trips: { '7.2-invalid_time_range': /400 invalid_time_range.*invalid_request/ },
    mayTrip: ['4.2-r2-inverted'],
    server: of('invalid_time_range', recoded('invalid_request')),
  },
  ...lenient('a time without offset is taken for UTC', /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)()$/),
  ...lenient('a date alone is its midnight', /^(\d{4}-\d\d-\d\d)()$/, 'T00:00:00Z'),
  ...lenient('a time without seconds is accepted', /^(\d{4}-\d\d-\d\dT\d\d:\d\d)(Z)$/, ':00Z'),
  ...lenient('epoch seconds are accepted', /^\d{10}()()$/, '2026-03-01T00:00:00Z'),
  ...lenient('text after a time is not looked at', /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)(\w+)$/, ''),
  ...lenient('white space around a time is cut off', /^\s*(\S+Z)\s*()$/, ''),
  ...lenient('the name of a zone after a time is not looked at', /^([^[]*)(\[.*\])$/, ''),
  ...lenient('an offset after Z is not looked at', /^(.*Z)([+-]\d\d:\d\d)$/, ''),
  ...lenient('a fraction of a minute is accepted', /^(.*T\d\d:\d\d)(\.\d+Z)$/, ':00Z'),
  ...lenient('the word now is a time', /^now()()$/, '2026-03-01T00:00:00Z'),
  ...lenient('hour 24 of an offset is accepted', /^(.*\+)24:00()$/, '23:00'),
  ...lenient('a date as in HTTP headers is accepted', /^\w{3}, .* GMT()()$/, '2026-03-01T00:00:00Z'),
  ...lenient('infinity is a time', /^-?infinity()()$/, '2026-03-01T00:00:00Z'),
  ...lenient('30 February is 2 March', /^(\d{4})-02-30(?=T)T00:00:00Z()$/, '-03-02T00:00:00Z'),
  ...lenient('hour 24 is the next midnight', /^(\d{4}-\d\d-\d\d)T24:00:00Z()$/, 'T23:59:59.999999Z'),
  ...lenient('an offset without its colon is accepted', /^(.*\+\d\d)(\d\d)$/, ':00'),
  {
    name: 'minute 60 of an offset is a crash: 500',
    trips: { '7.2-invalid_time_range': /400 invalid_time_range.*500/, '7.2-no-unprovoked-5xx': /no 5xx/ },
    mayTrip: ['7.2-body'],
    server: instead((request) =>
      /[+-]\d\d:[6-9]\d$/.test(text(request, 'from')) ? refusal('internal_error', 500) : undefined,
    ),
  },
  {
    name: 'a pageSize is cut to 32 bits',
    trips: { '7.2-page_size_out_of_range': /400 page_size_out_of_range.*200/ },
    server: requests((request) =>
      isScreenings(request) && /^\d{10,}$/.test(text(request, 'pageSize'))
        ? withQuery(request, (query) =>
            query.set('pageSize', String(BigInt.asIntN(32, BigInt(text(request, 'pageSize'))))),
          )
        : request,
    ),
  },
  {
    name: 'an Accept header without JSON is a crash: 500',
    trips: { '7.2-no-unprovoked-5xx': /no 5xx/ },
    server: instead((request) =>
      /html/.test(request.headers['accept'] ?? '') ? refusal('internal_error', 500) : undefined,
    ),
  },
  {
    name: 'a pageSize beyond 1000 is cut down to it',
    trips: { '7.2-page_size_out_of_range': /400 page_size_out_of_range.*200/ },
    server: requests((request) =>
      isScreenings(request) &&
      /^\d{4,19}$/.test(text(request, 'pageSize')) &&
      Number(text(request, 'pageSize')) > 1000
        ? withQuery(request, (query) => query.set('pageSize', '1000'))
        : request,
    ),
  },
  {
    name: 'a pageSize of 0 is the default',
    trips: { '7.2-page_size_out_of_range': /400 page_size_out_of_range.*200/ },
    server: requests((request) =>
      isScreenings(request) && text(request, 'pageSize') === '0'
        ? withQuery(request, (query) => query.delete('pageSize'))
        : request,
    ),
  },
  {
    name: 'a negative pageSize is invalid_request',
    trips: { '7.2-page_size_out_of_range': /400 page_size_out_of_range.*invalid_request/ },
    server: instead((request) =>
      text(request, 'pageSize').startsWith('-') ? refusal('invalid_request') : undefined,
    ),
  },
  {
    name: 'page sizes out of range are invalid_request',
    trips: { '7.2-page_size_out_of_range': /400 page_size_out_of_range.*invalid_request/ },
    server: of('page_size_out_of_range', recoded('invalid_request')),
  },
  {
    name: 'a path of an unknown tenant is an empty page',
    trips: { '5-forbidden-unknown': /403 forbidden.*200/ },
    server: middleware(() => async (request, next) => {
      const answer = await next(request);
      const onboarded = /7d0c5a52|1b9e2c40|42f6d0aa|c3a8e6f4/i.test(request.path);
      return isScreenings(request) && answer.status === 403 && !onboarded ? emptyPage() : answer;
    }),
  },
  {
    name: 'a tenant that is not onboarded is served an empty page',
    trips: { '7.2-not_found': /404 not_found.*200/ },
    bare: false,
    server: refusals([404], emptyPage),
  },
  {
    name: 'a tenant that is not onboarded is 403',
    trips: { '7.2-not_found': /404 not_found.*403/ },
    bare: false,
    server: refusals([404], () => refusal('forbidden', 403)),
  },
  {
    name: 'a NUL in a parameter reaches the database: 500',
    trips: { '7.2-no-unprovoked-5xx': /no 5xx.*500/ },
    mayTrip: ['7.2-body', '7.2-invalid_request', '7.2-invalid_time_range', '7.2-page_size_out_of_range'],
    server: instead((request) => (request.path.includes('%00') ? refusal('internal_error', 500) : undefined)),
  },
  {
    name: 'a NUL in the client_id reaches the database: 500',
    trips: { '7.2-no-unprovoked-5xx': /no 5xx.*500/ },
    mayTrip: ['7.2-body'],
    server: answers((answer, { body }) =>
      /client_id=[^&]*%00/.test(String(body)) ? jsonAnswer(500, { error: 'server_error' }) : answer,
    ),
  },
  {
    name: 'a huge from_id overflows: 500',
    trips: { '7.2-no-unprovoked-5xx': /no 5xx.*500/ },
    mayTrip: ['7.2-body'],
    server: instead((request) =>
      /^\d{19,}$/.test(text(request, 'from_id')) ? refusal('internal_error', 500) : undefined,
    ),
  },
  {
    name: 'the year 0000 overflows: 500',
    trips: { '7.2-no-unprovoked-5xx': /no 5xx.*500/ },
    mayTrip: ['7.2-body'],
    server: instead((request) =>
      text(request, 'from').startsWith('0000') ? refusal('internal_error', 500) : undefined,
    ),
  },
  {
    name: 'broken percent-encoding resets the connection',
    trips: { '7.2-no-unprovoked-5xx': /broken connection/ },
    mayTrip: ['7.2-invalid_time_range', '7.2-body'],
    server: instead((request) =>
      /%(?![0-9a-f]{2})/i.test(request.path) ? { status: 200, headers: [], body: dying() } : undefined,
    ),
  },
  {
    name: 'an unknown parameter is a crash: 500',
    trips: { '7.2-no-unprovoked-5xx': /no 5xx.*500/ },
    server: answers((answer, request) =>
      isScreenings(request) && queryOf(request).has('unknown') ? refusal('internal_error', 500) : answer,
    ),
  },
];

/** A spelling of an integer that is accepted although it is none; absent, the parameter is left out. */
function lenientInteger(name: string, parameter: string, spelling: RegExp, value?: string): Fault[] {
  return [
    {
      name,
      trips: { '7.2-invalid_request': /400 invalid_request.*200|400, or a page/ },
      server: requests((request) => {
        const shown = queryOf(request).get(parameter);
        if (!isScreenings(request) || shown === null || !spelling.test(shown) || /^\d+$/.test(shown))
          return request;
        return withQuery(request, (query) =>
          value === undefined ? query.delete(parameter) : query.set(parameter, value),
        );
      }),
    },
  ];
}

/** A spelling of from and to that is accepted although it is not RFC 3339. */
function lenient(name: string, spelling: RegExp, ending = 'Z'): Fault[] {
  return [
    {
      name,
      trips: { '7.2-invalid_time_range': /400 invalid_time_range.*200/ },

      server: requests((request) => {
        if (!isScreenings(request)) return request;
        const odd = ['from', 'to'].filter((key) => spelling.test(text(request, key)));
        if (odd.length === 0) return request;
        return withQuery(request, (query) => {
          for (const key of odd)
            query.set(
              key,
              (query.get(key) ?? '').replace(spelling, (_, kept = '') => `${String(kept)}${ending}`),
            );
        });
      }),
    },
  ];
}

/** Ends in the middle. */
export async function* dying(): AsyncGenerator<Buffer> {
  yield Buffer.from('{"items":[');
  // Once the beginning has gone out: a connection that closes before looks like one that was idle too long.
  await setTimeout(20);
  throw new Error('the connection breaks here');
}
