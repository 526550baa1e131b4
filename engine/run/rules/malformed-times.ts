/** Texts that are no RFC 3339 date-times, although lenient parsers read them as times. */

/**
 * One for from and one for to, since one parser usually serves both edges. With an odd seed the edges are exchanged,
 * so that several runs also find a parser that serves one edge.
 */
export const MALFORMED_TIMES: readonly (readonly [from: string, to: string])[] = [
  ['2026-03-01T00:00:00', '2026-03-01T00:00:00'], // no offset
  ['2026-03-01', '2026-03-01'], // a date alone, which may be read as the end of the day
  ['2026-03-01Z', '2026-03-01Z'], // as XML Schema has it
  ['2026-03-01T24:00:00Z', '2026-03-01T24:00:00Z'],
  ['2024-02-30T00:00:00Z', '2026-04-31T00:00:00Z'],
  ['2026-01-32T00:00:00Z', '2026-06-31T00:00:00Z'],
  ['2025-02-29T00:00:00Z', '2026-03-01T1:00:00Z'], // as Go has it
  ['1900-02-29T00:00:00Z', '2100-02-29T00:00:00Z'], // leap years of a lenient calendar
  ['2026-13-01T00:00:00Z', '2026-00-10T00:00:00Z'],
  ['2026-03-00T00:00:00Z', '2026-03-01T00:00Z'], // no seconds
  ['2026-03-01T00:0:00Z', '2026-03-01T00:00:0Z'],
  // To parsers of integers that end at the first letter, or skip zeros.
  ['2026-03-1xT00:00:00Z', '2026-03-001T00:00:00Z'],
  ['2026-03-01T25:00:00Z', '2026-03-01T00:60:00Z'],
  ['2026-03-01T00:00:61Z', '2026-03-01T00:00:00+24:00'],
  ['2026-03-01T00:00:00+01:60', '2026-03-01T00:00:00+01:60'],
  ['2026-03-01T00:00:00+02:0', '2026-03-01T00:00:00+02:0'],
  ['2026-03-01T00:00:00+01:00:30', '2026-03-01T00:00:00+01:00:30'], // as Python, Java and PostgreSQL have it
  ['2026-03-01T00:00:00+0100', '2026-03-01T00:00:00+01'],
  ['2026-03-01T00:00:00+1:00', '2026-03-01T00:00:00\u221201:00'],
  ['2026-03-01T00:00:00.Z', '2026-03-01T00:00:00,5Z'],
  ['2026-03-01T00:00.5Z', '2026-03-01T00.5Z'], // fractions of a minute and of an hour
  ['2026-03-01T00:00:00:000Z', '20260301T000000Z'],
  ['26-03-01T00:00:00Z', '2026-3-1T00:00:00Z'],
  ['2026-+3-01T00:00:00Z', '2026-03-01T00:00:00.5xZ'], // fields as parsers of integers read them
  ['02026-03-01T00:00:00Z', '2026-03-01T00:00:00.5'], // a fifth digit of the year; no offset after a fraction
  ['1772323200', '1772323200000'],
  ['2026-03-01T00:00:00Zjunk', '2026-03-01T00:00:00 +01:00'], // as .NET and JavaScript have it
  ['2026-03-01T00:00:00Z ', ' 2026-03-01T00:00:00Z'],
  // Times to a server that decodes a value twice, or the query before it splits it.
  ['2026-03-01T00%3A00%3A00Z', '2026-03-01T00:00:00Z&x=y'],
  ['"2026-03-01T00:00:00Z"', '"2026-03-02T00:00:00Z"'], // as JSON has it
  ['2026-03-01T00:00:00Z\n', '2026-03-02T00:00:00Z\u0000'],
  ['2026-03-01T00:00:00\u0000Z', '2026-03-01T00:00:00+01:00[Europe/Berlin]'],
  ['2026-03-01T00:00:00UTC', '2026-03-01T00:00:00 EST'],
  ['2026-03-01T00:00:00A', '2026-03-01T00.00.00Z'], // a zone of one letter, as PHP has it; dots for colons
  ['2026-03-01T00:00:00Z+01:00', '2026-03-01T12:00:00 PM'],
  ['2026/03/01T00:00:00Z', '2026-W09-7T00:00:00Z'],
  ['2026-060T00:00:00Z', '+002026-03-01T00:00:00Z'], // as JavaScript has it
  ['-2026-03-01T00:00:00Z', 'J2461101'], // PostgreSQL's Julian day
  ['now', 'now'],
  ['today', 'infinity'],
  ['epoch', 'tomorrow'], // as PostgreSQL has it
  ['now-1d/d', '2026-03-01T00:00:00Z||/d'], // as Elasticsearch has it
  ['Sun, 01 Mar 2026 00:00:00 GMT', 'Sun Mar 01 2026 00:00:00 GMT+0100'],
  ['2026-03', '2026'], // as JavaScript has it
  ['2026-03-01T00Z', '2026-03-01T00:00+01:00'], // hours, and minutes, of ISO 8601
  ['03/01/2026 00:00:00', '01.03.2026'], // as .NET and PHP have it
  ['@1772323200', '-1 day'], // as PHP has it
  ['-infinity', '1772323200.5'],
  // In the digits of other scripts.
  ['\u0662\u0660\u0662\u0666-03-01T00:00:00Z', '\uff12\uff10\uff12\uff16-03-02T00:00:00Z'],
];

/** For both edges: a server that compares them as text, before it parses them, finds a zero-width window. */
export const EQUAL_TIMES: readonly string[] = ['abc', '2026-03-01', '2026-09-31T00:00:00Z'];

/** Read leniently on the other edge, these would make the window inverted, which has the same code. */
export const ONE_EDGED = /^(1900|26-|-2026|-?infinity|epoch)/;
