import { expect, test } from '@playwright/test';
import { fc } from '../../fixtures/own-tests/seeded.ts';
import {
  compareInstants,
  formatInstant,
  instant,
  type Instant,
  offsetMinutesOf,
  parseInstant,
  sameInstant,
  shift,
  toDecimal,
} from './instant.ts';

const READ: [text: string, decimal: string][] = [
  ['1970-01-01T00:00:00Z', '0'],
  ['1970-01-01T00:00:00.5Z', '0.5'],
  ['1969-12-31T23:59:59.75Z', '-0.25'],
  ['1969-12-31T23:59:58.000000001Z', '-1.999999999'],
  ['1970-01-01T01:00:00+01:00', '0'],
  ['1969-12-31T16:00:00-08:00', '0'],
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

const REFUSED = [
  '',
  '2024-06-15',
  '2024-06-15T12:00:00',
  '2024-06-15T12:00Z',
  '2024-06-15 12:00:00Z',
  '2024-06-15T12:00:00 02:00',
  '2024-06-15T12:00:00.Z',
  '2024-06-15T12:00:00,5Z',
  '2024-06-15T12:00:00+0200',
  '2024-06-15T12:00:00+02',
  '2024-06-15T12:00:00+24:00',
  '2024-06-15T12:00:00+02:60',
  '2024-06-15T24:00:00Z',
  '2024-06-15T12:60:00Z',
  '2024-06-15T12:00:61Z',
  '2024-13-01T12:00:00Z',
  '2024-00-01T12:00:00Z',
  '2024-06-00T12:00:00Z',
  '2024-06-31T12:00:00Z',
  '2023-02-29T12:00:00Z',
  '1900-02-29T12:00:00Z',
  '+2024-06-15T12:00:00Z',
  '12024-06-15T12:00:00Z',
  '2024-6-15T12:00:00Z',
  '2024-06-15T12:00:00Zulu',
  '2024-06-15T12:00:00Z\n',
  ' 2024-06-15T12:00:00Z',
  '٢٠٢٤-06-15T12:00:00Z',
  '1718452800',
];
for (const text of REFUSED) {
  test(`${JSON.stringify(text)} is not an RFC 3339 date-time`, () => {
    expect(parseInstant(text)).toBeUndefined();
    expect(() => instant(text)).toThrow(JSON.stringify(text));
  });
}

/** Years 0001 to 9998, so that every offset can be written. */
const anyInstant: fc.Arbitrary<Instant> = fc.record({
  seconds: fc.bigInt({ min: -62_135_500_000n, max: 253_370_000_000n }),
  fraction: fc.stringMatching(/^(\d{0,11}[1-9])?$/),
});
const anyOffset = fc.integer({ min: -1_439, max: 1_439 });

test('reads an instant written with any offset as the same instant', () => {
  fc.assert(
    fc.property(anyInstant, anyOffset, fc.nat(12), (at, offsetMinutes, digits) => {
      const text = formatInstant(at, { offsetMinutes, digits });
      expect(sameInstant(instant(text), at)).toBe(true);
      expect(offsetMinutesOf(text)).toBe(offsetMinutes);
    }),
  );
});

test('agrees with Date on whole milliseconds', () => {
  fc.assert(
    fc.property(
      fc.date({ min: new Date(0), max: new Date(250_000_000_000_000), noInvalidDate: true }),
      (date) => {
        const at = instant(date.toISOString());
        expect(Number(toDecimal(at))).toBe(date.getTime() / 1_000);
        expect(formatInstant(at, { digits: 3 })).toBe(date.toISOString());
      },
    ),
  );
});

test('shifting is exact, reversible and monotone', () => {
  fc.assert(
    fc.property(
      anyInstant,
      fc.bigInt({ min: -(10n ** 12n), max: 10n ** 12n }),
      fc.nat(12),
      (at, units, digits) => {
        const moved = shift(at, units, digits);
        expect(shift(moved, -units, digits)).toEqual(at);
        expect(Math.sign(compareInstants(moved, at))).toBe(units === 0n ? 0 : units > 0n ? 1 : -1);
      },
    ),
  );
});

test('throws for a year that RFC 3339 cannot write', () => {
  expect(() => formatInstant(instant('9999-12-31T23:59:59Z'), { offsetMinutes: 1 })).toThrow(RangeError);
});
