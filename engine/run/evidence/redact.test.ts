import { expect, test } from '@playwright/test';
import { byTurns, fc } from '../../../fixtures/own-tests/tiers.ts';
import { createRedactor, REDACTED, TOKEN } from './redact.ts';

const percentAll = (text: string): string =>
  [...Buffer.from(text)].map((octet) => `%${octet.toString(16).padStart(2, '0')}`).join('');

const unicodeEscapes = (text: string): string =>
  text.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

const SPELLINGS: Readonly<Record<string, (secret: string) => string>> = {
  'as it is': (secret) => secret,
  'percent-encoded': encodeURIComponent,
  'percent-encoded, lower-case digits': (secret) =>
    encodeURIComponent(secret).replace(/%../g, (octet) => octet.toLowerCase()),
  'percent-encoded twice': (secret) => encodeURIComponent(encodeURIComponent(secret)),
  'every octet percent-encoded': percentAll,
  'form-encoded': (secret) => new URLSearchParams([['', secret]]).toString().slice(1),
  JSON: (secret) => JSON.stringify(secret).slice(1, -1),
  'JSON within JSON': (secret) => JSON.stringify(JSON.stringify(secret).slice(1, -1)).slice(1, -1),
  'JSON with slashes escaped': (secret) => JSON.stringify(secret).slice(1, -1).replaceAll('/', '\\/'),
  'Unicode escapes': unicodeEscapes,
  'quoted for a shell': (secret) => secret.replaceAll("'", "'\\''"),
  'HTML entities': (secret) =>
    secret.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`).replaceAll('&#38;', '&amp;'),
};

const ENCODINGS: Readonly<Record<string, (text: string) => string>> = {
  base64: (text) => Buffer.from(text).toString('base64'),
  base64url: (text) => Buffer.from(text).toString('base64url'),
  'percent-encoded base64': (text) => encodeURIComponent(Buffer.from(text).toString('base64')),
};

/** Secrets as identity providers generate them, and unusual ones. Well-formed Unicode only, because UTF-8 allows no other. */
const secret = fc.oneof(
  fc.string({ minLength: 4, maxLength: 40 }),
  fc.string({ minLength: 4, maxLength: 12, unit: 'grapheme' }),
  fc.string({
    minLength: 4,
    maxLength: 12,
    unit: fc.constantFrom('\\', '"', "'", '/', '+', ' ', '%', '&', 'a'),
  }),
  fc.base64String({ minLength: 8, maxLength: 64 }),
);

const around = fc.string({ maxLength: 12 });

for (const [name, spell] of Object.entries(SPELLINGS)) {
  test(`no secret survives ${name}`, () => {
    fc.assert(
      fc.property(secret, around, around, (text, before, after) => {
        fc.pre(!REDACTED.includes(text) && !TOKEN.includes(text));
        const redacted = createRedactor([text]).redact(`${before} ${spell(text)} ${after}`);
        return !redacted.includes(spell(text)) && !redacted.includes(text);
      }),
      { numRuns: 300 },
    );
  });
}

for (const [name, encode] of Object.entries(ENCODINGS)) {
  test(`no secret survives in ${name} of a surrounding text`, () => {
    fc.assert(
      fc.property(secret, around, around, (text, before, after) => {
        fc.pre(Buffer.byteLength(text) >= 6);
        const redacted = createRedactor([text]).redact(`x ${encode(`${before}${text}${after}`)} y`);
        return redacted === `x ${REDACTED} y`;
      }),
      { numRuns: 300 },
    );
  });
}

const PART = Buffer.from('{"alg":"none"}').toString('base64url');
const BASIC = `Basic ${Buffer.from('client:ab').toString('base64')}`;
const NOTHING_SECRET =
  'GET /v1/tenants/7d0cf1b6-2f0e-4b7c-9a55-0c8e3a1f4d20/screenings?from=2026-03-28T22%3A00%3A00Z';

const TEXTS: readonly (readonly [what: string, secrets: string[], text: string, redacted: string])[] = [
  ['mixed spellings in one text', ['p@ss w/rd"é'], 'a=p%40ss+w/rd\\"%C3%A9&b', `a=${REDACTED}&b`],
  ['the longer one of two nested secrets', ['abcd', 'xxabcdyy'], 'xxabcdyy abcd', `${REDACTED} ${REDACTED}`],
  ['an unregistered token', [], `Bearer ${PART}.${PART}.c2ln-_ next`, `Bearer ${TOKEN} next`],
  ['a token without a signature', [], `"${PART}.${PART}."`, `"${TOKEN}"`],
  ['a token without its last dot', [], `${PART}.${PART}`, TOKEN],
  ['a token with another first letter', [], `Bearer k${PART.slice(1)}.${PART}.AAAA`, `Bearer ${TOKEN}`],
  ['a token after another part', [], `kit.${PART}.${PART}.AAAA`, `kit.${TOKEN}`],
  ['Basic credentials', [], `-H 'Authorization: ${BASIC}'`, `-H 'Authorization: Basic ${REDACTED}'`],
  [
    'a short secret after its name only',
    ['a'],
    'a page&client_secret=a&x=a',
    `a page&client_secret=${REDACTED}&x=a`,
  ],
  [
    'a short secret in JSON',
    ['a'],
    '{"client_secret":"a","name":"a"}',
    `{"client_secret":"${REDACTED}","name":"a"}`,
  ],
];
for (const [what, secrets, text, redacted] of TEXTS)
  test(`removes ${what}`, () => expect(createRedactor(secrets).redact(text)).toBe(redacted));

for (const text of [
  'a basic mistake',
  'eyJust a word. Another one.',
  'client_secret=abc',
  '',
  NOTHING_SECRET,
])
  test(`leaves ${JSON.stringify(text)} unchanged`, () =>
    expect(createRedactor(['', 'a', 's3cr3t-of-the-client', 'Zm9vYmFyYmF6']).redact(text)).toBe(text));

test('removes any text like a JWT', () => {
  const part = fc.stringMatching(/^[\w-]{2,40}$/);
  fc.assert(
    fc.property(part, part, part, (header, payload, signature) => {
      const token = `eyJ${header}.${payload}.${signature}`;
      return createRedactor([]).redact(`"${token}"`) === `"${TOKEN}"`;
    }),
  );
});

test('removes a secret that was added later', () => {
  const redactor = createRedactor([]);
  expect(redactor.redact('opaque-token')).toBe('opaque-token');
  redactor.add('opaque-token');
  expect(redactor.redact('Bearer opaque-token')).toBe(`Bearer ${REDACTED}`);
});

test('redacts data at any depth, including names, and keeps its structure', () => {
  const { redactDeep } = createRedactor(['hunter22']);
  const when = new Date(0);
  expect(redactDeep({ a: ['x hunter22'], hunter22: { b: null, c: 1, d: true, e: 2n, when } })).toEqual({
    a: [`x ${REDACTED}`],
    [REDACTED]: { b: null, c: 1, d: true, e: 2n, when },
  });
});

test('no secret survives anywhere in data', () => {
  fc.assert(
    fc.property(secret, fc.jsonValue(), (text, value) => {
      fc.pre(!REDACTED.includes(text) && !TOKEN.includes(text));
      const data = { before: value, [`k${text}`]: [text, { inner: `${text}!` }] };
      const { after } = { after: createRedactor([text]).redactDeep(data) };
      const strings: string[] = [];
      JSON.stringify(after, (key, inner: unknown) => {
        strings.push(key, ...(typeof inner === 'string' ? [inner] : []));
        return inner;
      });
      return !strings.some((found) => found.includes(text));
    }),
  );
});

test('a long hostile text is redacted in bounded steps', () => {
  const { redact } = createRedactor(['\\\\\\\\"secret', 'a'.repeat(60), '%25%25%25%2525']);
  const texts = ['\\'.repeat(20_000), 'a'.repeat(20_000), '%25'.repeat(7_000), 'eyJ'.repeat(7_000)];
  for (const text of texts) expect(redact(text).length).toBeLessThanOrEqual(text.length);
});

const LARGE = 'a secret of a megabyte, and more secrets than one expression holds';
test(LARGE, byTurns(LARGE), () => {
  const long = `opaque-${'x'.repeat(1_000_000)}`;
  const many = Array.from({ length: 120 }, (_, i) => `${i}-secret-${'y'.repeat(300)}-${i}`);
  const { redact } = createRedactor([long, ...many]);
  expect(redact(`{"access_token":"${long.slice(0, 20_000)}","x":1}`)).toBe(
    `{"access_token":"${REDACTED}","x":1}`,
  );
  expect(redact(`${many[0]} and ${many[119]}`)).toBe(`${REDACTED} and ${REDACTED}`);
});
