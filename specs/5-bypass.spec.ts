/** Section 5: a URL that is served with a token must not be served without one, however it is spelled. */
import { about, test } from '../fixtures/test.ts';
import {
  FORBIDDEN,
  UNAUTHENTICATED,
  isServed,
  notServed,
  refused,
  sayRefusal,
} from '../engine/checks/errors.ts';
import { differs, type Judge } from '../engine/checks/mismatch.ts';
import { onlyOf } from '../engine/checks/selection.ts';
import { bearerOf, partsOf, withAlteredSignature } from '../engine/client/altered-token.ts';
import { header, headerLines } from '../engine/client/exchange.ts';
import type { Authorization, Exchange, RequestOut } from '../engine/client/exchange.ts';
import { integerOf, isObject, member, type Json } from '../engine/client/json.ts';
import { percentEncoded } from '../engine/client/transport.ts';
import { orderedItems, SOME_WINDOW } from '../engine/client/page.ts';
import { formatInstant, instant, shift } from '../engine/data/instant.ts';
import type { Kit } from '../engine/run/kit.ts';
import { EMPTY_WINDOW, inHalves, overriding, UNKNOWN_TENANT } from '../engine/run/rules/raw-request.ts';
import { sampleDataOf, WIDE_WINDOWS } from '../engine/run/walk/survey.ts';

const onPath =
  (change: (path: string) => string) =>
  (request: RequestOut): RequestOut => {
    const [path, query] = request.url.split('?') as [string, string];
    return { ...request, url: `${change(path)}?${query}` };
  };

const insertBefore = (what: RegExp, more: string): ReturnType<typeof onPath> =>
  onPath((path) => path.replace(what, (whole) => `${more}${whole}`));

const onTenant = (change: (tenantId: string) => string): ReturnType<typeof onPath> =>
  onPath((path) => path.replace(/(?<=tenants\/)[^/]+/, change));

/** The path after the base URL. A guard may compare any segment of it as text. */
const USUAL = /\/v1\/tenants\/([^/]+)\/screenings$/;

/** Spellings that a server may treat as the usual URL. With a topic, the answer is recorded as an observation. */
const SPELLINGS: readonly (readonly [
  name: string,
  make: (request: RequestOut) => RequestOut,
  topic?: string,
])[] = [
  ['HEAD', (request) => ({ ...request, method: 'HEAD' }), 'head'],
  // A guard may let preflight requests pass to a handler that serves any method.
  ['OPTIONS', (request) => ({ ...request, method: 'OPTIONS' }), 'options'],
  ['a slash after the path', onPath((path) => `${path}/`), 'trailing-slash'],
  [
    'a letter of each segment percent-encoded',
    onPath((path) => path.replace(USUAL, '/%761/%74enants/$1/%73creenings')),
    'encoded-path',
  ],
  [
    'a digit of the tenant percent-encoded',
    onPath((path) => path.replace(/(?<=tenants\/)./, percentEncoded)),
  ],
  // Most UUID parsers accept these forms too; the server may decide whether to serve them.
  ['a tenant without hyphens', onTenant((own) => own.replaceAll('-', '')), 'uuid-in-another-form'],
  ['a tenant in braces', onTenant((own) => `%7B${own}%7D`), 'uuid-in-another-form'],
  ['a tenant as a URN', onTenant((own) => `urn:uuid:${own}`), 'uuid-in-another-form'],
  ['a doubled slash', insertBefore(/\/tenants\//, '/')],
  ['a doubled slash before the version', insertBefore(/\/v1\//, '/')],
  ['a segment of one dot', insertBefore(/\/tenants\//, '/.')],
  ['a suffix', onPath((path) => `${path}.json`)],
  ['a path without the version', onPath((path) => path.replace(/\/v1(?=\/tenants)/, ''))],
  ['a parameter of the path', onPath((path) => `${path};v=1`)],
  [
    'a parameter of each segment',
    onPath((path) => path.replace(USUAL, '/v1;v=1/tenants;v=1/$1;v=1/screenings;v=1')),
  ],
  ['the path in upper case', onPath((path) => path.replace(USUAL, '/V1/TENANTS/$1/SCREENINGS'))],
];

/** Is accepted by servers that only check that a token is present, or decode it without verifying it. */
const alteredBearer = async (kit: Kit): Promise<Authorization> =>
  bearerOf(withAlteredSignature(partsOf((await kit.token()).text)), 'its signature altered');

const eachOf = (names: readonly string[], value: string): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, value]));

/**
 * Headers with which gateways, load balancers and orchestrators mark authenticated or internal requests, and those for
 * which a server may answer before it authenticates the client.
 */
const gatewayHeaders = (tenantId: string, clientId: string, token: string): [name: string, value: string][] =>
  Object.entries({
    'x-forwarded-access-token': token,
    ...eachOf(
      [
        ...['x-forwarded-for', 'x-real-ip', 'true-client-ip', 'client-ip', 'x-cluster-client-ip'],
        ...['x-client-ip', 'x-originating-ip', 'x-remote-addr'],
      ],
      '127.0.0.1',
    ),
    forwarded: 'for=127.0.0.1;host=localhost',
    'x-forwarded-host': 'localhost',
    'x-forwarded-user': tenantId,
    'x-tenant-id': tenantId,
    ...eachOf(
      [
        ...['remote-user', 'x-remote-user', 'x-client-id', 'x-consumer-username', 'x-user-id', 'x-auth-user'],
        ...['x-auth-request-user', 'x-authenticated-userid', 'x-goog-authenticated-user-email'],
        ...['x-webauth-user', 'x-consumer-id', 'x-ms-client-principal-name'],
      ],
      encodeURIComponent(clientId),
    ),
    'x-client-verify': 'SUCCESS',
    'x-ssl-client-verify': 'SUCCESS',
    // Debug headers that disable authentication.
    ...eachOf(['x-internal', 'x-debug', 'x-test', 'x-admin', 'x-bypass-auth', 'x-skip-auth'], 'true'),
    // The address that a gateway was asked for; health checks need no token.
    'x-original-url': '/health',
    'x-rewrite-url': '/health',
    origin: 'http://localhost',
    range: 'bytes=0-99',
    'user-agent': 'kube-probe/1.31 ELB-HealthChecker/2.0 GoogleHC/1.0',
  });

/** Browsers send it without a token (Fetch, 4.8); a guard lets it pass, but a handler must not serve a page to it. */
const PREFLIGHT = {
  origin: 'https://example.com',
  'access-control-request-method': 'GET',
  'access-control-request-headers': 'authorization',
};

/** An empty window for each spelling: no cache holds its page before it is requested with HEAD or OPTIONS. */
function emptyWindow(index: number): { readonly from: string; readonly to: string } {
  const at = formatInstant(shift(instant(SOME_WINDOW.to), BigInt(index), 0));
  return { from: at, to: at };
}

test(
  'no other spelling of a URL is served without a token or for another tenant',
  about(['5-missing', '5-tampered', '5-forbidden', '5-forbidden-unknown', '4.2-success', '2.4-items'], {
    needs: 'page',
    access: 'reads',
    isSupplement: true,
  }),
  async ({ kit }) => {
    const own = await kit.tenantOf();
    const { secondTenant } = kit.target.clients;
    const other = secondTenant ? await kit.tenantOf('secondTenant') : UNKNOWN_TENANT;
    const forbidden = secondTenant ? '5-forbidden' : '5-forbidden-unknown';
    for (const [index, [name, make, topic]] of SPELLINGS.entries()) {
      const window = emptyWindow(index);
      const request = (tenantId: string, by?: Authorization): RequestOut => ({
        ...kit.request(tenantId, window, by),
        offPath: true,
      });
      const known = await kit.send(make(request(own)));
      // A cache must not answer GET with what it keeps of another method.
      if (known.request.method !== 'GET') await kit.page(window);
      if (topic) kit.ledger.observe(topic, sayRefusal(known).slice(0, 3));
      if (!isServed(known)) continue;
      const without = await kit.send(make(request(own, { kind: 'none' })));
      // A server that needs no token here verifies none either: report that once.
      if (kit.check('5-missing', without, notServed('401 unauthenticated'), name)) {
        const unverified = await kit.send(make(request(own, await alteredBearer(kit))));
        kit.check('5-tampered', unverified, notServed('401 unauthenticated'), name);
      }
      kit.check(forbidden, await kit.send(make(request(other))), notServed('403 forbidden'), name);
    }
    const bare = kit.request(own, emptyWindow(SPELLINGS.length), { kind: 'none' });
    const preflight = { ...withHeaders(bare, PREFLIGHT), method: 'OPTIONS', offPath: true, provoked: true };
    kit.check('5-missing', await kit.send(preflight), notServed('401 unauthenticated'), 'preflight');
  },
);

/** Whether the answer is a screening with this id (of this tenant), which a member may wrap. */
const showsScreening = ({ status, json }: Exchange, id: bigint, tenantId?: string): boolean => {
  const isIt = (value: Json): boolean =>
    integerOf(member(value, 'id')) === id &&
    typeof member(value, 'testTime') === 'string' &&
    (!tenantId || String(member(value, 'tenantId')).toLowerCase() === tenantId.toLowerCase());
  const holds = (value: Json): boolean =>
    isIt(value) || (isObject(value) && Object.values(value).some(holds));
  return status === 200 && json !== undefined && holds(json);
};

const noScreening =
  (expected: string, ...which: [id: bigint, tenantId?: string]): Judge =>
  (exchange) =>
    showsScreening(exchange, ...which) ? differs(expected, sayRefusal(exchange)) : undefined;

test(
  'a screening that is also served by its id needs a token of its tenant',
  about(['5-missing', '5-forbidden', '4.2-r3-one-tenant'], { access: 'reads', isSupplement: true }),
  async ({ kit }) => {
    const ask = (tenantId: string, id: bigint, by?: Authorization): Promise<Exchange> =>
      kit.send({ ...kit.request(tenantId, `/${id}`, by), offPath: true });
    const own = await kit.tenantOf();
    const { id } = (await sampleDataOf(kit)).items[0]!;
    if (!showsScreening(await ask(own, id), id)) return;
    const without = await ask(own, id, { kind: 'none' });
    kit.check('5-missing', without, noScreening('401 unauthenticated', id), 'by its id');
    if (!kit.target.clients.secondTenant) return;
    const [[from, to]] = WIDE_WINDOWS;
    const page = await kit.page({ from, to, pageSize: 1 }, { client: 'secondTenant' });
    const theirs = orderedItems(page)[0]?.id;
    if (theirs === undefined) return;
    const other = await kit.tenantOf('secondTenant');
    kit.check('5-forbidden', await ask(other, theirs), noScreening('403 forbidden', theirs), 'by its id');
    // The own tenant may have another screening with this id.
    const judge = noScreening('no screening of another tenant', theirs, other);
    kit.check('4.2-r3-one-tenant', await ask(own, theirs), judge, 'by its id');
  },
);

/** Methods for which a guard may have no rule although a handler serves any method. The last is of no standard. */
const OTHER_METHODS = ['POST', 'PUT', 'PATCH', 'DELETE', 'FETCH'];

/** Sent to a path where a write can do no harm. */
test(
  'no other method is served without a token',
  about('5-missing', { needs: 'page', access: 'scratch', isSupplement: true }),
  async ({ kit }) => {
    const tenantId = kit.target.clients.scratch ? await kit.tenantOf('scratch') : UNKNOWN_TENANT;
    const bare = kit.request(tenantId, EMPTY_WINDOW, { kind: 'none' });
    const { headers, body } = overriding('GET');
    const overridden = { ...withHeaders(bare, headers), body, method: 'POST' };
    for (const request of [overridden, ...OTHER_METHODS.map((method) => ({ ...bare, method }))]) {
      // A gateway may close the connection on a method that it does not know.
      const exchange = await kit.send({ ...request, offPath: true, provoked: request.method === 'FETCH' });
      kit.check('5-missing', exchange, notServed('401 unauthenticated'), request.method);
    }
  },
);

/** In characters: servers limit header fields (RFC 6585, 5), and the token is one of them. */
const LONGEST_COOKIES = 2_000;

/** The distinct headers in which a client returns the cookies that these answers set, as far as they fit. */
function cookieHeaders(answers: readonly Exchange[]): { cookie: string }[] {
  const texts = answers.map((answer) =>
    headerLines(answer, 'set-cookie').reduce((sent, line) => {
      const more = [...(sent === '' ? [] : [sent]), line.split(';')[0]!].join('; ');
      return more.length > LONGEST_COOKIES ? sent : more;
    }, ''),
  );
  return [...new Set(texts)].filter((cookie) => cookie !== '').map((cookie) => ({ cookie }));
}

const withHeaders = (request: RequestOut, more: Record<string, string>): RequestOut => ({
  ...request,
  headers: { ...more, ...request.headers },
});

/** Headers that claim an identity or refer to an earlier answer; earlier answers have set some of them. */
test(
  'no other header replaces a token',
  about(['5-missing', '5-forbidden', '4.2-r3-one-tenant', '4.2-window'], {
    needs: 'page',
    access: 'reads',
    isSupplement: true,
  }),
  async ({ kit }) => {
    const page = await kit.page(SOME_WINDOW);
    const cookies = cookieHeaders([page, kit.client.firstMint ?? page]);
    const etag = header(page, 'etag');
    const tenantId = await kit.tenantOf();
    const bare = kit.request(tenantId, SOME_WINDOW, { kind: 'none' });
    const spoofed = gatewayHeaders(tenantId, kit.target.clients.primary.clientId, (await kit.token()).text);
    const conditional = { 'if-none-match': etag ?? '*' };
    const since = { 'if-modified-since': 'Fri, 31 Dec 2100 00:00:00 GMT' };
    const ask = async (more: Record<string, string>, judge: Judge, offPath: boolean): Promise<boolean> => {
      const exchange = await kit.send({ ...withHeaders(bare, more), offPath });
      // If a shared cache stores the 401, clients with a valid token receive it too.
      const caching = header(exchange, 'cache-control') ?? '';
      const isShared = /public|s-maxage|max-age=[1-9]/i.test(caching) && !/private|no-store/i.test(caching);
      kit.ledger.observe('refusal-in-shared-cache', isShared ? caching : 'no');
      return !kit.check('5-missing', exchange, judge, Object.keys(more).join()) || exchange.status === 401;
    };
    // A gateway may reject headers that only gateways set, redirect, or answer them as a health check.
    await inHalves(spoofed, (some) => ask(Object.fromEntries(some), notServed('401 unauthenticated'), true));
    for (const more of [...cookies, conditional, since])
      await ask(more, refused(kit, UNAUTHENTICATED), false);
    // As a cookie jar returns them: what a session remembers, such as an empty page, must not replace the request.
    const [[from, to]] = WIDE_WINDOWS;
    for (const cookie of cookies)
      for (const window of [
        { from: to, to },
        { from, to },
      ])
        await kit.ask({ ...window, pageSize: 5 }, { toDialect: (request) => withHeaders(request, cookie) });
    if (!kit.target.clients.secondTenant) return;
    const other = await kit.tenantOf('secondTenant');
    const others = kit.request(other, SOME_WINDOW);
    const unmatched = await kit.send(withHeaders(others, conditional));
    kit.check('5-forbidden', unmatched, refused(kit, FORBIDDEN), 'if-none-match');
    // A server may allow internal callers every tenant.
    const { clientId } = kit.target.clients.secondTenant;
    const internal = gatewayHeaders(other, clientId, (await kit.token()).text);
    await inHalves(internal, async (some) => {
      const exchange = await kit.send({ ...withHeaders(others, Object.fromEntries(some)), offPath: true });
      const holds = kit.check('5-forbidden', exchange, notServed('403 forbidden'), 'headers of gateways');
      return !holds || refused(kit, FORBIDDEN)(exchange) === undefined;
    });
    for (const cookie of cookies) {
      const ask = async (path: string): Promise<Exchange> => {
        const request = kit.request(path, { from, to, pageSize: 50 }, 'secondTenant');
        return kit.send(withHeaders(request, cookie));
      };
      const label = 'with the cookie of primary';
      kit.check('4.2-r3-one-tenant', await ask(other), onlyOf(other.toLowerCase()), label);
      kit.check('5-forbidden', await ask(tenantId), refused(kit, FORBIDDEN), label);
    }
  },
);

test(
  'TRACE does not repeat a token',
  about('5-no-echo', { needs: 'page', access: 'reads', isSupplement: true }),
  async ({ kit }) => {
    const valid = kit.request(await kit.tenantOf(), EMPTY_WINDOW);
    // A gateway may close the connection on TRACE.
    await kit.send({ ...valid, method: 'TRACE', offPath: true, provoked: true });
  },
);

test(
  "forbidden: another tenant's path, with a token of a tenant that is not onboarded",
  about('5-forbidden', { needs: 'page', isSupplement: true }),
  async ({ kit }) => {
    await kit.token('notOnboarded');
    const exchange = await kit.send(kit.request(await kit.tenantOf(), EMPTY_WINDOW, 'notOnboarded'));
    kit.check('5-forbidden', exchange, refused(kit, FORBIDDEN));
  },
);
