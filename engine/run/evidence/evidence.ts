/** Renders a finding as the text and commands of a report. */
import { spellName, type Exchange, type RequestOut } from '../../client/exchange.ts';
import { formEncode } from '../../client/transport.ts';
import { z } from 'zod';
import { counterexampleSchema, sayMismatch } from '../../checks/mismatch.ts';
import { type DeepReadonly, walkPictureSchema } from '../../checks/walk-picture.ts';
import type { Finding } from '../state/ledger.ts';
import type { Target } from '../../target/target.ts';
import { LONGEST_SPELT, TOKEN } from './redact.ts';

/** One piece of evidence against the target. Text only, secrets and tokens already redacted. */
export const failureSchema = z.object({
  message: z.string().describe('expected …, got …'),
  expected: z.string().describe('its first half'),
  received: z.string().describe('its second half'),
  request: z.string().describe('GET http://… as it was sent; empty if no single request shows the failure'),
  response: z.string().describe('200 …: the status and the telling part of the answer'),
  curl: z.string().describe('shows the failure from a shell, with $TOKEN in place of the token'),
  counterexample: counterexampleSchema.optional(),
  picture: walkPictureSchema.optional().describe('the two pages around the break of a walk'),
  only: z.array(z.string()).optional().describe('the minimal failing combination'),
  sameAs: z.string().optional().describe('an earlier, different request with the same octets in its answer'),
  requestId: z.string().optional().describe('what went out as x-request-id, and when'),
  confirmed: z.string().optional().describe('how often it failed when sent again: 3 of 3, or flaky, 1 of 3'),
  count: z
    .number()
    .int()
    .optional()
    .describe('how many findings of the same kind it stands for; 1 where absent'),
});

export type Failure = DeepReadonly<z.infer<typeof failureSchema>>;

const BODY_EXCERPT = 600;
/** The longest part of a body that is redacted and shown: redaction is slow. */
const LONGEST_BODY = 5_000;

/** The context in which evidence is rendered. */
export interface Wording {
  readonly target: Target;
  /** Applied before truncation: half a secret would not be recognised. */
  readonly redact: (text: string) => string;
}

const OTHERS_SAID = 20;

/** Names the other values that failed alike: a reader looks for each of them. */
function sayOthers({ value, values }: Finding): string {
  const others = values.filter((other) => other !== value);
  if (others.length === 0) return '';
  const more = others.length > OTHERS_SAID ? ` and ${others.length - OTHERS_SAID} more` : '';
  return `; alike ${others.slice(0, OTHERS_SAID).join(', ')}${more}`;
}

/** `before`: an earlier exchange with the same answer. */
export function failureOf(finding: Finding, { target, redact }: Wording, before?: Exchange): Failure {
  const { exchange, counterexample, only = [], confirmed, count } = finding;
  const mismatch = { ...finding.mismatch, received: finding.mismatch.received + sayOthers(finding) };
  return {
    message: sayMismatch(mismatch),
    expected: mismatch.expected,
    received: mismatch.received,
    request: exchange ? requestLine(exchange.request, { target, redact }) : '',
    response: exchange ? responseLine(exchange, redact) : '',
    curl: exchange ? curlOf(exchange.request, { target, redact }) : '',
    ...(counterexample ? { counterexample } : {}),
    ...(mismatch.picture ? { picture: mismatch.picture } : {}),
    ...(before ? { sameAs: requestLine(before.request, { target, redact }) } : {}),
    ...(exchange?.requestId ? { requestId: loggedAs(exchange) } : {}),
    ...(only.length > 0 ? { only } : {}),
    ...(confirmed ? { confirmed } : {}),
    ...(count > 1 ? { count } : {}),
  };
}

const loggedAs = ({ requestId, startedAtMs }: Exchange): string =>
  `${requestId} at ${new Date(startedAtMs).toISOString()}`;

/** Headers that only this request has. */
const furtherHeaders = ({ headers, form, body }: RequestOut, target: Target): [string, string][] =>
  Object.entries(headers).filter(
    ([name, value]) =>
      !(name === 'content-type' && (form ?? body) !== undefined) &&
      `${name}: ${value}` !== 'accept: application/json' &&
      !(name in target.headers),
  );

/** Recorded requests may name none of their headers. */
const lacksAccept = ({ isAnonymous, headers }: RequestOut): boolean =>
  isAnonymous === true && headers['accept'] === undefined;

function requestLine(request: RequestOut, { target, redact }: Wording): string {
  const as =
    request.authorization.kind === 'header'
      ? `, Authorization: ${request.authorization.label}`
      : request.channel === 'rest' && request.authorization.kind === 'none'
        ? ', no Authorization'
        : '';
  const form = request.form?.map(
    ([name, value]) =>
      `${name}=${legible(name === 'client_secret' ? value.replace(/\S(.*\S)?/s, '…') : value)}`,
  );
  const body = form?.join('&') ?? (request.body === undefined ? undefined : cut(redact(request.body)));
  const sent = body === undefined ? '' : ` with ${request.headers['content-type'] ?? 'no type'}: ${body}`;
  const more = [
    ...furtherHeaders(request, target).map(([name, value]) => `, ${name}: ${value}`),
    ...(request.headerNames ? [`, header names ${request.headerNames}`] : []),
    ...(request.isAnonymous ? [', no User-Agent, no X-Request-Id'] : []),
    ...(lacksAccept(request) ? [', no Accept'] : []),
    ...(request.isPercentEncoded ? [', unreserved characters percent-encoded'] : []),
    ...(request.isChunked ? [', in chunks'] : []),
    ...(request.isHttp2 ? [', over HTTP/2'] : []),
  ];
  return `${request.method} ${request.url}${sent}${as}${more.join('')}`;
}

/** Percent-encodes what a report does not show: blanks at the ends, and control characters. */
const legible = (value: string): string =>
  value.replace(/^\s+|\s+$|\p{Cc}/gu, (hidden) => encodeURIComponent(hidden));

const cut = (text: string): string => (text.length > BODY_EXCERPT ? `${text.slice(0, BODY_EXCERPT)}…` : text);

function responseLine({ status, transportError, text }: Exchange, redact: Wording['redact']): string {
  if (transportError) return transportError.message;
  const isCut = text.length > LONGEST_BODY;
  // The end of the truncated text may be half a secret.
  const redacted = redact(text.slice(0, LONGEST_BODY));
  const body = (isCut ? redacted.slice(0, -LONGEST_SPELT) : redacted).replace(/\s+/g, ' ').trim();
  return `${status} ${isCut && body.length <= BODY_EXCERPT ? `${body}…` : cut(body)}`.trim();
}

/** The environment variable for a client's secret in commands: the one of the target file, if any. */
export const secretVariable = ({ variables }: Target, name: string): string =>
  variables?.[`clients.${name}.clientSecret`] ??
  (name === 'primary' ? 'SCREENINGS_CLIENT_SECRET' : `SECRET_OF_${name}`);

/** The shell variable for a client's token in commands. */
export const tokenVariable = (name: string): string => (name === 'primary' ? 'TOKEN' : `TOKEN_OF_${name}`);

/** Options of curl that every request to the target needs: its CA, its headers. */
export const targetOptions = ({ caFile, headers, variables }: Target): string[] => [
  ...(caFile ? [`--cacert ${shellWord(caFile)}`] : []),
  ...Object.keys(headers).map((name) => {
    const variable =
      variables?.[`headers.${name.toLowerCase()}`] ?? name.toUpperCase().replace(/[^A-Z0-9_]/g, '_');
    return `-H "${withinDoubleQuotes(name)}: $${variable}"`;
  }),
];

function curlOf(request: RequestOut, { target, redact }: Wording): string {
  // Without --globoff curl interprets brackets and braces in a URL as patterns.
  const parts = ['curl -sS -i --globoff'];
  if (request.method !== 'GET' && !(request.method === 'POST' && request.form))
    parts.push(`-X ${quote(request.method).replace(/^'([A-Z]+)'$/, '$1')}`);
  const { authorization, headerNames } = request;
  const named = (name: string): string => (headerNames ? spellName(name.toLowerCase(), headerNames) : name);
  if (authorization.kind === 'client') {
    parts.push(`-H "${named('Authorization')}: Bearer $${tokenVariable(authorization.client)}"`);
  } else if (authorization.kind === 'header') {
    const value = authorization.shell ?? withinDoubleQuotes(authorization.label);
    parts.push(`-H "${named('Authorization')}: ${value}"`);
  }
  if (request.isAnonymous) parts.push("-A ''");
  if (lacksAccept(request)) parts.push("-H 'Accept:'");
  if (request.isHttp2) parts.push('--http2');
  if (request.isChunked) parts.push("-H 'Transfer-Encoding: chunked'");
  parts.push(...targetOptions(target));
  for (const [name, value] of furtherHeaders(request, target))
    parts.push(`-H ${quoteWith(redact(`${named(name)}: ${value}`), TOKEN)}`);
  for (const [name, value] of request.form ?? [])
    parts.push(
      request.isPercentEncoded && name !== 'client_secret'
        ? `--data-raw ${quote(formEncode([[name, value]], true))}`
        : redact(value) === TOKEN
          ? `--data-urlencode "${name}=${TOKEN}"`
          : formField(name, value, target),
    );
  if (request.body)
    parts.push(
      `-H ${quote(`Content-Type: ${request.headers['content-type'] ?? ''}`)} --data-raw ${quotedBody(request.body, target)}`,
    );
  // A redacted token in the URL becomes a shell variable.
  return [...parts, quoteWith(redact(request.url), TOKEN)].join(' ');
}

/** Replaces the secret of the primary client by its shell variable. */
const quotedBody = (body: string, target: Target): string =>
  body
    .split(target.clients.primary.clientSecret)
    .map(quote)
    .join(`"$${secretVariable(target, 'primary')}"`);

function formField(name: string, value: string, target: Target): string {
  const clients = Object.entries(target.clients);
  const [owner = '', { clientSecret = '' } = {}] =
    clients.find(([, client]) => value.includes(client.clientSecret)) ?? [];
  const variable = `$${secretVariable(target, owner)}`;
  if (name === 'client_secret' && owner !== '' && value === clientSecret)
    return `--data-urlencode "${name}=${variable}"`;
  // No argument of a command can hold a NUL.
  const [option, encode] = value.includes('\0')
    ? ['--data-raw', encodeURIComponent]
    : ['--data-urlencode', (text: string) => text];
  const pieces = owner === '' ? [value] : value.split(clientSecret);
  return `${option} ${quoteWith(`${encodeURIComponent(name)}=${pieces.map(encode).join(variable)}`, variable)}`;
}

/** The commands that fetch the tokens used in these curl lines, one per client. */
export function tokenCommands(target: Target, curls: readonly string[]): string[] {
  const named = new Set(curls.flatMap((curl) => curl.match(/\$TOKEN\w*/g) ?? []));
  return Object.entries(target.clients)
    .filter(([name]) => named.has(`$${tokenVariable(name)}`))
    .map(([name, { clientId }]) => {
      const parts = [
        ...targetOptions(target),
        `--data-urlencode 'grant_type=client_credentials'`,
        `--data-urlencode ${quote(`client_id=${clientId}`)}`,
        `--data-urlencode "client_secret=$${secretVariable(target, name)}"`,
        `--data-urlencode 'scope=screenings.read'`,
        quote(`${target.authUrl}/oauth/token`),
      ];
      return `${tokenVariable(name)}=$(curl -s ${parts.join(' ')} | sed -nE 's/.*"access_token" *: *"([^"]+)".*/\\1/p')`;
    });
}

// -- words of a POSIX shell: any text, also hostile text of a target, stays literal and on one line ----

/** Characters that would end the line, or be invisible in it. */
const UNPRINTABLE =
  /[\u0000-\u001f\u007f-\u00a0\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]|\p{Cs}/gu;

/**
 * One word in single quotes. Unprintable characters are written octet by octet as in `$'\x0a'` (POSIX.1-2024,
 * 2.2.4; older bash, zsh, ksh and busybox support it too).
 */
export function quote(text: string): string {
  const plain = `'${text.replaceAll("'", `'\\''`)}'`;
  return plain.replace(UNPRINTABLE, (character) => {
    const octets = [...Buffer.from(character)].map((octet) => `\\x${octet.toString(16).padStart(2, '0')}`);
    return `'$'${octets.join('')}''`;
  });
}

/** Unquoted if the shell interprets nothing in it. */
export const shellWord = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : quote(text));

/** Quotes text that contains a variable: `quoteWith(url, '$TOKEN')` leaves `$TOKEN` to the shell. */
const quoteWith = (text: string, variable: string): string =>
  text
    .split(variable)
    .map((piece) => (piece === '' ? '' : quote(piece)))
    .join(`"${variable}"`) || "''";

/** Escapes text for use within double quotes. */
const withinDoubleQuotes = (text: string): string =>
  text.replace(UNPRINTABLE, '?').replace(/["$`\\]/g, '\\$&');

/** The earlier page with the same body whose request differs only in one parameter or in the path. */
export function sameAnswerBefore(
  exchange: Exchange | undefined,
  pages: readonly Exchange[],
): Exchange | undefined {
  if (!exchange || exchange.status !== 200 || exchange.request.method !== 'GET') return undefined;
  const asked = partsOf(exchange);
  return pages.find(
    (before) =>
      before.startedAtMs + before.durationMs <= exchange.startedAtMs &&
      differences(asked, partsOf(before)) === 1 &&
      before.text === exchange.text,
  );
}

function partsOf({ request }: Exchange): ReadonlyMap<string, string> {
  const { pathname, searchParams } = new URL(request.url);
  return new Map([['path', pathname.toLowerCase()], ...searchParams]);
}

const differences = (a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): number =>
  [...new Set([...a.keys(), ...b.keys()])].filter((name) => a.get(name) !== b.get(name)).length;
