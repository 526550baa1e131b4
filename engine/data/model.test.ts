/** The kit's model against PostgreSQL: instants as numeric and timestamptz, the order, and the keyset queries. */
import { expect } from '@playwright/test';
import type { Connections } from '../../reference-server/store/connections.ts';
import { test as base } from '../../reference-server/testing.ts';
import { fc } from '../../fixtures/own-tests/seeded.ts';
import {
  compareInstants,
  formatInstant,
  instant,
  parseInstant,
  shift,
  toDecimal,
  type Instant,
} from './instant.ts';
import { compareKeys, Oracle, type Key } from './oracle.ts';

const test = base.extend<object, { readonly postgres: Connections }>({
  postgres: [
    async ({ database }, use) => {
      await using connections = database.connect();
      await use(connections);
    },
    { scope: 'worker' },
  ],
});

/** One query for many values; rows are in the order of the values. */
const rowsOf = <Row extends Record<string, unknown>>(
  postgres: Connections,
  text: string,
  ...values: unknown[]
): Promise<Row[]> => postgres.query<Row>({ text, values });

// -- arbitraries ---------------------------------------------------------------------------------

const two = (value: number): string => String(value).padStart(2, '0');

const offsetTexts = fc.oneof(
  fc.constant('Z'),
  fc
    .tuple(fc.constantFrom('+', '-'), fc.nat({ max: 15 }), fc.nat({ max: 59 }))
    .map(([sign, hours, minutes]) => `${sign}${two(hours)}:${two(minutes)}`),
);

const digitsOf = (max: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...'0123456789'), maxLength: max });

/** Any date of the years 1 to 9998, mostly valid, often near the end of a month. */
const dates = fc
  .tuple(fc.integer({ min: 2, max: 9998 }), fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 31 }))
  .map(([year, month, day]) => `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}`);

const times = fc
  .tuple(fc.nat({ max: 23 }), fc.nat({ max: 59 }), fc.nat({ max: 59 }))
  .map((parts) => parts.map(two).join(':'));

const texts = (fraction: number): fc.Arbitrary<string> =>
  fc
    .tuple(dates, times, digitsOf(fraction), offsetTexts)
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

const check = <T>(
  arbitrary: fc.Arbitrary<T>,
  holds: (value: T) => Promise<void>,
  numRuns: number,
): Promise<void> => fc.assert(fc.asyncProperty(arbitrary, holds), { numRuns });

// -- instants ------------------------------------------------------------------------------------

const many = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T[]> =>
  fc.array(arbitrary, { minLength: 1, maxLength: 60, size: 'max' });

test('instants equal timestamptz to the microsecond', async ({ postgres }) => {
  const sql = `SELECT trim_scale(extract(epoch FROM text::timestamptz))::text AS epoch
               FROM unnest($1::text[]) WITH ORDINALITY AS given(text, n) ORDER BY n`;
  await check(
    many(readable(6)),
    async (written) => {
      const rows = await rowsOf<{ epoch: string }>(postgres, sql, written);
      expect(written.map((text) => toDecimal(instant(text)))).toEqual(rows.map(({ epoch }) => epoch));
    },
    40,
  );
});

test('accepts exactly the dates that PostgreSQL accepts', async ({ postgres }) => {
  const sql = `SELECT pg_input_is_valid(text, 'timestamptz') AS valid
               FROM unnest($1::text[]) WITH ORDINALITY AS given(text, n) ORDER BY n`;
  const written = many(
    fc.tuple(dates, times, offsetTexts).map(([date, time, offset]) => `${date}T${time}${offset}`),
  );
  await check(
    written,
    async (all) => {
      const rows = await rowsOf<{ valid: boolean }>(postgres, sql, all);
      expect(all.map((text) => [text, parseInstant(text) !== undefined])).toEqual(
        all.map((text, i) => [text, rows[i]!.valid]),
      );
    },
    40,
  );
});

test('instants compare like numeric, to any digit', async ({ postgres }) => {
  const sql = `SELECT sign(a - b)::int AS sign
               FROM unnest($1::numeric[], $2::numeric[]) WITH ORDINALITY AS given(a, b, n) ORDER BY n`;
  // Neighbours that differ in a late digit are rare by chance.
  const pairs = fc
    .tuple(
      readable(12),
      fc.bigInt({ min: -3n, max: 3n }),
      fc.constantFrom(0, 3, 6, 9, 12, 15),
      readable(12),
      fc.boolean(),
    )
    .map(([text, units, digits, other, near]): [Instant, Instant] => [
      instant(text),
      near ? shift(instant(text), units, digits) : instant(other),
    ]);
  await check(
    many(pairs),
    async (all) => {
      const rows = await rowsOf<{ sign: number }>(
        postgres,
        sql,
        all.map(([a]) => toDecimal(a)),
        all.map(([, b]) => toDecimal(b)),
      );
      expect(all.map(([a, b]) => Math.sign(compareInstants(a, b)))).toEqual(rows.map(({ sign }) => sign));
    },
    40,
  );
});

test('shifting an instant equals adding numeric', async ({ postgres }) => {
  const sql = `SELECT trim_scale(a + units * power(10::numeric, -digits))::text AS moved
               FROM unnest($1::numeric[], $2::numeric[], $3::int[]) WITH ORDINALITY AS given(a, units, digits, n)
               ORDER BY n`;
  const moves = fc.tuple(readable(12), fc.bigInt({ min: -(10n ** 9n), max: 10n ** 9n }), fc.nat({ max: 12 }));
  await check(
    many(moves),
    async (all) => {
      const rows = await rowsOf<{ moved: string }>(
        postgres,
        sql,
        all.map(([text]) => toDecimal(instant(text))),
        all.map(([, units]) => String(units)),
        all.map(([, , digits]) => digits),
      );
      const moved = all.map(([text, units, digits]) => toDecimal(shift(instant(text), units, digits)));
      expect(moved).toEqual(rows.map((row) => row.moved));
    },
    40,
  );
});

test('every spelling of an instant is the same timestamptz', async ({ postgres }) => {
  const sql = `SELECT bool_and(a::timestamptz = b::timestamptz) AS same
               FROM unnest($1::text[], $2::text[]) AS given(a, b)`;
  const spelled = fc.tuple(
    readable(6),
    fc.record(
      {
        offsetMinutes: fc.integer({ min: -900, max: 900 }),
        digits: fc.nat({ max: 6 }),
        lowerCase: fc.boolean(),
      },
      { requiredKeys: [] },
    ),
  );
  await check(
    many(spelled),
    async (all) => {
      const written = all.map(([text, spelling]) => formatInstant(instant(text), spelling));
      const [row] = await rowsOf<{ same: boolean }>(
        postgres,
        sql,
        all.map(([text]) => text),
        written,
      );
      expect(row).toEqual({ same: true });
      // The written texts can be parsed again.
      expect(written.map((text) => toDecimal(instant(text)))).toEqual(
        all.map(([text]) => toDecimal(instant(text))),
      );
    },
    40,
  );
});

// -- the oracle ----------------------------------------------------------------------------------

const uniqueKeys = fc.uniqueArray(keys, { selector: ({ id }) => id, maxLength: 60, size: 'max' });

test('keys are ordered like ORDER BY (numeric, bigint)', async ({ postgres }) => {
  const sql = `SELECT id::text FROM unnest($1::numeric[], $2::bigint[]) AS given(at, id) ORDER BY at, given.id`;
  await check(
    uniqueKeys,
    async (all) => {
      const rows = await rowsOf<{ id: string }>(
        postgres,
        sql,
        all.map(({ at }) => toDecimal(at)),
        all.map(({ id }) => String(id)),
      );
      expect([...all].sort(compareKeys).map(({ id }) => String(id))).toEqual(rows.map(({ id }) => id));
    },
    60,
  );
});

test('the oracle selects the same range as a keyset query', async ({ postgres }) => {
  const sql = `SELECT id::text FROM unnest($1::numeric[], $2::bigint[]) AS given(at, id)
               WHERE CASE WHEN $4::bigint IS NULL THEN at >= $3::numeric
                          ELSE (at, id) > ($3::numeric, $4::bigint) END
                 AND CASE WHEN $7::bigint IS NULL THEN at < $5::numeric
                          ELSE (at, id) <= ($6::numeric, $7::bigint) END
               ORDER BY at, given.id`;
  const spans = fc.record({
    all: uniqueKeys,
    from: keys,
    to: keys,
    upTo: keys,
    afterId: fc.boolean(),
    bounded: fc.boolean(),
  });
  await check(
    spans,
    async ({ all, from, to, upTo, afterId, bounded }) => {
      const known = new Oracle(true);
      for (const key of all) known.add({ ...key, testTime: formatInstant(key.at) }, 0);
      const rows = await rowsOf<{ id: string }>(
        postgres,
        sql,
        all.map(({ at }) => toDecimal(at)),
        all.map(({ id }) => String(id)),
        toDecimal(from.at),
        afterId ? String(from.id) : null,
        toDecimal(to.at),
        toDecimal(upTo.at),
        bounded ? String(upTo.id) : null,
      );
      const found = known.within({
        from: from.at,
        to: to.at,
        ...(afterId ? { afterId: from.id } : {}),
        ...(bounded ? { upTo } : {}),
      });
      expect(found.map(({ id }) => String(id))).toEqual(rows.map(({ id }) => id));
    },
    150,
  );
});
