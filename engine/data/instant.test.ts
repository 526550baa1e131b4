/** Edge cases of instants; model.test.ts compares random ones with PostgreSQL. */
import { expect, test } from '@playwright/test';
import { MALFORMED_TIMES } from '../../specs/7.2-rest-errors.spec.ts';
import { formatInstant, instant, parseInstant, toDecimal } from './instant.ts';

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

test('throws for a year that RFC 3339 cannot write', () => {
  expect(() => formatInstant(instant('9999-12-31T23:59:59Z'), { offsetMinutes: 1 })).toThrow(RangeError);
});
