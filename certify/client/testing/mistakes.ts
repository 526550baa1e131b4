/** Clients with one mistake each, the situation that finds it, and the expected words. The name says what the client does. */
import { member } from '../../../engine/client/json.ts';
import { followFindings } from '../judge-requests.ts';
import type { Situation } from '../situation.ts';
import type { Given } from '../stage.ts';
import { SITUATIONS } from '../situations/all.ts';
import { startingAfter, type Habits, type PageSeen } from './small-client.ts';

/** What the client does, the expected words by situation, and further situations in which it shows ('*': any). */
type Mistake = readonly [habits: Habits, shows: Readonly<Record<string, RegExp>>, also?: readonly string[]];

export function changed(url: URL, name: string, change: (value: string) => string): URL {
  const copy = new URL(url);
  copy.searchParams.set(name, change(copy.searchParams.get(name)!));
  return copy;
}

const toMs = (time: string): string => new Date(time).toISOString();

/** The page's own URL starting at another time; undefined after a page without items. */
const from =
  (change: (testTime: string) => string) =>
  (_next: URL, { url, items }: PageSeen): URL | undefined => {
    if (items.length === 0) return undefined;
    const again = changed(new URL(url), 'from', () => change(String(member(items.at(-1)!, 'testTime'))));
    again.searchParams.delete('from_id');
    return again;
  };

export const linked =
  (find: (link: string) => string | undefined) =>
  (_next: URL, { link, url }: PageSeen): URL | undefined => {
    const found = find(link ?? '');
    return found === undefined ? undefined : new URL(found, url);
  };

export const withHeader = (name: string, valueOf: (given: Given) => string): Habits => ({
  sends: (sent, given) => ({ ...sent, headers: { ...sent.headers, [name]: valueOf(given) } }),
});

const namesOf = (where: (situation: Situation) => unknown): string[] =>
  SITUATIONS.filter(where).map(({ name }) => name);
const FOLLOWED = namesOf(({ judge }) => judge === followFindings);
const IMPOSSIBLE = namesOf(({ impossible }) => impossible);

const retrying = (status: number): Mistake => [
  { retries: { [status]: 3 } },
  { [`${status}-not-retried`]: RegExp(`no retry of a request that is answered ${status}, got 3 retries`) },
];

const RETRIED = { '500-once': /expected the window to be collected whole, got exit status 1/ };
const THRICE = ['503-three-times', '500-three-times', '503-for-ever'];

export const FAILING: Readonly<Record<string, Mistake>> = {
  'rebuilds next from the parameters that it knows': [
    {
      onward: (next) => {
        for (const name of [...next.searchParams.keys()])
          if (!['from', 'to', 'pageSize', 'from_id'].includes(name)) next.searchParams.delete(name);
        return next;
      },
    },
    { 'next-with-extra-parameters': /followed as given.*snapshot left out, cursor left out/ },
    ['empty-page-with-next', 'comes-to-an-end'],
  ],
  'rebuilds next from a map of its parameters, without empty ones': [
    {
      onward: (next) => {
        const pairs = [...next.searchParams].filter(([, value]) => value !== '');
        return new URL(`?${new URLSearchParams(Object.fromEntries(pairs))}`, next);
      },
    },
    { 'next-with-extra-parameters': /followed as given.*tag changed to a, all left out/ },
  ],
  'asks for what follows the last item instead of next': [
    { onward: (_next, { url, items }) => startingAfter(url, items.at(-1)!) },
    { 'next-with-extra-parameters': /followed as given.*snapshot left out/ },
    ['plain-walk', 'empty-page-with-next'],
  ],
  'drops ties: asks from the last testTime without from_id': [
    { onward: from((testTime) => testTime), endsAt: (page) => page.items.length < 2 },
    { 'ties-across-pages': /no end/ },
    [...FOLLOWED, 'empty-page-with-next', 'large-ids', 'comes-to-an-end'],
  ],
  'skips ties: asks from a millisecond after the last testTime': [
    { onward: from((testTime) => new Date(Date.parse(testTime) + 1).toISOString()) },
    { 'ties-across-pages': /which follows \d+ at the same testTime/ },
    [...FOLLOWED, 'empty-page-with-next', 'large-ids', 'offsets-and-fractions'],
  ],
  'cuts times to milliseconds on the way to the next request': [
    { onward: (next) => changed(next, 'from', toMs) },
    { 'offsets-and-fractions': /no end|screening \d+ \d+ times|is missing/ },
    ['comes-to-an-end'],
  ],
  'cuts the from of next to microseconds': [
    { onward: (next) => changed(next, 'from', (from) => from.replace(/(\.\d{6})\d+/, '$1')) },
    { 'offsets-and-fractions': /followed as given: .*from changed to/ },
  ],
  'cuts the window to milliseconds': [
    { first: (url) => changed(changed(url, 'from', toMs), 'to', toMs) },
    { 'offsets-and-fractions': /601 is missing|\[from, to\) alone, got 900003/ },
  ],
  'cuts the to of next to milliseconds': [
    { onward: (next) => changed(next, 'to', toMs) },
    { 'offsets-and-fractions': /601 is missing/ },
  ],
  'reads the hours of an offset alone': [
    { first: (url) => changed(url, 'to', (to) => to.replace(/([+-]\d\d):\d\d$/, '$1:00')) },
    {
      'offsets-and-fractions': /\[from, to\) alone, got 900004( and 1 more|, 900005)/,
    },
  ],
  'leaves out what is at from': [
    { keeps: (testTime, given) => Date.parse(testTime) > Date.parse(given.from) },
    { 'offsets-and-fractions': /600 is missing/ },
  ],
  'parses the from_id of next as a double': [
    { onward: (next) => changed(next, 'from_id', (id) => String(Number(id))) },
    { 'large-ids': /9007199254741004 is missing/ },
  ],
  'decodes next before it asks for it': [
    { onward: (next) => decodeURIComponent(next.href) },
    { 'offsets-and-fractions': /followed as given: .*to changed to \S+ 05:30/ },
    ['summer-time-ends'],
  ],
  'parses ids as doubles': [
    { idOf: (id) => String(Number(id)) },
    { 'large-ids': /9007199254740995 is missing.*rounded to 9007199254740996, as a double is/ },
  ],
  'deduplicates by testTime': [
    { dedupes: (testTime) => testTime },
    { 'ties-across-pages': /expected all 57 screenings of the window, got \d+, .*is missing/ },
    ['empty-page-with-next', 'large-ids', 'offsets-and-fractions'],
  ],
  'stops at a short page': [
    { endsAt: (page, given) => page.items.length < (given.pageSize ?? 100) },
    {
      'short-pages': /the last page asked for had 7 items and a next/,
      'empty-page-with-next': /the last page asked for had 0 items and a next/,
    },
  ],
  'stops after fifty pages': [
    { endsAt: (_page, _given, number) => number >= 50 },
    { 'nothing-partial-as-whole': /got 250, and exit status 0: .*\(in long-walk\)/ },
    ['long-walk'],
  ],
  'takes an empty window for an error': [
    { chokesOn: [/"items":\[\]/, 'no screenings'] },
    { 'empty-window': /collected whole, got exit status 1: gave up: no screenings/ },
    ['empty-page-with-next'],
  ],
  'takes an unknown member of a screening for an error': [
    { chokesOn: [/"site"/, 'unknown field "site"'] },
    { 'unknown-fields': /gave up: unknown field "site"/ },
  ],
  'takes an unknown member of a token response for an error': [
    { chokesOn: [/"issued_by"/, 'unknown field "issued_by"'] },
    { 'unknown-fields': /gave up: unknown field "issued_by"/ },
  ],
  'reads next from the text, without a JSON parser': [
    { onward: (_next, { url, text }) => new URL(/"next":"([^"]*)"/.exec(text)![1]!, url) },
    { 'json-spelt-differently': /collected whole, got exit status 1/ },
  ],
  'compares testTimes with the window as text': [
    { keeps: (testTime, { from, to }) => testTime >= from && testTime < to },
    { 'summer-time-ends': /all 40 screenings of the window, got 0, .* is missing/ },
  ],
  'reads rel="next" of a Link header where it stands first and alone': [
    { onward: linked((link) => /<([^>]*)>; rel="next"/.exec(link)?.[1]) },
    {
      'link-header-among-others': /all 46 screenings of the window, got 10/,
      'nothing-partial-as-whole': /got 10, and exit status 0.*\(in link-header-among-others\)/,
    },
  ],
  'asks at the origin of base_url and leaves out its path': [
    { first: ({ href }, { baseUrl }) => href.replace(baseUrl, new URL(baseUrl).origin) },
    { addresses: /got exit status 1: gave up: 404 for a page/ },
  ],
  'treats to as inclusive': [
    { first: (url) => changed(url, 'to', (to) => to.replace('00Z', '01Z')) },
    { 'plain-walk': /the screenings of \[from, to\) alone, got 900001/ },
    ['*'],
  ],
  'does not form-encode its secret': [
    { sends: (sent) => (sent.body ? { ...sent, body: decodeURIComponent(sent.body) } : sent) },
    { 'secret-form-encoded': /got exit status 1: gave up: no token: invalid_/ },
  ],
  'sends its secret in the query too': [
    {
      sends: (sent, { clientSecret }) =>
        sent.body ? { ...sent, url: `${sent.url}?client_secret=${clientSecret}` } : sent,
    },
    { 'secret-kept': /no secret in a URL, got the client_secret in one/ },
  ],
  'sends its secret to the REST API too': [
    withHeader('x-client-secret', ({ clientSecret }) => clientSecret),
    { 'secret-kept': /the secret to stay with the token endpoint/ },
  ],
  'sends its secret to an address that is not the token endpoint': [
    { sends: (sent) => ({ ...sent, url: sent.url.replace('/oauth/', '/oauth2/') }) },
    { 'secret-kept': /the secret to stay with the token endpoint/ },
    ['*'],
  ],
  'asks for its token at base_url': [
    { sends: (sent, { baseUrl }) => (sent.body ? { ...sent, url: `${baseUrl}/oauth/token` } : sent) },
    { addresses: /got exit status 1: gave up: no token: / },
  ],
  'logs its secret': [
    { prints: ({ clientSecret }) => ({ stderr: `POST /oauth/token client_secret=${clientSecret}` }) },
    { 'secret-kept': /no secret on standard error, got the client_secret there/ },
  ],
  'prints its secret among the screenings': [
    { prints: ({ clientSecret }) => ({ stdout: JSON.stringify({ secret: clientSecret }) }) },
    { 'secret-kept': /no secret on standard output/ },
  ],
  'wants all the scopes that it asked for': [
    {
      scope: 'screenings.read screenings.export',
      chokesOn: [/"scope":"screenings\.read"/, 'not all scopes'],
    },
    { 'scope-subset': /gave up: not all scopes/ },
  ],
  'retries a 401 for ever': [
    { retries: { 401: Infinity } },
    {
      'comes-to-an-end': /an end after a few retries, got \d+ requests, and no end \(in 401-for-ever\)/,
    },
    ['401-for-ever'],
  ],
  'ignores Retry-After': [
    { waitsFor429: 'backoff', retries: { 429: 20 } },
    { '429-with-seconds': /no request for 2\.00 s after the 429, .*got the next one after 0\.\d\d s/ },
    ['429-with-a-date', '429-twice'],
  ],
  'does not retry a 5xx': [
    { retries: { 500: 0 } },
    { ...RETRIED, '503-three-times': /a retry, got exit status 1 after the first failure/ },
    THRICE,
  ],
  'retries a 5xx immediately and for ever': [
    { retries: { 500: Infinity }, backoffMs: () => 0 },
    {
      '503-for-ever': /an end after a few retries, got \d+ requests, and no end/,
      '503-three-times': /immediate retries each time: 0\.00 s/,
    },
    THRICE,
  ],
  'waits as long before each retry of a 5xx': [
    { backoffMs: () => 300 },
    { '503-three-times': /waits that do not grow: 0\.30 s, 0\.30 s/ },
    THRICE,
  ],
  'does not retry the first page': [
    { retriesOnly: /from_id/ },
    { ...RETRIED, '429-twice': /collected whole, got exit status 1: gave up: 429 for a page/ },
  ],
  'does not retry a 502': [{ retries: { 502: 0 } }, { '500-once': /gave up: 502 for a page/ }],
  'retries a broken connection a hundred times': [
    { retries: { 0: 100 } },
    { 'comes-to-an-end': /and no end \(in connection-dropped-for-ever\)/ },
    ['connection-dropped-for-ever'],
  ],
  'retries a failing token endpoint for ever': [
    { retriesOfCredentials: Infinity },
    { 'comes-to-an-end': /and no end \(in token-503-for-ever\)/ },
    ['token-503-for-ever', 'credentials-refused'],
  ],
  'takes an answer that is no page for an empty one': [
    { salvages: '{"items":[],"links":{}}' },
    {
      'html-for-a-page': /the window could not be collected, got exit status 0 with 10 screenings/,
      'connection-dropped': /expected all 46 screenings of the window, got 10, and exit status 0/,
    },
    ['connection-dropped-for-ever', 'nothing-partial-as-whole'],
  ],
  'exits with 0 whatever happened': [
    { exitsWith: 0 },
    {
      '403-not-retried':
        /an exit status other than 0: the window could not be collected, got exit status 0 with 0 screen/,
      'nothing-partial-as-whole': /exit status 0 with 0 screenings \(in 401-for-ever\)/,
    },
    IMPOSSIBLE,
  ],
  'deduplicates events by their envelope': [
    { readsEvents: 'by event' },
    { 'events-beside-rest': /each screening once .*, got screening \d+ 2 times/ },
  ],
};

export const WARNED: Readonly<Record<string, Mistake>> = {
  'retries a 400': retrying(400),
  'retries a 403': retrying(403),
  'retries a 404': retrying(404),
  'sends its token where a redirect leads': [
    { followsRedirects: true },
    { 'redirect-to-another-host': /no token at another host, got a token there/ },
  ],
  'prints times without their offsets': [
    { spells: (testTime) => testTime.slice(0, 19) },
    { 'texts-unchanged': /testTime 2026-03-02T08:00:00 for 2026-03-02T08:00:00Z in screening 1000 \(in pl/ },
  ],
  'mints a token for each call': [
    { marginSeconds: Infinity },
    { 'long-walk': /expected one token, reused, for 120 requests, got 120 token requests/ },
    ['token-expires-in-the-walk'],
  ],
  'does not keep a renewed token': [
    { losesRenewedTokens: true },
    {
      'token-expires-in-the-walk': /expected one token, reused, for 1\d requests, got \d+ token requests/,
    },
  ],
  'renews its token when it has expired': [
    { marginSeconds: 0 },
    { 'refresh-margin': /a new token from 60 s before exp on, got \d+ requests? with a token that was/ },
  ],
  'takes next for an absolute URL always': [
    { onward: (_, { next }) => new URL(next!) },
    { 'next-relative': /got exit status 1: gave up: Invalid URL/ },
  ],
  'sends its token in the query of the first page too': [
    {
      sends: (sent) =>
        sent.body || sent.url.includes('from_id')
          ? sent
          : { ...sent, url: `${sent.url}&access_token=${sent.headers['authorization']?.slice(7)}` },
    },
    { 'secret-kept': /no token in a URL, got an access token in one/ },
  ],
  'logs its token': [
    { prints: (_given, token) => ({ stderr: `got ${token}` }) },
    { 'secret-kept': /no token on standard error, got an access token there/ },
  ],
  'decodes its token and stumbles over one that is no JWT': [
    { chokesOn: [/"access_token":"[^.]*"/, 'no JWT'] },
    { 'opaque-token': /collected whole, got exit status 1/ },
  ],
  'gives up at a 401': [
    { retries: { 401: 0 } },
    { '401-once': /collected whole, got exit status 1: gave up: 401 for a page/ },
    ['token-expires-in-the-walk'],
  ],
  'mints a new token after the first 401 alone': [
    { remintsOn401: 1 },
    { '401-once': /a retry with a new token, got one with the token that was refused/ },
  ],
  'retries a 401 five times': [
    { retries: { 401: 5 } },
    { '401-for-ever': /one retry of a request that is answered 401, got 5 retries, with 6 token requests/ },
  ],
  'retries refused credentials': [
    { retriesOfCredentials: 4 },
    { 'credentials-refused': /no retry of refused credentials, got 5 token requests/ },
  ],
  'reads Retry-After as seconds alone': [
    { waitsFor429: 'seconds only' },
    { '429-with-a-date': /no request for \d\.\d\d s after the 429/ },
  ],
  'gives up at a 429': [
    { retries: { 429: 0 } },
    { '429-twice': /collected whole, got exit status 1: gave up: 429 for a page/ },
    ['429-with-seconds', '429-with-a-date'],
  ],
  'waits no longer than two seconds for an answer': [
    { timeoutMs: 2000, retries: { 0: 0 } },
    { 'slow-answer': /collected whole, got exit status 1: gave up: .*timeout/ },
  ],
};
