/** Clients that walk pages wrongly, and lose, repeat or spoil what they collect. */
import { integerOf, member } from '../../../engine/client/json.ts';
import type { Given } from '../stage.ts';
import type { Mistake } from './mistake.ts';
import type { Habits, PageSeen } from './small-client.ts';

const firstUrl = (given: Given): string =>
  `${given.baseUrl}${path(given)}?${new URLSearchParams({ from: given.from, to: given.to, pageSize: String(sizeOf(given)) })}`;

const query = (url: string): URLSearchParams => new URL(url).searchParams;

/** next with some of its parameters changed. */
const changed =
  (change: (query: URLSearchParams, page: PageSeen) => void) =>
  (page: PageSeen): string | undefined => {
    if (page.next === undefined) return undefined;
    const next = new URL(page.next, page.url);
    change(next.searchParams, page);
    return next.href;
  };

const last = (page: PageSeen, name: string): string => {
  const item = page.items.at(-1)!;
  const value = member(item, name);
  return typeof value === 'string' ? value : String(integerOf(value));
};

/** The first page's address with another `from`. */
const from = (page: PageSeen, value: string): string => {
  const next = new URL(page.url);
  next.searchParams.set('from', value);
  next.searchParams.delete('from_id');
  return next.href;
};

const path = ({ tenantId }: Given): string => `/v1/tenants/${tenantId}/screenings`;
const sizeOf = ({ pageSize = 100 }: Given): number => pageSize;
const NEXT = [
  'next-in-another-order',
  'next-with-extra-parameters',
  'next-percent-encoded',
  'next-relative',
  'summer-time-ends',
];
export const PAGE_MISTAKES: Readonly<Record<string, Mistake>> = {
  'mints a token for each call': {
    habits: { mintsPerCall: true },
    status: 'warn',
    shows: { 'long-walk': /expected one token, reused, for 120 requests, got 120 token requests/ },
  },
  'renews its token when it has expired': {
    habits: { marginSeconds: 0 },
    status: 'warn',
    shows: {
      'refresh-margin': /a new token from 60 s before exp on, got \d+ requests? with a token that was/,
    },
  },
  'rebuilds next from the parameters that it knows': {
    habits: {
      onward: (page) => {
        if (page.next === undefined) return undefined;
        const given = query(new URL(page.next, page.url).href);
        const own = new URL(page.url.split('?')[0]!);
        for (const name of ['from', 'to', 'pageSize', 'from_id'])
          if (given.has(name)) own.searchParams.set(name, given.get(name)!);
        return own.href;
      },
    },
    shows: { 'next-with-extra-parameters': /followed as given.*snapshot left out, cursor left out/ },
    also: ['empty-page-with-next', 'comes-to-an-end'],
  },
  'drops ties: asks from the last testTime without from_id': {
    habits: {
      onward: (page) => (page.next && page.items.length > 0 ? from(page, last(page, 'testTime')) : undefined),
      endsAt: (page) => page.items.length < 2,
    },
    shows: {
      'plain-walk': /a new query from the last testTime without from_id/,
      'ties-across-pages': /no end/,
    },
    also: [...NEXT, 'empty-page-with-next', 'large-ids', 'comes-to-an-end'],
  },
  'skips ties: asks from a millisecond after the last testTime': {
    habits: {
      onward: (page) =>
        page.next && page.items.length > 0
          ? from(page, new Date(Date.parse(last(page, 'testTime')) + 1).toISOString())
          : undefined,
    },
    shows: {
      'plain-walk': /a new query from the last testTime/,
      'ties-across-pages': /which follows \d+ at the same testTime/,
    },
    also: [...NEXT, 'empty-page-with-next', 'large-ids', 'offsets-and-fractions'],
  },
  'cuts times to milliseconds on the way to the next request': {
    habits: {
      onward: changed((next) => next.set('from', new Date(next.get('from')!).toISOString())),
    },
    shows: { 'offsets-and-fractions': /no end|screening \d+ \d+ times|is missing/ },
    also: ['comes-to-an-end'],
  },
  'moves to while it walks': {
    habits: { onward: changed((next) => next.set('to', '2026-03-31T23:59:59Z')) },
    shows: { 'plain-walk': /next to be followed as given: .*got another URL: to changed to 2026-03-31/ },
    also: NEXT,
  },
  'puts a pageSize of its own into next': {
    habits: { onward: changed((next) => next.set('pageSize', '50')) },
    shows: { 'plain-walk': /another URL: pageSize changed to 50/ },
    also: [...NEXT],
  },
  'decodes next before it asks for it': {
    habits: { onward: (page) => page.next && decodeURIComponent(new URL(page.next, page.url).href) },
    shows: { 'offsets-and-fractions': /expected the window to be collected whole, got exit status 1/ },
    also: ['summer-time-ends'],
  },
  'parses ids as doubles': {
    habits: { idOf: (id) => String(Number(id)) },
    shows: { 'large-ids': /9007199254740993 is missing.*rounded to 9007199254740992, as a double is/ },
  },
  'deduplicates by testTime': {
    habits: { dedupes: (testTime) => testTime },
    shows: { 'ties-across-pages': /expected all 57 screenings of the window, got \d+, .*is missing/ },
    also: ['large-ids', 'offsets-and-fractions'],
  },
  'stops at an empty page': {
    habits: { endsAt: (page) => page.items.length === 0 },
    shows: { 'empty-page-with-next': /the last page asked for had 0 items and a next/ },
  },
  'stops at a short page': {
    habits: { endsAt: (page, given) => page.items.length < sizeOf(given) },
    shows: { 'short-pages': /the last page asked for had 7 items and a next/ },
    also: ['empty-page-with-next'],
  },
  'stops after fifty pages': {
    habits: (() => {
      const walks = new WeakMap<Given, number>();
      return {
        endsAt: (_page, given) => walks.set(given, (walks.get(given) ?? 0) + 1).get(given)! >= 50,
      } satisfies Habits;
    })(),
    shows: { 'nothing-partial-as-whole': /got 250, and exit status 0: .*\(in long-walk\)/ },
    also: ['long-walk'],
  },
  'takes an empty window for an error': {
    habits: {
      endsAt: (page) => {
        if (page.items.length === 0) throw new Error('no screenings');
        return false;
      },
    },
    shows: { 'empty-window': /collected whole, got exit status 1: gave up: no screenings/ },
    also: ['empty-page-with-next'],
  },
  'takes an unknown member of a screening for an error': {
    habits: { strictFields: true },
    shows: { 'unknown-fields': /gave up: unknown field "site"/ },
  },
  'takes an unknown member of a token response for an error': {
    habits: { strictTokenFields: true },
    shows: { 'unknown-fields': /gave up: unknown field "issued_by"/ },
  },
  'takes next for an absolute URL always': {
    habits: { onward: (page) => page.next && new URL(page.next).href },
    status: 'warn',
    shows: { 'next-relative': /got exit status 1: gave up: Invalid URL/ },
  },
  'takes the first URL of a Link header for the next page': {
    habits: {
      onward: (page) => {
        const first = /<([^>]*)>/.exec(page.link ?? '')?.[1];
        return first === undefined ? undefined : new URL(first, page.url).href;
      },
    },
    status: 'warn',
    shows: { 'link-header-among-others': /got exit status 1: gave up: 404 for a page/ },
  },
  'compares testTimes with the window as text': {
    habits: { keeps: (testTime, { from, to }) => testTime >= from && testTime < to },
    shows: { 'summer-time-ends': /all 40 screenings of the window, got 0, .* is missing/ },
  },
  'puts the edges of its window in order as text': {
    habits: {
      first: (given) => {
        const [from, to] = [given.from, given.to].sort() as [string, string];
        return firstUrl({ ...given, from, to });
      },
    },
    shows: { 'summer-time-ends': /got exit status 1: gave up: 400 for a page/ },
  },
  'takes the offset of next’s from for Z': {
    habits: {
      onward: changed((next) => next.set('from', next.get('from')!.replace(/[+-]\d\d:\d\d$/, 'Z'))),
    },
    shows: { 'summer-time-ends': /followed as given.*from changed to 2026-10-25T02:\d\d:00Z/ },
  },
  'stops where the from of next goes back, as text': {
    habits: {
      endsAt: ({ next, url }) =>
        next !== undefined && query(new URL(next, url).href).get('from')! < query(url).get('from')!,
    },
    shows: { 'summer-time-ends': /all 40 screenings of the window, got 10, .*had 10 items and a next/ },
  },
  'reads rel="next" of a Link header where it stands first and alone': {
    habits: {
      onward: ({ link, url }) => {
        const next = /<([^>]*)>; rel="next"/.exec(link ?? '')?.[1];
        return next === undefined ? undefined : new URL(next, url).href;
      },
    },
    shows: {
      'link-header-among-others': /all 46 screenings of the window, got 10/,
      'nothing-partial-as-whole': /got 10, and exit status 0.*\(in link-header-among-others\)/,
    },
  },
  'learns the members of screenings from the first page': {
    habits: (() => {
      const known = new WeakMap<Given, string>();
      const names = (items: PageSeen['items']): string =>
        [...new Set(items.flatMap((item) => Object.keys(item as object)))].sort().join();
      return {
        endsAt: ({ items }, given) => {
          const own = names(items);
          if (items.length > 0 && !known.has(given)) known.set(given, own);
          if (items.length > 0 && known.get(given) !== own) throw new Error('a column that is not known');
          return false;
        },
      } satisfies Habits;
    })(),
    shows: { 'unknown-fields': /got exit status 1: gave up: a column that is not known/ },
  },
  'does not percent-encode the window': {
    habits: {
      first: (given) =>
        `${given.baseUrl}${path(given)}?from=${given.from}&to=${given.to}&pageSize=${sizeOf(given)}`,
    },
    shows: { 'offsets-and-fractions': /got exit status 1: gave up: 400 for a page/ },
    also: ['summer-time-ends'],
  },
  'asks at the origin of base_url and leaves out its path': {
    habits: {
      first: (given) =>
        `${new URL(given.baseUrl).origin}${path(given)}?${new URLSearchParams({ from: given.from, to: given.to })}`,
    },
    shows: { addresses: /got exit status 1: gave up: 404 for a page/ },
  },
  'treats to as inclusive': {
    habits: {
      first: (given) =>
        `${given.baseUrl}${path(given)}?${new URLSearchParams({ from: given.from, to: given.to.replace('00Z', '01Z'), pageSize: '10' })}`,
    },
    shows: { 'plain-walk': /the screenings of \[from, to\) alone, got 900001/ },
    also: ['*'],
  },
};
