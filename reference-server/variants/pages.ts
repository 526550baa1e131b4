/** Unusual but correct pages, screenings and links. */
import { formatInstant, instant, offsetMinutesOf } from '../../engine/data/instant.ts';
import type { Target } from '../../engine/target/target.ts';
import {
  both,
  middleware,
  nextOf,
  nextQuery,
  nextUrls,
  pages as alterPages,
  queryOf,
  requests,
  storedPages,
  isScreenings,
  withoutLink,
  withQuery,
} from '../run/alter.ts';
import { eachItem, alterStored, retimed } from '../faults/rows.ts';
import type { ServerOptions } from '../run/start.ts';
import { variants, type Variant } from './variant.ts';

const link = (value: (next: string) => readonly string[]): ServerOptions =>
  alterPages((page) => {
    const next = nextOf(page);
    if (!next) return;
    withoutLink(page);
    for (const text of value(next)) page.headers.push(['Link', text]);
  });

export const links = variants({
  'several Link headers, next in the last of them': link((next) => [
    '</docs>; rel="help"; title="a, b; c"',
    '<https://example.com/?a=1,2>; rel=license',
    `<${next}>; rel="next"`,
  ]),
});

export const signed = variants({
  'an address in each item that is signed anew in each answer': alterPages((page, _, number) => {
    page.items = page.items.map((item) =>
      item.replace(/\}$/, `,"picture":"https://example.com/?${number}"}`),
    );
  }),
  // No capture has the address of an answer.
}).map((variant): Variant => ({ ...variant, target: ({ events: _, ...target }) => target }));

export const oneLink = variants({
  'one Link header of several links, rel unquoted and in capitals': link((next) => [
    `</docs?x=1,2>; rel=help, <${next}>; title="one, more"; REL=next, </>; rel=index`,
  ]),
});

export const relations = variants({
  'several relation types in one rel, and blanks where they may be': link((next) => [
    `  <${next}> ;rel = "https://example.com/rel/page next" ; foo`,
  ]),
});

export const relativeLink = variants({
  'Link in relative form': link((next) => [`<${next.slice(new URL(next).origin.length)}>; rel="next"`]),
});

export const finalPages = variants({
  'links of other relations, on the final page too': alterPages((page, _, __, request) => {
    page.links = { self: request.path, first: { href: '/' }, prev: null, ...(page.links as object) };
    page.headers.push(['link', `<${request.path.split('?')[0]}>; rel="self"`]);
  }),
});

const timesOfNext = (spell: (text: string) => string): ServerOptions =>
  nextQuery((query) => ['to', 'from'].forEach((name) => query.set(name, spell(query.get(name)!))));

export const relativeNext = variants({
  'next relative to the address of the page': nextUrls((next) => `${next.pathname}${next.search}`),
});

export const spelledNext = variants({
  'the instants of next in another spelling': timesOfNext(respelt),
  'an opaque parameter in next': nextQuery((query) => query.set('cursor', 'b3BhcXVl+/=')),
});

/** In UTC with microseconds. The year 10000, which RFC 3339 cannot express, is formatted by Date. */
function inUtc(text: string): string {
  const at = instant(text);
  try {
    return formatInstant(at, { digits: 6 });
  } catch {
    return new Date(Number(at.seconds) * 1000).toISOString();
  }
}

export const encoded = variants({
  'the instants of next in UTC': timesOfNext(inUtc),
  'next with the UUID in capitals and letters percent-encoded': both(
    requests((request) => ({ ...request, path: request.path.replace('%70', 'p').replace('%73', 's') })),
    nextUrls((next) =>
      next.href
        .replace(/tenants\/([0-9a-f-]+)/, (_, id: string) => `tenants/${id.toUpperCase()}`)
        .replace('screenings?', 'screening%73?')
        .replace('pageSize=', '%70ageSize='),
    ),
  ),
});

export const bareNext = variants({
  'next without pageSize where the request had none': nextQuery((query, _, asked) => {
    if (!asked.has('pageSize')) query.delete('pageSize');
  }),
});

export const furtherMembers: readonly Variant[] = [
  {
    name: 'unknown members everywhere',
    server: alterPages((page) => {
      page.items = page.items.map(
        (item) => `${item.slice(0, -1)},"score":1e400,"nested":{"id":"x","testTime":1}}`,
      );
      page.further = ',"total":null,"meta":{"items":[]}';
      page.links = { ...(page.links as object), 'x-trace': 7 };
    }),
    target: withEvents((line) => `${line.slice(0, -2)},"score":1e400,"nested":{"id":"x","testTime":1}}}`),
  },
];

export const shortPages = variants({
  'pages cut short, each time elsewhere': (() => {
    let asked = 0;
    return alterStored((page) => {
      asked += 1;
      const keep = Math.max(1, page.items.length - (asked % 4));
      return page.items.length > 3 && keep < page.items.length
        ? { items: page.items.slice(0, keep), more: true }
        : page;
    });
  })(),
  'a page of at most 200 items': storedPages(
    () => (query, ask) => ask({ ...query, pageSize: Math.min(query.pageSize, 200) }),
  ),
  'next before an empty last page': alterStored((page, query) => ({
    ...page,
    more: page.more || page.items.length === query.pageSize,
  })),
});

export const screenings: readonly Variant[] = [
  {
    name: 'testTime in UTC with nine digits: a store that keeps instants only',
    server: eachItem((item) => retimed(item, formatInstant(instant(item.testTime), { digits: 9 }))),
    target: withEvents((line) =>
      line.replace(
        /"testTime":"([^"]*)"/,
        (_, at: string) => `"testTime":"${formatInstant(instant(at), { digits: 9 })}"`,
      ),
    ),
  },
  {
    name: 'tenantId of the items in capitals',
    server: eachItem((item) => ({
      ...item,
      json: item.json.replace(/"tenantId":"([^"]*)"/, (_, id: string) => `"tenantId":"${id.toUpperCase()}"`),
    })),
    target: withEvents((line) =>
      line.replace(/"tenantId":"([^"]*)"/, (_, id: string) => `"tenantId":"${id.toUpperCase()}"`),
    ),
  },
  ...variants({
    'members of the items in another order, with blanks': alterPages((page) => {
      page.items = page.items.map((item) =>
        item.replace(
          /^\{"id":(\d+),(.*)\}$/s,
          (_, id: string, rest: string) => `{ ${rest},\n  "id" : ${id} }`,
        ),
      );
    }),
  }),
];

export const local: readonly Variant[] = [
  {
    name: 'testTime in the local time of one place, whatever was recorded',
    server: eachItem((item) => retimed(item, respelt(item.testTime))),
    target: withEvents((line) =>
      line.replace(/"testTime":"([^"]*)"/, (_, at: string) => `"testTime":"${respelt(at)}"`),
    ),
  },
  ...variants({
    'the first of two values of a parameter counts': middleware(() => (request, next) => {
      if (!isScreenings(request)) return next(request);
      const names = [...queryOf(request).keys()];
      const twice = names.some((name, index) => names.indexOf(name) !== index);
      return next(
        twice
          ? withQuery(request, (query) => {
              for (const name of new Set(names)) query.set(name, query.get(name) ?? '');
            })
          : request,
      );
    }),
  }),
];

/** The same instant with offset +02:00, or in UTC if it has that offset already. */
function respelt(text: string): string {
  const offsetMinutes = offsetMinutesOf(text) === 120 ? undefined : 120;
  return formatInstant(instant(text), { digits: 6, offsetMinutes });
}

/** Changes the captured events like the pages: both transports return the same object (section 6). */
function withEvents(change: (line: string) => string): (target: Target) => Target {
  return (target) => ({ ...target, events: target.events?.map(change) });
}

const MANY = 450;

export const wide: readonly Variant[] = [
  {
    name: `items of ${MANY} values`,
    server: eachItem((item) => ({
      ...item,
      json: item.json.replace(
        /\}$/,
        `,"samples":[${Array.from({ length: MANY }, (_, n) => n % 10).join(',')}]}`,
      ),
    })),
    // No capture or dataset has items of this size.
    target: ({ events: _, window: __, dataset: ___, secondDataset: ____, ...target }) => target,
  },
];

const PICTURE = 'A'.repeat(260_000);

export const pictures: readonly Variant[] = [
  {
    name: 'items of 260 kB',
    server: eachItem((item) => ({ ...item, json: item.json.replace(/\}$/, `,"picture":"${PICTURE}"}`) })),
    // No capture has items of this size; the dataset is of an earlier version without pictures.
    target: ({ events: _, window: __, ...target }) => target,
  },
];
