/** Clients with one mistake each, the situation that finds it, and the expected words. The name says what the client does. */
import { member } from '../../../engine/client/json.ts';
import type { Given } from '../stage.ts';
import type { Habits, PageSeen } from './small-client.ts';

interface Mistake {
  readonly habits: Habits;
  /** The expected status; default: fail. */
  readonly status?: 'warn';
  /** The expected words by situation. */
  readonly shows: Readonly<Record<string, RegExp>>;
  /** Further situations in which the same mistake appears; '*' for any. */
  readonly also?: readonly string[];
}

/** Changes one parameter of next. */
const changed =
  (name: string, change: (value: string) => string) =>
  (next: URL): URL =>
    withParameter(next, name, change(next.searchParams.get(name)!));

function withParameter(url: URL, name: string, value: string): URL {
  const changed = new URL(url);
  changed.searchParams.set(name, value);
  return changed;
}

/** The page's own URL starting at another time; undefined after a page without items. */
const from =
  (change: (testTime: string) => string) =>
  (_next: URL, { url, items }: PageSeen): URL | undefined => {
    if (items.length === 0) return undefined;
    const again = withParameter(new URL(url), 'from', change(String(member(items.at(-1)!, 'testTime'))));
    again.searchParams.delete('from_id');
    return again;
  };

/** Follows the URL from the Link header instead of links.next. */
export const linked =
  (find: (link: string) => string | undefined) =>
  (_next: URL, { link, url }: PageSeen): URL | undefined => {
    const found = find(link ?? '');
    return found === undefined ? undefined : new URL(found, url);
  };

const NEXT = [
  'next-in-another-order',
  'next-with-extra-parameters',
  'next-percent-encoded',
  'next-relative',
  'summer-time-ends',
];
/** Mistakes in walking pages: screenings are lost, repeated or altered. */
const PAGES: Readonly<Record<string, Mistake>> = {
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
      onward: (next) => {
        for (const name of [...next.searchParams.keys()])
          if (!['from', 'to', 'pageSize', 'from_id'].includes(name)) next.searchParams.delete(name);
        return next;
      },
    },
    shows: { 'next-with-extra-parameters': /followed as given.*snapshot left out, cursor left out/ },
    also: ['empty-page-with-next', 'comes-to-an-end'],
  },
  'drops ties: asks from the last testTime without from_id': {
    habits: {
      onward: from((testTime) => testTime),
      endsAt: (page) => page.items.length < 2,
    },
    shows: {
      'plain-walk': /a new query from the last testTime without from_id/,
      'ties-across-pages': /no end/,
    },
    also: [...NEXT, 'empty-page-with-next', 'large-ids', 'comes-to-an-end'],
  },
  'skips ties: asks from a millisecond after the last testTime': {
    habits: { onward: from((testTime) => new Date(Date.parse(testTime) + 1).toISOString()) },
    shows: {
      'plain-walk': /a new query from the last testTime/,
      'ties-across-pages': /which follows \d+ at the same testTime/,
    },
    also: [...NEXT, 'empty-page-with-next', 'large-ids', 'offsets-and-fractions'],
  },
  'cuts times to milliseconds on the way to the next request': {
    habits: { onward: changed('from', (time) => new Date(time).toISOString()) },
    shows: { 'offsets-and-fractions': /no end|screening \d+ \d+ times|is missing/ },
    also: ['comes-to-an-end'],
  },
  'puts a pageSize of its own into next': {
    habits: { onward: changed('pageSize', () => '50') },
    shows: { 'plain-walk': /another URL: pageSize changed to 50/ },
    also: NEXT,
  },
  'decodes next before it asks for it': {
    habits: { onward: (next) => decodeURIComponent(next.href) },
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
    habits: { endsAt: (page, given) => page.items.length < (given.pageSize ?? 100) },
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
    habits: { onward: (_, { next }) => new URL(next!) },
    status: 'warn',
    shows: { 'next-relative': /got exit status 1: gave up: Invalid URL/ },
  },
  'takes the first URL of a Link header for the next page': {
    habits: { onward: linked((link) => /<([^>]*)>/.exec(link)?.[1]) },
    status: 'warn',
    shows: { 'link-header-among-others': /got exit status 1: gave up: 404 for a page/ },
  },
  'compares testTimes with the window as text': {
    habits: { keeps: (testTime, { from, to }) => testTime >= from && testTime < to },
    shows: { 'summer-time-ends': /all 40 screenings of the window, got 0, .* is missing/ },
  },
  'puts the edges of its window in order as text': {
    habits: {
      first: (url, given) => {
        const [from, to] = [given.from, given.to].sort() as [string, string];
        return withParameter(withParameter(url, 'from', from), 'to', to);
      },
    },
    shows: { 'summer-time-ends': /got exit status 1: gave up: 400 for a page/ },
  },
  'takes the offset of next’s from for Z': {
    habits: { onward: changed('from', (time) => time.replace(/[+-]\d\d:\d\d$/, 'Z')) },
    shows: { 'summer-time-ends': /followed as given.*from changed to 2026-10-25T02:\d\d:00Z/ },
  },
  'stops where the from of next goes back, as text': {
    habits: {
      onward: (next, { url }) =>
        next.searchParams.get('from')! < new URL(url).searchParams.get('from')! ? undefined : next,
    },
    shows: { 'summer-time-ends': /all 40 screenings of the window, got 10, .*had 10 items and a next/ },
  },
  'reads rel="next" of a Link header where it stands first and alone': {
    habits: { onward: linked((link) => /<([^>]*)>; rel="next"/.exec(link)?.[1]) },
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
    habits: { first: (url) => decodeURIComponent(url.href) },
    shows: { 'offsets-and-fractions': /got exit status 1: gave up: 400 for a page/ },
    also: ['summer-time-ends'],
  },
  'asks at the origin of base_url and leaves out its path': {
    habits: { first: ({ href }, { baseUrl }) => href.replace(baseUrl, new URL(baseUrl).origin) },
    shows: { addresses: /got exit status 1: gave up: 404 for a page/ },
  },
  'treats to as inclusive': {
    habits: { first: (url, { to }) => withParameter(url, 'to', to.replace('00Z', '01Z')) },
    shows: { 'plain-walk': /the screenings of \[from, to\) alone, got 900001/ },
    also: ['*'],
  },
};

const raw = (fields: Readonly<Record<string, string>>): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name}=${value}`)
    .join('&');

const RETRIED = { '500-once': /expected the window to be collected whole, got exit status 1/ };
const THRICE = ['503-three-times', '500-three-times', '503-for-ever'];

/** Mistakes with secrets, tokens, limits, failures and events. */
const CALLS: Readonly<Record<string, Mistake>> = {
  'does not form-encode its secret': {
    habits: { form: raw },
    shows: { 'secret-form-encoded': /got exit status 1: gave up: no token: invalid_/ },
  },
  'sends its secret in the query too': {
    habits: { secretInQuery: true },
    shows: { 'secret-kept': /no secret in a URL, got the client_secret in one/ },
  },
  'sends its secret to the REST API too': {
    habits: { secretToApi: true },
    shows: { 'secret-kept': /the secret to stay with the token endpoint/ },
  },
  'logs its secret': {
    habits: { says: ({ clientId, clientSecret }) => `POST /oauth/token ${clientId} ${clientSecret}` },
    shows: { 'secret-kept': /no secret on standard error, got the client_secret there/ },
  },
  'prints its secret among the screenings': {
    habits: { prints: ({ clientSecret }) => JSON.stringify({ secret: clientSecret }) },
    shows: { 'secret-kept': /no secret on standard output/ },
  },
  'logs its token': {
    habits: { says: (_given, token) => `got ${token}` },
    status: 'warn',
    shows: { 'secret-kept': /no token on standard error, got an access token there/ },
  },
  'decodes its token and stumbles over one that is no JWT': {
    habits: { decodesToken: true },
    status: 'warn',
    shows: { 'opaque-token': /collected whole, got exit status 1/ },
  },
  'wants all the scopes that it asked for': {
    habits: { asks: { scope: 'screenings.read screenings.export', strict: true } },
    shows: { 'scope-subset': /gave up: not all scopes/ },
  },
  'gives up at a 401': {
    habits: { retries401: 0 },
    status: 'warn',
    shows: { '401-once': /collected whole, got exit status 1: gave up: 401 for a page/ },
    also: ['token-expires-in-the-walk'],
  },
  'retries a 401 with the token that was refused': {
    habits: { remintsOn401: false },
    status: 'warn',
    shows: { '401-once': /a retry with a new token, got one with the token that was refused/ },
    also: ['token-expires-in-the-walk'],
  },
  'retries a 401 five times': {
    habits: { retries401: 5 },
    status: 'warn',
    shows: {
      '401-for-ever': /one retry of a request that is answered 401, got 5 retries, with 6 token requests/,
    },
  },
  'retries a 401 for ever': {
    habits: { retries401: Infinity },
    shows: {
      'comes-to-an-end':
        /an end after a few retries, got \d+ requests for pages, and no end \(in 401-for-ever\)/,
    },
    also: ['401-for-ever'],
  },
  'retries refused credentials': {
    habits: { retriesInvalidClient: 4 },
    status: 'warn',
    shows: { 'credentials-refused': /no retry of refused credentials, got 5 token requests/ },
  },
  'ignores Retry-After': {
    habits: { waitsFor429: 'backoff', retries429: 20 },
    shows: { '429-with-seconds': /no request for 2\.00 s after the 429, .*got the next one after 0\.\d\d s/ },
    also: ['429-with-a-date', '429-twice'],
  },
  'reads Retry-After as seconds alone': {
    habits: { waitsFor429: 'seconds only' },
    status: 'warn',
    shows: { '429-with-a-date': /no request for \d\.\d\d s after the 429/ },
  },
  'gives up at a 429': {
    habits: { retries429: 0 },
    status: 'warn',
    shows: { '429-twice': /collected whole, got exit status 1: gave up: 429 for a page/ },
    also: ['429-with-seconds', '429-with-a-date'],
  },
  'does not retry a 5xx': {
    habits: { retries5xx: 0 },
    shows: { ...RETRIED, '503-three-times': /a retry, got exit status 1 after the first failure/ },
    also: THRICE,
  },
  'retries a 5xx immediately and for ever': {
    habits: { retries5xx: Infinity, backoffMs: () => 0 },
    shows: {
      '503-for-ever': /an end after a few retries, got \d+ requests for pages, and no end/,
      '503-three-times': /immediate retries each time: 0\.00 s/,
    },
    also: THRICE,
  },
  'waits as long before each retry of a 5xx': {
    habits: { backoffMs: () => 300 },
    shows: { '503-three-times': /waits that do not grow: 0\.30 s, 0\.30 s/ },
    also: THRICE,
  },
  ...Object.fromEntries(
    [400, 403, 404].map((status): [string, Mistake] => [
      `retries a ${status}`,
      {
        habits: { retriedStatuses: [status] },
        shows: {
          [`${status}-not-retried`]: new RegExp(
            `no retry of a request that is answered ${status}, got 3 retries`,
          ),
        },
      },
    ]),
  ),
  'exits with 0 whatever happened': {
    habits: { exitOf: () => 0 },
    shows: {
      '403-not-retried':
        /an exit status other than 0: the window could not be had, got exit status 0 with 0 screen/,
      'nothing-partial-as-whole': /exit status 0 with 0 screenings \(in 401-for-ever\)/,
    },
    also: [
      '400-not-retried',
      '404-not-retried',
      '503-for-ever',
      'credentials-refused',
      '401-for-ever',
      'tls-another-name',
    ],
  },
  'takes what has come of an answer that breaks off': {
    habits: { takesPartial: true },
    shows: { 'connection-dropped': /expected all 46 screenings of the window, got \d+, and exit status 0/ },
  },
  'waits no longer than two seconds for an answer': {
    habits: { timeoutMs: 2000, retriesDropped: 0 },
    status: 'warn',
    shows: { 'slow-answer': /collected whole, got exit status 1: gave up: .*timeout/ },
  },
  'collects events beside pages without a look at what it has': {
    habits: { readsEvents: 'as they come' },
    shows: { 'events-beside-rest': /each screening once .*, got screening \d+ \d times/ },
  },
  'deduplicates events by their envelope': {
    habits: { readsEvents: 'by event' },
    shows: { 'events-beside-rest': /each screening once .*, got screening \d+ 2 times/ },
  },
};

export const MISTAKES: Readonly<Record<string, Mistake>> = { ...PAGES, ...CALLS };
