/** Section 4.2: faults in which screenings a window selects, and in which windows are accepted. */
import { MAX_ID, parseScreening } from '../../engine/data/dataset.ts';
import {
  cutInstant,
  compareInstants,
  formatInstant,
  instant,
  parseInstant,
  roundInstant,
  shift,
  type Instant,
} from '../../engine/data/instant.ts';
import {
  answering,
  both,
  defaulting,
  emptyPage,
  header,
  html,
  onPages,
  onQuery,
  accepting,
  storedPages,
  windowOf,
  nextQuery,
} from '../run/alter.ts';
import { every, hasParameter, isAfterCursor, not, type Where } from '../run/conditions.ts';
import type { PageQuery } from '../parts.ts';
import type { ServerOptions } from '../run/start.ts';
import { TENANTS } from '../run/provisioning.ts';
import { PAGES, REFUSALS, full, theme, withoutDatasets, type Fault } from './fault.ts';
import { alterStored, endingAt, RULES, rows, screening, withAddedTo } from './rows.ts';
import type { Asked, Rules } from './rows.ts';

const { fails, failsFull, failsLater } = theme([...PAGES, '6-same-object', '7.2-body']);

const respelled = (pattern: RegExp, to: string | ((sign: string) => string)): ServerOptions =>
  rows({ read: (text) => instant(text.replace(pattern, to as string)) });

const parsed = (read: Rules['read']): ServerOptions => rows({ read });

const nextMicrosecond = (at: Instant): Instant => shift(cutInstant(at, 6), 1n, 6);

const converted = (convert: (at: Instant, name: 'from' | 'to') => Instant): ServerOptions =>
  parsed((text, name) => convert(instant(text), name));

const withFrom = (change: (at: Instant) => Instant): ServerOptions =>
  converted((at, name) => (name === 'from' ? change(at) : at));

/** Where from and to are valid, and `holds`. */
export const windowWhere =
  (holds: (from: Instant, to: Instant) => boolean): Where =>
  (_, query) => {
    const [from, to] = windowOf(query);
    return from !== undefined && to !== undefined && holds(from, to);
  };

/** Where the text of from or to matches. */
export const edgeLike =
  (spelling: RegExp): Where =>
  (_, query) =>
    ['from', 'to'].some((name) => spelling.test(query.get(name) ?? ''));

/** Includes items up to `to` where `isIncluded`. */
const includingTo = (isIncluded: (asked: Asked) => boolean): ServerOptions =>
  rows({ ends: (row, asked) => compareInstants(row.at, asked.to) <= (isIncluded(asked) ? 0 : -1) });

/** Excludes items at `from` on first pages where `isExcluded`. */
const excludingFrom = (isExcluded: (asked: Asked) => boolean): ServerOptions =>
  rows({
    begins: (row, asked) =>
      RULES.begins(row, asked) &&
      !(asked.fromId === undefined && isExcluded(asked) && compareInstants(row.at, asked.from) === 0),
  });

/** A store whose instants have microseconds; `from` or `to` is cut. */
const inMicroseconds = (parameter: 'from' | 'to') =>
  withoutDatasets(
    rows({
      exists: ({ at }) => at.fraction.length <= 6,
      read: (text, name) => (name === parameter ? cutInstant(instant(text), 6) : instant(text)),
    }),
  );

/** The width of a window, in seconds. */
const widthOf = ({ from, to }: Asked): bigint => to.seconds - from.seconds;
const isOfMinutes = (asked: Asked): boolean => widthOf(asked) > 60n && widthOf(asked) <= 3_600n;

const isMidnight = (at: Instant, midnight = 'T00:00:00Z'): boolean => formatInstant(at).endsWith(midnight);
const isEmpty = ({ from, to }: Asked): boolean => compareInstants(from, to) === 0;

const isInverted = windowWhere((from, to) => compareInstants(from, to) > 0);

const isWithinOldSecond = windowWhere(
  (from, to) => from.seconds < 0n && from.seconds === to.seconds && compareInstants(from, to) !== 0,
);

const hasOneOffset: Where = (_, query) =>
  windowOf(query).every(Boolean) && /Z$/.test(query.get('from')!) !== /Z$/.test(query.get('to')!);

const refused = (where: (from: Instant, to: Instant) => boolean, answer = '400 invalid_time_range') => {
  const isRefused = windowWhere((from, to) => compareInstants(from, to) < 0 && where(from, to));
  return answering(answer, (request, query) => {
    const isAnonymous = answer.startsWith('404') && !request.headers['authorization'];
    return !isAnonymous && isRefused(request, query);
  });
};

const misspelt = (spelling: RegExp): ServerOptions => answering('400 invalid_time_range', edgeLike(spelling));

const cursor = (change: (query: PageQuery, fromId: bigint) => Partial<PageQuery>): ServerOptions =>
  storedPages(
    () => (query, ask) =>
      ask(query.fromId === undefined ? query : { ...query, ...change(query, query.fromId) }),
  );

const now = (): bigint => BigInt(Math.floor(Date.now() / 1000));
const ARCHIVED_BEFORE = instant('2024-07-01T00:00:00Z');
const UNFINISHED = screening(TENANTS.primary, 4_400_001n, instant('2024-06-15T12:00:00.5Z'));

export const window: readonly Fault[] = [
  ...failsFull({ '4.2-window': /completed screenings only.*unfinished/ })({
    'returns unfinished screenings': {
      server: withAddedTo(TENANTS.primary, () => [UNFINISHED]),
      target: ({ dataset: _, ...target }) => ({ ...target, unfinished: [parseScreening(UNFINISHED.json)] }),
    },
  }),
  ...fails({ '4.2-content-type': /application\/json.*(text\/plain|no Content-Type)/ })({
    'pages lack Content-Type': onPages(header('content-type')),
  }),
  ...fails({ '4.2-content-type': /application\/json.*text\/html/ })({
    'pages are the HTML of a sign-in page': onPages(() => html(200, 'Sign in')),
  }),
  ...fails({ '4.2-from-required': /400/ })({
    'from defaults to the epoch': defaulting('from', () => '1970-01-01T00:00:00Z'),
  }),
  ...fails({ '4.2-to-required': /400/ })({
    'to defaults to now': defaulting('to', () => new Date().toISOString()),
  }),
  ...fails({ '4.2-from-required': /400.*200/, '4.2-to-required': /400.*200/ })({
    'without from and to a page is empty': accepting(
      'invalid_request',
      every(not(hasParameter('from')), not(hasParameter('to'))),
    ),
  }),
  ...fails({ '4.2-from-inclusive': /item \d+/ })({
    'from compared with >': excludingFrom(() => true),
    'from compared with > in windows of a minute to an hour': excludingFrom(isOfMinutes),
    'stored instants are truncated to milliseconds': rows({ at: (text) => cutInstant(instant(text), 3) }),
    'a fraction of from is rounded up to the next millisecond': withFrom((at) =>
      at.fraction.length > 3 ? shift(cutInstant(at, 3), 1n, 3) : at,
    ),
  }),
  ...failsLater({ '4.2-from-inclusive': /item \d+ at/ })({
    'from compared with > for the second tenant': full(
      excludingFrom(({ tenantId }) => tenantId === TENANTS.secondTenant),
    ),
  }),
  ...fails({ '4.2-to-exclusive': /no item at/ })({
    'to compared with <=': includingTo(() => true),
    'to compared with <= in windows of a minute to an hour': includingTo(isOfMinutes),
    'to compared with <= in pages of more than a hundred': includingTo(({ pageSize }) => pageSize > 100),
  }),
  ...fails({ '4.2-to-exclusive': /no item at/, '4.2-window': /only items in \[/ })({
    'to compared with <= after a cursor': includingTo(({ fromId }) => fromId !== undefined),
    'a window from midnight to midnight includes the following day': endingAt(({ from, to }) => {
      const isOfDays = isMidnight(from) && isMidnight(to) && compareInstants(from, to) < 0;
      return isOfDays ? shift(to, 86_400n, 0) : to;
    }),
  }),
  ...fails({ '4.2-window': /only items in \[/ })({
    'a local midnight is the midnight of UTC': respelled(/(?<=T00:00:00)[+-]\d\d:\d\d$/, 'Z'),
    'a to in the last second of a day includes the whole second': endingAt(({ to }) =>
      isMidnight(to, 'T23:59:59Z') ? shift(to, 1n, 0) : to,
    ),
    'a to in the last millisecond of a day is the end of that day': endingAt(({ to }) =>
      isMidnight(to, 'T23:59:59.999Z') ? shift(to, 1n, 3) : to,
    ),
  }),
  ...fails({ '4.2-window': /only items in \[/, '4.2-fractions': /not item/ })({
    'from is truncated to milliseconds in windows of more than a year': rows({
      begins: (row, asked) => {
        const isCut = asked.fromId === undefined && widthOf(asked) > 31_622_400n;
        return RULES.begins(row, isCut ? { ...asked, from: cutInstant(asked.from, 3) } : asked);
      },
    }),
    'a from of six digits is truncated to milliseconds': withFrom((at) =>
      at.fraction.length === 6 ? cutInstant(at, 3) : at,
    ),
    'a from of four or five digits is truncated to milliseconds': parsed((text, name) =>
      name === 'from' && /\.\d{4,5}(?!\d)/.test(text) ? cutInstant(instant(text), 3) : instant(text),
    ),
  }),
  ...fails({ '4.2-window': /on the page|number \d+/, '4.2-fractions': /item/ })({
    'ignores a fraction of more than nine digits': converted((at) =>
      at.fraction.length > 9 ? cutInstant(at, 0) : at,
    ),
    'a to one microsecond after a second is that second': converted((at, name) =>
      name === 'to' && at.fraction === '000001' ? cutInstant(at, 0) : at,
    ),
    'a from of seven digits is rounded up to the next microsecond': parsed((text, name) =>
      name === 'from' && /\.\d{7}(?!\d)/.test(text) ? nextMicrosecond(instant(text)) : instant(text),
    ),
  }),
  ...fails({
    '4.2-window': /only items in \[/,
    ...{ '4.2-fractions': /no item at/, '4.2-to-exclusive': /no item at/ },
  })({
    'a to of seven digits is rounded up to the next microsecond': parsed((text, name) =>
      name === 'to' && /\.\d{7}(?!\d)/.test(text) ? nextMicrosecond(instant(text)) : instant(text),
    ),
    'a to of ten to twelve digits is rounded up to the next microsecond': parsed((text, name) =>
      name === 'to' && /\.\d{10,}/.test(text) ? nextMicrosecond(instant(text)) : instant(text),
    ),
  }),
  ...fails({ '4.2-window': /items in \[|on the page/ })({
    'from and to are compared as text': rows({
      begins: (row, asked) =>
        asked.fromId === undefined ? row.testTime >= asked.raw.get('from')! : RULES.begins(row, asked),
      ends: (row, { raw }) => row.testTime < raw.get('to')!,
    }),
    'instants are 32-bit counters of seconds': converted(({ seconds, fraction }) => ({
      seconds: BigInt.asIntN(32, seconds),
      fraction,
    })),
    'a window that begins in the archive ends there': rows({
      begins: (row, asked) =>
        RULES.begins(row, asked) &&
        (compareInstants(asked.from, ARCHIVED_BEFORE) >= 0 || compareInstants(row.at, ARCHIVED_BEFORE) < 0),
    }),
  }),
  ...failsFull({ '4.2-window': /only items that the dataset holds/ })({
    'returns screenings that were never recorded': alterStored((page, { pageSize }) => {
      const last = page.items.at(-1);
      // Far from every id in the dataset.
      const id = (last?.id ?? 0n) + 3_000_000_000_000n;
      if (!last || page.items.length > 3 || page.items.length === pageSize) return page;
      const json = last.json.replace(/"id":\d+/, `"id":${id}`);
      return { ...page, items: [...page.items, { ...last, id, json }] };
    }),
  }),
  ...failsFull({ '4.2-window': /the dataset holds it/ })({
    'omits one screening of the dataset': rows({ exists: ({ id }) => id !== 21n }),
  }),
  ...fails({ '4.2-offsets': /items|item \d+/ })({
    'ignores the offset of from and to': respelled(/[+-]\d\d:\d\d$/, 'Z'),
    'ignores the sign of an offset with hour 00': respelled(/-(00:\d\d)$/, '+$1'),
    'adds the minutes of a negative offset instead of subtracting them': parsed((text) => {
      const minutes = /-\d\d:(\d\d)$/.exec(text)?.[1] ?? 0;
      return shift(instant(text), BigInt(-2 * 60 * Number(minutes)), 0);
    }),
    'reads an offset of five hours as four': respelled(/\+05:(\d\d)$/, '+04:$1'),
  }),
  ...fails({ '4.2-offsets': /200.*400/ })({
    'offsets beyond fourteen hours are refused': misspelt(/[+-](14:(?!00)|15:)\d*$/),
  }),
  ...fails({ '4.2-fractions': /not item|item \d+/ })({
    'from and to are truncated to milliseconds': converted((at) => cutInstant(at, 3)),
    'a fraction is a number of microseconds, however many digits it has': parsed((text) => {
      const digits = /\.(\d+)/.exec(text)?.[1] ?? '0';
      return shift({ ...instant(text), fraction: '' }, BigInt(digits), 6);
    }),
  }),
  ...fails({ '4.2-window': /only items in \[/, '4.2-fractions': /not item/ })({
    'a fraction that rounding makes a whole second is none': parsed((text) =>
      instant(text.replace(/\.9{6}[5-9]\d*/, '')),
    ),
  }),
  ...fails({ '4.2-fractions': /200.*400/ })({
    'times of more than nine digits are refused': misspelt(/\.\d{10}/),
    'times of more than 37 characters are refused': misspelt(/.{38}/),
  }),
  ...fails({ '4.2-fractions-finer': /item \d+/ })({
    'nanoseconds of from are truncated': inMicroseconds('from'),
    'nanoseconds of to are truncated': inMicroseconds('to'),
  }),
  ...fails({ '4.2-fractions-finer': /item/, '4.2-from_id': /item/ })({
    'rounds from to microseconds where there is a from_id': cursor(({ from }) => ({
      from: roundInstant(from, 6),
    })),
  }),
  ...fails({ '4.2-from_id': /(item|\d)/ })({
    'one more than the greatest from_id is the smallest': cursor((_, fromId) => ({
      fromId: fromId === MAX_ID ? -MAX_ID : fromId,
    })),
    'truncates from_id to 32 bits': cursor((_, fromId) => ({ fromId: BigInt.asIntN(32, fromId) })),
  }),
  ...fails({ '4.2-lowercase': /200.*invalid_time_range/ })({
    'lower-case t and z are refused': answering(
      '400 invalid_time_range',
      every(edgeLike(/[tz]/), (_, query) => windowOf(query)[0] !== undefined),
    ),
  }),
  ...fails({ '4.2-r1-zero-width': /200.*400 invalid_time_range/ })({
    'from equal to to is refused': answering(
      '400 invalid_time_range',
      windowWhere((from, to) => compareInstants(from, to) === 0),
    ),
  }),
  ...fails({ '4.2-r1-zero-width': /no items and no next/ })({
    'an empty window holds the items at its instant': includingTo(isEmpty),
    'an empty window holds the items at its instant where pageSize is given': includingTo(
      (asked) => isEmpty(asked) && asked.raw.has('pageSize'),
    ),
  }),
  ...fails({ '4.2-r2-inverted': /400 invalid_time_range.*200/ })({
    'to earlier than from is an empty page': answering(emptyPage, isInverted),
    'to more than 292 years earlier than from is an empty page': accepting(
      'invalid_time_range',
      windowWhere((from, to) => from.seconds - to.seconds > 2n ** 63n / 10n ** 9n),
    ),
    'to earlier than from is an empty page after a cursor': accepting('invalid_time_range', isAfterCursor),
    'fractions before 1970 are compared inversely': onQuery((query, request) => {
      if (!isWithinOldSecond(request, query)) return;
      const to = query.get('to')!;
      query.set('to', query.get('from')!);
      query.set('from', to);
    }),
  }),
  ...fails({ '4.2-r2-inverted': /400 invalid_time_range.*invalid_request/ })({
    'to earlier than from is invalid_request': answering('400 invalid_request', isInverted),
  }),
  ...fails({ '4.2-r2-inverted': /400 invalid_time_range/ })({
    'compares from and to as text where one has an offset': both(
      answering(emptyPage, every(hasOneOffset, isInverted)),
      answering(
        '400 invalid_time_range',
        every(hasOneOffset, (_, query) => query.get('to')! < query.get('from')!),
      ),
    ),
  }),
  ...fails({ '4.2-success': /200.*400/ })({
    'windows of more than ten years are refused': full(
      refused((from, to) => to.seconds - from.seconds > 315_576_000n),
    ),
    'years before 1678 are refused': refused(
      (from) => from.seconds < instant('1678-01-01T00:00:00Z').seconds,
    ),
    '31 July is refused': misspelt(/-07-31T/),
    'the years of the first century are those of the twentieth': answering(
      '400 invalid_time_range',
      (request, query) => {
        const read = (name: string) => parseInstant((query.get(name) ?? '').replace(/^00/, '19'));
        const [from, to] = [read('from'), read('to')];
        return !isInverted(request, query) && from && to ? compareInstants(from, to) > 0 : false;
      },
    ),
    'the hour that clocks skip in Berlin is the next one': refused((from, to) => {
      const read = (at: Instant): Instant =>
        formatInstant(at).startsWith('2024-03-31T02') ? shift(at, 3_600n, 0) : at;
      return compareInstants(read(from), read(to)) > 0;
    }),
  }),
  ...fails({ '4.2-success': /200.*400/ })({
    'the days that the Gregorian calendar left out are ten days later': refused((from, to) => {
      const read = (at: Instant): Instant =>
        /^1582-10-(0[5-9]|1[0-4])/.test(formatInstant(at)) ? shift(at, 864_000n, 0) : at;
      return compareInstants(read(from), read(to)) > 0;
    }),
  }),
  ...fails({ '4.2-success': /200.*404/ })({
    'a window in the future is 404': refused((from) => from.seconds > now(), '404 not_found'),
  }),
  // With the complete target file, the kit asks for such a window first.
  ...fails({ '7.2-no-unprovoked-5xx': /no 5xx.*504/ })({
    'windows of more than half a year are 504 with HTML': {
      server: answering(
        () => html(504, 'Gateway Timeout'),
        windowWhere((from, to) => to.seconds - from.seconds > 15_768_000n),
      ),
      mayTrip: [...PAGES, ...REFUSALS],
    },
  }),
  ...fails({ '4.2-r6-next-to': /next with the request's to=/ })({
    'next cuts off a lower-case z of to': nextQuery((query) =>
      query.set('to', query.get('to')!.replace(/z$/, '')),
    ),
    'next replaces a to in the future by now': nextQuery((query) => {
      if ((windowOf(query)[1]?.seconds ?? 0n) > now()) query.set('to', new Date().toISOString());
    }),
  }),
];
