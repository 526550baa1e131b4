/** Sections 4.2 (rules 6 and 7) and 9: faults in next and the Link header. */
import { formatInstant, instant } from '../../engine/data/instant.ts';
import {
  both,
  fieldsOf,
  isScreenings,
  middleware,
  nextOf,
  nextQuery,
  nextUrls,
  pages,
  refusal,
  requests,
  storedPages,
  withoutLink,
} from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { pageFaults, tripping, type Fault } from './fault.ts';

/** Changes one parameter of next; undefined removes it. */
const parameter = (name: string, change: (value: string) => string | undefined): ServerOptions =>
  nextQuery((query) => {
    const value = change(query.get(name) ?? '');
    if (value === undefined) query.delete(name);
    else query.set(name, value);
  });

/** Replaces text in next. */
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
  ...pageFaults({ '4.2-r6-next-to': /no to/ })({
    'next without to': parameter('to', () => undefined),
  }),
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
  ...pageFaults({ '9-prefix': /next under \/v1/ })({
    'next leads under /v2': nextText('/v1/', '/v2/'),
  }),
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
