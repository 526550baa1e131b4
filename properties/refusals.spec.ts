/** Properties of REST errors: every malformed request gets the documented code of its mistake, and no 5xx. */
import fc from 'fast-check';
import { about, test } from '../fixtures/test.ts';
import { BASE64URL, bearerOf, partsOf, withLetter } from '../engine/client/altered-token.ts';
import type { Authorization } from '../engine/client/exchange.ts';
import { SOME_WINDOW } from '../engine/client/page.ts';
import { parseInstant } from '../engine/data/instant.ts';
import type { Kit } from '../engine/run/kit.ts';
import { UNAUTHENTICATED, refused, refusedWith, serverFailed } from '../engine/checks/errors.ts';
import { sendQuery, encoded, LONGEST_QUERY, rawQuery } from '../engine/run/rules/raw-request.ts';
import { askOwnPath } from '../engine/run/rules/unauthenticated.ts';
import { assertLaw, violationIn, type Violation } from './law.ts';
import { Untested } from '../engine/errors.ts';

// -- near misses ---------------------------------------------------------------------------------

const TIMES = [
  '2026-03-01T00:00:00Z',
  '2026-03-01T08:30:15.123456+05:30',
  '2024-02-29T23:59:59-08:00',
] as const;
const LETTERS = [...'0123456789:-.TZ+xW/'];

type Edit = { readonly kind: 'drop' | 'insert' | 'put'; readonly at: number; readonly letter: string };

const edits: fc.Arbitrary<Edit> = fc.record({
  kind: fc.constantFrom('drop', 'insert', 'put'),
  at: fc.nat({ max: 31 }),
  letter: fc.constantFrom(...LETTERS),
});

function apply(text: string, { kind, at, letter }: Edit): string {
  const place = at % text.length;
  const rest = text.slice(kind === 'insert' ? place : place + 1);
  return `${text.slice(0, place)}${kind === 'drop' ? '' : letter}${rest}`;
}

const FIELDS_AT_MOST = 9;

/** What a time without one of its fields, or with another number of digits in it, may look like. */
const FIELD_CHANGES: Readonly<Record<string, (field: string, separator: string) => string>> = {
  'without its first digit': (field, separator) => separator + field.slice(1),
  'with a digit more': (field, separator) => `${separator}${field}0`,
  'left out': (_, separator) => separator,
  'left out with its separator': () => '',
};

const withField = (text: string, place: number, change: string): string => {
  const fields = [...text.matchAll(/(\D?)(\d+)/g)];
  const { 0: all, 1: separator = '', 2: field = '', index } = fields[place % fields.length]!;
  return text.slice(0, index) + FIELD_CHANGES[change]!(field, separator) + text.slice(index + all.length);
};

/** Has the shape of RFC 3339 but many parsers reject it: both answers are allowed. */
const isTolerated = (text: string): boolean =>
  /[+-](1[89]|2\d):\d{2}$/.test(text) ||
  /-00:00$/.test(text) ||
  /^(0000|\d{5})/.test(text) ||
  /:60(\.\d+)?(Z|[+-])/.test(text) ||
  /^\d{4}-\d\d-\d\d[^\dT]/.test(text);

const malformedTimes = fc
  .oneof(
    fc
      .tuple(fc.constantFrom(...TIMES), fc.array(edits, { minLength: 1, maxLength: 2 }))
      .map(([text, changes]) => changes.reduce(apply, text)),
    fc
      .tuple(
        fc.constantFrom(...TIMES),
        fc.nat({ max: FIELDS_AT_MOST - 1 }),
        fc.constantFrom(...Object.keys(FIELD_CHANGES)),
      )
      .map(([text, place, change]) => withField(text, place, change)),
  )
  .filter((text) => text !== '' && parseInstant(text) === undefined && !isTolerated(text));

/** Contains at least one character that no integer has. */
const malformedIntegers = fc
  .tuple(
    fc.nat({ max: 999 }),
    fc.constantFrom('a', '.5', 'x1', ',000', '/2', 'e', 'O', 'px', 'L', '_'),
    fc.boolean(),
  )
  .map(([number, junk, before]) => (before ? `${junk}${number}` : `${number}${junk}`));

const checkRefused = async (kit: Kit, query: string, ...codes: string[]): Promise<Violation | undefined> =>
  violationIn(await sendQuery(kit, query), refusedWith(kit, ...codes));

test(
  'what is nearly RFC 3339 is refused',
  about('7.2-invalid_time_range', { needs: 'page', access: 'reads', isSupplement: true }),
  ({ kit, check }) =>
    assertLaw(kit, check, {
      cases: fc.record({ name: fc.constantFrom('from', 'to'), text: malformedTimes }),
      holds: ({ name, text }) =>
        checkRefused(kit, rawQuery(encoded({ ...SOME_WINDOW, [name]: text })), 'invalid_time_range'),
      script: ({ name, text }) => [`${name}=${text}`],
    }),
);

test(
  'what is nearly an integer is refused',
  about('7.2-invalid_request', { needs: 'page', access: 'reads', isSupplement: true }),
  ({ kit, check }) =>
    assertLaw(kit, check, {
      cases: fc.record({ name: fc.constantFrom('pageSize', 'from_id'), text: malformedIntegers }),
      holds: ({ name, text }) =>
        checkRefused(
          kit,
          rawQuery(encoded({ ...SOME_WINDOW, [name]: text })),
          'invalid_request',
          ...(name === 'pageSize' ? ['page_size_out_of_range'] : []),
        ),
      script: ({ name, text }) => [`${name}=${text}`],
    }),
);

test(
  'a page size beyond the bounds is refused',
  about('7.2-page_size_out_of_range', { needs: 'page', access: 'reads', isSupplement: true }),
  ({ kit, check }) =>
    assertLaw(kit, check, {
      // Firewalls reject the limits of 32 bits themselves.
      cases: fc.oneof(
        fc.bigInt({ min: 1001n, max: 2n ** 31n - 100n }),
        fc.bigInt({ min: 100n - 2n ** 31n, max: 0n }),
      ),
      holds: (size) =>
        checkRefused(
          kit,
          rawQuery({ ...encoded(SOME_WINDOW), pageSize: String(size) }),
          'page_size_out_of_range',
          ...(BigInt.asIntN(64, size) === size ? [] : ['invalid_request']),
        ),
      share: 0.5,
      // Numbers that become 100 or small when truncated to 32 or 64 bits.
      examples: [0n, 1001n, 100n - 2n ** 32n, 100n - 2n ** 64n, 2n ** 53n + 1n, 2n ** 63n + 100n],
      script: (size) => [`pageSize=${size}`],
    }),
);

// -- anything at all -----------------------------------------------------------------------------

const hostile = fc.oneof(
  fc.string({ maxLength: 60 }),
  fc.string({
    unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
    maxLength: 30,
  }),
  fc.constantFrom(
    '%',
    '%zz',
    '%00',
    '%ff',
    '%c0%ae',
    '\u0000',
    '../..',
    "' OR 1=1 --",
    '${jndi:x}',
    '9'.repeat(300),
  ),
  fc.integer({ min: 300, max: LONGEST_QUERY }).map((length) => 'A'.repeat(length)),
);

const pairs = fc
  .array(
    fc.tuple(
      fc.oneof(
        fc.constantFrom('from', 'to', 'pageSize', 'from_id'),
        fc.string({ minLength: 1, maxLength: 12 }),
      ),
      fc.oneof(hostile, fc.constantFrom(...TIMES)),
      fc.boolean(),
    ),
    { maxLength: 5 },
  )
  .filter((pairs) => sayPairs(pairs).length <= LONGEST_QUERY);

test(
  'no query, however odd, makes the server fail',
  about('7.2-no-unprovoked-5xx', { needs: 'page', access: 'reads', isSupplement: true }),
  ({ kit, check }) =>
    assertLaw(kit, check, {
      cases: pairs,
      holds: async (pairs) => {
        const query = `?${sayPairs(pairs)}`;
        // Firewalls count punctuation, whatever it is.
        const isOdd = pairs.some(([name, value]) => /[^\w.:+-]/.test(name + value));
        return violationIn(await sendQuery(kit, query, isOdd), serverFailed);
      },
      script: (pairs) => [`?${sayPairs(pairs)}`],
    }),
);

/** Percent-encodes all of a value, or only what a request line does not allow. */
function sayPairs(pairs: readonly (readonly [string, string, boolean])[]): string {
  const raw = (text: string): string =>
    text.replace(/[^\x21-\x7e]|[#&=?"<>\\^`{|}[\]]/gu, (char) => encodeWhole(char));
  return pairs
    .map(([name, value, plain]) => `${encodeWhole(name)}=${plain ? raw(value) : encodeWhole(value)}`)
    .join('&');
}

/** A lone surrogate has no UTF-8 encoding, so it becomes U+FFFD. */
const encodeWhole = (text: string): string => encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\ufffd'));

// -- altered tokens ------------------------------------------------------------------------------

const PARTS = ['header', 'payload', 'signature'] as const;

interface Alteration {
  readonly part: 0 | 1 | 2;
  readonly place: number;
  readonly letter: string;
}

/** Changes one letter of one part; not the last letter, which may contain padding bits. */
function alter(token: string, { part, place, letter }: Alteration): Authorization | undefined {
  const parts = partsOf(token);
  const { length } = parts[part].text;
  if (length < 2) return undefined;
  const altered = withLetter(parts[part], place % (length - 1), letter);
  const [header, payload, signature] = parts.map((old, index) => (index === part ? altered : old));
  return bearerOf([header!, payload!, signature!], `one letter of its ${PARTS[part]} changed`);
}

test(
  'a token with any letter changed is refused',
  about('5-tampered', { needs: 'page', access: 'reads late', isSupplement: true }),
  ({ kit, check }) =>
    assertLaw(kit, check, {
      cases: fc.record({
        part: fc.constantFrom(0, 1, 2, 2, 2, 2),
        place: fc.noBias(fc.nat({ max: 2_000 })),
        letter: fc.constantFrom(...BASE64URL),
      }),
      holds: async (alteration) => {
        const { text, claims } = await kit.token();
        if (!claims) throw new Untested('the access token is not a JWT, so it cannot be altered');
        const altered = alter(text, alteration);
        return altered && violationIn(await askOwnPath(kit, altered), refused(kit, UNAUTHENTICATED));
      },
      script: ({ part, place, letter }) => [
        `${PARTS[part]} with letter ${place} (modulo its length) changed to ${letter}`,
      ],
    }),
);
