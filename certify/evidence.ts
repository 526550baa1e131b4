/** A finding made into the words and commands of a report. */
import type { Exchange, RequestOut } from '../fixtures/client/exchange.ts';
import type { Finding } from '../fixtures/judge/ledger.ts';
import type { Target } from '../fixtures/target/target.ts';
import type { Failure } from './report.ts';

const BODY_EXCERPT = 600;
/** What is looked at of a body at all. */
const LONGEST_BODY = 20_000;

/** What evidence is put into words with. */
export interface Wording {
  readonly target: Target;
  /** Applied before a text is cut short: half a secret is not recognised. */
  readonly redact: (text: string) => string;
}

export function failureOf(finding: Finding, { target, redact }: Wording): Failure {
  const { complaint, exchange, counterexample, confirmed, count } = finding;
  return {
    message: `expected ${complaint.expected}, got ${complaint.received}`,
    request: exchange ? requestLine(exchange.request) : '',
    response: exchange ? responseLine(exchange, redact) : '',
    curl: exchange ? curlOf(exchange.request, target) : '',
    ...(counterexample ? { counterexample } : {}),
    ...(confirmed ? { confirmed } : {}),
    ...(count > 1 ? { count } : {}),
  };
}

function requestLine(request: RequestOut): string {
  const as =
    request.authorization.kind === 'header'
      ? `, Authorization: ${request.authorization.label}`
      : request.channel === 'rest' && request.authorization.kind === 'none'
        ? ', no Authorization'
        : '';
  const form = request.form
    ? ` with ${request.form.map(([name, value]) => `${name}=${name === 'client_secret' ? '…' : value}`).join('&')}`
    : '';
  return `${request.method} ${request.url}${form}${as}`;
}

function responseLine({ status, broken, text }: Exchange, redact: Wording['redact']): string {
  if (broken) return broken.message;
  const body = redact(text.slice(0, LONGEST_BODY)).replace(/\s+/g, ' ').trim();
  return `${status} ${body.length > BODY_EXCERPT ? `${body.slice(0, BODY_EXCERPT)}…` : body}`.trim();
}

/** In single quotes, as a POSIX shell reads them. */
const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The environment variable that holds a client's secret in the commands of a report. */
const secretVariable = (name: string): string =>
  name === 'primary' ? 'SCREENINGS_CLIENT_SECRET' : `SECRET_OF_${name}`;

function curlOf(request: RequestOut, target: Target): string {
  const parts = ['curl -i'];
  if (request.method !== 'GET' && !(request.method === 'POST' && request.form))
    parts.push(`-X ${request.method}`);
  const { authorization } = request;
  if (authorization.kind === 'client') {
    const token = authorization.client === 'primary' ? '$TOKEN' : `$TOKEN_OF_${authorization.client}`;
    parts.push(`-H "Authorization: Bearer ${token}"`);
  } else if (authorization.kind === 'header') {
    parts.push(`-H "Authorization: ${authorization.label.replaceAll('"', '')}"`);
  }
  for (const name of Object.keys(target.headers))
    parts.push(`-H "${name}: $${name.toUpperCase().replaceAll('-', '_')}"`);
  for (const [name, value] of request.form ?? []) parts.push(formField(name, value, target));
  if (request.body)
    parts.push(
      `-H ${quote(`Content-Type: ${request.headers['content-type'] ?? ''}`)} --data-raw ${quote(request.body)}`,
    );
  return [...parts, quote(request.url)].join(' ');
}

function formField(name: string, value: string, target: Target): string {
  const owner = Object.entries(target.clients).find(([, { clientSecret }]) => clientSecret === value)?.[0];
  const known = name === 'client_secret' && owner !== undefined;
  return known
    ? `--data-urlencode "${name}=$${secretVariable(owner)}"`
    : `--data-urlencode ${quote(`${name}=${value}`)}`;
}

/** Fetches $TOKEN for the curl lines of a report. */
export function tokenCommand(target: Target): string {
  const { clientId } = target.clients.primary;
  const fields = ['grant_type=client_credentials', `client_id=${clientId}`, 'scope=screenings.read'];
  const data = [
    ...fields.map((field) => `--data-urlencode ${quote(field)}`),
    '--data-urlencode "client_secret=$SCREENINGS_CLIENT_SECRET"',
  ];
  return `TOKEN=$(curl -s ${data.join(' ')} ${quote(`${target.authUrl}/oauth/token`)} | sed -E 's/.*"access_token" *: *"([^"]+)".*/\\1/')`;
}
