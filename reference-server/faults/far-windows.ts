/** Section 4.2: windows beyond the range of a store or a language, and fractions of unusual length. */
import { compareInstants, instant, shift, type Instant } from '../../engine/data/instant.ts';
import { answering, defaulting, windowOf, nextQuery } from '../run/alter.ts';
import type { ServerOptions } from '../run/start.ts';
import { PAGES, pageFaults, tripping, type Fault } from './fault.ts';
import { RULES, rows } from './rows.ts';

const DEFAULT_SIZE = { mayTrip: ['4.2-r6-next-pageSize', '2.4-full-pages'] } as const;

/** Reads an instant as a signed counter of `bits` bits, in units of 10^-digits seconds; it wraps around. */
const wrapped =
  (bits: bigint, digits: number) =>
  (text: string): Instant => {
    const at = instant(text);
    const count =
      at.seconds * 10n ** BigInt(digits) + BigInt(at.fraction.padEnd(digits, '0').slice(0, digits) || '0');
    return shift({ seconds: 0n, fraction: '' }, BigInt.asIntN(Number(bits), count), digits);
  };

const refused = (where: (from: Instant, to: Instant) => boolean, answer = '400 invalid_time_range') =>
  answering(answer, (query, { headers }) => {
    const [from, to] = windowOf(query);
    const isAnonymous = answer.startsWith('404') && !headers['authorization'];
    return !!from && !!to && compareInstants(from, to) < 0 && !isAnonymous && where(from, to);
  });

const misspelt = (spelling: RegExp): ServerOptions =>
  answering('400 invalid_time_range', (query) =>
    ['from', 'to'].some((name) => spelling.test(query.get(name) ?? '')),
  );

/** Windows are compared as a clock on the wall shows them. */
const onWallClock = (timeZone: string): ServerOptions => {
  const wall = ({ seconds }: Instant): string =>
    new Date(Number(seconds) * 1000).toLocaleString('sv', { timeZone });
  return refused((from, to) => to.seconds - from.seconds < 86_400n && wall(from) > wall(to));
};

const ARCHIVED_BEFORE = instant('2024-07-01T00:00:00Z');

const now = (): bigint => BigInt(Math.floor(Date.now() / 1000));

export const farWindows: readonly Fault[] = [
  ...pageFaults({ '4.2-window': /items in \[|on the page/ })({
    'instants are counted in 64 bits of nanoseconds': rows({ read: wrapped(64n, 9) }),
    'instants are counted in 32 bits of seconds': rows({
      read: (text) => ({ ...wrapped(32n, 0)(text), fraction: instant(text).fraction }),
    }),
  }),
  ...pageFaults({ '4.2-window': /items in \[/ })({
    'years below 100 are years of our time': rows({
      read: (text) => instant(text.replace(/^00(?=\d\d-)/, '20')),
    }),
  }),
  ...pageFaults({ '4.2-window': /on the page/ })({
    'a window that begins in the archive ends there': rows({
      begins: (row, asked) =>
        RULES.begins(row, asked) &&
        (compareInstants(asked.from, ARCHIVED_BEFORE) >= 0 || compareInstants(row.at, ARCHIVED_BEFORE) < 0),
    }),
  }),
  ...tripping(
    { '7.2-no-unprovoked-5xx': /no 5xx/ },
    { mayTrip: [...PAGES, '7.2-body'] },
  )({
    'a to on the last day that can be written is a crash: 500': answering(
      '500 internal_error',
      (query) => query.get('to')?.startsWith('9999-12-31') === true,
    ),
  }),
  ...pageFaults(
    { '4.2-success': /200.*400/ },
    { bare: false },
  )({
    'windows of more than ten years are refused': refused(
      (from, to) => to.seconds - from.seconds > 315_576_000n,
    ),
  }),
  ...pageFaults({ '4.2-success': /200.*400/ })({
    'years before 1678 are refused': refused(
      (from) => from.seconds < instant('1678-01-01T00:00:00Z').seconds,
    ),
    'windows are compared in the local time of Berlin': onWallClock('Europe/Berlin'),
    'windows are compared in the local time of New York': onWallClock('America/New_York'),
    'the first day of the year 1 is refused': misspelt(/^0001-01-01/),
    'a year of a whole century never has a 29 February': misspelt(/^\d\d00-02-29/),
  }),
  ...pageFaults({ '4.2-success': /200.*404/ })({
    'a window that lies in the future is 404': refused((from) => from.seconds > now(), '404 not_found'),
  }),
  ...pageFaults({ '4.2-r6-next-to': /next with the request's to=/ })({
    'a to in the future is now in next': nextQuery((query) => {
      if ((windowOf(query)[1]?.seconds ?? 0n) > now()) query.set('to', new Date().toISOString());
    }),
  }),
  ...tripping(
    { '4.2-pageSize-default': /the 100 items that pageSize=100 gives.*99 items/ },
    DEFAULT_SIZE,
  )({
    'the default page size is 99': defaulting('pageSize', () => '99'),
  }),
  ...tripping({ '4.2-fractions': /200.*400/ })({
    'times of more than nine digits are refused': misspelt(/\.\d{10}/),
  }),
  ...pageFaults({ '4.2-fractions': /200.*400/ })({
    'times of two digits are refused': misspelt(/\.\d\d(Z|[+-])/),
  }),
  ...pageFaults({ '4.2-fractions': /item \d+/ })({
    'a fraction is a number of microseconds, however many digits it has': rows({
      read: (text) => {
        const digits = /\.(\d+)/.exec(text)?.[1] ?? '0';
        return shift({ ...instant(text), fraction: '' }, BigInt(digits), 6);
      },
    }),
  }),
];
