/** Rules that hold on the usual road and break beside it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { compareInstants, parseInstant } from '../../engine/data/instant.ts';
import { jsonAnswer, type ServiceAnswer, type ServiceRequest } from '../http/http.ts';
import { answers, isScreenings, middleware, pages, queryOf, withHeader, withQuery } from '../run/alter.ts';
import type { Fault } from './fault.ts';

const emptyPage = (): ServiceAnswer => jsonAnswer(200, { items: [], links: {} });

type Where = (request: ServiceRequest, query: URLSearchParams) => boolean;

/** Refusals of one code become an empty page in some place. */
const unnoticed = (code: string, where: Where): NonNullable<Fault['server']> =>
  answers((answer, request) =>
    isScreenings(request) && String(answer.body).includes(`"${code}"`) && where(request, queryOf(request))
      ? emptyPage()
      : answer,
  );

const isUpperCase: Where = ({ path }) => /tenants\/[^/]*[A-F]/.test(path);
const isFuture: Where = (_, query) =>
  (parseInstant(query.get('to') ?? '')?.seconds ?? 0n) > BigInt(Date.now()) / 1000n;

function yearsOf(query: URLSearchParams): number {
  const [from, to] = ['from', 'to'].map((name) => parseInstant(query.get(name) ?? ''));
  return from && to ? Number(to.seconds - from.seconds) / 31_556_952 : 0;
}

/** From the so-and-so-manieth request of the server on. */
function later(requests: number, broken: NonNullable<Fault['server']>): NonNullable<Fault['server']> {
  let asked = 0;
  return {
    wrapHandler: (handler) => {
      const wrong = broken.wrapHandler!(handler);
      return (request) => ((asked += 1) > requests ? wrong : handler)(request);
    },
  };
}

export const rarePlaces: readonly Fault[] = [
  {
    name: 'pageSize is not looked at after a cursor',
    trips: { '7.2-page_size_out_of_range': /page_size_out_of_range.*200/ },
    server: unnoticed('page_size_out_of_range', (_, query) => query.has('from_id')),
  },
  {
    name: 'pageSize is ignored once the server is warm',
    trips: { '7.2-page_size_out_of_range': /page_size_out_of_range.*200/ },
    server: later(
      15,
      unnoticed('page_size_out_of_range', () => true),
    ),
  },
  {
    name: 'a pageSize that is no integer is the default in windows of years',
    trips: { '7.2-invalid_request': /invalid_request.*200/ },
    server: unnoticed('invalid_request', (_, query) => yearsOf(query) > 1 && query.has('pageSize')),
  },
  {
    name: 'a from_id that is no integer is ignored where pageSize is 1000',
    trips: { '7.2-invalid_request': /invalid_request.*200/ },
    mayTrip: ['7.2-invalid_time_range'],
    server: unnoticed(
      'invalid_request',
      (_, query) => query.get('pageSize') === '1000' && query.has('from_id'),
    ),
  },
  {
    name: 'what is no RFC 3339 is an empty page after a cursor, without pageSize',
    trips: { '7.2-invalid_time_range': /invalid_time_range.*200/ },
    mayTrip: ['4.2-r2-inverted'],
    server: unnoticed('invalid_time_range', (_, query) => query.has('from_id') && !query.has('pageSize')),
  },
  {
    name: 'what is no RFC 3339 is invalid_request in a path in upper case',
    trips: { '7.2-invalid_time_range': /invalid_time_range.*invalid_request/ },
    mayTrip: ['4.2-r2-inverted'],
    server: answers((answer, request) =>
      String(answer.body).includes('invalid_time_range') && isUpperCase(request, queryOf(request))
        ? jsonAnswer(400, { code: 'invalid_request' })
        : answer,
    ),
  },
  {
    name: "another tenant's path is an empty page in upper case",
    trips: { '5-forbidden': /403 forbidden.*200/, '5-forbidden-unknown': /403 forbidden.*200/ },
    bare: false,
    server: unnoticed('forbidden', isUpperCase),
  },
  {
    name: 'to earlier than from is an empty page where the window lies in the future',
    trips: { '4.2-r2-inverted': /invalid_time_range.*200/ },
    mayTrip: ['7.2-invalid_time_range'],
    server: unnoticed(
      'invalid_time_range',
      (request, query) => isFuture(request, query) && parseInstant(query.get('from') ?? '') !== undefined,
    ),
  },
  {
    name: 'to earlier than from is an empty page where both have nine digits and pageSize is 1000',
    trips: { '4.2-r2-inverted': /invalid_time_range.*200/ },
    mayTrip: ['7.2-invalid_time_range'],
    server: unnoticed(
      'invalid_time_range',
      (_, query) =>
        query.get('pageSize') === '1000' &&
        ['from', 'to'].every((name) => /\.\d{9}/.test(query.get(name) ?? '')),
    ),
  },
  {
    name: 'from defaults to the epoch after a cursor',
    trips: { '4.2-from-required': /400.*200/ },
    server: unnoticed('invalid_request', (_, query) => !query.has('from') && query.has('from_id')),
  },
  {
    name: 'to defaults to now where from has an offset',
    trips: { '4.2-to-required': /400.*200/ },
    server: unnoticed(
      'invalid_request',
      (_, query) => !query.has('to') && !/Z$/.test(query.get('from') ?? ''),
    ),
  },
  {
    name: 'from equal to to is refused after a cursor',
    trips: { '4.2-r1-zero-width': /200.*400/ },
    mayTrip: ['4.2-from_id'],
    server: middleware(() => (request, next) => {
      const query = queryOf(request);
      const [from, to] = ['from', 'to'].map((name) => parseInstant(query.get(name) ?? ''));
      const refused = query.has('from_id') && from && to && compareInstants(from, to) === 0;
      return isScreenings(request) && refused
        ? jsonAnswer(400, { code: 'invalid_time_range' })
        : next(request);
    }),
  },
  {
    name: 'no token is asked for in a path in upper case',
    trips: { '5-missing': /401 unauthenticated.*200/ },
    mayTrip: [
      '5-forged',
      '5-scheme',
      '5-garbage',
      '5-tampered',
      '5-query-token',
      '5-expired',
      '7.2-unauthenticated',
    ],
    server: unnoticed('unauthenticated', isUpperCase),
  },
  {
    name: 'concurrent requests need no token',
    trips: { '5-garbage': /401 unauthenticated.*200/ },
    mayTrip: [
      '5-missing',
      '5-scheme',
      '5-tampered',
      '5-forged',
      '5-query-token',
      '5-expired',
      '7.2-unauthenticated',
    ],
    server: middleware(() => {
      let underWay = 0;
      return async (request, next) => {
        underWay += 1;
        const others = underWay > 1;
        try {
          // As long as a look at another service takes.
          await sleep(5);
          const answer = await next(request);
          return others && answer.status === 401 && isScreenings(request) ? emptyPage() : answer;
        } finally {
          underWay -= 1;
        }
      };
    }),
  },
  {
    name: 'the signature is not looked at where pageSize is 1000',
    trips: { '5-tampered': /401 unauthenticated.*200/ },
    mayTrip: ['5-garbage', '5-forged', '5-expired', '7.2-unauthenticated'],
    server: answers((answer, request) =>
      isScreenings(request) &&
      answer.status === 401 &&
      queryOf(request).get('pageSize') === '1000' &&
      /^Bearer [\w-]+\.[\w-]+\.[\w-]*$/.test(request.headers['authorization'] ?? '')
        ? emptyPage()
        : answer,
    ),
  },
  {
    name: "another tenant's path is an empty page in a window of years",
    trips: { '5-forbidden': /403 forbidden.*200/, '5-forbidden-unknown': /403 forbidden.*200/ },
    mayTrip: ['7.2-forbidden'],
    bare: false,
    server: unnoticed('forbidden', (_, query) => yearsOf(query) > 1),
  },
  {
    name: 'an unknown tenant is an empty page without pageSize after a cursor',
    trips: { '5-forbidden-unknown': /403 forbidden.*200/ },
    mayTrip: ['5-forbidden', '7.2-forbidden'],
    server: unnoticed('forbidden', (_, query) => query.has('from_id') && !query.has('pageSize')),
  },
  {
    name: 'no Link header without pageSize after a cursor',
    trips: { '4.2-r7-link': /Link header/ },
    server: pages((page, query) => {
      if (query.has('from_id') && !query.has('pageSize'))
        page.headers = page.headers.filter(([name]) => name !== 'link');
    }),
  },
  {
    name: 'links is missing on an empty page of nine digits',
    trips: { '2.4-links': /links: an object/ },
    server: pages((page, query) => {
      if (page.items.length === 0 && /\.\d{9}/.test(query.get('from') ?? '')) page.links = undefined;
    }),
  },
  {
    name: 'a page in the future is text/plain',
    trips: { '4.2-content-type': /application\/json.*text\/plain/ },
    server: answers((answer, request) =>
      isScreenings(request) && answer.status === 200 && isFuture(request, queryOf(request))
        ? withHeader(answer, 'content-type', 'text/plain')
        : answer,
    ),
  },
  {
    name: 'the default page size is 50 in a path in upper case',
    trips: { '4.2-pageSize-default': /the 100 items that pageSize=100 gives.*50 items/ },
    mayTrip: ['4.2-r6-next-pageSize', '2.4-full-pages'],
    server: middleware(
      () => (request, next) =>
        next(
          isScreenings(request) && isUpperCase(request, queryOf(request)) && !queryOf(request).has('pageSize')
            ? withQuery(request, (query) => query.set('pageSize', '50'))
            : request,
        ),
    ),
  },
];
