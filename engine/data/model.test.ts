/**
 * The kit's model: edge cases of instants, and random ones against PostgreSQL as numeric and timestamptz; the order, and
 * the keyset queries.
 */
import { expect } from '@playwright/test';
import { MALFORMED_TIMES } from '../run/rules/malformed-times.ts';
import type { Connections } from '../../reference-server/store/connections.ts';
import { test as base } from '../../reference-server/testing.ts';
import { fc } from '../../fixtures/own-tests/tiers.ts';
import {
  compareInstants,
  formatInstant,
  instant,
  offsetMinutesOf,
  parseInstant,
  readableText,
  shift,
  toDecimal,
  type Instant,
} from './instant.ts';
import { compareKeys, Oracle, type Key } from './oracle.ts';

const test = base.extend<{ readonly postgres: Connections }>({
  async postgres({ database }, use) {
    await using connections = database.connect();
    await use(connections);
  },
});

// -- edge cases of instants --------------------------------------------------------------------------

const READ: [text: string, decimal: string][] = [
  ['1970-01-01T00:00:00Z', '0'],
  ['1969-12-31T23:59:59.75Z', '-0.25'],
  ['1969-12-31T23:59:58.000000001Z', '-1.999999999'],
  ['2024-02-29T12:00:00.1234567890Z', '1709208000.123456789'],
  ['2024-06-15t12:00:00z', '1718452800'],
  ['2016-12-31T23:59:60Z', '1483228800'],
  ['1985-04-12T23:20:50.52-00:00', '482196050.52'],
  ['0000-01-01T00:00:00Z', '-62167219200'],
  ['9999-12-31T23:59:59Z', '253402300799'],
  ['2024-01-01T00:00:00+23:59', '1703980860'],
];
for (const [text, decimal] of READ) {
  test(`${text} is ${decimal} seconds from the epoch`, () => {
    expect(toDecimal(instant(text))).toBe(decimal);
  });
}

for (const text of ['', '2026-03-01 00:00:00Z', ...new Set(MALFORMED_TIMES.flat())]) {
  test(`${JSON.stringify(text)} is not an RFC 3339 date-time`, () => {
    expect(parseInstant(text)).toBeUndefined();
    expect(() => instant(text)).toThrow(JSON.stringify(text));
  });
}

test('respells what many parsers reject, and keeps other spellings', () => {
  const texts = ['2016-12-31T23:59:60Z', '2026-03-01t00:00:00.50z', '2026-03-01T00:00:00-00:00'];
  expect([...texts, '2026-03-01T18:00:00+18:00', '2026-03-01T00:00:00.50+02:00'].map(readableText)).toEqual([
    ...['2017-01-01T00:00:00Z', '2026-03-01T00:00:00.5Z', '2026-03-01T00:00:00Z'],
    ...['2026-03-01T00:00:00Z', '2026-03-01T00:00:00.50+02:00'],
  ]);
});

test('throws for a year that RFC 3339 cannot write', () => {
  expect(() => formatInstant(instant('9999-12-31T23:59:59Z'), { offsetMinutes: 1 })).toThrow(RangeError);
});

// -- arbitraries ---------------------------------------------------------------------------------

const two = (value: number): string => String(value).padStart(2, '0');

const offsetTexts = fc.oneof(
  fc.constant('Z'),
  fc
    .tuple(fc.constantFrom('+', '-'), fc.nat({ max: 15 }), fc.nat({ max: 59 }))
    .map(([sign, hours, minutes]) => `${sign}${two(hours)}:${two(minutes)}`),
);

/** Any date of the years 1 to 9998, mostly valid, often near the end of a month. */
const dates = fc
  .tuple(fc.integer({ min: 2, max: 9998 }), fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 31 }))
  .map(([year, month, day]) => `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}`);

const times = fc
  .tuple(fc.nat({ max: 23 }), fc.nat({ max: 59 }), fc.nat({ max: 59 }))
  .map((parts) => parts.map(two).join(':'));

const texts = (fraction: number): fc.Arbitrary<string> =>
  fc
    .tuple(dates, times, fc.stringMatching(RegExp(`^\\d{0,${fraction}}$`)), offsetTexts)
    .map(([date, time, digits, offset]) => `${date}T${time}${digits === '' ? '' : `.${digits}`}${offset}`);

/** Texts that the kit can parse, for properties about instants only. */
const readable = (fraction: number): fc.Arbitrary<string> =>
  texts(fraction).filter((text) => parseInstant(text) !== undefined);

/** Few instants, close together, with ties; ids of many lengths. */
const keys: fc.Arbitrary<Key> = fc.record({
  at: fc
    .tuple(
      fc.integer({ min: -2, max: 2 }),
      fc.constantFrom('', '1', '10', '100001', '1000001', '999999', '9999999'),
    )
    .map(([seconds, digits]): Instant => ({ seconds: BigInt(seconds), fraction: digits.replace(/0+$/, '') })),
  id: fc.oneof(fc.bigInt({ min: 0n, max: 120n }), fc.bigInt({ min: 2n ** 53n - 2n, max: 2n ** 63n - 1n })),
});

// -- instants ------------------------------------------------------------------------------------

/**
 * Declares a test: PostgreSQL's answer for each value, `sql` over the columns `given`, is the kit's. One query for
 * many values.
 */
function testAgainstPostgres<T>(
  title: string,
  arbitrary: fc.Arbitrary<T>,
  sql: string,
  columns: readonly (readonly [type: string, column: (value: T) => string])[],
  ours: (value: T) => string,
): void {
  const arrays = columns.map(([type], index) => `$${index + 1}::${type}[]`).join();
  const names = columns.map((_, index) => 'abc'[index]).join();
  const text = `SELECT (${sql})::text AS answer FROM unnest(${arrays}) WITH ORDINALITY AS given(${names}, n) ORDER BY n`;
  test(title, ({ postgres }) =>
    fc.assert(
      fc.asyncProperty(fc.array(arbitrary, { minLength: 1, maxLength: 60, size: 'max' }), async (values) => {
        const given = columns.map(([, column]) => values.map(column));
        const rows = await postgres.query<{ answer: string }>({ text, values: given });
        expect(values.map((value) => [value, ours(value)])).toEqual(
          values.map((value, index) => [value, rows[index]?.answer]),
        );
      }),
      { numRuns: 40 },
    ),
  );
}

testAgainstPostgres(
  'instants equal timestamptz to the microsecond',
  readable(6),
  'trim_scale(extract(epoch FROM a::timestamptz))',
  [['text', (text) => text]],
  (text) => toDecimal(instant(text)),
);

testAgainstPostgres(
  'accepts exactly the dates that PostgreSQL accepts',
  texts(0),
  "pg_input_is_valid(a, 'timestamptz')",
  [['text', (text) => text]],
  (text) => String(parseInstant(text) !== undefined),
);

testAgainstPostgres(
  'instants compare like numeric, to any digit',
  // Neighbours that differ in a late digit are rare by chance.
  fc
    .tuple(
      readable(12),
      fc.bigInt({ min: -3n, max: 3n }),
      fc.constantFrom(0, 3, 6, 9, 12, 15),
      readable(12),
      fc.boolean(),
    )
    .map(([text, units, digits, other, near]) => ({
      a: instant(text),
      b: near ? shift(instant(text), units, digits) : instant(other),
    })),
  'sign(a - b)::int',
  [
    ['numeric', ({ a }) => toDecimal(a)],
    ['numeric', ({ b }) => toDecimal(b)],
  ],
  ({ a, b }) => String(Math.sign(compareInstants(a, b))),
);

testAgainstPostgres(
  'shifting an instant equals adding numeric',
  fc.tuple(readable(12), fc.bigInt({ min: -(10n ** 9n), max: 10n ** 9n }), fc.nat({ max: 12 })),
  'trim_scale(a + b * power(10::numeric, -c))',
  [
    ['numeric', ([text]) => toDecimal(instant(text))],
    ['numeric', ([, units]) => String(units)],
    ['int', ([, , digits]) => String(digits)],
  ],
  ([text, units, digits]) => toDecimal(shift(instant(text), units, digits)),
);

testAgainstPostgres(
  'every spelling of an instant is the same timestamptz, and has its offset',
  fc
    .tuple(readable(6), fc.integer({ min: -900, max: 900 }), fc.nat({ max: 6 }), fc.boolean())
    .map(([text, offsetMinutes, digits, isLowerCase]) => {
      const spelled = formatInstant(instant(text), { offsetMinutes, digits });
      return { text, offsetMinutes, spelled: isLowerCase ? spelled.toLowerCase() : spelled };
    }),
  'a::timestamptz = b::timestamptz',
  [
    ['text', ({ text }) => text],
    ['text', ({ spelled }) => spelled],
  ],
  ({ text, offsetMinutes, spelled }) =>
    String(
      toDecimal(instant(spelled)) === toDecimal(instant(text)) && offsetMinutesOf(spelled) === offsetMinutes,
    ),
);

// -- the oracle ----------------------------------------------------------------------------------

test('the oracle selects the same range as a keyset query, in the same order', async ({ postgres }) => {
  const text = `SELECT id::text FROM unnest($1::numeric[], $2::bigint[]) AS given(at, id)
                WHERE CASE WHEN $4::bigint IS NULL THEN at >= $3::numeric
                           ELSE (at, id) > ($3::numeric, $4::bigint) END
                  AND CASE WHEN $7::bigint IS NULL THEN at < $5::numeric
                           ELSE (at, id) <= ($6::numeric, $7::bigint) END
                ORDER BY at, given.id`;
  const spans = fc.record({
    all: fc.uniqueArray(keys, { selector: ({ id }) => id, maxLength: 60, size: 'max' }),
    from: keys,
    to: keys,
    upTo: keys,
    afterId: fc.boolean(),
    bounded: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(spans, async ({ all, from, to, upTo, afterId, bounded }) => {
      const known = Oracle.of(all.map((key) => ({ ...key, testTime: formatInstant(key.at) })));
      const values = [
        all.map(({ at }) => toDecimal(at)),
        all.map(({ id }) => String(id)),
        toDecimal(from.at),
        afterId ? String(from.id) : null,
        toDecimal(to.at),
        toDecimal(upTo.at),
        bounded ? String(upTo.id) : null,
      ];
      const rows = await postgres.query<{ id: string }>({ text, values });
      const found = known.within({
        from: from.at,
        to: to.at,
        ...(afterId ? { afterId: from.id } : {}),
        ...(bounded ? { upTo } : {}),
      });
      expect(found.map(({ id }) => String(id))).toEqual(rows.map(({ id }) => id));
      expect([...all].sort(compareKeys)).toEqual(known.items.map(({ at, id }) => ({ at, id })));
    }),
    { numRuns: 150 },
  );
});
