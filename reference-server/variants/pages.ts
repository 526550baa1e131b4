/** Unusual but correct pages, screenings and links. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  compareInstants,
  formatInstant,
  instant,
  offsetMinutesOf,
  shift,
} from '../../engine/data/instant.ts';
import {
  both,
  eachText,
  isTokenRequest,
  middleware,
  nextOf,
  nextQuery,
  nextUrls,
  pages as alterPages,
  onQuery,
  requests,
  perServer,
  setNext,
  storedPages,
  type PageText,
} from '../run/alter.ts';
import type { ServiceRequest } from '../http/http.ts';
import { withEvents, withoutWindow } from '../faults/fault.ts';
import { linked } from '../faults/next.ts';
import { eachItem, alterStored, retimed, sized } from '../faults/rows.ts';
import type { ServerOptions } from '../run/start.ts';
import { withTimesOfEvents, type Groups } from './variant.ts';

const timesOfNext = (spell: (text: string) => string): ServerOptions =>
  nextQuery((query) => ['to', 'from'].forEach((name) => query.set(name, spell(query.get(name)!))));

/** A page that holds nothing yet: `change` makes its next from the URL of the request. */
export function holdNothing(
  page: PageText,
  { headers, path }: ServiceRequest,
  change: (query: URLSearchParams) => void = () => {},
): void {
  const url = new URL(path, nextOf(page) ?? `http://${headers['host']}`);
  change(url.searchParams);
  page.items = [];
  setNext(page, url.href);
}

/** Spells testTime in another way, in the events too. */
const spelledTimes = (spell: (text: string) => string) => ({
  server: eachItem((item) => retimed(item, spell(item.testTime))),
  target: withTimesOfEvents(spell),
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

/** The same instant with offset +02:00, or in UTC if it has that offset already. */
function respelt(text: string): string {
  const offsetMinutes = offsetMinutesOf(text) === 120 ? undefined : 120;
  return formatInstant(instant(text), { digits: 6, offsetMinutes });
}

const inCapitals = (text: string): string =>
  text.replace(/"tenantId":"([^"]*)"/, (_, id: string) => `"tenantId":"${id.toUpperCase()}"`);

/** As if the time for a page were over. */
const cutShort = storedPages(() => {
  let asked = 0;
  return async (query, ask) => {
    const page = await ask(query);
    asked += 1;
    const keep = Math.max(1, page.items.length - (asked % 4));
    return page.items.length > 3 && keep < page.items.length
      ? { items: page.items.slice(0, keep), more: true }
      : page;
  };
});

const SIGNED_EVERY_MS = 100;
const SLOW_WRITE_MS = 20;
const MONTH_SECONDS = 31n * 86_400n;

const signed = (item: string, name: string, signature: number): string =>
  item.replace(/\}$/, `,"${name}":"https://example.com/?${signature}"}`);

const FURTHER = ',"score":1e400,"nested":{"id":"x","testTime":1}}';

export const pages: Groups = {
  'behind a gateway': {
    // Searches a month for the first screening of a page.
    'an empty page for each month before a screening, whose next begins with the next month': alterPages(
      (page, query, _, request) => {
        const until = shift(instant(query.get('from')!), MONTH_SECONDS, 0);
        const testTime = /"testTime":"([^"]*)"/.exec(page.items[0] ?? '')?.[1];
        if (testTime === undefined || compareInstants(instant(testTime), until) < 0) return;
        holdNothing(page, request, (next) => {
          next.set('from', formatInstant(until));
          next.delete('from_id');
        });
      },
    ),
    'several Link headers, next in the last of them': linked(
      () => '</docs>; rel="help"; title="a, b; c"',
      () => '<https://example.com/?a=1,2>; rel=license',
      (next) => `<${next}>; rel="next"`,
    ),
    'a next of another resource beside the own': alterPages((page) => {
      page.headers.push(['Link', '</tenants>; rel="next"; anchor="/v1"']);
    }),
  },
  'with its own spelling': {
    'the instants of next in another spelling': timesOfNext(respelt),
    'an opaque parameter in next': nextQuery((query) => query.set('cursor', 'b3BhcXVl+/=')),
    'next without pageSize where the request had none': nextQuery((query, _, asked) => {
      if (!asked.has('pageSize')) query.delete('pageSize');
    }),
    'one Link header of several links, rel unquoted and in capitals': linked(
      (next) => `</docs?x=1,2>; rel=help, <${next}>; title="one, more"; REL=next, </>; rel=index`,
    ),
    'unknown members everywhere': {
      server: alterPages((page) => {
        page.items = page.items.map((item) => `${item.slice(0, -1)}${FURTHER}`);
        page.further = ',"total":null,"meta":{"items":[]}';
        page.links = { ...(page.links as object), 'x-trace': 7 };
      }),
      target: withEvents((line) => `${line.slice(0, -2)}${FURTHER}}`),
    },
  },
  'with relative links': {
    'testTime in UTC with nine digits: a store that keeps instants only': spelledTimes((text) =>
      formatInstant(instant(text), { digits: 9 }),
    ),
    'tenantId of the items in capitals': {
      server: eachItem((item) => ({ ...item, json: inCapitals(item.json) })),
      target: withEvents(inCapitals),
    },
    'members of the items in another order, with blanks': eachText((item) =>
      item.replace(/^\{"id":(\d+),(.*)\}$/s, (_, id: string, rest: string) => `{ ${rest},\n  "id" : ${id} }`),
    ),
    'next relative to the address of the page': nextUrls((next) => `${next.pathname}${next.search}`),
    'links of other relations, on the final page too': alterPages((page, _, __, request) => {
      page.links = { self: request.path, first: { href: '/' }, prev: null, ...(page.links as object) };
      page.headers.push(['link', `<${request.path.split('?')[0]}>; rel="self"`]);
    }),
  },
  'with short pages': {
    'pages cut short, each time elsewhere': cutShort,
    // Its next has the same cursor: with another parameter, or as the page itself.
    'a page cut by time before its first item': perServer(() => {
      const asked = new Map<string, number>();
      return alterPages((page, query, _, request) => {
        const kind = Number(query.get('from_id') ?? 4) % 5;
        if (kind > 1 || query.has('scan') || !nextOf(page)) return;
        const times = (asked.get(request.path) ?? 0) + 1;
        asked.set(request.path, times);
        if (times % 3 === 1)
          holdNothing(page, request, (next) => kind === 0 || next.set('scan', String(times)));
      });
    }),
    'pages of at most 200 items': sized((pageSize) => Math.min(pageSize, 200)),
    'next before an empty last page': alterStored((page, query) => ({
      ...page,
      more: page.more || page.items.length === query.pageSize,
    })),
    'testTime in the local time of one place, whatever was recorded': spelledTimes(respelt),
    'the first of two values of a parameter is read': onQuery((query) => {
      for (const name of new Set(query.keys())) query.set(name, query.get(name)!);
    }),
    'several relation types in one rel, and blanks where they may be': linked(
      (next) => `  <${next}> ;rel = "https://example.com/rel/page next" ; foo`,
    ),
  },
  'with a cache': { 'pages cut short, each time elsewhere, which a cache repeats': cutShort },
  'with a rate limit': {
    // Its parser refuses that spelling.
    'testTime in UTC as recorded, with -00:00, and next with Z': (() => {
      const { server, target } = spelledTimes((text) => text.replace(/Z$/, '-00:00'));
      return { server: both(server, timesOfNext(inUtc)), target };
    })(),
    'a relative Link header': linked((next) => `<${next.slice(new URL(next).origin.length)}>; rel="next"`),
  },
  'with encoded links': {
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
  },
  'with normalised paths': {
    'a URL in each item that is signed anew in each answer, and one every 100 ms; writes take 20 ms': {
      server: both(
        eachText((item, page) =>
          signed(signed(item, 'picture', page), 'film', Math.floor(Date.now() / SIGNED_EVERY_MS)),
        ),
        middleware(() => async (request, next) => {
          if (!isTokenRequest(request) && request.method !== 'GET') await sleep(SLOW_WRITE_MS);
          return next(request);
        }),
      ),
      // No capture has the URL of an answer.
      target: withoutWindow,
    },
  },
};
