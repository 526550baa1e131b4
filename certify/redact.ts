/**
 * The one writer that all evidence passes through: no secret and no token leaves the kit, in any spelling.
 * Redact before cutting a text short: half a secret is not recognised.
 */
import type { Report } from './report.ts';

export const REDACTED = '[redacted]';
export const TOKEN = '$TOKEN';

export interface Redactor {
  /** The text without any known secret, and without anything that looks like a JWT. */
  redact(text: string): string;
  /** Every string in plain data redacted, names of members included unless they are `fixed`; the rest as it is. */
  redactDeep<T>(value: T, names?: 'fixed'): T;
  /** One more secret to keep, such as an access token that is no JWT. */
  add(secret: string): void;
}

/** Shorter ones stand in ordinary words by chance: they are removed only where their name stands before them. */
const SHORTEST_ANYWHERE = 4;

/** Parts joined by dots. It matches wherever a part begins, so that no text is scanned twice. */
const DOTTED = /[\w-]+(?:(?:\.|%2e)[\w-]*)*/gi;

/**
 * A JWT is three base64url parts of which the first is a JSON object (`eyJ`); the third may be empty, or
 * cut off together with its dot.
 */
function withoutTokens(run: string): string {
  const pieces = run.split(/(\.|%2e)/i);
  for (let index = 0; index + 2 < pieces.length; index += 2) {
    const start = pieces[index]!.indexOf('eyJ');
    const payload = pieces[index + 2]!;
    if (start < 0 || payload === '') continue;
    const parts = index + 4 < pieces.length ? 5 : payload.startsWith('eyJ') ? 3 : 0;
    if (parts > 0) pieces.splice(index, parts, pieces[index]!.slice(0, start) + TOKEN);
  }
  return pieces.join('');
}

const BASIC = /\b(basic(?:\s|%20|\+)+)([\w+/-]+(?:=|%3d)*)/gi;

/** Whether it is the base64 of `name:secret`. */
const isCredentials = (encoded: string): boolean => Buffer.from(encoded, 'base64').includes(':');

const HTML_NAMES: Readonly<Record<string, string>> = {
  '&': 'amp',
  '<': 'lt',
  '>': 'gt',
  '"': 'quot',
  "'": 'apos',
};

const JSON_LETTERS: Readonly<Record<string, string>> = {
  '\n': 'n',
  '\r': 'r',
  '\t': 't',
  '\b': 'b',
  '\f': 'f',
};

const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');

/** Hexadecimal digits in either case. */
const hex = (value: number, length: number): string =>
  value
    .toString(16)
    .padStart(length, '0')
    .replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);

/** How often a spelling may be escaped again. Bounded, so that no hostile text takes long to search. */
const ESCAPED = '\\\\{1,8}';
const PERCENT = '%(?:25){0,4}';

/** A pattern for one character however a URL, a form, JSON, a shell or HTML may spell it. */
function characterPattern(character: string): string {
  const octets = [...Buffer.from(character)];
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  const code = character.codePointAt(0)!;
  const patterns = [
    literal(character),
    octets.map((octet) => PERCENT + hex(octet, 2)).join(''),
    units.map((unit) => `${ESCAPED}u${hex(unit, 4)}`).join(''),
    `&#(?:0{0,6}${code}|[xX]0{0,6}${hex(code, 1)});`,
  ];
  if (character === ' ') patterns.push('\\+');
  if (character === "'") patterns.push(`'${ESCAPED}''`);
  if ('"/'.includes(character)) patterns.push(ESCAPED + literal(character));
  if (character in JSON_LETTERS) patterns.push(`${ESCAPED}${JSON_LETTERS[character]}`);
  if (character in HTML_NAMES) patterns.push(`&${HTML_NAMES[character]};`);
  return `(?:${patterns.join('|')})`;
}

/** A run of backslashes, doubled up to three times or escaped one by one. */
function backslashPattern(length: number): string {
  const one = `(?:${PERCENT}5[cC]|${ESCAPED}u005[cC]|&#(?:0{0,6}92|[xX]0{0,6}5[cC]);)`;
  return `(?:\\\\{${length},${8 * length}}|${one}{${length},${8 * length}})`;
}

/** The secret spelt in any mixture of those ways. */
const secretPattern = (secret: string): string =>
  [...secret.matchAll(/\\+|[^\\]/gu)]
    .map(([piece]) => (piece.startsWith('\\') ? backslashPattern(piece.length) : characterPattern(piece)))
    .join('');

/**
 * What the base64 of any text that holds the secret must hold, one for each of the three ways in which its
 * octets fall on base64's digits. The first and the last digit may mix with neighbours and are left out.
 */
function base64Cores(secret: string): readonly string[] {
  const octets = Buffer.from(secret);
  return [0, 1, 2].flatMap((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), octets]).toString('base64url');
    const bits = 8 * (before + octets.length);
    const core = encoded.slice(Math.ceil((8 * before) / 6), Math.floor(bits / 6));
    return core.length >= SHORTEST_ANYWHERE ? [core] : [];
  });
}

/** Both alphabets, and the percent-encoded spellings of the standard one's signs. */
const base64Pattern = (core: string): string =>
  [...core]
    .map((digit) =>
      digit === '-' ? '(?:[-+]|%2[bB])' : digit === '_' ? '(?:[_/]|\\\\/|%2[fF])' : literal(digit),
    )
    .join('');

const BASE64_RUN = /(?:[A-Za-z0-9+/_-]|\\\/|%2[bBfF])+(?:=|%3[dD])*/g;

/** Where a short secret is named: `client_secret=…`, `"client_secret":"…"`. */
const named = (pattern: string): string =>
  `(?<=(?:secret|password|token)["'\\\\]{0,4}\\s{0,4}[=:]\\s{0,4}["'\\\\]{0,4})${pattern}(?![\\w%])`;

/**
 * Removes the secrets given and every token. Empty secrets are ignored.
 * A secret of fewer than 4 characters is removed where `secret=`, `password=` or `token=` stands before it,
 * and from Basic credentials, which are removed in any case.
 */
export function createRedactor(secrets: Iterable<string>): Redactor {
  const known = new Set<string>();
  let plain: RegExp | undefined;
  let encoded: RegExp | undefined;

  function compile(): void {
    // The longest first: a secret within another must not break the other up.
    const longestFirst = [...known].sort((a, b) => b.length - a.length);
    const union = (patterns: readonly string[], flags: string) =>
      patterns.length > 0 ? new RegExp(patterns.join('|'), flags) : undefined;
    plain = union(
      longestFirst.map((secret) =>
        secret.length < SHORTEST_ANYWHERE ? named(secretPattern(secret)) : secretPattern(secret),
      ),
      'gu',
    );
    encoded = union(longestFirst.flatMap(base64Cores).map(base64Pattern), 'u');
  }

  function redact(text: string): string {
    let result = text.replace(DOTTED, withoutTokens);
    if (plain) result = result.replace(plain, REDACTED);
    result = result.replace(BASIC, (whole, scheme: string, encoded: string) =>
      isCredentials(encoded) ? scheme + REDACTED : whole,
    );
    return encoded ? result.replace(BASE64_RUN, (run) => (encoded!.test(run) ? REDACTED : run)) : result;
  }

  function redactDeep<T>(value: T, names?: 'fixed'): T {
    if (typeof value === 'string') return redact(value) as T;
    if (Array.isArray(value)) return value.map((item: unknown) => redactDeep(item, names)) as T;
    if (value === null || typeof value !== 'object') return value;
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [
        names === 'fixed' ? name : redact(name),
        redactDeep(member as unknown, names),
      ]),
    ) as T;
  }

  function add(secret: string): void {
    if (secret === '' || known.has(secret)) return;
    known.add(secret);
    compile();
  }

  for (const secret of secrets) add(secret);
  return { redact, redactDeep, add };
}

/**
 * The report without secrets. What the kit fixed beforehand (ids, statuses, classes, titles, hints) stays as
 * it is: a secret that happens to be a word such as `core` must not make the report unreadable.
 */
export function redactReport(report: Report, { redact, redactDeep }: Redactor): Report {
  const { kit, startedAt, verdict, selection, classes, requirements, evidence, ...texts } = report;
  return {
    ...redactDeep(texts, 'fixed'),
    ...{ kit, startedAt, verdict, classes },
    ...(selection && { selection }),
    evidence: { ...evidence, seen: redactDeep(evidence.seen), laws: redactDeep(evidence.laws) },
    requirements: requirements.map(({ reason, failures, ...fixed }) => ({
      ...fixed,
      ...(reason !== undefined && { reason: redact(reason) }),
      failures: failures.map(({ counterexample, ...failure }) => ({
        ...redactDeep(failure, 'fixed'),
        ...(counterexample && { counterexample: redactDeep(counterexample) }),
      })),
    })),
  };
}
