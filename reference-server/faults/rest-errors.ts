/** Section 7.2: faults in the errors of the REST API. */
import { setTimeout } from 'node:timers/promises';
import { CODES } from '../../engine/checks/errors.ts';
import { jsonAnswer, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import {
  accepting,
  answering,
  answers,
  both,
  crashing,
  emptyPage,
  isScreenings,
  isTokenRequest,
  jsonBody,
  middleware,
  onPages,
  queryOf,
  reading,
  refusal,
  refusals,
  windowOf,
  withoutBody,
} from '../run/alter.ts';
import { every, hasHeader, hasParameter, not, type Where } from '../run/conditions.ts';
import { TENANTS } from '../run/provisioning.ts';
import type { ServerOptions } from '../run/start.ts';
import { PAGES, REFUSALS, theme, type Fault } from './fault.ts';
import { authorizationOf, basicOf } from './bearer.ts';
import { edgeLike } from './window.ts';

const { fails, failsFull, failsLater } = theme([...REFUSALS, ...PAGES]);

const errors = (alter: (answer: ServiceAnswer) => ServiceAnswer): ServerOptions =>
  refusals([400, 401, 403, 404], alter);

const recoded = (code: string, to: string): ServerOptions =>
  refusals([400], (answer) => (String(answer.body).includes(`"${code}"`) ? refusal(to) : answer));

const coded = (status: number, code: string): ServerOptions =>
  refusals([status], (answer) => ({ ...answer, body: JSON.stringify({ code }) }));

const isOfUnknown = ({ path }: ServiceRequest): boolean =>
  !Object.values(TENANTS).some((id) => path.includes(id));
const isFromAWord = hasParameter('from', /^[a-z]+$/);
const isAnonymous = (request: ServiceRequest): boolean => authorizationOf(request) === '';
const isMalformedTwice: Where = (_, query) =>
  query.get('pageSize') === '0' && windowOf(query)[0] === undefined;
/** Fails instead of answering with screenings. */
const failing = (where: Where): ServerOptions =>
  onPages(
    (page) => (String(page.body).startsWith('{"items":[{') ? refusal('500 internal_error') : page),
    where,
  );

const withoutItems = (answer: () => ServiceAnswer): ServerOptions =>
  onPages((page) => (String(page.body).startsWith('{"items":[]') ? answer() : page));

/** Finds no representation of an error that the client accepts. */
const unacceptable = (status: number, where: (request: ServiceRequest) => boolean): ServerOptions =>
  answers(
    () => refusal('500 internal_error'),
    (answer, request) =>
      answer.status === status && where(request) && !/json|[*]/.test(request.headers['accept'] ?? '*'),
  );

const hasValue =
  (odd: RegExp): Where =>
  (_, query) =>
    odd.test([...query.values()].join());
const repeating = (name: string): ServerOptions => crashing((_, query) => query.getAll(name).length > 1);

/** Reads an integer with this spelling as another value, or as absent. */
const integer =
  (name: string) =>
  (spelling: RegExp, to?: (text: string) => string): ServerOptions =>
    reading([name], (text) => (spelling.test(text) ? to?.(text) : text));
const pageSize = integer('pageSize');
const fromId = integer('from_id');

const integers = (read: (text: string) => string | undefined): ServerOptions =>
  reading(['pageSize', 'from_id'], read);

const time = (spelling: RegExp, to: string | ((match: string) => string)): ServerOptions =>
  reading(['from', 'to'], (text) => text.replace(spelling, to as string));

const SPRING = '2026-03-01T00:00:00Z';

/** A page that breaks off. */
export const brokenAnswer = (): ServiceAnswer => ({ ...jsonAnswer(200, ''), body: brokenBody() });

async function* brokenBody(): AsyncGenerator<Buffer> {
  yield Buffer.from('{"items":[');
  // After the first bytes were sent: a connection that closes earlier looks like an idle one that was closed.
  await setTimeout(20);
  throw new Error('the connection breaks here');
}

export const restErrors: readonly Fault[] = [
  ...fails({ '7.2-body': /a JSON body with.*unescaped/ })({
    'the message of an error contains the query unescaped': refusals([400], (answer, request) => ({
      ...answer,
      body: `{"code":"invalid_time_range","message":"unescaped: ${[...queryOf(request).values()].join()}"}`,
    })),
  }),
  ...fails({ '4.2-r2-inverted': /400 invalid_time_range.*200/, '4.2-from-required': /400.*200/ })({
    'an invalid query is an empty page when it is repeated': middleware(() => {
      const checked = new Set<string>();
      return async (request, next) => {
        const answer = await next(request);
        if (answer.status !== 400 || !isScreenings(request)) return answer;
        if (checked.has(request.path)) return emptyPage();
        checked.add(request.path);
        return answer;
      };
    }),
  }),
  ...fails({ '7.2-body': /a JSON body with/ })({
    'REST errors have codes in capitals': errors(
      jsonBody((inner) => ({ ...inner, code: String(inner['code']).toUpperCase() })),
    ),
    'REST errors list all codes': errors(jsonBody(() => ({ codes: Object.values(CODES).flat() }))),
  }),
  ...fails({
    '7.2-invalid_request': /400 invalid_request.*invalid_time_range page_size/,
    '7.2-page_size_out_of_range': /400 page_size_out_of_range.*invalid_time_range page_size/,
  })({
    'a 400 lists all codes of its status': refusals(
      [400],
      jsonBody(() => ({ code: CODES[400] })),
    ),
  }),
  ...failsFull({ '7.2-body': /a JSON body with.*at \/code/ })({
    'the code is not where the target file says': errors(jsonBody((error) => ({ error }))),
  }),
  ...fails({ '7.2-unauthenticated': /401 unauthenticated/ })({
    'a 401 has another code': coded(401, 'invalid_token'),
  }),
  ...fails({ '7.2-forbidden': /403 forbidden/ })({ 'a 403 has another code': coded(403, 'access_denied') }),
  ...fails({ '7.2-invalid_request': /400 invalid_request.*200/ })({
    'reads a pageSize up to its first letter': pageSize(/^\d+[a-z]+$/, (text) =>
      String(Math.max(1, parseInt(text))),
    ),
    'a pageSize of Infinity is the largest one': pageSize(/^Infinity$/, () => '1000'),
    'ignores a from_id of null': fromId(/^null$/),
    'ignores a from_id that is no integer': fromId(/[^\d-]/),
    'ignores quotes around an integer': integers((text) => text.replace(/^"(\d+)"$/, '$1')),
    'ignores the suffix of a floating-point number': integers((text) => text.replace(/^(\d+)[dfDF]$/, '$1')),
    'an integer is inserted into an SQL query': integers((text) =>
      text.replace(/^(\d+)-(\d+)$/, (_, one: string, other: string) => String(BigInt(one) - BigInt(other))),
    ),
    'a NUL ends an integer': integers((text) => text.split('\0')[0]),
    'an integer after 0x, 0b or 0o is hexadecimal, binary or octal': integers((text) =>
      /^0(x[0-9a-f]+|b[01]+|o[0-7]+)$/i.test(text) ? String(BigInt(text)) : text,
    ),
    'an equals sign ends an integer': integers((text) => text.split('=')[0]),
    'a minus sign alone is 0': fromId(/^-$/, () => '0'),
    'one line of an integer is enough': integers((text) => /^\d+$/m.exec(text)?.[0] ?? text),
  }),
  ...fails({ '7.2-invalid_request': /400 invalid_request.*200|400, or a page/ })({
    'reads a from_id that begins with 0 as octal': fromId(/^0\d+$/, (text) => String(parseInt(text, 8))),
  }),
  ...fails({ '7.2-invalid_request': /400, or a page that begins at from.*without the item/ })({
    'an empty from_id is the largest one': fromId(/^$/, () => String(2n ** 63n - 1n)),
  }),
  ...fails({ '7.2-invalid_request': /400, or a page of pageSize 100.*items/ })({
    'an empty pageSize is the largest one': pageSize(/^$/, () => '1000'),
  }),
  ...fails({ '7.2-invalid_request': /400 invalid_request.*422/ })({
    'a malformed integer is 422': recoded('invalid_request', '422 invalid_request'),
  }),
  ...fails({ '7.2-invalid_request': /400 invalid_request.*page_size_out_of_range/ })({
    'a pageSize of letters is page_size_out_of_range': answering(
      '400 page_size_out_of_range',
      hasParameter('pageSize', /^[a-z]/),
    ),
  }),
  ...fails({ '7.2-invalid_time_range': /400 invalid_time_range.*invalid_request/ })({
    'a malformed time is invalid_request': recoded('invalid_time_range', '400 invalid_request'),
    'a leap second is invalid_request': answering('400 invalid_request', edgeLike(/:60Z$/)),
    'a year 0 is invalid_request': answering('400 invalid_request', edgeLike(/^0000-/)),
    'an offset of -00:00 is invalid_request': answering('400 invalid_request', edgeLike(/-00:00$/)),
  }),

  // Each of several mistakes with the same symptom is named.
  ...failsLater({ '7.2-invalid_time_range': /200.*; alike (?=.*T24)(?=.*-02-29)/ })({
    'every fourth year is a leap year, and every day has an hour 24': time(
      /^(19|21)00-02-29T|(?<=T)24(?=:00:00Z)/,
      (match) => (match === '24' ? '23' : `${match.slice(0, 4)}-03-01T`),
    ),
  }),
  ...fails({ '7.2-invalid_time_range': /400 invalid_time_range.*200/ })({
    'a time without offset is UTC': time(/^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)$/, '$1Z'),
    'a time without offset is UTC where it has a fraction': time(/^(.*:\d\d\.\d+)$/, '$1Z'),
    'a date alone is its midnight': time(/^(\d{4}-\d\d-\d\d)$/, '$1T00:00:00Z'),
    'a date of to with Z is its midnight': reading(['to'], (text) =>
      text.replace(/^(\d{4}-\d\d-\d\d)Z$/, '$1T00:00:00Z'),
    ),
    'the minutes of an offset may have one digit': time(/(?<=[+-]\d\d:)(?=\d$)/, '0'),
    'accepts epoch seconds': time(/^\d{10}$/, SPRING),
    'accepts a time without seconds': time(/^(\d{4}-\d\d-\d\dT\d\d:\d\d)Z$/, '$1:00Z'),
    'accepts a fraction of a minute': time(/^(.*T\d\d:\d\d)\.\d+Z$/, '$1:00Z'),
    'accepts hour 24 of an offset': time(/\+24:00$/, '+23:59'),
    'ignores an offset after Z': time(/Z[+-]\d\d:\d\d$/, 'Z'),
    'ignores text after a time': time(/^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\w+$/, '$1'),
    'trims blanks around a time': time(/^\s*(\S+Z)\s*$/, '$1'),
    'ignores quotes around a time': time(/^"(.*)"$/, '$1'),
    'ignores the name of a zone after a time': time(/^([^[]*)\[.*\]$/, '$1'),
    'accepts words that PostgreSQL reads': time(/^(-?infinity|epoch|today|tomorrow|J\d+)$/, SPRING),
    'accepts date mathematics': time(/^now[-+].*$|\|\|.*$/, ''),
    'accepts a date of HTTP headers': time(/^\w{3}, .* GMT$/, SPRING),
    'accepts an offset without a colon': time(/^(.*\+\d\d)\d\d$/, '$1:00'),
    'removes a blank before an offset': time(/^(.*) (?=\+\d\d:\d\d$)/, '$1'),
    'a year may have more than four digits': time(/^0(?=\d{4}-)/, ''),
    '30 February is 2 March': time(/^(\d{4})-02-30T00:00:00Z$/, '$1-03-02T00:00:00Z'),
    'reads digits of every script': time(/\p{Nd}/gu, (digit) => String(digit.codePointAt(0)! & 15)),
    'a NUL ends a time': time(/\0.*/s, ''),
    'reads the fields of a time as integers with a sign': time(/-\+(?=\d-)/, '-0'),
    'reads a day up to its first letter': time(/-(\d)[a-z](?=T)/, '-0$1'),
    'a day may have three digits': time(/-0(?=\d\dT)/, '-'),
    'a minute may have one digit': time(/(?<=T\d\d:)(?=\d:)/, '0'),
    'any letter is the zone Z': time(/[A-Y]$/, 'Z'),
    'an hour, minutes and seconds may have dots between them': time(/T(\d\d)\.(\d\d)\.(\d\d)/, 'T$1:$2:$3'),
    'a second may have one digit': time(/(?<=T\d\d:\d\d:)(?=\dZ)/, '0'),
    'ignores letters after a fraction': time(/(\.\d+)[a-z]+(?=Z$)/, '$1'),
    'decodes a time twice': time(/%3A/g, ':'),
    'decodes a query before it splits it': time(/&.*/s, ''),
    '31 April is accepted': accepting('invalid_time_range', edgeLike(/-04-31T/)),
    '31 September is accepted': accepting('invalid_time_range', edgeLike(/-09-31T/)),
    '32 January is accepted': accepting('invalid_time_range', edgeLike(/-01-32T/)),
    'a window with equal edges is empty before they are parsed': accepting(
      'invalid_time_range',
      (_, query) => query.has('from') && query.get('from') === query.get('to'),
    ),
  }),
  ...fails({ '7.2-invalid_time_range': /400 invalid_time_range.*500/, '7.2-no-unprovoked-5xx': /no 5xx/ })({
    'an offset beyond eighteen hours is 500': crashing(edgeLike(/[+-](18:(?!00)|19:|2[0-3]:)/)),
    'second 60 is 500 where the offset is a number': crashing(edgeLike(/:60(\.\d+)?[+-]/)),
    'second 60 of to is 500': crashing(hasParameter('to', /:60(\.\d+)?(Z|[+-])/)),
    'minute 60 of an offset of from is 500': crashing(hasParameter('from', /[+-]\d\d:[6-9]\d$/)),
  }),
  ...fails({ '7.2-page_size_out_of_range': /400 page_size_out_of_range.*200/ })({
    'truncates a negative pageSize to 32 bits': pageSize(/^-\d{10}$/, (text) =>
      String(BigInt.asIntN(32, BigInt(text))),
    ),
    'truncates a pageSize to 16 bits': pageSize(/^\d{4,9}$/, (text) => String(Number(text) % 65_536)),
    'reduces a pageSize beyond 1000 to 1000': pageSize(/^\d{4,19}$/, (text) =>
      Number(text) > 1000 ? '1000' : text,
    ),
    'ignores a pageSize of 0': pageSize(/^0$/),
  }),
  ...fails({ '7.2-page_size_out_of_range': /400 page_size_out_of_range.*invalid_request/ })({
    'a pageSize out of range is invalid_request': recoded('page_size_out_of_range', '400 invalid_request'),
  }),
  ...fails({ '7.2-invalid_request': /400 invalid_request.*500/, '7.2-no-unprovoked-5xx': /no 5xx/ })({
    'a digit of an integer that is no decimal one is 500': crashing((_, query) =>
      ['pageSize', 'from_id'].some((name) => /^\p{No}+$/u.test(query.get(name) ?? '')),
    ),
    // Python: text.lstrip('-').isdigit() holds, and int(text) fails.
    'an integer after two minus signs is 500': crashing((_, query) =>
      ['pageSize', 'from_id'].some((name) => /^--\d+$/.test(query.get(name) ?? '')),
    ),
  }),
  ...fails({ '5-scheme': /401 unauthenticated.*500/, '7.2-no-unprovoked-5xx': /no 5xx/ })({
    'a page of Basic without a colon is 500': crashing(
      (request) => basicOf(request)?.includes(':') === false,
    ),
  }),
  ...fails({ '7.2-page_size_out_of_range': /400.*500/, '7.2-no-unprovoked-5xx': /no 5xx/ })({
    'a pageSize beyond 96 bits is 500': crashing(
      (_, query) => /^\d+$/.test(query.get('pageSize') ?? '') && BigInt(query.get('pageSize')!) >> 96n > 0n,
    ),
  }),
  ...fails({ '4.2-from_id': /(item|\d)/ })({
    'a from_id beyond 64 bits wraps around': fromId(/^\d{20,}$/, (text) =>
      String(BigInt.asUintN(64, BigInt(text))),
    ),
    'ignores the sign of a from_id': fromId(/^-(?=\d)/, (text) => text.slice(1)),
  }),
  ...fails({ '4.2-success': /200.*(404 not_found|204)/ })({
    'a window without screenings is 404': withoutItems(() => refusal('404 not_found')),
    'a window without screenings is 204': withoutItems(() => withoutBody(204)),
  }),
  ...failsFull({ '7.2-not_found': /404 not_found.*200/ })({
    'a tenant that is not onboarded gets an empty page': refusals([404], emptyPage),
  }),
  ...fails({ '4.2-from_id': /200, or 400.*500/, '7.2-no-unprovoked-5xx': /no 5xx/ })({
    'the smallest from_id of 64 bits is 500': crashing(hasParameter('from_id', /^-9223372036854775808$/)),
    'a from_id below 64 bits is 500': crashing(
      (_, query) => /^-\d+$/.test(query.get('from_id') ?? '') && BigInt(query.get('from_id')!) < -(2n ** 63n),
    ),
  }),
  ...fails({ '7.2-invalid_time_range': /400 invalid_time_range or.*200/ })({
    'a page of two malformed parameters is empty': answering(emptyPage, isMalformedTwice),
  }),
  ...fails({ '5-missing': /401 unauthenticated or.*200/ })({
    'a page of a malformed from without a token is empty': answering(
      emptyPage,
      every(isAnonymous, isFromAWord),
    ),
  }),
  ...fails({ '5-forbidden-unknown': /403 forbidden.* or 400.*200/ })({
    "a page of a malformed from on an unknown tenant's path is empty": answering(
      emptyPage,
      every(isFromAWord, isOfUnknown),
    ),
  }),
  ...fails({ '7.2-no-unprovoked-5xx': /no 5xx/ })({
    'two malformed parameters are 500': crashing(isMalformedTwice),
    'a malformed from without a token is 500': crashing(every(isAnonymous, isFromAWord)),
    'sort by a member that no screening has is 500 where there are some': failing(hasParameter('sort')),
    'an If-Modified-Since that is no date is 500 where there are screenings': failing(
      hasHeader('if-modified-since', /^\D+$/),
    ),
    'an unknown parameter that no header can hold is 500 in Link': onPages(
      (page) => (page.headers.some(([name]) => name === 'link') ? refusal('500 internal_error') : page),
      hasValue(/[^\0-\xff]/),
    ),
    'an unknown parameter beyond 16 bits is 500': crashing(hasValue(/[^\0-\uffff]/u)),
    'an offset of up to fourteen hours that leads to the year 0 is 500': crashing(
      edgeLike(/^0001-01-01T00:00:00\+(0\d|1[0-4]):/),
    ),
    'an instant that rounding to microseconds moves to the year 10000 is 500': crashing(
      edgeLike(/^9999-12-31T23:59:59\.9{7}/),
    ),
    'an Accept header without JSON is 500': crashing(hasHeader('accept', /html/)),
    'a 400 where Accept excludes JSON is 500': unacceptable(400, isScreenings),
    'a 401 where Accept excludes JSON is 500': unacceptable(401, isScreenings),
    'a token error where Accept excludes JSON is 500': unacceptable(400, isTokenRequest),
    'a NUL in a parameter is 500': crashing(({ path }) => path.includes('%00')),
    'the last day of the year 9999 is 500': crashing(edgeLike(/^9999-12-31/)),
    'a second from_id is 500': repeating('from_id'),
    'a second to is 500': repeating('to'),
    'a list of page sizes is 500': crashing(hasParameter('pageSize[]')),
    'a list of times is 400, and one of page sizes is 500': both(
      crashing(hasParameter('pageSize[]')),
      answering('400 invalid_time_range', hasParameter('from[]')),
    ),
    'a letter beyond ASCII in Authorization is 500': crashing(hasHeader('authorization', /[^\0-\x7f]/)),
    'a parameter with the name of a method is 500': crashing(hasParameter('hasOwnProperty')),
    'a parameter without = is 500': crashing(({ path }) => /[?&](from|to)(&|$)/.test(path)),
    'sort by a member that no screening has is 500': crashing(hasParameter('sort')),
    'a GET without Accept is 500': crashing(not(hasHeader('accept'))),
    'a GET with a Content-Type is 500': crashing(
      ({ method, headers }) => method === 'GET' && headers['content-type'] !== undefined,
    ),
    'a GET without a query is 500': crashing(({ method, path }) => method === 'GET' && !path.includes('?')),
    'an X-Request-Id that is no UUID is 500': crashing(hasHeader('x-request-id', /^.{1,35}$/)),
    'a User-Agent beyond 255 characters is 500': crashing(hasHeader('user-agent', /.{256}/)),
    'an X-Request-Id that is no UUID is 400, and a User-Agent beyond 255 characters 500': both(
      crashing(hasHeader('user-agent', /.{256}/)),
      answering('400 invalid_request', hasHeader('x-request-id', /^.{1,35}$/)),
    ),
    'a Referer beyond 255 characters is 500': crashing(hasHeader('referer', /.{256}/)),
    'an Origin of null is 500': crashing(hasHeader('origin', /^null$/)),
    'a language without a tag is 500': crashing(hasHeader('accept-language', /^;/)),
    'a cookie without a name is 500': crashing(hasHeader('cookie', /(^|;)\s*=/)),
    'a traceparent of two parts is 500': crashing(hasHeader('traceparent', /^[^-]*-[^-]*$/)),
    'an If-Modified-Since that is no date is 500': crashing(hasHeader('if-modified-since', /^\D+$/)),
    'an If-None-Match without its second quote is 500': crashing(hasHeader('if-none-match', /^"[^"]*$/)),
    'an Accept-Encoding without a coding is 500': crashing(hasHeader('accept-encoding', /^;/)),
    'an Accept-Encoding without identity is 500': crashing(hasHeader('accept-encoding', /identity;q=0/)),
    'a quality of Accept that is no number is 500': crashing(hasHeader('accept', /q=\D/)),
    'an X-Forwarded-For without an address is 500': crashing(hasHeader('x-forwarded-for', /^[^\d:]*$/)),
  }),
  ...fails({ '7.2-no-unprovoked-5xx': /no 500 after (from_id|to),.*500/ })({
    'the request after a NUL is 500': failingOnceAfter(hasValue(/\0/)),
    'the request after an integer beyond 64 bits is 500': failingOnceAfter(
      hasParameter('from_id', /^\d{20,}$/),
    ),
    'the request after an instant beyond the year 9999 is 500': failingOnceAfter(
      edgeLike(/^9999-12-31T23:59:59-/),
    ),
  }),
  ...fails({ '7.2-no-unprovoked-5xx': /broken connection/ })({
    'broken percent-encoding closes the connection': answering(brokenAnswer, ({ path }) =>
      /%(?![0-9a-f]{2})/i.test(path),
    ),
  }),
];

/** A transaction that failed stays open on its connection, which the next request gets. */
function failingOnceAfter(isFailing: Where): ServerOptions {
  return middleware(() => {
    let hasFailed = false;
    return (request, next) => {
      if (!isScreenings(request)) return next(request);
      const isNext = hasFailed;
      hasFailed = isFailing(request, queryOf(request));
      return isNext ? refusal('500 internal_error') : next(request);
    };
  });
}
