/** Section 4.2: which windows are valid, and which are rejected. */
import { about, test } from '../fixtures/test.ts';
import { SOME_WINDOW, type PageQuery } from '../engine/client/page.ts';
import { refusedWith } from '../engine/checks/errors.ts';
import { isEmpty } from '../engine/checks/selection.ts';
import {
  compareInstants,
  formatInstant,
  instant,
  isMovable,
  parseInstant,
  shift,
  type Instant,
} from '../engine/data/instant.ts';
import { withWindow } from '../engine/run/combinations/factors.ts';
import { refusal, refusalOr200, refusals, checksOf, type Rule } from '../engine/run/rules/in-combinations.ts';
import { mapConcurrently } from '../engine/client/concurrency.ts';
import { sendQuery } from '../engine/run/rules/raw-request.ts';
import { sampleDataOf, variedItems, windowOf } from '../engine/run/walk/survey.ts';
import { checkWalk, walk } from '../engine/run/walk/walk.ts';

const REQUIRED = (
  [
    ['from', '4.2-from-required'],
    ['to', '4.2-to-required'],
  ] as const
).map(([name, id]): Rule => ({
  id,
  name: `400: no ${name}`,
  alike: 2,
  topic: `missing-${name}-code`,
  cases: refusals([
    refusal({ [name]: undefined }, 'invalid_request', 'invalid_time_range'),
    // Spring reads `name[]` where `name` is missing.
    refusalOr200(
      { [name]: undefined, [`${name}%5B%5D`]: encodeURIComponent(SOME_WINDOW[name]) },
      'invalid_request',
      'invalid_time_range',
    ),
    // A server may check that both are there or none, or find them equal.
    refusal({ from: undefined, to: undefined }, 'invalid_request', 'invalid_time_range'),
  ]),
}));

const ZERO_WIDTH: Rule = {
  id: '4.2-r1-zero-width',
  name: '200: zero-width windows are empty',
  alike: Infinity,
  inPlaceOf: 'window',
  cases: async (kit) => {
    const sample = await sampleDataOf(kit);
    const items = [...new Set([...sample.densestSlice.slice(0, 3), ...variedItems(sample, 6)])];
    return [...items.map(({ at }) => formatInstant(at)), SOME_WINDOW.from, '2099-01-01T00:00:00Z'].map(
      (at) => ({ alter: (request) => withWindow(request, at, at), judge: isEmpty }),
    );
  },
};

const INVERTED: Rule = {
  id: '4.2-r2-inverted',
  name: 'invalid_time_range: to earlier than from',
  alike: Infinity,
  inPlaceOf: 'window',
  cases: (kit) => {
    const { from, to } = SOME_WINDOW;
    const windows: readonly (readonly [string, string])[] = [
      [to, from],
      [formatInstant(shift(instant(from), 1n)), from],
      // Epoch seconds of opposite signs, which differ by more nanoseconds than 64 bits hold.
      ['2300-01-01T00:00:00Z', '1951-01-01T00:00:00Z'],
      [formatInstant(shift(instant(from), 1n, 0)), from],
      ['2099-01-01T00:00:00Z', '2098-12-31T23:59:59.999999Z'],
      // Before 1970: the second counts down from the epoch, but the fraction still counts up.
      ['1969-12-31T23:59:58.9Z', '1969-12-31T23:59:58.1Z'],
    ];
    return windows.map(([later, earlier]) => ({
      alter: (request) => withWindow(request, later, earlier),
      judge: refusedWith(kit, 'invalid_time_range'),
    }));
  },
};

/** Offsets at which a 64-bit nanosecond or a 32-bit second counter wraps around. */
const WRAPS = [2n ** 64n / 10n ** 9n, 2n ** 32n];

/** At least a day from the first and last representable date, so that any offset can express it. */
const WIDE: readonly (readonly [string, string])[] = [
  ['0001-01-02T00:00:00Z', '9999-12-30T00:00:00Z'],
  ['1970-01-01T00:00:00Z', '2100-01-01T00:00:00Z'],
  // With the windows below: the last day of each month of 31 days.
  ['1600-05-31T00:00:00Z', '2300-07-31T00:00:00Z'],
  ['1677-09-21T00:00:00Z', '2262-04-12T00:00:00Z'],
  ['1901-12-13T00:00:00Z', '2038-01-20T00:00:00Z'],
];

const ELSEWHERE: readonly (readonly [string, string])[] = [
  ['2000-02-29T00:00:00Z', '2024-02-29T00:00:00Z'],
  // The first and the last second that can be written; no next has to express them with another offset. If the year 1
  // is read as 1901 or 2001, the window is inverted. Rounded to milliseconds, the last one is in year 10000; finer
  // fractions are only recommended.
  ['0001-01-01T00:00:00Z', '1900-01-01T00:00:00Z'],
  ['9000-01-01T00:00:00Z', '9999-12-31T23:59:59.999999Z'],
  // Zero seconds, which is no missing value.
  ['1600-08-31T00:00:00Z', '1970-01-01T00:00:00Z'],
  ['1969-12-31T23:59:58.1Z', '1969-12-31T23:59:58.9Z'],
  ['1969-12-31T23:59:59.9Z', '1970-01-01T00:00:00.1Z'], // both are 0 s if the fraction is cut off towards zero
  ['2090-01-31T00:00:00Z', '2091-10-31T00:00:00Z'],
  // Clocks are put back between both edges, in Europe, New York, Chicago, Los Angeles and Sydney.
  ['2024-10-27T00:45:00Z', '2024-10-27T01:20:00Z'],
  ['2024-11-03T05:45:00Z', '2024-11-03T06:15:00Z'],
  ['2024-11-03T06:45:00Z', '2024-11-03T07:15:00Z'],
  ['2024-11-03T08:45:00Z', '2024-11-03T09:15:00Z'],
  ['2024-04-06T15:45:00Z', '2024-04-06T16:15:00Z'],
  // Clocks are put forward between both edges, in Berlin and in New York: the digits of `from` are skipped there.
  ['2024-03-31T02:50:00Z', '2024-03-31T03:10:00Z'],
  ['2024-03-10T02:50:00Z', '2024-03-10T03:10:00Z'],
  // From the second of two equal local hours to the first of another zone's: Auckland, Sydney, Santiago; Jerusalem,
  // Berlin, New York, Chicago, Los Angeles.
  ['2024-04-06T14:05:00Z', '2024-04-06T15:50:00Z'],
  ['2024-04-06T16:05:00Z', '2024-04-07T02:50:00Z'],
  ['2024-10-26T23:05:00Z', '2024-10-27T00:50:00Z'],
  ['2024-10-27T01:05:00Z', '2024-11-03T05:50:00Z'],
  ['2024-11-03T06:05:00Z', '2024-11-03T06:50:00Z'],
  ['2024-11-03T07:05:00Z', '2024-11-03T08:50:00Z'],
];

/** The days that the Gregorian calendar left out, which RFC 3339 has; and the last days of a leap year to come. */
const WITHOUT_ITEMS: readonly (readonly [string, string])[] = [
  ['1582-10-10T00:00:00Z', '1582-10-16T00:00:00Z'],
  ['2096-12-30T00:00:00Z', '2096-12-31T00:00:00Z'],
];
/** Pages that are cut by time may be empty and have a next. */
const EMPTY_AT_MOST = 30;

/** Days of distance from the data: a window of many years may leave out a partition or an archive, or include its `to`. */
const GAPS = [0n, 1n, 31n, 366n];

/** The window of the data moved to the first century: two-digit years are often read as years of this century. */
function inFirstCentury(first: Instant, last: Instant): (readonly [string, string])[] {
  const [from, to] = [formatInstant(first), formatInstant(last)];
  const centuries = Number(from.slice(0, 2)) * 100;
  const early = (text: string): string =>
    String(Number(text.slice(0, 4)) - centuries).padStart(4, '0') + text.slice(4);
  // Leaves out year 0, and 29 February where the early year is not a leap year.
  const areValid = [from, to].every((text) => {
    const at = parseInstant(early(text));
    return at && isMovable(at);
  });
  return areValid ? [[early(from), early(to)]] : [];
}

/** Windows that contain the data and extend far beyond it. Two pages each, so that `next` is checked too. */
test(
  '200: windows far wider than the data',
  about(['4.2-success', '4.2-window', '4.2-r6-next-to'], { access: 'reads', isSupplement: true }),
  async ({ kit }) => {
    const { items, window } = await sampleDataOf(kit);
    const later = (years: number): Instant =>
      instant(`${new Date().getUTCFullYear() + years}-01-01T00:00:00Z`);
    // The data may lie in the future or begin in year 1.
    const between = (from: Instant, to: Instant): (readonly [string, string])[] =>
      isMovable(from) && compareInstants(from, to) <= 0 ? [[formatInstant(from), formatInstant(to)]] : [];
    const first = instant(window.from);
    const wide: readonly (readonly [string, string])[] = [
      ...WIDE,
      ...between(first, later(1)),
      ...between(first, instant('9999-12-29T23:59:59.999999Z')),
      ...between(shift(first, -367n * 86_400n, 0), later(2)),
    ];
    const pageSize = Math.max(1, Math.min(50, Math.floor(items.length / 3)));
    await mapConcurrently(wide, ([from, to]) => walk(kit, { from, to, pageSize }, { maxPages: 2 }));
  },
);

/** Windows far from the data. If instants are kept in too few bits, they wrap around onto the data. */
test(
  '200: windows far from the data are empty',
  about(['4.2-success', '4.2-window'], { access: 'reads', isSupplement: true }),
  async ({ kit }) => {
    const { items } = await sampleDataOf(kit);
    const [first, last] = [items[0]!.at, items.at(-1)!.at];
    const moved = [...WRAPS, ...WRAPS.map((wrap) => -wrap)].flatMap((seconds) => {
      const [from, to] = [first, shift(last, 1n, 0)].map((at) => shift({ ...at, fraction: '' }, seconds, 0));
      return isMovable(from!) && isMovable(to!) ? [[formatInstant(from!), formatInstant(to!)] as const] : [];
    });
    const beside = GAPS.flatMap((days) => {
      const [before, after] = [shift(first, -days * 86_400n, 0), shift(last, days * 86_400n, 0)];
      return [
        ...(isMovable(before) ? [[WIDE[0]![0], formatInstant(before)] as const] : []),
        ...(isMovable(after) ? [[formatInstant(after), WIDE[0]![1]] as const] : []),
      ].filter(([from, to]) => compareInstants(instant(from), instant(to)) <= 0);
    });
    await mapConcurrently([...ELSEWHERE, ...moved, ...beside, ...inFirstCentury(first, last)], ([from, to]) =>
      kit.page({ from, to, pageSize: 100 }),
    );
  },
);

test(
  'a traversal of no screenings ends: in a window without them, and after the last one',
  about(['4.2-r5-exactly-once', '4.2-success'], { access: 'reads', isSupplement: true }),
  async ({ kit }) => {
    const last = (await sampleDataOf(kit)).items.slice(-1);
    const queries: PageQuery[] = WITHOUT_ITEMS.map(([from, to]) => ({ from, to, pageSize: 100 }));
    for (const query of [...queries, { ...windowOf(last), fromId: last[0]!.id }])
      await checkWalk(kit, query, { maxPages: EMPTY_AT_MOST }, 'no screenings');
  },
);

for (const check of [...REQUIRED, ZERO_WIDTH].flatMap(checksOf))
  test(check.title, about(check.ids, check), ({ kit }) => check.run(kit));

test(
  'zero width: one instant in two offsets gives no items',
  about('4.2-r1-zero-width', { access: 'reads' }),
  async ({ kit }) => {
    const [item] = variedItems(await sampleDataOf(kit), 1);
    const [at, elsewhere] = [formatInstant(item!.at), formatInstant(item!.at, { offsetMinutes: 330 })];
    for (const [from, to] of [
      [at, elsewhere],
      [elsewhere, at],
    ] as const) {
      kit.check('4.2-r1-zero-width', await kit.ask({ from, to }, { id: '4.2-r1-zero-width' }), isEmpty);
    }
  },
);

for (const check of checksOf(INVERTED))
  test(check.title, about(check.ids, check), ({ kit }) => check.run(kit));

test(
  'invalid_time_range: to earlier than from as an instant, though not as text',
  about('4.2-r2-inverted', { needs: 'page', access: 'reads' }),
  async ({ kit }) => {
    for (const [from, to] of [
      ['2026-03-01T06:00:00Z', '2026-03-01T10:00:00+05:00'],
      ['2026-03-01T00:30:00-01:00', '2026-03-01T01:00:00+00:15'],
    ] as const)
      kit.check(
        '4.2-r2-inverted',
        await sendQuery(kit, { from, to }),
        refusedWith(kit, 'invalid_time_range'),
      );
  },
);
