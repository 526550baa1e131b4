/** Sections 4.2 (rules 5 to 7) and 9: faults in next and the Link header, and next that works only once or for a while. */
import { setTimeout as sleep } from 'node:timers/promises';
import { formatInstant, instant } from '../../engine/data/instant.ts';
import {
  both,
  emptyPage,
  fieldsOf,
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
  storedPages,
  withoutLink,
  type Middleware,
} from '../run/alter.ts';
import type { ServiceAnswer } from '../http/http.ts';
import type { ServerOptions } from '../run/start.ts';
import { byDepth } from './rows.ts';
import { pageFaults, tripping, type Fault } from './fault.ts';

const parameter = (name: string, change: (value: string) => string | undefined): ServerOptions =>
  nextQuery((query) => {
    const value = change(query.get(name) ?? '');
    if (value === undefined) query.delete(name);
    else query.set(name, value);
  });

const nextText = (pattern: RegExp | string, to: string): ServerOptions =>
  nextUrls((next) => next.href.replaceAll(pattern, to));

/** Changes the Link header of pages with a next; undefined removes it. `own` is the URL of the page itself. */
const link = (change: (next: string, own: string) => string | undefined): ServerOptions =>
  pages((page, _, __, request) => {
    const next = nextOf(page);
    if (!next) return;
    const value = change(next, `http://${request.headers['host']}${request.path}`);
    withoutLink(page);
    if (value !== undefined) page.headers.push(['link', value]);
  });

/** In UTC, with the year to which the ISO week belongs. */
function weekYear(text: string): string {
  const thursday = new Date(text);
  thursday.setUTCDate(thursday.getUTCDate() + 4 - (thursday.getUTCDay() || 7));
  const utc = formatInstant(instant(text));
  return thursday.toISOString().slice(0, 4) + utc.slice(4);
}

const milliseconds = (text: string): string => new Date(text).toISOString();

export const next: readonly Fault[] = [
  ...pageFaults({ '4.2-r6-next-to': /next with the request's to=/ })({
    'to of next printed with milliseconds only': parameter('to', milliseconds),
    'to of next is a day later': parameter('to', (text) =>
      new Date(Date.parse(text) + 86_400_000).toISOString(),
    ),
  }),
  ...pageFaults({ '4.2-r6-next-to': /no to/ })({ 'next without to': parameter('to', () => undefined) }),
  ...pageFaults({ '4.2-r6-next-from': /raw \+/ })({
    'the + of an offset stands raw in next': nextText('%2B', '+'),
  }),
  ...pageFaults({ '4.2-r6-next-from': /next with from=/ })({
    'the window of next in local time, its offset lost': parameter('from', (text) =>
      text.replace(/[+-]\d\d:\d\d$/, 'Z'),
    ),
    'from of next printed with milliseconds only': parameter('from', milliseconds),
    'the year in from of next is that of its week': parameter('from', (text) => weekYear(text)),
    'from of next stays the from of the first page': nextQuery((query, _, asked) =>
      query.set('from', asked.get('from') ?? ''),
    ),
  }),
  ...pageFaults({ '4.2-r6-next-pageSize': /next with the request's pageSize=/ })({
    'pageSize of next is the number of items on this page less one': nextQuery((query, { items }) =>
      query.set('pageSize', String(Math.max(1, items.length - 1))),
    ),
  }),
  ...pageFaults({ '4.2-r6-next-pageSize': /no pageSize/ })({
    'next without pageSize': parameter('pageSize', () => undefined),
  }),
  ...pageFaults({ '4.2-r6-next-pageSize': /without pageSize or with 100/ })({
    'next names another default page size': nextQuery((query, _, asked) => {
      if (!asked.has('pageSize')) query.set('pageSize', '50');
    }),
  }),
  ...pageFaults({ '4.2-r6-next-from_id': /next with from_id=/ })({
    'next is made of the first item': nextQuery((query, { items }) => {
      const { id, testTime } = fieldsOf(items[0] ?? '');
      query.set('from', testTime);
      query.set('from_id', id);
    }),
  }),
  ...pageFaults({ '4.2-r6-next-from_id': /next with from_id=/, '4.2-r5-exactly-once': /is missing/ })({
    'next is made of the extra row that was fetched': {
      ...storedPages(() => (query, ask) => ask({ ...query, pageSize: Math.min(query.pageSize + 1, 1000) })),
      ...pages((page, query) => {
        if (page.items.length > Number(query.get('pageSize') ?? 100)) page.items.pop();
      }),
    },
  }),
  ...pageFaults({ '4.2-r6-next-from_id': /next with from_id=\d{16}/ })({
    'from_id of next rounded by way of floating point': parameter('from_id', (text) => String(Number(text))),
  }),
  ...pageFaults({ '4.2-r6-next-from_id': /no from_id/ })({
    'next without from_id': parameter('from_id', () => undefined),
    'the cursor of next is called cursor': both(
      requests((request) =>
        isScreenings(request) ? { ...request, path: request.path.replace('cursor=', 'from_id=') } : request,
      ),
      nextText('from_id=', 'cursor='),
    ),
  }),
  ...pageFaults({ '4.2-r6-next-target': /next at .*internal/ })({
    'next leads to an internal host': nextUrls((to) =>
      to.href.replace(to.host, 'screenings.internal.example:8080'),
    ),
  }),
  ...pageFaults({ '4.2-r6-next-target': /next at https:/ })({
    'next is https, and the proxy is not': nextText('http:', 'https:'),
  }),
  ...pageFaults({ '4.2-r6-next-target': /next at / })({
    "next leads to another tenant's path": nextText(
      /tenants\/[^/]+/g,
      'tenants/ffffffff-ffff-4fff-8fff-ffffffffffff',
    ),
    'next without the path prefix of the API': { pathPrefix: '/api', ...nextText('/api/', '/') },
  }),
  ...pageFaults({ '9-prefix': /next under \/v1/ })({ 'next leads under /v2': nextText('/v1/', '/v2/') }),
  ...pageFaults({ '9-prefix': /the API under \/v1/ })({
    'the API answers without /v1': middleware(() => (request, handler) => {
      if (request.path.startsWith('/v1/')) return refusal('404 not_found');
      return handler({ ...request, path: request.path.replace(/^\/tenants\//, '/v1/tenants/') });
    }),
  }),
  ...tripping({ '4.2-r7-link': /Link header with rel="next".*none/ })({
    'no Link header': link(() => undefined),
    'no Link header on pages of more than twelve items': link((to) =>
      /pageSize=\d$|pageSize=1[0-2]?&|pageSize=\d&/.test(to) ? `<${to}>; rel="next"` : undefined,
    ),
    'Link has the relation in a parameter of another name': link((to) => `<${to}>; relation="next"`),
  }),
  ...tripping({ '4.2-r7-link': /with the URL of links.next/ })({
    'Link leads to the page that it stands on': link((_, own) => `<${own}>; rel="next"`),
    'Link and links.next differ in their pageSize': link(
      (to) => `<${to.replace(/pageSize=\d+/, 'pageSize=100&limit=1')}>; rel="next"`,
    ),
  }),
  ...tripping({ '4.2-r7-link': /Link header with rel="next"|with the URL/ })({
    'Link without angle brackets': link((to) => `${to}; rel="next"`),
  }),
  ...tripping({ '4.2-r7-link-absent': /no Link rel="next" on the final page/ })({
    'a Link header on the final page too': pages((page, _, __, { headers, path }) => {
      if (!nextOf(page)) page.headers.push(['link', `<http://${headers['host']}${path}>; rel="next"`]);
    }),
  }),
];

// -- a next that works only once, only for a while, or only with one token ---------------------------

/** Numbers every next (`cursor=1` …). `step` answers requests with a number, `mark`; `given` is the latest number. */
function numbered(
  make: () => (mark: string, given: number, ...args: Parameters<Middleware>) => ReturnType<Middleware>,
): ServerOptions {
  let given = 0;
  const marking = nextQuery((query) => query.set('cursor', String((given += 1))));
  return {
    wrapHandler: (handler) => {
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

export const nextAgain: readonly Fault[] = [
  ...pageFaults({ '4.2-r5-exactly-once': /200.*400/ })({
    'a next is good for one request': numbered(() => {
      const used = new Set<string>();
      return (mark, _, request, next) => {
        if (used.has(mark)) return gone();
        used.add(mark);
        return next(request);
      };
    }),
    'a next is gone after sixty further requests': numbered(
      () => (mark, given, request, next) => (given - Number(mark) > 60 ? gone() : next(request)),
    ),
    'a next is bound to the token that it was given to': middleware(() => {
      const holders = new Map<string, string>();
      return async (request, next) => {
        const holder = request.headers['authorization'] ?? '';
        const owner = holders.get(request.path);
        if (owner !== undefined && owner !== holder) return gone();
        const answer = await next(request);
        const path = nextPath(answer);
        if (isScreenings(request) && path !== undefined) holders.set(path, holder);
        return answer;
      };
    }),
  }),
  ...pageFaults({ '4.2-repeatable': /items of the same next/ })({
    'a next that a new token asks for gives an empty page': middleware(() => {
      const known = new Map<string, Set<string>>();
      return async (request, next) => {
        const holder = request.headers['authorization'] ?? '';
        const holders = known.get(request.path);
        const answer = await next(request);
        if (holders && !holders.has(holder) && answer.status === 200) return emptyPage();
        const path = nextPath(answer);
        if (isScreenings(request) && path !== undefined)
          known.set(path, (known.get(path) ?? new Set()).add(holder));
        return answer;
      };
    }),
    'of two requests at the same time for the same next the second gets an empty page': middleware(() => {
      const underWay = new Set<string>();
      return async (request, next) => {
        const { path } = request;
        if (!queryOf(request).has('from_id')) return next(request);
        if (underWay.has(path)) return emptyPage();
        underWay.add(path);
        // Simulates the latency of a call to another service, so that requests overlap.
        await sleep(20);
        return next(request).finally(() => underWay.delete(path));
      };
    }),
  }),
  ...pageFaults({ '4.2-repeatable': /number \d+ again/ })({
    'every second answer to the same request for five items begins with the second': middleware(() => {
      const asked = new Map<string, number>();
      return async (request, next) => {
        const answer = await next(request);
        const query = queryOf(request);
        if (query.get('pageSize') !== '5' || query.has('from_id') || answer.status !== 200) return answer;
        const times = (asked.get(request.path) ?? 0) + 1;
        asked.set(request.path, times);
        return times % 2 === 1
          ? answer
          : jsonBody((page) => ({ ...page, items: (page['items'] as unknown[]).slice(1) }))(answer);
      };
    }),
  }),
  ...pageFaults({ '4.2-repeatable': /number \d+ again|items of the same next/ })({
    'a next that was asked before gives the page after it': numbered(() => {
      const asked = new Set<string>();
      return async (mark, _, request, next) => {
        const answer = await next(request);
        const path = nextPath(answer);
        if (asked.has(mark) && path !== undefined) return next({ ...request, path });
        asked.add(mark);
        return answer;
      };
    }),
  }),
  ...pageFaults(
    { '4.2-r5-exactly-once': /is missing|screenings/ },
    { bare: false, large: true },
  )({
    'pages of 1000 lose their first screening from the fourth on': byDepth((page, depth, { pageSize }) =>
      depth > 3 && pageSize === 1000 ? { ...page, items: page.items.slice(1) } : page,
    ),
  }),
  ...pageFaults(
    { '2.4-next': /no next/ },
    { large: true },
  )({
    'walks end after three pages of 1000': byDepth((page, depth, { pageSize }) =>
      depth === 3 && pageSize === 1000 ? { ...page, more: false } : page,
    ),
  }),
];
