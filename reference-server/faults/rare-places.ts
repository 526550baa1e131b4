/** Faults that need a rare combination of factors, or affect one answer in many. */
import { setTimeout as sleep } from 'node:timers/promises';
import { compareInstants, instant, shift } from '../../engine/data/instant.ts';
import {
  answering,
  emptyPage,
  isScreenings,
  middleware,
  pages,
  refusal,
  onPages,
  accepting,
  windowOf,
  withHeader,
  withoutLink,
  type Where,
  nextOf,
} from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { authorizationOf, headerOf, payloadOf, tokenOf } from './bearer.ts';
import { PAGES, REFUSALS, theme, type Fault } from './fault.ts';
import type { ServiceAnswer } from '../http/http.ts';
import { brokenBody } from './rest-errors.ts';
import { byId, rows } from './rows.ts';

const { fails, failsFull, failsLater } = theme([...PAGES, ...REFUSALS, '7.2-server-error']);

const isUpperCase: Where = (_, { path }) => /tenants\/[^/]*[A-F]/.test(path);
const isFuture: Where = (query) => (windowOf(query)[1]?.seconds ?? 0n) > BigInt(Date.now()) / 1000n;
const isLarge: Where = (query) => query.get('pageSize') === '1000';
const hasCursor: Where = (query) => query.has('from_id');
const isFollowed: Where = (query) => query.has('from_id') && !query.has('pageSize');
const isOfYears: Where = (query) => {
  const [from, to] = windowOf(query);
  return from !== undefined && to !== undefined && to.seconds - from.seconds > 31_556_952n;
};
const both =
  (...conditions: readonly Where[]): Where =>
  (query, request) =>
    conditions.every((holds) => holds(query, request));

function afterRequests(requests: number, broken: ServerOptions): ServerOptions {
  let asked = 0;
  return {
    wrapHandler: (handler) => {
      const wrong = broken.wrapHandler!(handler);
      return (request) => ((asked += 1) > requests ? wrong : handler)(request);
    },
  };
}

/** Reads one edge as a local time, of which an hour occurs twice when clocks are put back: the other one is meant. */
function onceAYear(edge: 'from' | 'to', timeZone: string, hours: 1 | -1): ServerOptions {
  const wall = (seconds: bigint): string =>
    new Date(Number(seconds) * 1000).toLocaleString('sv', { timeZone });
  return rows({
    read: (text, name) => {
      const at = instant(text);
      const other = at.seconds + BigInt(hours * 3_600);
      return name === edge && wall(at.seconds) === wall(other) ? { ...at, seconds: other } : at;
    },
  });
}

export const rarePlaces: readonly Fault[] = [
  ...fails({ '4.2-window': /only items in \[/ })({
    'a to at a local midnight includes the following day': rows({
      ends: (row, { from, to, raw }) => {
        const isDay = /T00:00:00(\.0*)?[+-]/.test(raw.get('to') ?? '') && compareInstants(from, to) < 0;
        return compareInstants(row.at, isDay ? shift(to, 86_400n, 0) : to) < 0;
      },
    }),
  }),
  ...fails({ '4.2-window': /no item before|no item at or after|item \d+ at|is missing/ })({
    'the first of two equal hours in Berlin is the second in to': onceAYear('to', 'Europe/Berlin', 1),
    'the second of two equal hours in Berlin is the first in to': onceAYear('to', 'Europe/Berlin', -1),
    'the first of two equal hours in New York is the second in to': onceAYear('to', 'America/New_York', 1),
    'the second of two equal hours in Sydney is the first in from': onceAYear('from', 'Australia/Sydney', -1),
  }),
  ...fails({ '4.2-r4-order': /ascending|comes first/ })({
    'fractions of a second are sorted as integers': rows({
      order: ({ at: a, ...first }, { at: b, ...second }) =>
        Number(a.seconds - b.seconds || BigInt(a.fraction || 0) - BigInt(b.fraction || 0)) ||
        byId({ at: a, ...first }, { at: b, ...second }),
    }),
  }),
  ...fails({ '4.2-success': /200.*400 invalid_request/ })({
    'a to of zero epoch seconds is missing': answering('400 invalid_request', (query, request) => {
      const to = windowOf(query)[1];
      return authorizationOf(request) !== '' && to?.seconds === 0n && to.fraction === '';
    }),
    'a to that is rounded up to the year 10000 is refused': answering('400 invalid_request', (query) =>
      /^9999-12-31T23:59:59\.9{7}/.test(query.get('to') ?? ''),
    ),
  }),
  ...fails({ '4.2-r4-order': /ascending|comes first/ })({
    'last pages are reversed for a path in capitals': pages((page, query, _, request) => {
      if (isUpperCase(query, request) && !nextOf(page)) page.items.reverse();
    }),
  }),
  ...fails({ '4.2-r5-exactly-once': /twice on one page/ })({
    'the last item of a short page is repeated for a path in capitals': pages((page, query, _, request) => {
      const isFull = page.items.length >= Number(query.get('pageSize') ?? 100);
      if (isUpperCase(query, request) && !isFull) page.items.push(...page.items.slice(-1));
    }),
  }),
  ...fails({ '7.2-page_size_out_of_range': /page_size_out_of_range.*200/ })({
    'pageSize is not validated after a cursor': accepting('page_size_out_of_range', hasCursor),
    'pageSize is not validated after fifteen requests': afterRequests(
      15,
      accepting('page_size_out_of_range'),
    ),
  }),
  ...fails({ '7.2-invalid_request': /invalid_request.*200/ })({
    'a malformed from_id is ignored where pageSize is 1000': accepting(
      'invalid_request',
      both(isLarge, hasCursor),
    ),
  }),
  ...fails({ '7.2-invalid_time_range': /invalid_time_range.*200/ })({
    'a malformed time is accepted after a cursor, without pageSize': accepting(
      'invalid_time_range',
      isFollowed,
    ),
  }),
  ...failsFull({ '5-forbidden': /403 forbidden.*200/, '5-forbidden-unknown': /403 forbidden.*200/ })({
    "another tenant's path is an empty page in capitals": accepting('forbidden', isUpperCase),
    "another tenant's path is an empty page for a window of years": accepting('forbidden', isOfYears),
    "another tenant's path is an empty page where pageSize is 1000": accepting('forbidden', isLarge),
  }),
  ...fails({ '5-forbidden-unknown': /403 forbidden.*200/ })({
    'an unknown tenant is an empty page after a cursor, without pageSize': accepting('forbidden', isFollowed),
  }),
  ...fails({ '4.2-r2-inverted': /invalid_time_range.*200/ })({
    'to earlier than from is an empty page in the future': accepting(
      'invalid_time_range',
      both(isFuture, (query) => windowOf(query)[0] !== undefined),
    ),
  }),
  ...fails({ '4.2-from-required': /400.*200/ })({
    'from defaults to the epoch after a cursor': accepting(
      'invalid_request',
      both(hasCursor, (query) => !query.has('from')),
    ),
  }),
  ...fails({ '4.2-to-required': /400.*200/ })({
    'to defaults to now where from has an offset': accepting(
      'invalid_request',
      (query) => !query.has('to') && !/Z$/.test(query.get('from') ?? ''),
    ),
  }),
  ...fails({ '4.2-r1-zero-width': /200.*400/ })({
    'from equal to to is refused after a cursor': answering('400 invalid_time_range', (query) => {
      const [from, to] = windowOf(query);
      return query.has('from_id') && !!from && !!to && compareInstants(from, to) === 0;
    }),
  }),
  ...fails({ '5-missing': /401 unauthenticated.*200/ })({
    'a path in capitals needs no token': accepting('unauthenticated', isUpperCase),
    'a window of one day needs no token': accepting('unauthenticated', (query, { headers }) => {
      const [from, to] = windowOf(query);
      const isDay = !!from && !!to && to.seconds - from.seconds === 86_400n;
      // Other checks send the token or a condition in headers.
      return isDay && !headers['if-none-match'] && !Object.values(headers).some((value) => /eyJ/.test(value));
    }),
    'concurrent requests need no token': middleware(() => {
      let underWay = 0;
      return async (request, next) => {
        underWay += 1;
        const others = underWay > 1;
        try {
          // Simulates the latency of a call to another service, so that requests overlap.
          await sleep(20);
          const answer = await next(request);
          return others && answer.status === 401 && isScreenings(request) ? emptyPage() : answer;
        } finally {
          underWay -= 1;
        }
      };
    }),
  }),
  ...fails({ '5-forged': /401 unauthenticated.*200/ })({
    'jwk in the header of the token is trusted for a path in capitals': accepting(
      'unauthenticated',
      both(isUpperCase, (_, request) => headerOf(tokenOf(request)).jwk !== undefined),
    ),
  }),
  ...failsFull({ '5-expired': /401 unauthenticated.*200/ })({
    'exp is ignored where pageSize is 1000': accepting(
      'unauthenticated',
      both(isLarge, (_, request) => (payloadOf(tokenOf(request))?.exp ?? Infinity) < Date.now() / 1000),
    ),
  }),
  ...fails({ '5-tampered': /401 unauthenticated.*200/ })({
    'signatures are ignored where pageSize is 1000': accepting(
      'unauthenticated',
      both(isLarge, (_, request) => /^Bearer [\w-]+\.[\w-]+\.[\w-]*$/.test(authorizationOf(request))),
    ),
  }),
  ...fails({ '4.2-r7-link': /Link header/ })({
    'the Link header is missing after a cursor, without pageSize': pages((page, query, _, request) => {
      if (isFollowed(query, request)) withoutLink(page);
    }),
  }),
  ...fails({ '2.4-links': /links: an object/ })({
    'links is missing on an empty page where from has nine digits': pages((page, query) => {
      if (page.items.length === 0 && /\.\d{9}/.test(query.get('from')!)) page.links = undefined;
    }),
  }),
  ...fails({ '4.2-content-type': /application\/json.*text\/plain/ })({
    'pages in the future are text/plain': onPages((page, query, request) =>
      isFuture(query, request) ? withHeader(page, 'content-type', 'text/plain') : page,
    ),
  }),
];

// -- one answer in many -------------------------------------------------------------------------------

const everyTwentyFifth = (answer: () => ServiceAnswer): ServerOptions =>
  middleware(() => {
    let asked = 0;
    return (request, next) => (isScreenings(request) && (asked += 1) % 25 === 15 ? answer() : next(request));
  });

export const intermittent: readonly Fault[] = [
  ...fails({ '4.2-r4-order': /ascending/ })({
    'one page in 50 has its first two items swapped': pages((page, _, number) => {
      const [first, second] = page.items;
      if (number % 50 === 17 && first && second) page.items.splice(0, 2, second, first);
    }),
  }),
  ...failsLater({ '7.2-no-unprovoked-5xx': /500 .*requests in flight, each time/ })({
    'more than six concurrent requests are 500': middleware(() => {
      let inFlight = 0;
      return async (request, next) => {
        if (!isScreenings(request)) return next(request);
        try {
          const isExhausted = ++inFlight > 6;
          await sleep(20);
          return isExhausted ? refusal('500 internal_error') : await next(request);
        } finally {
          inFlight--;
        }
      };
    }),
  }),
  ...failsLater({ '7.2-no-unprovoked-5xx': /no 5xx.*503/ })({
    'one answer in 25 is 503': everyTwentyFifth(() => refusal('503 service_unavailable')),
  }),
  ...failsLater({ '7.2-no-unprovoked-5xx': /broken connection/ })({
    'one answer in 25 breaks off': everyTwentyFifth(() => ({
      status: 200,
      headers: [['content-type', 'application/json']],
      body: brokenBody(),
    })),
  }),
];
