/** Faults that need a rare combination of factors, or affect one answer in many. */
import { setTimeout as sleep } from 'node:timers/promises';
import { compareInstants } from '../../engine/data/instant.ts';
import {
  answering,
  answers,
  defaulting,
  emptyPage,
  isScreenings,
  middleware,
  pages,
  queryOf,
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
import { authorizationOf, headerOf, payloadOf } from './bearer.ts';
import { pageFaults, refusalFaults, tripping, type Fault, PAGES, sharing } from './fault.ts';
import type { ServiceAnswer } from '../http/http.ts';
import { brokenBody } from './rest-errors.ts';

const isUpperCase: Where = (_, { path }) => /tenants\/[^/]*[A-F]/.test(path);
const isFuture: Where = (query) => (windowOf(query)[1]?.seconds ?? 0n) > BigInt(Date.now()) / 1000n;
const isLarge: Where = (query) => query.get('pageSize') === '1000';
const isFollowed: Where = (query) => query.has('from_id') && !query.has('pageSize');
const isOfYears: Where = (query) => {
  const [from, to] = windowOf(query);
  return from !== undefined && to !== undefined && Number(to.seconds - from.seconds) / 31_556_952 > 1;
};
const hasNineDigits = (query: URLSearchParams, name: string): boolean =>
  /\.\d{9}/.test(query.get(name) ?? '');

function afterRequests(requests: number, broken: ServerOptions): ServerOptions {
  let asked = 0;
  return {
    wrapHandler: (handler) => {
      const wrong = broken.wrapHandler!(handler);
      return (request) => ((asked += 1) > requests ? wrong : handler)(request);
    },
  };
}

export const rarePlaces: readonly Fault[] = [
  ...pageFaults({ '4.2-r4-order': /ascending|comes first/ })({
    'newest first in a path in upper case': pages((page, query, _, request) => {
      if (isUpperCase(query, request) && !nextOf(page)) page.items.reverse();
    }),
  }),
  ...pageFaults({ '4.2-r5-exactly-once': /twice on one page/ })({
    'the last item comes twice in a path in upper case': pages((page, query, _, request) => {
      const isFull = page.items.length >= Number(query.get('pageSize') ?? 100);
      if (isUpperCase(query, request) && !isFull) page.items.push(...page.items.slice(-1));
    }),
  }),
  ...tripping({ '7.2-page_size_out_of_range': /page_size_out_of_range.*200/ })({
    'pageSize is not looked at after a cursor': accepting('page_size_out_of_range', (query) =>
      query.has('from_id'),
    ),
    'pageSize is ignored once the server is warm': afterRequests(15, accepting('page_size_out_of_range')),
  }),
  ...refusalFaults({ '7.2-invalid_request': /invalid_request.*200/ })({
    'a pageSize that is no integer is the default in windows of years': accepting(
      'invalid_request',
      (query, request) => isOfYears(query, request) && query.has('pageSize'),
    ),
    'a from_id that is no integer is ignored where pageSize is 1000': accepting(
      'invalid_request',
      (query, request) => isLarge(query, request) && query.has('from_id'),
    ),
  }),
  ...refusalFaults({ '7.2-invalid_time_range': /invalid_time_range.*200/ })({
    'what is no RFC 3339 is an empty page after a cursor, without pageSize': accepting(
      'invalid_time_range',
      isFollowed,
    ),
  }),
  ...refusalFaults({ '7.2-invalid_time_range': /invalid_time_range.*invalid_request/ })({
    'what is no RFC 3339 is invalid_request in a path in upper case': answers((answer, request) =>
      String(answer.body).includes('invalid_time_range') && isUpperCase(queryOf(request), request)
        ? refusal('400 invalid_request')
        : answer,
    ),
  }),
  ...refusalFaults(
    { '5-forbidden': /403 forbidden.*200/, '5-forbidden-unknown': /403 forbidden.*200/ },
    { bare: false },
  )({
    "another tenant's path is an empty page in upper case": accepting('forbidden', isUpperCase),
    "another tenant's path is an empty page in a window of years": accepting('forbidden', isOfYears),
  }),
  ...refusalFaults({ '5-forbidden-unknown': /403 forbidden.*200/ })({
    'an unknown tenant is an empty page without pageSize after a cursor': accepting('forbidden', isFollowed),
  }),
  ...refusalFaults({ '4.2-r2-inverted': /invalid_time_range.*200/ })({
    'to earlier than from is an empty page where the window lies in the future': accepting(
      'invalid_time_range',
      (query, request) => isFuture(query, request) && windowOf(query)[0] !== undefined,
    ),
    'to earlier than from is an empty page where both have nine digits and pageSize is 1000': accepting(
      'invalid_time_range',
      (query, request) =>
        isLarge(query, request) && hasNineDigits(query, 'from') && hasNineDigits(query, 'to'),
    ),
  }),
  ...tripping({ '4.2-from-required': /400.*200/ })({
    'from defaults to the epoch after a cursor': accepting(
      'invalid_request',
      (query) => !query.has('from') && query.has('from_id'),
    ),
  }),
  ...tripping({ '4.2-to-required': /400.*200/ })({
    'to defaults to now where from has an offset': accepting(
      'invalid_request',
      (query) => !query.has('to') && !/Z$/.test(query.get('from') ?? ''),
    ),
  }),
  ...refusalFaults({ '4.2-r1-zero-width': /200.*400/ })({
    'from equal to to is refused after a cursor': answering('400 invalid_time_range', (query) => {
      const [from, to] = windowOf(query);
      return query.has('from_id') && !!from && !!to && compareInstants(from, to) === 0;
    }),
  }),
  ...refusalFaults({ '5-missing': /401 unauthenticated.*200/ })({
    'no token is asked for in a path in upper case': accepting('unauthenticated', isUpperCase),
    'no token is asked for where a window is one day, unless a header has one or a condition': accepting(
      'unauthenticated',
      (query, { headers }) => {
        const [from, to] = windowOf(query);
        const isDay = !!from && !!to && to.seconds - from.seconds === 86_400n;
        const isPlain =
          !headers['if-none-match'] && !Object.values(headers).some((value) => /eyJ/.test(value));
        return isDay && isPlain;
      },
    ),
  }),
  ...refusalFaults({ '5-scheme': /401 unauthenticated.*200/ })({
    'a scheme other than Bearer is accepted in a path in upper case': accepting(
      'unauthenticated',
      (query, request) => isUpperCase(query, request) && /^Basic /.test(authorizationOf(request)),
    ),
  }),
  ...refusalFaults({ '5-forged': /401 unauthenticated.*200/ })({
    'a key in the header of the token is believed in a path in upper case': accepting(
      'unauthenticated',
      (query, request) =>
        isUpperCase(query, request) &&
        headerOf(authorizationOf(request).slice('Bearer '.length)).jwk !== undefined,
    ),
  }),
  ...refusalFaults(
    { '5-expired': /401 unauthenticated.*200/ },
    { bare: false },
  )({
    'exp is not looked at where pageSize is 1000': accepting(
      'unauthenticated',
      (query, request) =>
        isLarge(query, request) && (payloadOf(authorizationOf(request))?.exp ?? Infinity) < Date.now() / 1000,
    ),
  }),
  ...refusalFaults({ '5-missing': /401 unauthenticated.*200/ })({
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
  ...refusalFaults({ '5-tampered': /401 unauthenticated.*200/ })({
    'the signature is not looked at where pageSize is 1000': accepting(
      'unauthenticated',
      (query, request) =>
        isLarge(query, request) && /^Bearer [\w-]+\.[\w-]+\.[\w-]*$/.test(authorizationOf(request)),
    ),
  }),
  ...tripping({ '4.2-r7-link': /Link header/ })({
    'no Link header without pageSize after a cursor': pages((page, query, _, request) => {
      if (isFollowed(query, request)) withoutLink(page);
    }),
  }),
  ...tripping({ '2.4-links': /links: an object/ })({
    'links is missing on an empty page of nine digits': pages((page, query) => {
      if (page.items.length === 0 && hasNineDigits(query, 'from')) page.links = undefined;
    }),
  }),
  ...tripping({ '4.2-content-type': /application\/json.*text\/plain/ })({
    'a page in the future is text/plain': onPages((page, query, request) =>
      isFuture(query, request) ? withHeader(page, 'content-type', 'text/plain') : page,
    ),
  }),
  ...tripping(
    { '4.2-pageSize-default': /the 100 items that pageSize=100 gives.*50 items/ },
    { mayTrip: ['4.2-r6-next-pageSize', '2.4-full-pages'] },
  )({
    'the default page size is 50 in a path in upper case': defaulting('pageSize', () => '50', isUpperCase),
  }),
];

// -- one answer in many -------------------------------------------------------------------------------

const rareFaults = sharing({ mayTrip: [...PAGES, '7.2-body', '7.2-server-error'] });

const everyTwentyFifth = (answer: () => ServiceAnswer): ServerOptions =>
  middleware(() => {
    let asked = 0;
    return (request, next) => (isScreenings(request) && (asked += 1) % 25 === 15 ? answer() : next(request));
  });

export const intermittent: readonly Fault[] = [
  ...rareFaults({ '4.2-r4-order': /ascending/ })({
    'one page in fifty with its first two items changed round': pages((page, _, number) => {
      const [first, second] = page.items;
      if (number % 50 === 17 && first && second) page.items.splice(0, 2, second, first);
    }),
  }),
  ...rareFaults({ '4.2-r7-link': /Link header/ })({
    'one page in fifty without its Link header': (() => {
      let seen = 0;
      return pages((page) => {
        if (nextOf(page) && page.items.length > 0 && (seen += 1) % 50 === 21) withoutLink(page);
      });
    })(),
  }),
  ...rareFaults(
    { '7.2-no-unprovoked-5xx': /500 .*requests in flight, each time/ },
    { needsNeighbours: true },
  )({
    'more than six requests at the same time exhaust the connections: 500': middleware(() => {
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
  ...rareFaults(
    { '7.2-no-unprovoked-5xx': /no 5xx.*503/ },
    { needsNeighbours: true },
  )({ 'one answer in twenty-five is 503': everyTwentyFifth(() => refusal('503 service_unavailable')) }),
  ...rareFaults(
    { '7.2-no-unprovoked-5xx': /broken connection/ },
    { needsNeighbours: true },
  )({
    'one answer in twenty-five breaks off in its middle': everyTwentyFifth(() => ({
      status: 200,
      headers: [['content-type', 'application/json']],
      body: brokenBody(),
    })),
  }),
];
