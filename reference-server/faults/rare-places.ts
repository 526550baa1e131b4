/** Faults that need a rare combination of factors, or affect one answer in many. */
import { setTimeout as sleep } from 'node:timers/promises';
import { compareInstants, instant, shift, type Instant } from '../../engine/data/instant.ts';
import {
  answering,
  asPages,
  concurrently,
  counting,
  crowded,
  emptyPage,
  isScreenings,
  middleware,
  nextOf,
  pages,
  refusal,
  accepting,
  windowOf,
} from '../run/alter.ts';
import { every, hasHeader, hasParameter, isAfterCursor, not } from '../run/conditions.ts';
import { TENANTS } from '../run/provisioning.ts';
import type { ServerOptions } from '../run/start.ts';
import { anonymous, authorizationOf, hasExpired, headerOf, payloadOf, tokenOf } from './bearer.ts';
import { PAGES, REFUSALS, theme, type Fault } from './fault.ts';
import { jsonAnswer, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import { brokenAnswer } from './rest-errors.ts';
import { endingAt, rows } from './rows.ts';
import { windowWhere } from './window.ts';

const { fails, failsFull, failsLater } = theme([...PAGES, ...REFUSALS, '7.2-server-error']);

const isUpperCase = ({ path }: ServiceRequest): boolean => /tenants\/[^/]*[A-F]/.test(path);
const isLarge = hasParameter('pageSize', /^1000$/);

function afterRequests(requests: number, broken: ServerOptions): ServerOptions {
  return {
    wrapHandler: (handler) => {
      let asked = 0;
      const wrong = broken.wrapHandler!(handler);
      return (request) => ((asked += 1) > requests ? wrong : handler)(request);
    },
  };
}

/** A request that comes while a page of its URL is made shares that page, before its token is verified. */
const sharing = (isUnverified: (request: ServiceRequest) => boolean): ServerOptions =>
  middleware(() => {
    const inFlight = new Map<string, Promise<ServiceAnswer>>();
    return async (request, next) => {
      const { path, method } = request;
      if (!isScreenings(request) || method !== 'GET') return next(request);
      const shared = isUnverified(request) ? await inFlight.get(path) : undefined;
      if (shared?.status === 200) return shared;
      const answer = sleep(10).then(() => next(request));
      if (authorizationOf(request) !== '') inFlight.set(path, answer);
      return answer.finally(() => inFlight.delete(path));
    };
  });

const inBerlin = ({ seconds }: Instant): string =>
  new Date(Number(seconds) * 1000).toLocaleString('sv', { timeZone: 'Europe/Berlin' });

export const rarePlaces: readonly Fault[] = [
  ...fails({ '4.2-window': /only items in \[/ })({
    'a to at a local midnight includes the following day': endingAt(({ from, to, raw }) => {
      const isDay = /T00:00:00(\.0*)?[+-]/.test(raw.get('to') ?? '') && compareInstants(from, to) < 0;
      return isDay ? shift(to, 86_400n, 0) : to;
    }),
  }),
  ...fails({ '4.2-window': /no item before|no item at or after|item \d+ at|is missing/ })({
    'the first of two equal hours in Berlin is the second in to': rows({
      read: (text, name) => {
        const at = instant(text);
        const later = { ...at, seconds: at.seconds + 3_600n };
        return name === 'to' && inBerlin(at) === inBerlin(later) ? later : at;
      },
    }),
  }),
  ...fails({ '4.2-success': /200.*400 invalid_request/ })({
    'a to of zero epoch seconds is missing': answering('400 invalid_request', (request, query) => {
      const to = windowOf(query)[1];
      return authorizationOf(request) !== '' && to?.seconds === 0n && to.fraction === '';
    }),
    'a to that is rounded up to the year 10000 is refused': answering(
      '400 invalid_request',
      hasParameter('to', /^9999-12-31T23:59:59\.9{6}/),
    ),
  }),
  ...fails({ '4.2-r4-order': /ascending|comes first/ })({
    'last pages are reversed for a path in capitals': pages((page, _, __, request) => {
      if (isUpperCase(request) && !nextOf(page)) page.items.reverse();
    }),
  }),
  ...fails({ '4.2-r5-exactly-once': /twice on one page/ })({
    'the last item of a short page is repeated for a path in capitals': pages((page, query, _, request) => {
      const isFull = page.items.length >= Number(query.get('pageSize') ?? 100);
      if (isUpperCase(request) && !isFull) page.items.push(...page.items.slice(-1));
    }),
  }),
  ...fails({ '7.2-page_size_out_of_range': /page_size_out_of_range.*200/ })({
    'pageSize is not validated after a cursor': accepting('page_size_out_of_range', isAfterCursor),
    'pageSize is not validated after fifteen requests': afterRequests(
      15,
      accepting('page_size_out_of_range'),
    ),
  }),
  ...failsFull({ '5-forbidden': /403 forbidden.*200/, '5-forbidden-unknown': /403 forbidden.*200/ })({
    "another tenant's path is an empty page in capitals": accepting('forbidden', isUpperCase),
    "another tenant's path is an empty page where pageSize is 1000": accepting('forbidden', isLarge),
  }),
  ...fails({ '5-forbidden-unknown': /403 forbidden.*200/ })({
    'an unknown tenant is an empty page after a cursor, without pageSize': accepting(
      'forbidden',
      every(isAfterCursor, not(hasParameter('pageSize'))),
    ),
  }),
  ...fails({ '4.2-to-required': /400.*200/ })({
    'to defaults to now where from has an offset': accepting(
      'invalid_request',
      (_, query) => !query.has('to') && !/Z$/.test(query.get('from') ?? 'Z'),
    ),
  }),
  ...fails({ '5-missing': /401 unauthenticated.*200/ })({
    'a window of one day needs no token': anonymous(
      every(
        windowWhere((from, to) => to.seconds - from.seconds === 86_400n),
        // Other checks send the token or a condition in headers.
        ({ headers }) =>
          !headers['if-none-match'] && !Object.values(headers).some((value) => /eyJ/.test(value)),
      ),
    ),
    'concurrent requests need no token': concurrently(
      () => 'any',
      async (inFlight, request, next) => {
        await sleep(20);
        const answer = await next(request);
        return inFlight > 1 && answer.status === 401 && isScreenings(request) ? emptyPage() : answer;
      },
    ),
    'a request without a token shares the answer to a concurrent one': sharing(
      (request) => authorizationOf(request) === '',
    ),
  }),
  ...fails({ '5-forged': /401 unauthenticated.*200/ })({
    'jwk in the header of the token is trusted for a path in capitals': anonymous(
      every(isUpperCase, (request) => headerOf(tokenOf(request)).jwk !== undefined),
    ),
  }),
  ...fails({ '5-scheme': /401 unauthenticated.*200/ })({
    'ignores the scheme after a cursor': anonymous(
      every(isAfterCursor, hasHeader('authorization', /^(?!Bearer )\w+ eyJ/i)),
    ),
  }),
  ...fails({ '5-tampered': /401 unauthenticated.*200/ })({
    'a request with an altered token shares the answer to a concurrent one': sharing(
      (request) =>
        payloadOf(tokenOf(request))?.tenant_id === TENANTS.primary &&
        /^Bearer [\w-]+\.[\w-]+\.[\w-]+$/.test(authorizationOf(request)),
    ),
    'signatures are ignored where pageSize is 1000': anonymous(
      every(isLarge, hasHeader('authorization', /^Bearer [\w-]+\.[\w-]+\.[\w-]*$/)),
    ),
  }),
  ...failsFull({ '5-expired': /401 unauthenticated.*200/ })({
    'exp is ignored where pageSize is 1000': anonymous(every(isLarge, hasExpired)),
  }),
];

// -- one answer in many -------------------------------------------------------------------------------

const everyTwentyFifth = (answer: () => ServiceAnswer): ServerOptions =>
  counting((asked, request, next) => (asked % 25 === 15 ? answer() : next(request)), isScreenings);

export const intermittent: readonly Fault[] = [
  ...failsLater({ '7.2-no-unprovoked-5xx': /500 .*requests in flight, each time/ })({
    'more than six concurrent requests are 500': crowded(asPages, { most: 6, latencyMs: 20 }, () =>
      refusal('500 internal_error'),
    ),
  }),
  ...failsLater({ '7.2-no-unprovoked-5xx': /no 5xx.*503/ })({
    'one answer in 25 is 503': everyTwentyFifth(() => refusal('503 service_unavailable')),
  }),
  ...failsLater({ '7.2-no-unprovoked-5xx': /broken connection/ })({
    'one answer in 25 breaks off': everyTwentyFifth(brokenAnswer),
  }),
  ...failsLater({ '7.2-no-unprovoked-5xx': /200 without a body/ })({
    'one page in 25 ends before its first octet': everyTwentyFifth(() => ({
      ...jsonAnswer(200, ''),
      body: (async function* () {})(),
    })),
  }),
];
