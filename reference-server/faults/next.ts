/** Section 4.2, rules 6 and 7, and section 9: what next and the Link header say. */
import { errorAnswer } from '../http/http.ts';
import { isScreenings, middleware, nextUrls, pages, requests, storedPages, fieldsOf } from '../run/alter.ts';
import type { Fault } from './fault.ts';

const WALK = [
  '4.2-r4-order',
  '4.2-r5-exactly-once',
  '4.2-window',
  '4.2-from_id',
  '2.4-next',
  '4.2-r7-link',
] as const;

const parameter = (
  name: string,
  change: (value: string) => string | undefined,
): NonNullable<Fault['server']> =>
  nextUrls((next) => {
    const value = change(next.searchParams.get(name) ?? '');
    if (value === undefined) next.searchParams.delete(name);
    else next.searchParams.set(name, value);
    return next;
  });

const link = (
  change: (next: string, query: URLSearchParams) => string | undefined,
): NonNullable<Fault['server']> =>
  pages((page, query) => {
    const { next } = page.links as { next?: string };
    if (!next) return;
    const value = change(next, query);
    page.headers = page.headers.filter(([name]) => name !== 'link');
    if (value !== undefined) page.headers.push(['link', value]);
  });

const milliseconds = (text: string): string => new Date(text).toISOString();

export const next: readonly Fault[] = [
  {
    name: 'to of next printed with milliseconds only',
    trips: { '4.2-r6-next-to': /next with the request's to=/ },
    mayTrip: [...WALK, '4.2-to-exclusive'],
    server: parameter('to', milliseconds),
  },
  {
    name: 'next without to',
    trips: { '4.2-r6-next-to': /no to/ },
    mayTrip: WALK,
    server: parameter('to', () => undefined),
  },
  {
    name: 'to of next is a day later',
    trips: { '4.2-r6-next-to': /next with the request's to=/ },
    mayTrip: [...WALK, '4.2-to-exclusive'],
    server: parameter('to', (text) => new Date(Date.parse(text) + 86_400_000).toISOString()),
  },
  {
    name: 'the + of an offset stands raw in next',
    trips: { '4.2-r6-next-from': /raw \+/ },
    mayTrip: [...WALK, '4.2-r6-next-to'],
    server: nextUrls((url) => url.href.replaceAll('%2B', '+')),
  },
  {
    name: 'the window of next in local time, its offset lost',
    trips: { '4.2-r6-next-from': /next with from=/ },
    mayTrip: WALK,
    server: parameter('from', (text) => text.replace(/[+-]\d\d:\d\d$/, 'Z')),
  },
  {
    name: 'pageSize of next is the number of items on this page less one',
    trips: { '4.2-r6-next-pageSize': /next with the request's pageSize=/ },
    mayTrip: WALK,
    server: nextUrls((url, page) => {
      url.searchParams.set('pageSize', String(Math.max(1, page.items.length - 1)));
      return url;
    }),
  },
  {
    name: 'next without pageSize',
    trips: { '4.2-r6-next-pageSize': /no pageSize/ },
    mayTrip: WALK,
    server: parameter('pageSize', () => undefined),
  },
  {
    name: 'next names another default page size',
    trips: { '4.2-r6-next-pageSize': /without pageSize or with 100/ },
    mayTrip: WALK,
    server: nextUrls((url, _, query) => {
      if (!query.has('pageSize')) url.searchParams.set('pageSize', '50');
      return url;
    }),
  },
  {
    name: 'from of next printed with milliseconds only',
    trips: { '4.2-r6-next-from': /next with from=/ },
    mayTrip: WALK,
    server: parameter('from', milliseconds),
  },
  {
    name: 'from of next stays the from of the first page',
    trips: { '4.2-r6-next-from': /next with from=/ },
    mayTrip: WALK,
    server: nextUrls((url, _, query) => {
      url.searchParams.set('from', query.get('from') ?? '');
      return url;
    }),
  },
  {
    name: 'next is made of the first item',
    trips: { '4.2-r6-next-from_id': /next with from_id=/ },
    mayTrip: [...WALK, '4.2-r6-next-from'],
    server: nextUrls((url, page) => {
      const { id, testTime } = fieldsOf(page.items[0] ?? '');
      url.searchParams.set('from', testTime);
      url.searchParams.set('from_id', id);
      return url;
    }),
  },
  {
    name: 'next is made of the extra row that was fetched',
    trips: { '4.2-r6-next-from_id': /next with from_id=/, '4.2-r5-exactly-once': /is missing/ },
    mayTrip: [...WALK, '4.2-r6-next-from'],
    server: extraRowNext(),
  },
  {
    name: 'from_id of next rounded by way of floating point',
    trips: { '4.2-r6-next-from_id': /next with from_id=\d{16}/ },
    mayTrip: WALK,
    server: parameter('from_id', (text) => String(Number(text))),
  },
  {
    name: 'next without from_id',
    trips: { '4.2-r6-next-from_id': /no from_id/ },
    mayTrip: WALK,
    server: parameter('from_id', () => undefined),
  },
  {
    name: 'the cursor of next is called cursor',
    trips: { '4.2-r6-next-from_id': /no from_id/ },
    mayTrip: [...WALK, '4.2-from-inclusive'],
    server: {
      wrapHandler: (handler) => {
        const renamed = nextUrls((url) => url.href.replace('from_id=', 'cursor=')).wrapHandler!;
        const read = requests((request) =>
          isScreenings(request) ? { ...request, path: request.path.replace('cursor=', 'from_id=') } : request,
        ).wrapHandler!;
        return renamed(read(handler));
      },
    },
  },
  {
    name: 'next leads to an internal host',
    trips: { '4.2-r6-next-target': /next at .*internal/ },
    mayTrip: WALK,
    server: nextUrls((url) => url.href.replace(url.host, 'screenings.internal.example:8080')),
  },
  {
    name: 'next is https, and the proxy is not',
    trips: { '4.2-r6-next-target': /next at https:/ },
    mayTrip: WALK,
    server: nextUrls((url) => url.href.replace('http:', 'https:')),
  },
  {
    name: "next leads to another tenant's path",
    trips: { '4.2-r6-next-target': /next at / },
    mayTrip: WALK,
    server: nextUrls((url) =>
      url.href.replace(/tenants\/[^/]+/, 'tenants/ffffffff-ffff-4fff-8fff-ffffffffffff'),
    ),
  },
  {
    name: 'next without the path prefix of the API',
    trips: { '4.2-r6-next-target': /next at / },
    mayTrip: WALK,
    server: { pathPrefix: '/api', ...nextUrls((url) => url.href.replace('/api/', '/')) },
  },
  {
    name: 'next leads under /v2',
    trips: { '9-prefix': /next under \/v1/ },
    mayTrip: [...WALK, '4.2-r6-next-target'],
    server: nextUrls((url) => url.href.replace('/v1/', '/v2/')),
  },
  {
    name: 'the API answers without /v1',
    trips: { '9-prefix': /the API under \/v1/ },
    mayTrip: WALK,
    server: middleware(() => (request, handler) => {
      if (request.path.startsWith('/v1/')) return errorAnswer(404, 'not_found', 'no such path');
      return handler({ ...request, path: request.path.replace(/^\/tenants\//, '/v1/tenants/') });
    }),
  },
  {
    name: 'no Link header',
    trips: { '4.2-r7-link': /Link header with rel="next".*none/ },
    server: link(() => undefined),
  },
  {
    name: 'no Link header on pages of more than twelve items',
    trips: { '4.2-r7-link': /Link header with rel="next".*none/ },
    server: link((url) =>
      /pageSize=\d$/.test(url) || /pageSize=1[0-2]?&/.test(url) || /pageSize=\d&/.test(url)
        ? `<${url}>; rel="next"`
        : undefined,
    ),
  },
  {
    name: 'Link leads to the page that it stands on',
    trips: { '4.2-r7-link': /with the URL of links.next/ },
    server: pages((page, query, _, request) => {
      if (!(page.links as { next?: string }).next) return;
      const own = `http://${request.headers['host']}${request.path}`;
      page.headers = [...page.headers.filter(([name]) => name !== 'link'), ['link', `<${own}>; rel="next"`]];
    }),
  },
  {
    name: 'Link and links.next differ in their pageSize',
    trips: { '4.2-r7-link': /with the URL of links.next/ },
    server: link((url) => `<${url.replace(/pageSize=\d+/, 'pageSize=100&limit=1')}>; rel="next"`),
  },
  {
    name: 'Link has the relation in a parameter of another name',
    trips: { '4.2-r7-link': /Link header with rel="next".*none/ },
    server: link((url) => `<${url}>; relation="next"`),
  },
  {
    name: 'Link without angle brackets',
    trips: { '4.2-r7-link': /Link header with rel="next"|with the URL/ },
    server: link((url) => `${url}; rel="next"`),
  },
  {
    name: 'a Link header on the final page too',
    trips: { '4.2-r7-link-absent': /no Link rel="next" on the final page/ },
    server: pages((page, _, __, request) => {
      if (!(page.links as { next?: string }).next)
        page.headers.push(['link', `<http://${request.headers['host']}${request.path}>; rel="next"`]);
    }),
  },
];

function extraRowNext(): NonNullable<Fault['server']> {
  return {
    ...storedPages(() => (query, ask) => ask({ ...query, pageSize: Math.min(query.pageSize + 1, 1000) })),
    ...pages((page, query) => {
      const size = Number(query.get('pageSize') ?? 100);
      if (page.items.length > size) page.items.pop();
    }),
  };
}
