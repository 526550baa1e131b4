/** Screenings requests with a query that is sent as given, for rejections; tokens of every client. */
import { isHang, isUnread, type Exchange, type RequestOut } from '../../client/exchange.ts';
import { SOME_WINDOW, type PageQuery } from '../../client/page.ts';
import { sayRefusal, serverFailed } from '../../checks/errors.ts';
import { differs, type MismatchWithEvidence } from '../../checks/mismatch.ts';
import { formatInstant, instant, shift } from '../../data/instant.ts';
import type { Kit } from '../kit.ts';
import { sampleDataOf } from '../walk/survey.ts';
import { Untested, unlessUntested } from '../../errors.ts';

/** A tenant that does not exist. */
export const UNKNOWN_TENANT = '00000000-0000-4000-8000-00000000dead';

/** `?name=value&…` with values as on the wire. */
export const rawQuery = (parameters: Readonly<Record<string, string>>): string =>
  `?${Object.entries(parameters)
    .map(([name, value]) => `${name}=${value}`)
    .join('&')}`;

export const encoded = (parameters: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, encodeURIComponent(value)]));

/**
 * Queries that gateways may take for an attack: quotes, markup, lookups, two dots or dashes, an ampersand in a value,
 * NULs, invalid UTF-8 or encoding, what is encoded twice.
 */
const SUSPICIOUS =
  /['"<>`\\[\]{}|^]|(?:\.|%2e){2}|--|%(?![0-9a-f]{2})|%0[0ad]|%[89a-f][0-9a-f]|%2[267]|%25[0-9a-f]{2}|%3[ce]|%5c|%60|%7c|%24%7b|[^ -~]/i;

/** A name that occurs twice, or as `name` and `name[]`: parsers and firewalls reject it before the service sees it. */
const REPEATED = /[?&]([^=&[%]+)(?:(?:\[|%5b)[^=&]*)?=[^&]*&(?:.*&)?\1(?:=|\[|%5b)/i;

/** Of the queries that are sent: uWSGI counts the query twice, and closes the connection of requests beyond 4 kB. */
export const LONGEST_QUERY = 1_200;
/** Longer than any client sends. */
const LONG_OCTETS = 1_000;

export const isSuspicious = (query: string): boolean =>
  SUSPICIOUS.test(query) || REPEATED.test(query) || query.length > LONG_OCTETS;

/** Queries that may be accepted or rejected, but never with a 5xx or a broken connection. */
export function oddQueries(): string[] {
  const valid = encoded(SOME_WINDOW);
  return [
    rawQuery({ ...valid, pageSize: '%00' }),
    rawQuery({ ...valid, from: '%00' }),
    rawQuery({ ...valid, from: '%ff%fe' }),
    rawQuery({ ...valid, pageSize: '%' }),
    rawQuery({ ...valid, from: '9'.repeat(LONG_OCTETS) }),
    rawQuery({ ...valid, from_id: '9'.repeat(400) }),
    rawQuery({ ...valid, from: encodeURIComponent("2026-03-01T00:00:00Z' OR '1'='1") }),
    rawQuery({ ...valid, from: encodeURIComponent('0001-01-01T00:00:00+14:00') }),
    rawQuery({ ...valid, to: encodeURIComponent('9999-12-31T23:59:59-14:00') }),
    // Rounded to microseconds it is in the year 10000.
    rawQuery({ ...valid, to: '9999-12-31T23:59:59.9999999Z' }),
    rawQuery({ ...valid, unknown: 'x' }),
    `${rawQuery(valid)}&from=${valid.from}`,
    `${rawQuery(valid)}&to=${valid.to}`,
    `${rawQuery(valid)}&pageSize=10&pageSize=20`,
    `${rawQuery(valid)}&from_id=1&from_id=2`,
    '', // some servers read no query as null
    `?from&to&pageSize&from_id${'&'.repeat(500)}`, // Rack reads a name without = as nil
    `${rawQuery(valid)}&filler=${'x'.repeat(LONG_OCTETS)}`,
  ];
}

/** Odd parameters, and the query with which they are sent together; one is of this window. */
export const oddParameters = ({
  from,
  to,
}: Readonly<Record<'from' | 'to', string>>): [query: string, more: readonly string[]][] => [
  [rawQuery(encoded(SOME_WINDOW)), ['from%5B%5D=x', 'to%5By%5D=z', 'pageSize%5B%5D=7', 'from_id%5B%5D=1']],
  // Names that libraries for pages read by themselves, such as Spring's Pageable. What no header can hold must not get
  // from here into a Link. The last one is beyond 16 bits, too.
  [
    rawQuery({ ...encoded({ from, to }), pageSize: '1' }),
    [
      ...['sort=x', 'page=-1', 'size=x', 'offset=-1', 'limit=x', 'cursor=x'],
      ...['hasOwnProperty=x', 'toString=x', '', '=', '%20', '%F0%9F%98%80=%F0%9F%98%80'],
    ],
  ],
];

/** How frameworks let a POST have another method: a header, or a field of its form. */
export const overriding = (method: string): Required<Pick<RequestOut, 'headers' | 'body'>> => ({
  headers: {
    'x-http-method-override': method,
    'x-http-method': method,
    'x-method-override': method,
    'content-type': 'application/x-www-form-urlencoded',
  },
  body: `_method=${method}`,
});

/** A window of no width: the answer needs no data, so a server may send it before it authenticates the client. */
export const EMPTY_WINDOW: PageQuery = { from: SOME_WINDOW.from, to: SOME_WINDOW.from };

/** Returns the exchange if it can be judged: a rejection that never comes is none. Throws Untested if no answer was read. */
export function readable(exchange: Exchange): Exchange {
  if (isUnread(exchange) && !isHang(exchange)) throw new Untested(exchange.transportError!.message);
  return exchange;
}

/** Enough to send each of nine parts alone, or one of many. */
const MOST_HALVES = 16;

/**
 * Sends parts together in one request, and in halves if a part was rejected, which hides the others. `send` resolves to
 * whether its parts are settled: each of them was read, or one of them was accepted wrongly.
 */
export async function inHalves<Part>(
  parts: readonly Part[],
  send: (some: readonly Part[]) => Promise<boolean>,
): Promise<void> {
  const open = [parts];
  for (let sent = 0; open.length > 0 && sent <= MOST_HALVES; sent++) {
    const some = open.shift()!;
    if ((await send(some)) || some.length === 1) continue;
    const half = Math.ceil(some.length / 2);
    open.push(some.slice(0, half), some.slice(half));
  }
}

/** Throws Untested if invalid token requests get no answer, so that waits for odd ones use up no timeouts. */
export function unlessTokensHang({ ledger }: Kit): void {
  if (ledger.hangs.some(({ exchange }) => exchange!.request.channel === 'token'))
    throw new Untested('invalid token requests get no answer: see section 7.1');
}

/** Sends a request of primary for its own path, with the query as given; `isOdd`: suspicious whatever it looks like. */
export async function sendQuery(kit: Kit, query: string | PageQuery, isOdd = false): Promise<Exchange> {
  const request = kit.request(await kit.tenantOf(), query);
  const suspicious = isOdd || (typeof query === 'string' && isSuspicious(query));
  return readable(await kit.send({ ...request, suspicious }));
}

/** What a store may be the first to refuse: a NUL, an integer beyond 64 bits, an instant after the year 9999. */
export const UNSTORABLE = [
  { from_id: '%00' },
  { from_id: '9'.repeat(20) },
  { to: '9999-12-31T23:59:59-14:00' },
] as const;

/** A pooled connection whose failed transaction is not rolled back fails the next request. */
export async function failureAfter(
  kit: Kit,
  odd: (typeof UNSTORABLE)[number],
): Promise<MismatchWithEvidence | undefined> {
  const query = rawQuery({ ...encoded(SOME_WINDOW), ...odd });
  await sendQuery(kit, query);
  const valid = kit.request(await kit.tenantOf(), SOME_WINDOW);
  const exchange = await kit.send(valid, { isExclusive: true, keep5xx: true, unjudged: true });
  // A guard may close connections or answer 503, and a gateway have other failures.
  if (exchange.status !== 500) return undefined;
  return { ...differs(`no 500 after ${Object.entries(odd).join()}`, sayRefusal(exchange)), exchange };
}

/** Headers that servers log, store or parse: malformed, or longer than 255 characters, a usual column length. */
const ODD_HEADERS: Readonly<Record<string, string>> = {
  'x-request-id': '42',
  'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) '.repeat(10).trim(),
  referer: `https://example.com/${'screenings/'.repeat(26)}`,
  'accept-language': ';;q=x',
  'accept-encoding': ';;q=x, identity;q=0',
  cookie: 'a;=;;',
  traceparent: '00-zz',
  'if-modified-since': 'yesterday',
  'if-none-match': '"',
  // Databases may store it as an address.
  'x-forwarded-for': 'unknown',
};

/**
 * Sends all odd headers in one request; each alone if it is not served, so that the report names the header, and a
 * rejected one does not hide another.
 */
export async function sendOddHeaders(kit: Kit, request: RequestOut): Promise<Exchange> {
  const own = Object.keys(kit.target.headers).map((name) => name.toLowerCase());
  const odd = Object.entries(ODD_HEADERS).filter(([name]) => !own.includes(name));
  const withHeaders = (headers: typeof odd): RequestOut => ({
    ...request,
    headers: { ...request.headers, ...Object.fromEntries(headers) },
    offPath: true,
    suspicious: true,
  });
  const all = await kit.send(withHeaders(odd), { unjudged: true });
  if (all.status === 200) return all;
  for (const header of odd) {
    const exchange = await kit.send(withHeaders([header]));
    if (serverFailed(exchange)) return exchange;
  }
  return serverFailed(all) ? kit.send(withHeaders(odd)) : all;
}

/** A token request with this body, unchanged: the specification leaves its answer open, so no observer expects a token. */
export function tokenRequestOf(kit: Kit, body: string): RequestOut {
  const { form: _, ...request } = kit.client.tokenRequest([]);
  return { ...request, body, offPath: true };
}

/** How often requests for one URL are sent together, since a server may share one answer among them now and then. */
export const CONCURRENT_ROUNDS = 3;

/**
 * Valid requests with distinct URLs, so that no cache answers them instead of the target. Each selects a screening, if
 * there is one, because an empty page may hide a failure.
 */
export async function distinctRequests(kit: Kit): Promise<() => RequestOut> {
  const tenantId = await kit.tenantOf();
  const sample = await unlessUntested(sampleDataOf(kit));
  const { from, to } = sample?.window ?? SOME_WINDOW;
  let microseconds = BigInt(kit.clock.now()) % 3_600_000_000n;
  return () => {
    const until = formatInstant(shift(instant(to), microseconds++), { digits: 6 });
    return { ...kit.request(tenantId, { from, to: until, pageSize: 1 }), provoked: true };
  };
}

/** Observers judge each token. */
export const mintAll = (kit: Kit): Promise<void> =>
  kit.once('tokens of every client', async () => {
    for (const name of ['primary', 'secondTenant', 'notOnboarded', 'primary'] as const)
      if (kit.target.clients[name]) await kit.client.mint(name);
  });
