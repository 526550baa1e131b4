/** Sections 4.2 (rules 5 to 7) and 9: faults in next and the Link header, and next that works only once or for a while. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  both,
  concurrently,
  crowded,
  emptyPage,
  isScreenings,
  jsonBody,
  middleware,
  nextOf,
  nextQuery,
  nextUrls,
  pages,
  queryOf,
  refusal,
  requests,
  setNext,
  urlOf,
  windowOf,
  withoutLink,
  withQuery,
} from '../run/alter.ts';
import type { Middleware, PageText } from '../run/alter.ts';
import { compareInstants } from '../../engine/data/instant.ts';
import { splitTarget, type ServiceAnswer } from '../http/http.ts';
import type { ServerOptions } from '../run/start.ts';
import { byDepth, sized, without } from './rows.ts';
import { PAGES, theme, type Fault } from './fault.ts';

const { fails, failsFull, failsLater } = theme([...PAGES, '9-prefix']);

const parameter = (name: string, change: (value: string) => string | undefined): ServerOptions =>
  nextQuery((query) => {
    const value = change(query.get(name) ?? '');
    if (value === undefined) query.delete(name);
    else query.set(name, value);
  });

const nextText = (pattern: RegExp | string, to: string): ServerOptions =>
  nextUrls((next) => next.href.replaceAll(pattern, to));

export const nextWithRawPlus = nextText('%2B', '+');

/** RFC 3986, 3.4: only the form encoding decodes + as a space. */
export const keepingRawPlus = middleware(() => (request, next) => {
  const [path, query] = splitTarget(request.path);
  return next(
    isScreenings(request) && query
      ? { ...request, path: `${path}?${query.replaceAll('+', '%2B')}` }
      : request,
  );
});

/** Replaces the Link header of pages with a next by these. */
export const linked = (...values: readonly ((next: string) => string)[]): ServerOptions =>
  pages((page) => {
    const next = nextOf(page);
    if (!next) return;
    withoutLink(page);
    for (const value of values) page.headers.push(['Link', value(next)]);
  });

const milliseconds = (text: string): string => new Date(text).toISOString();

/** A client may ask last pages again, for what arrives after their last item; windows of no width end. */
const polled = (isLast: (page: PageText, query: URLSearchParams) => boolean): ServerOptions =>
  pages((page, query, _, request) => {
    const [from, to] = windowOf(query);
    if (nextOf(page) || compareInstants(from!, to!) === 0 || !isLast(page, query)) return;
    const last = page.items.at(-1);
    const again = withQuery(request, (next) => {
      if (!last) return;
      next.set('from', /"testTime":"([^"]*)"/.exec(last)![1]!);
      next.set('from_id', /"id":(\d+)/.exec(last)![1]!);
    });
    setNext(page, urlOf(again));
  });

export const next: readonly Fault[] = [
  ...fails({ '4.2-r6-next-to': /next with the request's to=/ })({
    'to of next has milliseconds only': parameter('to', milliseconds),
  }),
  ...fails({ '4.2-r6-next-to': /no to/ })({ 'next lacks to': parameter('to', () => undefined) }),
  ...fails({ '4.2-r6-next-from': /raw \+/ })({
    'the + of an offset is not encoded in next': nextWithRawPlus,
  }),
  ...fails({ '4.2-r6-next-from': /got from=\S+\+07:\d\d$/ })({
    'an offset east of UTC is another one in next, with a raw +': both(
      parameter('from', (text) => text.replace(/\+\d\d(?=:\d\d$)/, '+07')),
      nextWithRawPlus,
    ),
  }),
  ...fails({ '4.2-r6-next-from': /next with from=/ })({
    'from of next loses its offset': parameter('from', (text) => text.replace(/[+-]\d\d:\d\d$/, 'Z')),
  }),
  ...failsLater({ '4.2-r6-next-from': /next with from=/ })({
    'from of next has the year of its ISO week': parameter('from', (text) =>
      text.replace(/^2024-12-3/, '2025-12-3'),
    ),
  }),
  ...fails({ '4.2-r6-next-pageSize': /no pageSize/ })({
    'next lacks pageSize': parameter('pageSize', () => undefined),
    'a raw + in a query is a +, and the next of a page that was requested with one lacks pageSize': both(
      keepingRawPlus,
      pages((page, _, __, { path }) => {
        const next = nextOf(page);
        if (next && path.includes('+')) setNext(page, next.replace(/&pageSize=\d+/, ''));
      }),
      nextWithRawPlus,
    ),
  }),
  ...fails({ '4.2-r6-next-pageSize': /without pageSize or with 100/ })({
    'next names another default page size': nextQuery((query, _, asked) => {
      if (!asked.has('pageSize')) query.set('pageSize', '50');
    }),
  }),
  ...fails({ '4.2-r6-next-from_id': /next with from_id=/, '4.2-r5-exactly-once': /is missing/ })({
    'next is made of the extra row': {
      ...sized((pageSize) => Math.min(pageSize + 1, 1000)),
      ...pages((page, query) => {
        if (page.items.length > Number(query.get('pageSize') ?? 100)) page.items.pop();
      }),
    },
  }),
  ...fails({ '4.2-r6-next-from_id': /next with from_id=\d{16}/ })({
    'from_id of next is rounded to a double': parameter('from_id', (text) => String(Number(text))),
  }),
  ...fails({ '4.2-r6-next-from_id': /no from_id/ })({
    'next has cursor instead of from_id': both(
      requests((request) =>
        isScreenings(request) ? { ...request, path: request.path.replace('cursor=', 'from_id=') } : request,
      ),
      nextText('from_id=', 'cursor='),
    ),
  }),
  ...fails({ '4.2-r6-next-target': /next at https:/ })({
    'next is https where the server is http': {
      server: nextText('http:', 'https:'),
      // Such a next can't be followed, which no other requirement may be blamed for.
      mayTrip: ['4.2-r5-exactly-once'],
    },
  }),
  ...fails({ '4.2-r6-next-target': /next at / })({
    'next lacks the path prefix': {
      server: { pathPrefix: '/api', ...nextText('/api/', '/') },
      mayTrip: ['4.2-r5-exactly-once'],
    },
  }),
  ...fails({ '9-prefix': /next under \/v1/ })({ 'next leads to /v2': nextText('/v1/', '/v2/') }),
  ...fails({ '9-prefix': /the API under \/v1/ })({
    'the API has no /v1': middleware(() => (request, handler) => {
      if (request.path.startsWith('/v1/')) return refusal('404 not_found');
      return handler({ ...request, path: request.path.replace(/^\/tenants\//, '/v1/tenants/') });
    }),
  }),
  ...fails({ '2.4-next-absolute': /an absolute URL/ })({
    'next is a relative reference': nextUrls((url) => `${url.pathname}${url.search}`),
  }),
  ...fails({ '4.2-r7-link': /Link header with rel="next".*none/ })({
    'the Link header is missing': linked(),
    'the Link header is that of another resource': linked((to) => `<${to}>; rel="next"; anchor="/"`),
  }),
  ...fails({ '4.2-r7-link': /with the URL of links.next/ })({
    'the Link header has another pageSize than links.next': linked(
      (to) => `<${to.replace(/pageSize=\d+/, 'pageSize=100&limit=1')}>; rel="next"`,
    ),
  }),
  ...fails({ '4.2-r7-link': /Link header with rel="next"|with the URL/ })({
    'the Link header lacks angle brackets': linked((to) => `${to}; rel="next"`),
  }),
  ...fails({ '4.2-r5-exactly-once': /leads back/ })({
    'an empty page leads to itself': polled(({ items }) => items.length === 0),
    'while to is in the future, a last page leads on': polled(
      (_, query) => Date.parse(query.get('to') ?? '') > Date.now(),
    ),
  }),
  ...fails({ '4.2-r7-link-absent': /no Link rel="next" on the final page/ })({
    'the final page has a Link header': pages((page, _, __, request) => {
      if (!nextOf(page)) page.headers.push(['link', `<${urlOf(request)}>; rel="next"`]);
    }),
  }),
];

// -- a next that works only once, only for a while, or only with one token ---------------------------

/** Numbers every next (`cursor=1` …). `step` answers requests with a number, `mark`; `given` is the latest number. */
function numbered(
  make: () => (mark: string, given: number, ...args: Parameters<Middleware>) => ReturnType<Middleware>,
): ServerOptions {
  return {
    wrapHandler: (handler) => {
      let given = 0;
      const marking = nextQuery((query) => query.set('cursor', String((given += 1))));
      const plain = marking.wrapHandler!(handler);
      const step = make();
      return async (request) => {
        const mark = queryOf(request).get('cursor');
        return isScreenings(request) && mark !== null ? step(mark, given, request, plain) : plain(request);
      };
    },
  };
}

const gone = (): ServiceAnswer => refusal('400 invalid_request');

export function nextPath({ body }: ServiceAnswer): string | undefined {
  const url = /"next":"([^"]*)"/.exec(String(body))?.[1];
  return url && new URL(url).pathname + new URL(url).search;
}

/** Answers with `otherwise` where another token requests a next than those that it was given to. */
const boundToToken = (otherwise: () => ServiceAnswer): ServerOptions =>
  middleware(() => {
    const holders = new Map<string, Set<string>>();
    return async (request, next) => {
      const holder = request.headers['authorization'] ?? '';
      const known = holders.get(request.path);
      const answer = await next(request);
      if (known && !known.has(holder) && answer.status === 200) return otherwise();
      const path = nextPath(answer);
      if (isScreenings(request) && path !== undefined)
        holders.set(path, (holders.get(path) ?? new Set()).add(holder));
      return answer;
    };
  });

export const nextAgain: readonly Fault[] = [
  ...fails({ '4.2-r5-exactly-once': /200.*400/ })({
    'a next can be requested once': numbered(() => {
      const used = new Set<string>();
      return (mark, _, request, next) => {
        if (used.has(mark)) return gone();
        used.add(mark);
        return next(request);
      };
    }),
    'a next expires after sixty further pages': numbered(
      () => (mark, given, request, next) => (given - Number(mark) > 60 ? gone() : next(request)),
    ),
    'a next is bound to its token': boundToToken(gone),
  }),
  ...fails({ '4.2-repeatable': /items again/ })({
    'a next that is requested with a new token returns an empty page': boundToToken(emptyPage),
    'the second of two concurrent requests for a next gets an empty page': crowded(
      (request) => (queryOf(request).has('from_id') ? request.path : undefined),
      { most: 1, latencyMs: 2 },
      emptyPage,
    ),
  }),
  ...fails({ '4.2-repeatable': /items again/ })({
    'the second of two concurrent requests for a first page gets an empty page': concurrently(
      (request) => (queryOf(request).has('from_id') ? undefined : request.path),
      async (inFlight, request, next) => {
        const answer = await next(request);
        await sleep(2);
        return inFlight > 1 && answer.status === 200 && isScreenings(request) ? emptyPage() : answer;
      },
    ),
  }),
  ...fails({ '4.2-repeatable': /number \d+ again/ })({
    'every second answer to the same request for five items lacks the first': middleware(() => {
      const asked = new Set<string>();
      return async (request, next) => {
        const answer = await next(request);
        const query = queryOf(request);
        if (query.get('pageSize') !== '5' || query.has('from_id') || answer.status !== 200) return answer;
        const isSecond = asked.delete(request.path);
        if (!isSecond) asked.add(request.path);
        return isSecond
          ? jsonBody((page) => ({ ...page, items: (page['items'] as unknown[]).slice(1) }))(answer)
          : answer;
      };
    }),
  }),
  ...failsFull({ '4.2-r5-exactly-once': /is missing|screenings/ })({
    'pages of 1000 lose their first item after the third': {
      large: true,
      server: byDepth((page, depth, { pageSize }) => (depth > 3 && pageSize === 1000 ? without(page) : page)),
    },
  }),
];
