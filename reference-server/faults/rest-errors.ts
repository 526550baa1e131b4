/** Section 7.2: faults in the errors of the REST API. */
import { setTimeout } from 'node:timers/promises';
import { jsonAnswer, type ServiceAnswer } from '../http/http.ts';
import {
  answering,
  answers,
  emptyPage,
  isScreenings,
  jsonBody,
  queryOf,
  reading,
  refusal,
  refusals,
  withHeader,
} from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { fullFaults, refusalFaults, tripping, type Fault } from './fault.ts';

const ALL = [400, 401, 403, 404];
const CRASH = '500 internal_error';

const errors = (code: string, alter: (answer: ServiceAnswer) => ServiceAnswer): ServerOptions =>
  refusals([400], (answer) => (String(answer.body).includes(`"${code}"`) ? alter(answer) : answer));

const body = (text: string) => (answer: ServiceAnswer) => ({ ...answer, body: text });

const matching =
  (name: string, pattern: RegExp) =>
  (query: URLSearchParams): boolean =>
    pattern.test(query.get(name) ?? '');

/** Reads a pageSize or from_id with this spelling as another value, or as absent. */
const integer = (name: string, spelling: RegExp, to?: (text: string) => string): ServerOptions =>
  reading([name], (text) => (spelling.test(text) ? to?.(text) : text));

const time = (spelling: RegExp, to: string): ServerOptions =>
  reading(['from', 'to'], (text) => text.replace(spelling, to));

const SPRING = '2026-03-01T00:00:00Z';

export const restErrors: readonly Fault[] = [
  ...refusalFaults({ '7.2-body': /a JSON body with/ })({
    'REST errors as plain text': refusals(ALL, (answer) =>
      withHeader({ ...answer, body: 'refused' }, 'content-type', 'text/plain'),
    ),
    'REST errors without a code, the status alone': refusals(ALL, (answer) =>
      jsonBody(() => ({ status: answer.status, message: 'refused' }))(answer),
    ),
    'codes in capitals': refusals(
      ALL,
      jsonBody((inner) => ({ ...inner, code: String(inner['code']).toUpperCase() })),
    ),
  }),
  ...refusalFaults(
    { '7.2-body': /a JSON body with.*at \/code/ },
    { bare: false },
  )({
    'the code stands elsewhere than the target file says': refusals(
      ALL,
      jsonBody((error) => ({ error })),
    ),
  }),
  ...refusalFaults({ '7.2-unauthenticated': /401 unauthenticated/ })({
    'a 401 carries another code': refusals([401], body('{"code":"invalid_token"}')),
  }),
  ...refusalFaults({ '7.2-forbidden': /403 forbidden/ })({
    'a 403 carries another code': refusals([403], body('{"code":"access_denied"}')),
  }),
  ...tripping({ '7.2-invalid_request': /400 invalid_request.*200/ })({
    'a pageSize that is no integer is the default': integer('pageSize', /^[a-z]/),
    'pageSize read up to the first letter': integer('pageSize', /^\d+[a-z]+$/, (text) =>
      String(Math.max(1, parseInt(text))),
    ),
    'a from_id of null is as if absent': integer('from_id', /^null$/),
    'a from_id of undefined is as if absent': integer('from_id', /^undefined$/),
    'a pageSize of undefined is as if absent': integer('pageSize', /^(undefined|NaN)$/),
    'a pageSize of all is the largest one': integer('pageSize', /^all$/, () => '1000'),
    'binary and octal numbers are read': integer('pageSize', /^0[bo]\d+$/, () => '10'),
    'a from_id that is no integer is ignored': integer('from_id', /[^\d-]/),
  }),
  ...tripping({ '7.2-invalid_request': /400 invalid_request.*200|400, or a page/ })({
    'digits after an underscore are not read': integer('pageSize', /^\d+_\d+$/, () => '1'),
    'a pageSize that begins with 0 is octal': integer('pageSize', /^0[0-7]+$/, (text) =>
      String(parseInt(text, 8)),
    ),
    'an exponent is not read': integer('pageSize', /^\d+e\d+$/, () => '1'),
    'a from_id with a sign is ignored': integer('from_id', /^\+\d+$/),
  }),
  ...refusalFaults({ '7.2-invalid_request': /400 invalid_request.*422/ })({
    'a malformed parameter is 422': errors('invalid_request', (answer) => ({ ...answer, status: 422 })),
  }),
  ...tripping({ '7.2-invalid_request': /400 invalid_request.*page_size_out_of_range/ })({
    'a malformed pageSize is out of range': answering(
      '400 page_size_out_of_range',
      matching('pageSize', /^[a-z]/),
    ),
  }),
  ...refusalFaults({ '7.2-invalid_time_range': /400 invalid_time_range.*invalid_request/ })({
    'a malformed time is invalid_request': errors('invalid_time_range', () => refusal('400 invalid_request')),
  }),
  ...tripping({ '7.2-invalid_time_range': /400 invalid_time_range.*200/ })({
    'a time without offset is taken for UTC': time(/^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)$/, '$1Z'),
    'a date alone is its midnight': time(/^(\d{4}-\d\d-\d\d)$/, '$1T00:00:00Z'),
    'a time without seconds is accepted': time(/^(\d{4}-\d\d-\d\dT\d\d:\d\d)Z$/, '$1:00Z'),
    'epoch seconds are accepted': time(/^\d{10}$/, SPRING),
    'text after a time is not looked at': time(/^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\w+$/, '$1'),
    'white space around a time is cut off': time(/^\s*(\S+Z)\s*$/, '$1'),
    'the name of a zone after a time is not looked at': time(/^([^[]*)\[.*\]$/, '$1'),
    'an offset after Z is not looked at': time(/^(.*Z)[+-]\d\d:\d\d$/, '$1'),
    'a fraction of a minute is accepted': time(/^(.*T\d\d:\d\d)\.\d+Z$/, '$1:00Z'),
    'the word now is a time': time(/^now$/, SPRING),
    'hour 24 of an offset is accepted': time(/(?<=\+)24:00$/, '23:00'),
    'a date as in HTTP headers is accepted': time(/^\w{3}, .* GMT$/, SPRING),
    'words are times that PostgreSQL reads': time(/^(-?infinity|epoch|today|tomorrow|J\d+)$/, SPRING),
    'date mathematics is read': time(/^now[-+].*$|\|\|.*$/, ''),
    '31 April is 1 May': time(/-04-31T/, '-05-01T'),
    'an hour of one digit in an offset is accepted': time(/\+(?=\d:\d\d$)/, '+0'),
    'a fraction of an hour is accepted': time(/^(.*T\d\d)\.\d+Z$/, '$1:00:00Z'),
    'milliseconds after a colon are accepted': time(/:\d{3}Z$/, 'Z'),
    'AM and PM are accepted': time(/^(.*) [AP]M$/, '$1Z'),
    'the abbreviation of a zone is accepted': time(/^(.*) EST$/, '$1Z'),
    '30 February is 2 March': time(/^(\d{4})-02-30T00:00:00Z$/, '$1-03-02T00:00:00Z'),
    'hour 24 is the next midnight': time(/^(\d{4}-\d\d-\d\d)T24:00:00Z$/, '$1T23:59:59.999999Z'),
    'the seconds of an offset are accepted': time(/^(.*\+\d\d:\d\d):\d\d$/, '$1'),
    'a blank before an offset is cut out': time(/^(.*) (?=\+\d\d:\d\d$)/, '$1'),
    'an hour of one digit is accepted': time(/T(?=\d:)/, 'T0'),
    'an offset without its colon is accepted': time(/^(.*\+\d\d)\d\d$/, '$1:00'),
  }),
  ...refusalFaults({
    '7.2-invalid_time_range': /400 invalid_time_range.*500/,
    '7.2-no-unprovoked-5xx': /no 5xx/,
  })({
    'minute 60 of an offset is a crash: 500': answering(CRASH, matching('from', /[+-]\d\d:[6-9]\d$/)),
  }),
  ...tripping({ '7.2-page_size_out_of_range': /400 page_size_out_of_range.*200/ })({
    'a pageSize is cut to 32 bits': integer('pageSize', /^\d{10,}$/, (text) =>
      String(BigInt.asIntN(32, BigInt(text))),
    ),
    'a pageSize beyond 1000 is cut down to it': integer('pageSize', /^\d{4,19}$/, (text) =>
      Number(text) > 1000 ? '1000' : text,
    ),
    'a pageSize of 0 is the default': integer('pageSize', /^0$/),
    'a pageSize of -0 is the default': integer('pageSize', /^-0$/),
    'page sizes up to 1024 are accepted, except 1001': integer(
      'pageSize',
      /^10(0[2-9]|[12]\d)$/,
      () => '1000',
    ),
    'a pageSize of 10000 is everything': integer('pageSize', /^10000$/, () => '1000'),
  }),
  ...tripping({ '7.2-page_size_out_of_range': /400 page_size_out_of_range.*invalid_request/ })({
    'a negative pageSize is invalid_request': answering('400 invalid_request', matching('pageSize', /^-/)),
    'page sizes out of range are invalid_request': errors('page_size_out_of_range', () =>
      refusal('400 invalid_request'),
    ),
  }),
  ...tripping({ '5-forbidden-unknown': /403 forbidden.*200/ })({
    'a path of an unknown tenant is an empty page': refusals([403], (answer, { path }) =>
      /7d0c5a52|1b9e2c40|42f6d0aa|c3a8e6f4/i.test(path) ? answer : emptyPage(),
    ),
  }),
  ...fullFaults({ '7.2-not_found': /404 not_found.*200/ })({
    'a tenant that is not onboarded is served an empty page': refusals([404], emptyPage),
  }),
  ...fullFaults({ '7.2-not_found': /404 not_found.*403/ })({
    'a tenant that is not onboarded is 403': refusals([404], () => refusal('403 forbidden')),
  }),
  ...tripping({ '7.2-no-unprovoked-5xx': /no 5xx/ })({
    'an Accept header without JSON is a crash: 500': answering(CRASH, (_, { headers }) =>
      /html/.test(headers['accept'] ?? ''),
    ),
  }),
  ...refusalFaults({ '7.2-no-unprovoked-5xx': /no 5xx.*500/ })({
    'a NUL in a parameter reaches the database: 500': answering(CRASH, (_, { path }) => path.includes('%00')),
    'a NUL in the client_id reaches the database: 500': answers((answer, request) =>
      /client_id=[^&]*%00/.test(String(request.body)) ? jsonAnswer(500, { error: 'server_error' }) : answer,
    ),
    'a huge from_id overflows: 500': answering(CRASH, matching('from_id', /^\d{19,}$/)),
    'the year 0000 overflows: 500': answering(CRASH, matching('from', /^0000/)),
    'an Origin is a crash: 500': answering(CRASH, (_, { headers }) => headers['origin'] !== undefined),
    'an unknown parameter is a crash: 500': answers((answer, request) =>
      isScreenings(request) && queryOf(request).has('unknown') ? refusal(CRASH) : answer,
    ),
  }),
  ...refusalFaults({ '7.2-no-unprovoked-5xx': /broken connection/ })({
    'broken percent-encoding resets the connection': answering(
      () => ({ status: 200, headers: [], body: brokenBody() }),
      (_, { path }) => /%(?![0-9a-f]{2})/i.test(path),
    ),
  }),
];

/** A body that breaks off. */
export async function* brokenBody(): AsyncGenerator<Buffer> {
  yield Buffer.from('{"items":[');
  // After the first bytes were sent: a connection that closes earlier looks like an idle one that was closed.
  await setTimeout(20);
  throw new Error('the connection breaks here');
}
