/**
 * Section 7.2: which REST requests are rejected, and with which code. The observers check the codes of 401 and 403
 * (7.2-unauthenticated, 7.2-forbidden) on the requests of section 5.
 */
import { about, test } from '../fixtures/test.ts';
import { differs, type Judge } from '../engine/checks/mismatch.ts';
import { refusedWith, sayRefusal } from '../engine/checks/errors.ts';
import { formEncode } from '../engine/client/transport.ts';
import { sampleDataOf, WIDE_WINDOWS } from '../engine/run/walk/survey.ts';
import { mapConcurrently } from '../engine/client/concurrency.ts';
import { refusal, refusals, checksOf, type Rule, type Case } from '../engine/run/rules/in-combinations.ts';
import {
  failureAfter,
  oddQueries,
  sendOddHeaders,
  tokenRequestOf,
  sendQuery,
  encoded,
  isClientError,
  isSuspicious,
  rawQuery,
  unlessTokensHang,
  UNSTORABLE,
} from '../engine/run/rules/raw-request.ts';
import type { Exchange, RequestOut } from '../engine/client/exchange.ts';
import { parseInstant, compareInstants, instant } from '../engine/data/instant.ts';
import { DEFAULT_PAGE_SIZE, orderedItems, pageOf, queryValue, SOME_WINDOW } from '../engine/client/page.ts';
import { narrowOf, type Baseline, withParameter, withWindow } from '../engine/run/combinations/factors.ts';
import { compareKeys } from '../engine/data/oracle.ts';
import { replaced } from '../engine/run/rules/wrong-credentials.ts';
import type { Kit } from '../engine/run/kit.ts';
import { unlessUntested } from '../engine/errors.ts';
import { EQUAL_TIMES, MALFORMED_TIMES, ONE_EDGED } from '../engine/run/rules/malformed-times.ts';

/**
 * Moves the other edge far away: a server that reads the malformed edge leniently must not find the window inverted,
 * which is rejected with the same code. All malformed times are in or near 2026.
 */
function withRoom(request: RequestOut, name: 'from' | 'to'): RequestOut {
  const other = name === 'from' ? 'to' : 'from';
  const at = parseInstant(queryValue(request.url, other) ?? '');
  const limit = name === 'from' ? '2027-01-01T00:00:00Z' : '2024-01-01T00:00:00Z';
  const side = at ? compareInstants(at, instant(limit)) : 0;
  const far = name === 'from' ? side > 0 : side < 0;
  return far ? request : withParameter(request, other, encodeURIComponent(limit));
}

const malformedTime =
  (name: 'from' | 'to', value: string, ...codes: readonly string[]) =>
  (kit: Kit): Case => {
    const usual = refusal({ [name]: value }, ...codes)(kit);
    return { ...usual, alter: (request, baseline) => usual.alter(withRoom(request, name), baseline) };
  };

const EDGES = ['from', 'to'] as const;

/** What form decoding makes of a raw `+`. Accepted only if the target takes a raw `+` literally (RFC 3986, section 3.4). */
const BLANK_OFFSET = '2026-03-01T00:00:00%2001:00';

const blankCases = EDGES.map((name) => async (kit: Kit): Promise<Case> => {
  const usual = malformedTime(name, BLANK_OFFSET, 'invalid_time_range')(kit);
  const isRawPlusServed = await kit.once('raw plus', async () => {
    const { from } = encoded(SOME_WINDOW);
    const { status } = await sendQuery(kit, rawQuery({ from: from!, to: '2026-03-02T00:00:00+01:00' }));
    kit.ledger.observe('raw-plus', String(status));
    return status === 200;
  });
  return isRawPlusServed
    ? { ...usual, judge: (exchange) => (exchange.status === 200 ? undefined : usual.judge(exchange)) }
    : usual;
});

const timeCase = (name: 'from' | 'to', value: string): ((kit: Kit) => Case) =>
  malformedTime(name, encodeURIComponent(value), 'invalid_time_range');
const timeCases = (kit: Kit): ((kit: Kit) => Case)[] =>
  MALFORMED_TIMES.flatMap(([from, to]) =>
    kit.options.seed % 2 === 0 || [from, to].some((text) => ONE_EDGED.test(text))
      ? [timeCase('from', from), timeCase('to', to)]
      : [timeCase('from', to), timeCase('to', from)],
  );

const rawTimeCases = [
  ...EDGES.flatMap((name) =>
    ['', '%zz'].map((value) => malformedTime(name, value, 'invalid_time_range', 'invalid_request')),
  ),
  ...EQUAL_TIMES.map((text) => refusal({ from: text, to: text }, 'invalid_time_range')),
  refusal({ from: '', to: '' }, 'invalid_time_range', 'invalid_request'),
];

/** Integers in spellings that not every parser accepts: must be rejected, or read as that number. */
const SPELLINGS = {
  '10.0': 10n,
  '%2B5': 5n,
  '1e1': 10n,
  '%2010': 10n,
  '0x10': 16n,
  '0b1010': 10n,
  '0o12': 10n,
  '010': 10n, // 8 if a leading zero means octal
  '10%0A': 10n,
  '1_0': 10n, // Python syntax
  '%D9%A1%D9%A0': 10n, // Arabic digits, which Java and Python accept
} as const;

/** Accepts a page with at most `size` items whose `next` has the same pageSize, as sent or in digits. */
const pageOfSize =
  (size: bigint): Judge =>
  (exchange) => {
    const { items = [], nextUrl } = pageOf(exchange);
    const next = nextUrl === undefined ? undefined : queryValue(nextUrl, 'pageSize');
    const allowed = [String(size), undefined, queryValue(exchange.request.url, 'pageSize')];
    return items.length <= size && allowed.includes(next)
      ? undefined
      : differs(
          `400, or a page of pageSize ${size}`,
          `${items.length} items${next === undefined ? '' : ` and a next with pageSize ${next}`}`,
        );
  };

/** The page must not contain the item with the id of the request. */
const beginsAfter: Judge = (exchange) => {
  const [text = '', digits = 0] = /(\d+)\.?/.exec(queryValue(exchange.request.url, 'from_id') ?? '') ?? [];
  const id = BigInt(digits);
  // With a decimal point it may be read as a double, which has no digits beyond 2^53.
  if (text.endsWith('.') && BigInt(Number(id)) !== id) return undefined;
  return pageOf(exchange).items?.some((item) => item.id === id)
    ? differs(`400, or a page that begins after from_id ${id}`, `the item ${id} again`)
    : undefined;
};

const spelledCase = (
  kit: Kit,
  alter: (request: RequestOut, baseline: Baseline) => RequestOut,
  usual: Case['alter'],
  codes: readonly string[],
  page: Judge,
): Case => {
  const refused = refusedWith(kit, ...codes);
  return {
    usual,
    alter: (request, baseline) => {
      const altered = alter(request, baseline);
      return { ...altered, suspicious: isSuspicious(altered.url.split('?')[1]!) };
    },
    judge: (exchange) => {
      if (exchange.status === 200) return page(exchange);
      return exchange.request.suspicious && isClientError(exchange) ? undefined : refused(exchange);
    },
  };
};

const sized = (value?: string) => (request: RequestOut) =>
  withParameter(withWindow(request, ...WIDE_WINDOWS[0]), 'pageSize', value);

const SIZE_CODES = ['invalid_request', 'page_size_out_of_range'];

const spelledSizes = Object.entries(SPELLINGS).map(
  ([text, size]) =>
    (kit: Kit): Case =>
      spelledCase(kit, sized(text), sized(String(size)), SIZE_CODES, pageOfSize(size)),
);

/** Many servers read an empty value as absent: then the page must be the one without the parameter. */
const emptySize = (kit: Kit): Case =>
  spelledCase(kit, sized(''), sized(), SIZE_CODES, pageOfSize(BigInt(DEFAULT_PAGE_SIZE)));

/** `#` stands for the id of an item at `from`, so that ignoring from_id shows. */
const identified =
  (spelling?: string) =>
  (request: RequestOut, baseline: Baseline): RequestOut => {
    const { from, to, id } = narrowOf(request, baseline);
    return withParameter(withWindow(request, from, to), 'from_id', spelling?.replace('#', String(id)));
  };

const emptyId = (kit: Kit): Case => {
  const page: Judge = (exchange) => {
    const { id, from } = narrowOf(exchange.request, kit.baseline!);
    const at = instant(from);
    const items = orderedItems(exchange);
    // A short page may end before the item, among those that share its instant.
    const isCut =
      pageOf(exchange).nextUrl !== undefined && !items.some((item) => compareKeys(item, { id, at }) >= 0);
    return isCut || items.some((item) => item.id === id)
      ? undefined
      : differs(
          `400, or a page that begins at from ${from}`,
          `${items.length} items without the item ${id} at it`,
        );
  };
  return spelledCase(kit, identified(''), identified(), ['invalid_request'], page);
};

// A leading zero may mean octal.
const spelledIds = ['#.0', '%2B#', '%20#', '#%0A', '0#'].map(
  (spelling) =>
    (kit: Kit): Case =>
      spelledCase(kit, identified(spelling), identified('#'), ['invalid_request'], beginsAfter),
);

const UUID = '7d0c5a52-3f0e-4b61-9c55-0d8a1f2b6e01';

const sizes = (values: readonly string[], ...codes: readonly string[]) =>
  values.map((pageSize) => refusal({ pageSize }, ...codes));

/** Texts of which lenient parsers make an integer, or nothing; a query into which one is inserted computes it. */
const NO_INTEGERS = ['abc', '10abc', '1,000', '10-1', 'null', 'undefined', 'NaN', 'true', 'all'];

/** U+2212 as a minus sign, NUL as an end of string, an integer on one of two lines, a wildcard. */
const NEAR_INTEGERS = ['Infinity', '\u221210', '10\u0000', '10\u0000x', '10\nx', '*'].map(encodeURIComponent);

const NO_SIZES = [
  ...sizes(NO_INTEGERS, 'invalid_request'),
  ...sizes(['1.5', ...NEAR_INTEGERS], 'invalid_request', 'page_size_out_of_range'),
];
const NO_IDS = [...NO_INTEGERS, ...NEAR_INTEGERS, '1.5', UUID].map((value) =>
  refusal({ from_id: value }, 'invalid_request'),
);
/** 2^32 + 100 and 2^64 + 100 must not be truncated to 100. Numbers beyond 64 bits may also count as malformed. */
const OUT_OF_RANGE = [
  ...sizes(['0', '1001', '-1', '1024', '10000', '4294967396'], 'page_size_out_of_range'),
  ...sizes(['18446744073709551716', '9'.repeat(40), '-0', '00'], 'page_size_out_of_range', 'invalid_request'),
];

const RULES: readonly Rule[] = [
  {
    id: '7.2-invalid_request',
    alsoIds: ['7.2-body'],
    name: 'invalid_request: a pageSize that is no integer',
    alike: NO_SIZES.length,
    inPlaceOf: 'page size',
    cases: refusals([...NO_SIZES, emptySize, ...spelledSizes]),
  },
  {
    id: '7.2-invalid_request',
    alsoIds: ['7.2-body'],
    name: 'invalid_request: a from_id that is no integer',
    alike: NO_IDS.length,
    inPlaceOf: 'beginning',
    cases: refusals([...NO_IDS, emptyId, ...spelledIds]),
  },
  {
    id: '7.2-invalid_time_range',
    alsoIds: ['7.2-body'],
    name: 'invalid_time_range: a from or to that is not RFC 3339',
    everywhere: EDGES.length,
    alike: EDGES.length * MALFORMED_TIMES.length,
    cases: async (kit) => [
      ...refusals([...timeCases(kit), ...rawTimeCases])(kit),
      ...(await Promise.all(blankCases.map((create) => create(kit)))),
    ],
  },
  {
    id: '7.2-page_size_out_of_range',
    alsoIds: ['7.2-body'],
    name: 'page_size_out_of_range: a pageSize beyond 1 to 1000',
    alike: OUT_OF_RANGE.length,
    inPlaceOf: 'page size',
    cases: refusals(OUT_OF_RANGE),
  },
];

/** Outside of the 16 bits that some databases store. */
const ASTRAL = '%F0%9F%98%80';

/** Token requests with one parameter that databases reject as text: NUL, octets that are not UTF-8, astral characters. */
const oddForms = (kit: Kit, odd: string, values: readonly string[]): string[] =>
  values.map((value) =>
    kit.client
      .validForm('primary')
      .map(([name, usual]) => `${name}=${name === odd ? value : encodeURIComponent(usual)}`)
      .join('&'),
  );

/** Sends the body unchanged, whatever it contains. Without `type` it is a form; an empty `type` is left out. */
function sendForm(kit: Kit, body: string, type?: string): Promise<Exchange> {
  const { headers: usual, ...request } = tokenRequestOf(kit, body);
  const { 'content-type': _, ...untyped } = usual;
  const headers = type === undefined ? usual : type === '' ? untyped : { ...usual, 'content-type': type };
  return kit.send({ ...request, headers, suspicious: isSuspicious(body) });
}

for (const check of RULES.flatMap(checksOf))
  test(check.title, about(check.ids, check), ({ kit }) => check.run(kit));

test(
  'no 5xx: malformed queries, paths and headers',
  about('7.2-no-unprovoked-5xx', { needs: 'page' }),
  async ({ kit }) => {
    const tenantId = await kit.tenantOf();
    // An empty page may hide a failure.
    const { from, to } = (await unlessUntested(sampleDataOf(kit)))?.window ?? SOME_WINDOW;
    const queries = oddQueries({ from, to });
    await mapConcurrently(queries, async (query) => {
      const said = sayRefusal(await sendQuery(kit, query, { suspicious: isSuspicious(query) })).slice(0, 3);
      if (query.includes('pageSize=10&pageSize=20')) kit.ledger.observe('repeated-parameter', said);
      if (query.includes('unknown=x')) kit.ledger.observe('unknown-parameter', said);
      if (query.includes(':60Z')) kit.ledger.observe('leap-second', said);
    });
    const valid = kit.request(tenantId, { from, to, pageSize: 1 });
    const sent = (request: RequestOut) => async (): Promise<unknown> =>
      kit.send({ ...request, offPath: true });
    const onPath = (path: string): RequestOut => ({
      ...valid,
      url: valid.url.replace(tenantId, path),
      suspicious: isSuspicious(path),
    });
    const header = {
      kind: 'header',
      value: `Bearer \u00e9${'x'.repeat(4_000)}`,
      label: 'Bearer éx…',
      shell: "Bearer $(printf '\\351'; head -c 4000 /dev/zero | tr '\\0' x)",
    } as const;
    const asks = [
      async () =>
        kit.ledger.observe(
          'path-not-a-uuid',
          sayRefusal(await kit.send({ ...onPath('not-a-uuid'), offPath: true })),
        ),
      ...['%00', '%zz', `${tenantId}%2F..`, 'x'.repeat(1_000)].map((odd) => sent(onPath(odd))),
      ...['text/html', 'application/xml;q=0.9', 'nothing'].map((accept) =>
        sent({ ...valid, headers: { ...valid.headers, accept } }),
      ),
      // A rejection may find no representation that the client accepts.
      sent({
        ...valid,
        url: valid.url.replace(/1$/, '0'),
        headers: { ...valid.headers, accept: 'text/html' },
      }),
      sent({
        ...valid,
        authorization: { kind: 'none' },
        headers: { ...valid.headers, accept: 'text/html' },
      }),
      // From a frame or a file: what Spring is told of origins may contradict itself, and this one is no URL.
      sent({ ...valid, headers: { ...valid.headers, origin: 'null' } }),
      // As scripts send it: without the headers of usual clients, and with a type of a body that is not there.
      sent({
        ...valid,
        isAnonymous: true,
        headers: { ...kit.target.headers, 'content-type': 'application/json' },
      }),
      // Half of the length that servers usually admit, but some admit less; and a letter that is not ASCII.
      async () => kit.send({ ...valid, authorization: header, suspicious: true }),
      async () => sendOddHeaders(kit, valid),
    ];
    await mapConcurrently<() => Promise<unknown>, unknown>(asks, (ask) => ask());
  },
);

test(
  'no 5xx: a valid request after one that a store may refuse',
  about('7.2-no-unprovoked-5xx', { needs: 'page', isSupplement: true }),
  async ({ kit }) => {
    for (const odd of UNSTORABLE)
      await kit.checkAll({ id: '7.2-no-unprovoked-5xx', cause: 'after a refusal', needsAgain: true }, () =>
        failureAfter(kit, odd),
      );
  },
);

test(
  'no 5xx: malformed token requests',
  about('7.2-no-unprovoked-5xx', { needs: 'token', access: 'reads late' }),
  async ({ kit }) => {
    unlessTokensHang(kit);
    // The first one is longer than a usual column, too.
    const odd = [`${ASTRAL}%22%27%5C${'x'.repeat(255)}`, 'a%00b', '%ff%fe', '%ED%A0%80'];
    const scopes = oddForms(kit, 'scope', odd);
    // Sent as a body, so that no observer expects the errors of section 7.1: a filter may reject the odd header first.
    const long = tokenRequestOf(kit, `grant_type=${'x'.repeat(6_000)}`);
    // Basic, which many servers decode too (RFC 6749, 2.3.1): no Base64; where a decoder skips what is none, no UTF-8.
    await kit.send({ ...long, headers: { ...long.headers, authorization: 'Basic %/w==' } });
    // Without a colon, beside a form that a server may check first.
    const valid = tokenRequestOf(kit, formEncode(kit.client.validForm('primary')));
    await kit.send({ ...valid, headers: { ...valid.headers, authorization: 'Basic YWJj' } });
    // Names that JavaScript objects have already.
    const names = '__proto__=x&constructor[prototype]=y&';
    await mapConcurrently(scopes, (body) => sendForm(kit, `${body}&${names}`));
    await sendForm(kit, '', '');
    for (const body of ['null', '{]']) await sendForm(kit, body, 'application/json');
    const password = replaced(kit.client.validForm('primary'), 'grant_type', 'password');
    const refused = tokenRequestOf(kit, formEncode(replaced(password, 'scope', 'kit.unknown')));
    await kit.send({ ...refused, headers: { ...refused.headers, accept: 'text/html' } });
    await sendOddHeaders(kit, valid);
    // Some servers end earlier tokens.
    await kit.client.mint();
  },
);

test(
  'no 5xx: a client_id that is not text',
  about('7.2-no-unprovoked-5xx', { needs: 'token', access: 'guesses', isSupplement: true }),
  async ({ kit }) => {
    unlessTokensHang(kit);
    for (const body of oddForms(kit, 'client_id', ['a%00b', '%ff%fe', `${ASTRAL}%22%27%5C`])) {
      await sendForm(kit, body);
      await kit.client.mint();
    }
  },
);
