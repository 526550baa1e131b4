/** Section 5: how a request is authenticated. */
import { about, test } from '../fixtures/test.ts';
import { quote, secretVariable } from '../engine/run/evidence/evidence.ts';
import {
  bearerOf,
  encodePart,
  partsOf,
  withAlteredSignature,
  withMembers,
} from '../engine/client/altered-token.ts';
import { proxyOf } from '../engine/client/dispatchers.ts';
import { unlessUntested } from '../engine/errors.ts';
import { pageOf, SOME_WINDOW } from '../engine/client/page.ts';
import { UNAUTHENTICATED, answered200, notServed, refused } from '../engine/checks/errors.ts';
import { isTrusted } from '../engine/checks/next.ts';
import { sampleDataOf } from '../engine/run/walk/survey.ts';
import { isHang, type Authorization } from '../engine/client/exchange.ts';
import {
  CONCURRENT_ROUNDS,
  UNKNOWN_TENANT,
  distinctRequests,
  inHalves,
  mintAll,
  readable,
} from '../engine/run/rules/raw-request.ts';
import { pagesOfEverySize } from '../engine/run/walk/standard-walks.ts';
import { tokenHeader } from '../engine/run/observers/valid-token.ts';
import { askOwnPath, bearerHeader, unauthenticated } from '../engine/run/rules/unauthenticated.ts';

/** Places other than the Authorization header, where no token may be accepted (rule 1). */
const HEADERS = [
  ...['x-access-token', 'x-auth-token', 'x-authorization', 'x-api-key', 'x-jwt-assertion'],
  ...['token', 'x-token', 'x-jwt-token', 'access-token', 'authentication'],
];
/** Headers in which gateways pass on what they received or verified; a gateway may reject a request with one (any 4xx). */
const OF_GATEWAYS = [
  ...['x-forwarded-authorization', 'x-original-authorization', 'x-auth-request-access-token'],
  ...['x-amzn-oidc-data', 'x-goog-iap-jwt-assertion', 'cf-access-jwt-assertion'],
];
/** Meant for a proxy (RFC 9110, 11.7.2): undici sends none of a request through a proxy of the environment. */
const PROXY_HEADER = 'proxy-authorization';
const COOKIES = ['access_token', 'token', 'jwt', 'auth_token', 'authorization', 'session'];
const PARAMETERS = [
  'access_token',
  'token',
  'jwt',
  'auth_token',
  'Authorization',
  'bearer_token',
  'accessToken',
  'id_token',
  'api_key',
];

/** Debug parameters that disable authentication, and a health-check path for servers that search the whole URL for it. */
const SWITCHES = [
  ...['debug', 'test', 'admin', 'internal', 'bypass', 'noauth', 'public', 'preview'].map(
    (name) => `&${name}=true`,
  ),
  '&x=/health.css',
];

/** Servers limit the size of header fields, and of the request line even more: uWSGI reads 4 kB of both together. */
const HEADER_OCTETS = 2_500;
/** More than LONGEST_QUERY, because no header carries the token. */
const QUERY_OCTETS = 1_600;

/** Groups names into requests, as many per request as leave room for the token in each. */
function groupByLength(names: readonly string[], token: string, octets: number): string[][] {
  const size = Math.max(1, Math.floor(octets / token.length));
  return names.flatMap((_, at) => (at % size === 0 ? [names.slice(at, at + size)] : []));
}

test(
  'unauthenticated: no Authorization header',
  about(['5-missing', '7.2-unauthenticated', '5-challenge'], { needs: 'page', access: 'reads' }),
  async ({ kit }) => {
    // Sent with a token first: a server that caches answers before it checks the token would return a page.
    await kit.page(SOME_WINDOW);
    await unauthenticated(kit, '5-missing', { kind: 'none' });
    await unauthenticated(kit, '5-missing', bearerHeader('', 'an empty Authorization header', ''));
    // An unknown parameter may be rejected before the token is checked.
    await inHalves(SWITCHES, (some) =>
      unauthenticated(kit, '5-missing', { kind: 'none' }, some.join(''), [400, 'invalid_request']),
    );
    const window = (await unlessUntested(sampleDataOf(kit)))?.window ?? SOME_WINDOW;
    const { nextUrl } = pageOf(await kit.page({ ...window, pageSize: 1 }));
    if (nextUrl === undefined || !isTrusted(nextUrl, kit.target)) return;
    // One that leads nowhere is no matter of the token.
    if ((await kit.follow(nextUrl)).status !== 200) return;
    // A URL that names where to go on must not be a credential.
    const next = readable(await kit.send(kit.requestTo(nextUrl, { kind: 'none' })));
    kit.check('5-missing', next, refused(kit, UNAUTHENTICATED), 'next');
  },
);

/**
 * A server may share one answer among concurrent requests for a URL before it verifies their tokens. Nothing else is
 * in flight, so that none of them is queued.
 */
test(
  'unauthenticated: no token, and an altered one, while the same request is served',
  about(['5-missing', '5-tampered'], { needs: 'page', access: 'disturbs', isSupplement: true }),
  async ({ kit }) => {
    const token = await kit.token();
    const own = tokenHeader(token, 'of primary', 'primary');
    const altered = bearerOf(withAlteredSignature(partsOf(token.text)), 'its signature altered');
    const nextRequest = await distinctRequests(kit);
    for (let round = 0; round < CONCURRENT_ROUNDS; round++) {
      const { provoked: _, ...valid } = nextRequest();
      const [, anonymous, forged] = await Promise.all([
        kit.send({ ...valid, authorization: own }),
        kit.send({ ...valid, authorization: { kind: 'none' } }),
        kit.send({ ...valid, authorization: altered }),
      ]);
      const label = 'while the same request is served';
      kit.check('5-missing', readable(anonymous), refused(kit, UNAUTHENTICATED), label);
      kit.check('5-tampered', readable(forged), refused(kit, UNAUTHENTICATED), label);
    }
  },
);

/** A token outside the Authorization header must be treated as missing. */
test(
  'unauthenticated: a token in another header or a cookie',
  about('5-missing', { needs: 'page', access: 'reads' }),
  async ({ kit }) => {
    await kit.page(SOME_WINDOW);
    const { text } = await kit.token();
    const names = proxyOf(kit.target.baseUrl) === undefined ? [...HEADERS, PROXY_HEADER] : HEADERS;
    const inHeaders = (some: readonly string[]): Record<string, string> =>
      Object.fromEntries(some.map((name) => [name, /authorization/.test(name) ? `Bearer ${text}` : text]));
    const inCookies = (some: readonly string[]): Record<string, string> => ({
      cookie: some.map((name) => `${name}=${text}`).join('; '),
    });
    for (const [all, carrying, label, suspicious] of [
      [names, inHeaders, '', false],
      [OF_GATEWAYS, inHeaders, '', true],
      // Firewalls take two dashes in a cookie for a comment in SQL.
      [COOKIES, inCookies, 'cookies ', text.includes('--')],
    ] as const)
      for (const group of groupByLength(all, text, HEADER_OCTETS))
        await inHalves(group, async (some) => {
          const bare = kit.request(await kit.tenantOf(), SOME_WINDOW, { kind: 'none' });
          const headers = { ...carrying(some), ...bare.headers };
          const exchange = readable(await kit.send({ ...bare, headers, suspicious }));
          // The limit of a server for header fields may be lower than all of these together (RFC 6585, 5).
          const isOdd = suspicious || exchange.status === 431;
          const judge = isOdd ? notServed('401 unauthenticated') : refused(kit, UNAUTHENTICATED);
          return (
            !kit.check('5-missing', exchange, judge, `${label}${some.join(', ')}`) || exchange.status === 401
          );
        });
  },
);

test(
  'unauthenticated: another scheme, a bare token, an empty bearer',
  about('5-scheme', { needs: 'page', access: 'reads' }),
  async ({ kit }) => {
    const { text } = await kit.token();
    const { clientId, clientSecret } = kit.target.clients.primary;
    const basic = Buffer.from(`${clientId}:${clientSecret}`).toString('base64');
    const credentials = `$(printf %s ${quote(clientId)}:"$${secretVariable(kit.target, 'primary')}" | base64 | tr -d '\\n')`;
    // As the user name or as the password, as some APIs take their tokens.
    const asBasic = `Basic ${Buffer.from(`${text}:${text}`).toString('base64')}`;
    const others: [value: string, label: string, shell?: string][] = [
      [`Basic ${basic}`, 'Basic (client_id and client_secret)', `Basic ${credentials}`],
      [`Token ${text}`, 'Token $TOKEN'],
      [`JWT ${text}`, 'JWT $TOKEN'],
      [`Digest ${text}`, 'Digest $TOKEN (as many letters as Bearer)', 'Digest $TOKEN'],
      [`BearerToken ${text}`, 'BearerToken $TOKEN'],
      // A server may take what follows seven characters that begin with Bearer.
      [`Bearer_${text}`, 'Bearer_$TOKEN (with an underscore for the space)', 'Bearer_$TOKEN'],
      [`XBearer ${text}`, 'XBearer $TOKEN'],
      [text, '$TOKEN (without a scheme)', '$TOKEN'],
      ['Bearer', 'Bearer (without a token)', 'Bearer'],
      ['Bearer ', 'Bearer (with a space and no token)', 'Bearer '],
      ['Basic YWJj', 'Basic (without a colon)', 'Basic YWJj'],
    ];
    if (asBasic.length <= HEADER_OCTETS)
      others.push([
        asBasic,
        'Basic ($TOKEN and $TOKEN)',
        `Basic $(printf %s "$TOKEN:$TOKEN" | base64 | tr -d '\\n')`,
      ]);
    for (const other of others) await unauthenticated(kit, '5-scheme', bearerHeader(...other));
    // RFC 6750, section 3.1 calls these malformed requests.
    for (const malformed of [
      bearerHeader(`Bearer ${text} ,more`, 'Bearer $TOKEN (and more text)', 'Bearer $TOKEN ,more'),
      bearerHeader(`Bearer "${text}"`, 'Bearer "$TOKEN"', 'Bearer \\"$TOKEN\\"'),
      bearerHeader(`Bearer: ${text}`, 'Bearer: $TOKEN'),
      // Splitting at blanks, and taking the last part, finds the token.
      bearerHeader(`Bearer Bearer ${text}`, 'Bearer Bearer $TOKEN'),
    ])
      await unauthenticated(kit, '5-scheme', malformed, '', [400, 'invalid_request']);
    const joined = bearerHeader(`Bearer${text}`, 'Bearer and $TOKEN without a space', 'Bearer$TOKEN');
    kit.ledger.observe('no-space-after-bearer', String((await askOwnPath(kit, joined)).status));
  },
);

/** A client_id or client_secret may hold characters that no header can. */
const isHeader = (authorization: Authorization): boolean =>
  authorization.kind === 'header' && /^[!-~]+ [!-~]+$/.test(authorization.value);

test(
  'unauthenticated: a bearer that is not a token',
  about('5-garbage', { needs: 'page', access: 'reads' }),
  async ({ kit }) => {
    const nothing = encodePart(null);
    const tenantId = await kit.tenantOf();
    // Members of other types than those that verifiers read before they verify.
    const odd = encodePart({ aud: 1, exp: 'never', iss: 1, tenant_id: 'kit' });
    const { text: valid, claims } = await kit.token();
    for (const text of [
      ...['garbage', 'a.b.c', '..', 'null', tenantId, encodePart({ tenant_id: tenantId })],
      `${nothing}.${nothing}.${nothing}`,
      // An encrypted token has five parts.
      `${encodePart({ alg: 'dir', enc: 'A256GCM' })}..a.b.c`,
      `${encodePart({ alg: 256, kid: 1, crit: 'kit' })}.${odd}.a`,
      // An alg that is accepted must not hide the other members.
      ...(claims ? [`${withMembers(partsOf(valid)[0], { kid: 1 }).text}.${odd}.a`] : []),
    ]) {
      await unauthenticated(kit, '5-garbage', bearerHeader(`Bearer ${text}`, `Bearer ${text}`));
    }
    // Some APIs accept a client's key as the bearer token.
    const { clientId, clientSecret } = kit.target.clients.primary;
    const keys: Authorization[] = [
      { kind: 'header', value: `Bearer ${clientId}`, label: `Bearer ${clientId}` },
      bearerHeader(
        `Bearer ${clientSecret}`,
        'Bearer (client_secret)',
        `Bearer $${secretVariable(kit.target, 'primary')}`,
      ),
    ];
    for (const key of keys.filter(isHeader)) await unauthenticated(kit, '5-garbage', key);
  },
);

test(
  'unauthenticated: a token in the query string',
  about('5-query-token', { needs: 'page', access: 'reads' }),
  async ({ kit }) => {
    const { text } = await kit.token();
    for (const names of groupByLength(PARAMETERS, text, QUERY_OCTETS))
      await inHalves(names, (some) => {
        const query = some.map((name) => `&${name}=${text}`).join('');
        // An unknown parameter may be rejected before the token is checked.
        return unauthenticated(kit, '5-query-token', { kind: 'none' }, query, [400, 'invalid_request']);
      });
  },
);

test(
  '200: the scheme in another case',
  about('5-scheme-case', { needs: 'page', access: 'reads' }),
  async ({ kit }) => {
    // Ensures that the token is valid: a server that revokes earlier tokens is reported under 5-valid-token.
    await kit.page(SOME_WINDOW);
    const { text } = await kit.token();
    for (const scheme of ['bearer', 'BEARER']) {
      const exchange = await askOwnPath(kit, bearerHeader(`${scheme} ${text}`, `${scheme} $TOKEN`));
      kit.check('5-scheme-case', exchange, answered200);
    }
  },
);

test(
  'no token response has a refresh_token',
  about(['5-no-refresh-token', '5-no-echo'], { needs: 'token', access: 'reads' }),
  ({ kit }) => mintAll(kit),
);

/** Sends requests that are rejected for a reason other than their secret or token, so that the answer need not show it. */
test(
  'no error repeats the secret or the token of its request',
  about('5-no-echo', { needs: 'page', access: 'reads' }),
  async ({ kit }) => {
    const form = kit.client.validForm('primary');
    const without = (name: string): typeof form => form.filter(([key]) => key !== name);
    for (const refusedForm of [
      [...without('grant_type'), ['grant_type', 'password']] as typeof form,
      without('scope'),
      [...form, form.find(([key]) => key === 'client_secret')!],
    ]) {
      if (isHang(await kit.send(kit.client.tokenRequest(refusedForm)))) break;
    }
    const valid = kit.request(await kit.tenantOf(), SOME_WINDOW);
    await kit.send({ ...valid, url: `${valid.url}&pageSize=none` });
    await kit.send(kit.request(UNKNOWN_TENANT, SOME_WINDOW));
    await kit.send({ ...valid, url: `${kit.target.baseUrl}/v1/no-such-path`, offPath: true });
    const { text } = await kit.token();
    const wrong = bearerHeader(
      `Bearer ${text}AAAA`,
      'Bearer ($TOKEN and four letters)',
      'Bearer ${TOKEN}AAAA',
    );
    await kit.send({ ...valid, authorization: wrong });
  },
);

test('no page invites shared caches', about('5-not-shared-cache', { access: 'reads' }), ({ kit }) =>
  pagesOfEverySize(kit),
);
