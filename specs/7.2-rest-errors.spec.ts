/**
 * Section 7.2: which REST requests are rejected, and with which code. The observers check the codes of 401 and 403
 * (7.2-unauthenticated, 7.2-forbidden) on the requests of section 5.
 */
import { about, test } from '../fixtures/test.ts';
import { differs, type Judge } from '../engine/checks/mismatch.ts';
import { refusedWith, sayRefusal } from '../engine/checks/errors.ts';
import { WIDE_WINDOWS } from '../engine/run/walk/survey.ts';
import { refusal, refusalOr200, refusals, checksOf } from '../engine/run/rules/in-combinations.ts';
import type { Rule, Case } from '../engine/run/rules/in-combinations.ts';
import { sendQuery, encoded, isSuspicious, rawQuery } from '../engine/run/rules/raw-request.ts';
import type { RequestOut } from '../engine/client/exchange.ts';
import { parseInstant, compareInstants, instant } from '../engine/data/instant.ts';
import { DEFAULT_PAGE_SIZE, orderedItems, pageOf, queryValue, SOME_WINDOW } from '../engine/client/page.ts';
import { narrowOf, type Baseline, requestWith, withWindow } from '../engine/run/combinations/factors.ts';
import { compareKeys } from '../engine/data/oracle.ts';
import type { Kit } from '../engine/run/kit.ts';
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
  return far ? request : requestWith(request, other, encodeURIComponent(limit));
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

const LEAP_SECOND = '2016-12-31T23:59:60Z';
/** RFC 3339 has them, but many parsers do not: a leap second, an unknown offset, the year 0, many digits, wide offsets. */
const TOLERATED: readonly Readonly<Partial<Record<'from' | 'to', string>>>[] = [
  { from: LEAP_SECOND },
  // Where no leap second was.
  { from: '2016-12-30T13:59:60.5+02:00' },
  // No screenings, and so no next, which would show how it was read.
  { from: '2098-01-01T00:00:00Z', to: '2098-12-30T10:00:60Z' },
  { from: '2026-03-01T00:00:00-00:00' },
  { from: '0000-01-01T00:00:00Z' },
  { from: `2026-03-01T00:00:00.${'1'.repeat(40)}Z` },
  { from: '2026-03-01T00:00:00+23:59' },
];

const toleratedTimes = TOLERATED.map((times) => (kit: Kit): Case => {
  // One item, because items may be large and the time may be accepted.
  const { alter, judge } = refusalOr200({ ...encoded(times), pageSize: '1' }, 'invalid_time_range')(kit);
  return {
    alter,
    judge: (exchange) => {
      if (times.from === LEAP_SECOND) kit.ledger.observe('leap-second', sayRefusal(exchange).slice(0, 3));
      return judge(exchange);
    },
  };
});

const rawTimeCases = [
  ...toleratedTimes,
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
  '010': 10n, // 8 if a leading zero means octal
  '10%0A': 10n,
  '10%00': 10n, // Tornado reads control characters as blanks
  '1_0': 10n, // Python syntax
  '%D9%A1%D9%A0': 10n, // Arabic digits, which Java and Python accept
} as const;

/** Accepts a page with at most `size` items whose `next` has the same pageSize, as sent or in digits. */
const pageOfSize =
  (size: bigint): Judge =>
  (exchange) => {
    const { items = [], nextUrl } = pageOf(exchange);
    const next = nextUrl === undefined ? undefined : queryValue(nextUrl, 'pageSize')?.trim();
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
    judge: (exchange) => (exchange.status === 200 ? page(exchange) : refused(exchange)),
  };
};

const sized = (value?: string) => (request: RequestOut) =>
  requestWith(withWindow(request, ...WIDE_WINDOWS[0]), 'pageSize', value);

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
    return requestWith(withWindow(request, from, to), 'from_id', spelling?.replace('#', String(id)));
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
const spelledIds = ['#.0', '%2B#', '%20#', '#%0A', '#%00', '0#'].map(
  (spelling) =>
    (kit: Kit): Case =>
      spelledCase(kit, identified(spelling), identified('#'), ['invalid_request'], beginsAfter),
);

const sizes = (values: readonly string[], ...codes: readonly string[]) =>
  values.map((pageSize) => refusal({ pageSize }, ...codes));

/**
 * Texts of which lenient parsers make an integer, or nothing; a query into which one is inserted computes it, and one
 * that is split at every `=` loses what follows the second.
 */
const NO_INTEGERS = [
  ...['abc', '10abc', '10d', '0x10', '0b1010', '0o12', '1,000', '10-1', '--10', '-', '10=x'],
  ...['null', 'undefined', 'NaN', 'true', 'all'],
];

/**
 * U+2212 as a minus sign, a digit that is no decimal one, quotes as in JSON, NUL as an end of string, an integer on one of
 * two lines, a wildcard.
 */
const NEAR_INTEGERS = ['Infinity', '\u221210', '\u00b2', '"10"', '10\u0000x', '10\nx', '*'].map(
  encodeURIComponent,
);

const NO_SIZES = [
  ...sizes(NO_INTEGERS, 'invalid_request'),
  ...sizes(['1.5', ...NEAR_INTEGERS], 'invalid_request', 'page_size_out_of_range'),
];
const NO_IDS = [...NO_INTEGERS, ...NEAR_INTEGERS, '1.5', '7d0c5a52-3f0e-4b61-9c55-0d8a1f2b6e01'].map(
  (value) => refusal({ from_id: value }, 'invalid_request'),
);
/** 2^16 + 100, 2^32 + 100 and 2^64 + 100 must not be truncated to 100. Numbers beyond 64 bits may also count as malformed. */
const OUT_OF_RANGE = [
  ...sizes(['0', '1001', '-1', '1024', '10000', '65636', '4294967396'], 'page_size_out_of_range'),
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

for (const check of RULES.flatMap(checksOf))
  test(check.title, about(check.ids, check), ({ kit }) => check.run(kit));
