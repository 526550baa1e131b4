import { expect } from '@playwright/test';
import { readDataset } from '../../engine/data/dataset.ts';
import { compareInstants, instant } from '../../engine/data/instant.ts';
import type { Screening } from '../../engine/data/screening.ts';
import { mintToken, screeningsUrl, send, test, walk, type Received } from '../testing.ts';
import type { ReferenceServer } from '../run/start.ts';

const bearer = (token: string): RequestInit => ({ headers: { authorization: `Bearer ${token}` } });

async function ask(server: ReferenceServer, query: string): Promise<Received> {
  const target = server.target();
  const { primary } = target.clients;
  const token = await mintToken(target, primary);
  return send(`${screeningsUrl(target, primary.tenantId)}?${query}`, bearer(token));
}

const WINDOW = 'from=2024-02-01T00:00:00Z&to=2025-02-01T00:00:00Z';

/** What a window must return, by the dataset alone. */
function expected(dataset: readonly Screening[], from: string, to: string, afterId?: bigint): string[] {
  const [start, end] = [instant(from), instant(to)];
  const order = (a: Screening, b: Screening): number =>
    compareInstants(instant(a.testTime), instant(b.testTime)) || (a.id < b.id ? -1 : 1);
  return dataset
    .filter(({ testTime, id }) => {
      const at = instant(testTime);
      const begun = compareInstants(at, start);
      return (
        compareInstants(at, end) < 0 &&
        (begun > 0 || (begun === 0 && (afterId === undefined || id > afterId)))
      );
    })
    .sort(order)
    .map(({ json }) => json);
}

for (const pageSize of [1000, 100, 7]) {
  test(`4.2 a walk in pages of ${pageSize} returns every recorded text once and in order`, async ({
    server,
  }) => {
    const target = server.target();
    const { primary } = target.clients;
    const token = await mintToken(target, primary);
    const dataset = await readDataset(target.dataset ?? '');
    const url = `${screeningsUrl(target, primary.tenantId)}?${WINDOW}&pageSize=${pageSize}`;
    const { items, pages } = await walk(url, token);
    const all = expected(dataset, '2024-02-01T00:00:00Z', '2025-02-01T00:00:00Z');
    expect(items).toEqual(all);
    expect(pages).toBe(Math.ceil(all.length / pageSize));
  });
}

const WINDOWS: [title: string, from: string, to: string, fromId?: bigint][] = [
  ['an instant is inclusive at from', '2024-06-15T12:00:00Z', '2024-06-15T12:00:00.000001Z'],
  ['an instant is exclusive at to', '2024-06-15T11:59:59Z', '2024-06-15T12:00:00Z'],
  ['from one microsecond later', '2024-05-05T05:05:05.123457Z', '2024-05-05T05:05:06Z'],
  ['from a tenth of a microsecond later', '2024-07-07T07:07:07.1234561Z', '2024-07-07T07:07:08Z'],
  ['from one nanosecond later', '2024-07-07T07:07:07.123456101Z', '2024-07-07T07:07:07.123456102Z'],
  ['from one picosecond later', '2024-07-07T07:07:07.123456101001Z', '2024-07-07T07:07:08Z'],
  ['offsets at both ends', '2024-06-15T14:00:00+02:00', '2024-06-15T05:30:00-07:00'],
  ['lower case', '2024-06-15t12:00:00z', '2024-06-15t13:00:00z'],
  ['after no id', '2024-06-15T12:00:00Z', '2024-06-15T13:00:00Z', -1n],
  ['after the largest id', '2024-06-15T12:00:00Z', '2024-06-15T13:00:00Z', 2n ** 63n - 1n],
  ['after an id in the middle of a tie', '2024-08-10T08:00:00.25Z', '2024-08-10T09:00:00Z', 10_000_700n],
  ['after an id beyond 2^53', '2024-08-10T08:00:00.25Z', '2024-08-10T09:00:00Z', 9_007_199_254_741_001n],
  ['before the year 1970', '0000-01-01T00:00:00Z', '1970-01-01T00:00:00.5Z'],
];
for (const [title, from, to, fromId] of WINDOWS) {
  test(`4.2 window: ${title}`, async ({ server }) => {
    const target = server.target();
    const { primary } = target.clients;
    const dataset = await readDataset(target.dataset ?? '');
    const query = new URLSearchParams({
      from,
      to,
      ...(fromId === undefined ? {} : { from_id: String(fromId) }),
    });
    const token = await mintToken(target, primary);
    const { items } = await walk(`${screeningsUrl(target, primary.tenantId)}?${query}`, token);
    expect(items).toEqual(expected(dataset, from, to, fromId));
  });
}

test('4.2 the first page: 100 items, and the same next in body and header', async ({ server }) => {
  const { status, headers, json } = await ask(server, WINDOW);
  const { items, links } = json as { items: { testTime: string }[]; links: { next: string } };
  expect(status).toBe(200);
  expect(headers.get('content-type')).toBe('application/json');
  expect(items).toHaveLength(100);
  expect(headers.get('link')).toBe(`<${links.next}>; rel="next"`);
  const next = new URL(links.next);
  expect(next.origin).toBe(server.baseUrl);
  expect(Object.fromEntries(next.searchParams)).toMatchObject({
    from: items.at(-1)?.testTime,
    to: '2025-02-01T00:00:00Z',
    pageSize: '100',
  });
});

const EMPTY: [title: string, query: string][] = [
  ['from = to', 'from=2024-06-15T12:00:00Z&to=2024-06-15T12:00:00Z'],
  ['from = to in two offsets', 'from=2024-06-15T12:00:00Z&to=2024-06-15T14:00:00%2B02:00'],
  ['from = to with from_id', 'from=2024-06-15T12:00:00Z&to=2024-06-15T12:00:00Z&from_id=0'],
  ['a window without screenings', 'from=1999-01-01T00:00:00Z&to=1999-01-02T00:00:00Z'],
];
for (const [title, query] of EMPTY) {
  test(`4.2 empty: ${title}`, async ({ server }) => {
    const { status, headers, text } = await ask(server, query);
    expect({ status, text }).toEqual({ status: 200, text: '{"items":[],"links":{}}' });
    expect(headers.has('link')).toBe(false);
  });
}

const ok = 'from=2024-06-15T12:00:00Z&to=2024-06-15T13:00:00Z';
const from = (text: string): string => `from=${text}&to=2024-06-15T13:00:00Z`;
const REFUSALS: [query: string, code: string][] = [
  ['to=2024-06-15T13:00:00Z', 'invalid_request'],
  ['from=2024-06-15T12:00:00Z', 'invalid_request'],
  ['', 'invalid_request'],
  [from(''), 'invalid_time_range'],
  [from('%zz'), 'invalid_request'],
  [from('%ff'), 'invalid_request'],
  [from('2024-06-15T12:00:00'), 'invalid_time_range'],
  [from('2024-06-15T12:00Z'), 'invalid_time_range'],
  [from('2024-06-15'), 'invalid_time_range'],
  [from('2024-06-15T12:00:00+02:00'), 'invalid_time_range'],
  [from('2024-06-15T12:00:00%2B02:60'), 'invalid_time_range'],
  [from('2024-06-15T12:00:00%2B0200'), 'invalid_time_range'],
  [from('2024-02-30T12:00:00Z'), 'invalid_time_range'],
  [from('2023-02-29T12:00:00Z'), 'invalid_time_range'],
  [from('2024-06-15T24:00:00Z'), 'invalid_time_range'],
  [from('2024-06-15T12:60:00Z'), 'invalid_time_range'],
  [from('2024-06-15T12:00:00.Z'), 'invalid_time_range'],
  [from('1718452800'), 'invalid_time_range'],
  [from('2024-06-15T12:00:00Zulu'), 'invalid_time_range'],
  [from('2024-06-15T12:00:00Z%00'), 'invalid_time_range'],
  [from('2024-06-15T12:00:00Z%0A'), 'invalid_time_range'],
  [from('%D9%A2024-06-15T12:00:00Z'), 'invalid_time_range'],
  ['from=2024-06-15T13:00:00Z&to=2024-06-15T12:00:00Z', 'invalid_time_range'],
  ['from=2024-06-15T12:00:00Z&to=2024-06-15T12:00:00%2B00:01', 'invalid_time_range'],
  [`${ok}&pageSize=0`, 'page_size_out_of_range'],
  [`${ok}&pageSize=1001`, 'page_size_out_of_range'],
  [`${ok}&pageSize=-1`, 'page_size_out_of_range'],
  [`${ok}&pageSize=99999999999999999999`, 'page_size_out_of_range'],
  [`${ok}&pageSize=`, 'invalid_request'],
  [`${ok}&pageSize=1.5`, 'invalid_request'],
  [`${ok}&pageSize=1e2`, 'invalid_request'],
  [`${ok}&pageSize=0x10`, 'invalid_request'],
  [`${ok}&pageSize=%2B5`, 'invalid_request'],
  [`${ok}&pageSize=ten`, 'invalid_request'],
  [`${ok}&from_id=abc`, 'invalid_request'],
  [`${ok}&from_id=`, 'invalid_request'],
  [`${ok}&from_id=1.0`, 'invalid_request'],
  [`${ok}&from_id=9223372036854775808`, 'invalid_request'],
  [`${ok}&from_id=-9223372036854775809`, 'invalid_request'],
  [`${ok}&from=2024-06-15T12:00:00Z`, 'invalid_request'],
  [`${ok}&pageSize=5&pageSize=6`, 'invalid_request'],
];
for (const [query, code] of REFUSALS) {
  test(`7.2 ?${query}: 400 ${code}`, async ({ server }) => {
    const { status, json } = await ask(server, query);
    expect({ status, json }).toEqual({ status: 400, json: { code, message: expect.any(String) } });
  });
}

test('4.2 pageSize 1 and 1000 are accepted, unknown parameters are ignored', async ({ server }) => {
  for (const [query, size] of [
    [`${WINDOW}&pageSize=1`, 1],
    [`${WINDOW}&pageSize=1000&colour=red`, 1000],
  ] as const) {
    const { json } = await ask(server, query);
    expect((json as { items: unknown[] }).items).toHaveLength(size);
  }
});

test('4.2 screenings of the second tenant never show', async ({ server }) => {
  const target = server.target();
  const second = target.clients.secondTenant;
  const url = `${screeningsUrl(target, second?.tenantId ?? '')}?${WINDOW}&pageSize=1000`;
  const { items } = await walk(url, await mintToken(target, second));
  const dataset = await readDataset(target.secondDataset ?? '');
  expect(items).toEqual(expected(dataset, '2024-02-01T00:00:00Z', '2025-02-01T00:00:00Z'));
});

test.describe('5 authentication', () => {
  const AUTHORIZATIONS: [title: string, header: (token: string) => string | undefined][] = [
    ['no header', () => undefined],
    ['Basic', () => `Basic ${Buffer.from('a:b').toString('base64')}`],
    ['a bare token', (token) => token],
    ['an empty bearer', () => 'Bearer'],
    ['a bearer of spaces', () => 'Bearer   '],
    ['two tokens', (token) => `Bearer ${token} ${token}`],
    ['garbage', () => 'Bearer garbage'],
    ['another payload', (token) => `Bearer ${withPart(token, 1, { tenant_id: 'x' })}`],
    ['alg none', (token) => `Bearer ${withPart(token, 0, { alg: 'none' }).replace(/[^.]*$/, '')}`],
    [
      'another signature',
      (token) =>
        `Bearer ${token.replace(/\.(.)([^.]*)$/, (_, c, rest) => `.${c === 'A' ? 'B' : 'A'}${rest}`)}`,
    ],
  ];
  for (const [title, header] of AUTHORIZATIONS) {
    test(`${title}: 401 unauthenticated with a challenge`, async ({ server }) => {
      const target = server.target();
      const { primary } = target.clients;
      const authorization = header(await mintToken(target, primary));
      const { status, headers, json } = await send(
        `${screeningsUrl(target, primary.tenantId)}?${ok}`,
        authorization === undefined ? {} : { headers: { authorization } },
      );
      expect(status).toBe(401);
      expect(json).toMatchObject({ code: 'unauthenticated' });
      expect(headers.get('www-authenticate')).toMatch(/^Bearer realm="screenings"/);
    });
  }

  test('an expired token: 401', async ({ server }) => {
    const target = server.target();
    const url = `${screeningsUrl(target, target.clients.primary.tenantId)}?${ok}`;
    expect((await send(url, bearer(target.expiredToken))).status).toBe(401);
  });

  test('a token expires when its time has come, even if it was seen before', async ({ start }) => {
    let nowMs = Date.now();
    const server = await start({ now: () => nowMs });
    const target = server.target();
    const token = await mintToken(target, target.clients.primary);
    const url = `${screeningsUrl(target, target.clients.primary.tenantId)}?${ok}`;
    expect((await send(url, bearer(token))).status).toBe(200);
    nowMs += 3_598_000;
    expect((await send(url, bearer(token))).status).toBe(200);
    nowMs += 2_000;
    expect((await send(url, bearer(token))).status).toBe(401);
  });

  test('a token of another server: 401', async ({ server, start }) => {
    const target = server.target();
    const other = (await start()).target();
    const token = await mintToken(other, other.clients.primary);
    const url = `${screeningsUrl(target, target.clients.primary.tenantId)}?${ok}`;
    expect((await send(url, bearer(token))).status).toBe(401);
  });

  test('a token in the query: 401', async ({ server }) => {
    const target = server.target();
    const token = await mintToken(target, target.clients.primary);
    const url = `${screeningsUrl(target, target.clients.primary.tenantId)}?${ok}&access_token=${token}`;
    expect((await send(url)).status).toBe(401);
  });

  const SCHEMES = ['bearer', 'BEARER'];
  for (const scheme of SCHEMES) {
    test(`the scheme may be written ${scheme}`, async ({ server }) => {
      const target = server.target();
      const token = await mintToken(target, target.clients.primary);
      const url = `${screeningsUrl(target, target.clients.primary.tenantId)}?${ok}`;
      expect((await send(url, { headers: { authorization: `${scheme} ${token}` } })).status).toBe(200);
    });
  }
});

const PATHS: [
  title: string,
  tenant: (own: string, other: string) => string,
  status: number,
  code?: string,
][] = [
  ['its own in capitals', (own) => own.toUpperCase(), 200],
  ['of the second tenant', (_, other) => other, 403, 'forbidden'],
  ['of an unknown tenant', () => 'ffffffff-ffff-4fff-8fff-ffffffffffff', 403, 'forbidden'],
  ['that is no UUID', () => 'me', 403, 'forbidden'],
  ['of broken encoding', () => '%zz', 403, 'forbidden'],
];
for (const [title, tenant, status, code] of PATHS) {
  test(`a path tenant ${title}: ${status} ${code ?? ''}`, async ({ server }) => {
    const target = server.target();
    const { primary, secondTenant } = target.clients;
    const token = await mintToken(target, primary);
    const path = screeningsUrl(target, tenant(primary.tenantId, secondTenant?.tenantId ?? ''));
    const answer = await send(`${path}?${ok}`, bearer(token));
    expect(answer.status).toBe(status);
    if (code) expect(answer.json).toMatchObject({ code });
  });
}

test('7.2 a tenant that is not onboarded, on its own path: 404 not_found', async ({ server }) => {
  const target = server.target();
  const { notOnboarded } = target.clients;
  const token = await mintToken(target, notOnboarded);
  const answer = await send(`${screeningsUrl(target, notOnboarded?.tenantId ?? '')}?${ok}`, bearer(token));
  expect(answer.status).toBe(404);
  expect(answer.json).toMatchObject({ code: 'not_found' });
});

/** A token with members of one part changed and the rest as it was. */
function withPart(token: string, place: number, changes: object): string {
  const parts = token.split('.');
  const value = JSON.parse(Buffer.from(parts[place] ?? '', 'base64url').toString()) as object;
  parts[place] = Buffer.from(JSON.stringify({ ...value, ...changes })).toString('base64url');
  return parts.join('.');
}
