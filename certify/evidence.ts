/** A finding made into the words and commands of a report. */
import type { Exchange, RequestOut } from '../fixtures/client/exchange.ts';
import type { Finding } from '../fixtures/run/ledger.ts';
import type { Target } from '../fixtures/target/target.ts';
import { TOKEN } from './redact.ts';
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
  const { mismatch, exchange, counterexample, confirmed, count } = finding;
  return {
    message: `expected ${mismatch.expected}, got ${mismatch.received}`,
    request: exchange ? requestLine(exchange.request) : '',
    response: exchange ? responseLine(exchange, redact) : '',
    curl: exchange ? curlOf(exchange.request, { target, redact }) : '',
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

function responseLine({ status, transportError, text }: Exchange, redact: Wording['redact']): string {
  if (transportError) return transportError.message;
  const body = redact(text.slice(0, LONGEST_BODY)).replace(/\s+/g, ' ').trim();
  return `${status} ${body.length > BODY_EXCERPT ? `${body.slice(0, BODY_EXCERPT)}…` : body}`.trim();
}

/** In single quotes, as a POSIX shell reads them. */
const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The environment variable that holds a client's secret in the commands of a report. */
const secretVariable = (name: string): string =>
  name === 'primary' ? 'SCREENINGS_CLIENT_SECRET' : `SECRET_OF_${name}`;

/** The shell variable that stands for a client's token in the commands of a report. */
const tokenVariable = (name: string): string => (name === 'primary' ? 'TOKEN' : `TOKEN_OF_${name}`);

const headerOptions = (target: Target): string[] =>
  Object.keys(target.headers).map((name) => `-H "${name}: $${name.toUpperCase().replaceAll('-', '_')}"`);

function curlOf(request: RequestOut, { target, redact }: Wording): string {
  const parts = ['curl -i'];
  if (request.method !== 'GET' && !(request.method === 'POST' && request.form))
    parts.push(`-X ${request.method}`);
  const { authorization } = request;
  if (authorization.kind === 'client') {
    parts.push(`-H "Authorization: Bearer $${tokenVariable(authorization.client)}"`);
  } else if (authorization.kind === 'header') {
    parts.push(`-H "Authorization: ${authorization.shell ?? authorization.label}"`);
  }
  parts.push(...headerOptions(target));
  for (const [name, value] of request.form ?? []) parts.push(formField(name, value, target));
  if (request.body)
    parts.push(
      `-H ${quote(`Content-Type: ${request.headers['content-type'] ?? ''}`)} --data-raw ${quotedBody(request.body, target)}`,
    );
  const url = redact(request.url);
  // A token in the URL is a variable by now, and has to be one for the shell.
  return [...parts, url.includes(TOKEN) ? `"${url}"` : quote(url)].join(' ');
}

/** With the secret of the primary client as the variable that holds it. */
function quotedBody(body: string, target: Target): string {
  const { clientSecret } = target.clients.primary;
  return quote(body)
    .split(clientSecret)
    .join(`'"$${secretVariable('primary')}"'`);
}

function formField(name: string, value: string, target: Target): string {
  const owner = Object.entries(target.clients).find(([, { clientSecret }]) => clientSecret === value)?.[0];
  const known = name === 'client_secret' && owner !== undefined;
  return known
    ? `--data-urlencode "${name}=$${secretVariable(owner)}"`
    : `--data-urlencode ${quote(`${name}=${value}`)}`;
}

/** The commands that fetch the tokens these curl lines name, one for each client. */
export function tokenCommands(target: Target, curls: readonly string[]): string[] {
  const named = new Set(curls.flatMap((curl) => curl.match(/\$TOKEN\w*/g) ?? []));
  return Object.entries(target.clients)
    .filter(([name]) => named.has(`$${tokenVariable(name)}`))
    .map(([name, { clientId }]) => {
      const parts = [
        ...headerOptions(target),
        `--data-urlencode 'grant_type=client_credentials'`,
        `--data-urlencode ${quote(`client_id=${clientId}`)}`,
        `--data-urlencode "client_secret=$${secretVariable(name)}"`,
        `--data-urlencode 'scope=screenings.read'`,
        quote(`${target.authUrl}/oauth/token`),
      ];
      return `${tokenVariable(name)}=$(curl -s ${parts.join(' ')} | sed -nE 's/.*"access_token" *: *"([^"]+)".*/\\1/p')`;
    });
}
