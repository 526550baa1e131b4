/** Properties of the token endpoint: every wrong value of a parameter gets the documented error of that parameter. */
import fc from 'fast-check';
import { about, test } from '../fixtures/test.ts';
import { isClientError } from '../engine/checks/errors.ts';
import { refusedAs, refusedGrant } from '../engine/checks/token.ts';
import { isGuardRefusal } from '../engine/client/guards.ts';
import type { Exchange } from '../engine/client/exchange.ts';
import { percentEncoded } from '../engine/client/transport.ts';
import type { Judge } from '../engine/checks/mismatch.ts';
import type { RequirementId } from '../engine/requirements.ts';
import { Untested } from '../engine/errors.ts';
import { isSuspicious, readable } from '../engine/run/rules/raw-request.ts';
import { replaced } from '../engine/run/rules/wrong-credentials.ts';
import { assertLaw, violationIn } from './law.ts';

const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789-_~%&=+ ';
const credentials = fc
  .string({ unit: fc.constantFrom(...LETTERS), minLength: 3, maxLength: 24 })
  .map((text) => `x${text}x`);

/** Values that contain the right one, or are contained in it. */
const near = (right: string): string[] => [
  right.slice(1),
  // The right one at its end, also where it is trimmed.
  ` ${right}`,
  // Databases pad texts with blanks before they compare them.
  `${right} `,
  `${right}\n`,
  `${right}\u0000\u20ac`,
];

/** A parser may trim a value where the trimmed value grants no more than the right one. */
const nearButTrimmed = (right: string): string[] => [
  right.slice(0, -1),
  `x/${right}`,
  ...near(right).filter((text) => text === text.trim()),
];

/** Of other grants and products; libraries know some of them by themselves. */
const GRANTS = [
  'implicit',
  'device_code',
  'clientCredentials',
  'urn:ietf:params:oauth:grant-type:device_code',
  'urn:ietf:params:oauth:grant-type:token-exchange',
];
const SCOPES = ['offline_access', 'profile', 'read', 'admin', 'api://screenings/.default', 'screenings:read'];

/** Patterns that match every value. */
const WILDCARDS = ['%', '*'];

/** Of a query it ends the text, and adds a condition that holds for every row. */
const INJECTION = "' OR '1'='1";

/** Secrets of tutorials and of the first tests. */
const DEFAULTS = ['secret', 'test'];

/** A form that is decoded twice has the right value. */
const encodedTwice = (right: string): string => right.replace(/^./, percentEncoded);

/** The value with an accent on one letter, which accent-insensitive databases find equal; empty if it has no vowel. */
const accented = (right: string): string[] =>
  /[aeiou]/i.test(right) ? [right.replace(/[aeiou]/i, (letter) => `${letter}\u0301`.normalize())] : [];

/** The value with its first letter or digit in full width, which normalisation (NFKC) and some databases find equal. */
const widened = (right: string): string =>
  right.replace(/[a-z0-9]/i, (letter) => String.fromCharCode(letter.charCodeAt(0) + 0xfee0));

/** Firewalls count punctuation, take a value that is encoded twice for an attack, and answer control characters with any 4xx. */
const mayBeBlocked = (value: string, exchange: Exchange): boolean =>
  (isSuspicious(value) && isClientError(exchange)) ||
  (/[^\w.:+-]/.test(value) && exchange.status === 403 && isGuardRefusal(exchange));

/** A parameter of the token request, the requirement that a wrong value tests, and the expected error. */
interface Parameter {
  readonly name: 'grant_type' | 'client_id' | 'client_secret' | 'scope';
  readonly id: RequirementId;
  readonly cases: fc.Arbitrary<string>;
  readonly share: number;
  readonly judge: (value: string) => Judge;
  readonly examples: (right: string) => readonly string[];
}

// Few wrong credentials: protection against guessing may lock the client out (RFC 6749, section 2.3.1).
const TOKEN_PARAMETERS: readonly Parameter[] = [
  {
    name: 'grant_type',
    id: '7.1-unsupported_grant_type',
    cases: fc.constantFrom(...GRANTS),
    share: 0.3,
    judge: refusedGrant,
    examples: (right) => [
      ...nearButTrimmed(right),
      encodedTwice(right),
      // The right one to a server that decodes the form before it splits it.
      `${right}&x=y`,
      right.replace('_', '-'),
    ],
  },
  {
    name: 'scope',
    id: '7.1-invalid_scope',
    cases: fc.constantFrom(...SCOPES),
    share: 0.3,
    judge: () => refusedAs(400, 'invalid_scope'),
    // A dot of a pattern matches any letter; a hierarchy of names grants what stands above. Tornado reads a NUL as a
    // blank, which separates scopes.
    examples: (right) => [
      ...nearButTrimmed(right).filter((text) => !text.includes('\0')),
      `${right},x.x`,
      '*',
      right.replace('.', 'x'),
      right.split('.')[0]!,
    ],
  },
  {
    name: 'client_id',
    id: '7.1-invalid_client-id',
    cases: credentials,
    share: 0.1,
    judge: () => refusedAs(401, 'invalid_client'),
    examples: (right) => [
      right.slice(0, -1),
      ...near(right),
      ...WILDCARDS,
      // Of a query it ends the text, and makes the rest a comment.
      `${right}' -- `,
      ...accented(right),
      widened(right),
    ],
  },
  {
    name: 'client_secret',
    id: '7.1-invalid_client-secret',
    cases: credentials,
    share: 0.1,
    judge: () => refusedAs(401, 'invalid_client'),
    examples: (right) => [
      ...near(right),
      ...WILDCARDS,
      INJECTION,
      ...DEFAULTS.filter((secret) => secret !== right),
      ...accented(right),
      widened(right),
    ],
  },
];

for (const { name, id, cases, share, judge, examples } of TOKEN_PARAMETERS) {
  const guesses = name.startsWith('client_');
  test(
    `a token request with any other ${name} is refused`,
    about(id, { needs: 'token', access: guesses ? 'guesses' : 'reads', isSupplement: true }),
    async ({ kit, check }) => {
      if (name === 'client_secret' && !kit.target.clients.secondTenant)
        throw new Untested('supply clients.secondTenant: primary alone would be sent too many wrong secrets');
      const owner = name === 'client_secret' ? 'secondTenant' : 'primary';
      const valid = kit.client.validForm(owner);
      const right = valid.find(([key]) => key === name)![1];
      await assertLaw(kit, check, {
        cases,
        holds: async (value) => {
          const request = kit.client.tokenRequest(replaced(valid, name, value));
          const exchange = readable(await kit.send({ ...request, suspicious: isSuspicious(value) }));
          // Credentials of another shape may also be rejected as malformed.
          const isOther =
            mayBeBlocked(value, exchange) || (guesses && !refusedAs(400, 'invalid_request')(exchange));
          if (guesses) await kit.client.mint(owner);
          return isOther ? undefined : violationIn(exchange, judge(value));
        },
        share,
        examples: examples(right),
        script: (value) => [`${name}=${name === 'client_secret' ? '(some other secret)' : value}`],
      });
    },
  );
}
