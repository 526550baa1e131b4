/** HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec/): `--har` writes every exchange, `--from-har` reads them. */
import { z } from 'zod';
import { UsageError } from '../../engine/errors.ts';
import { readJson } from '../../engine/files.ts';
import { systemClock } from '../../engine/clock.ts';
import { exchangeOf, isPlain, type Authorization, type Exchange } from '../../engine/client/exchange.ts';
import { isWithoutBody } from '../../engine/client/failures.ts';
import { Guards } from '../../engine/client/guards.ts';
import { formEncode } from '../../engine/client/transport.ts';
import { KIT_NAME, KIT_VERSION } from '../../engine/package.ts';
import { REDACTED, TOKEN, type Redactor } from '../../engine/run/evidence/redact.ts';
import { member, parseJson } from '../../engine/client/json.ts';
import { REQUIREMENTS, type RequirementId } from '../../engine/requirements.ts';
import { Kit } from '../../engine/run/kit.ts';
import type { Target } from '../../engine/target/target.ts';
import { buildReport } from '../build-report.ts';
import { kitOptions, type CertifyOptions } from '../certify.ts';
import type { Report } from '../report/report.ts';

const nameValue = z.object({ name: z.string(), value: z.string() });

const entrySchema = z.object({
  startedDateTime: z.string(),
  time: z.number().catch(0),
  request: z.object({
    method: z.string(),
    url: z.string(),
    headers: z.array(nameValue),
    postData: z
      .object({
        mimeType: z.string().catch(''),
        text: z.string().optional(),
        params: z.array(nameValue.partial()).optional(),
      })
      .optional(),
    _isOdd: z.boolean().optional(),
  }),
  response: z.object({
    status: z.number(),
    headers: z.array(nameValue),
    content: z.object({
      size: z.number().catch(-1),
      text: z.string().optional(),
      encoding: z.string().optional(),
      mimeType: z.string().catch(''),
    }),
  }),
});

const harSchema = z.object({ log: z.object({ entries: z.array(entrySchema) }) });

type Entry = z.infer<typeof entrySchema>;

const FORM = 'application/x-www-form-urlencoded';
const lines = (headers: readonly (readonly [string, string])[]): { name: string; value: string }[] =>
  headers.map(([name, value]) => ({ name, value }));

function authorizationLines({ authorization }: Exchange['request']): [string, string][] {
  if (authorization.kind === 'none') return [];
  // Only a description: an altered token could easily be restored.
  return [['authorization', authorization.kind === 'header' ? authorization.label : 'Bearer $TOKEN']];
}

/** Members that the format requires. */
const UNKNOWN = { httpVersion: 'HTTP/1.1', cookies: [], headersSize: -1, bodySize: -1 } as const;

/** An entry of a HAR file, redacted. */
export function entryOf(exchange: Exchange, { redactDeep, addToken }: Redactor): object {
  const { request, status, headers, text, startedAtMs, durationMs, transportError } = exchange;
  // From the token response on, the token is a secret too.
  const issued = member(exchange.json, 'access_token');
  if (request.channel === 'token' && typeof issued === 'string') addToken(issued);
  const body = request.form ? formEncode(request.form, request.isPercentEncoded) : request.body;
  const { searchParams } = new URL(request.url);
  const mimeType = headers.find(([name]) => name === 'content-type')?.[1] ?? '';
  return redactDeep(
    {
      startedDateTime: new Date(startedAtMs).toISOString(),
      time: durationMs,
      request: {
        method: request.method,
        url: request.url,
        ...UNKNOWN,
        headers: lines([...Object.entries(request.headers), ...authorizationLines(request)]),
        queryString: lines([...searchParams]),
        // A gateway may refuse it with any answer.
        ...(isPlain(request) ? {} : { _isOdd: true }),
        ...(body === undefined
          ? {}
          : { postData: { mimeType: request.headers['content-type'] ?? '', text: body, params: [] } }),
        bodySize: body === undefined ? 0 : Buffer.byteLength(body),
      },
      response: {
        status,
        statusText: transportError?.message ?? '',
        ...UNKNOWN,
        headers: lines(headers),
        content: { size: Buffer.byteLength(text), mimeType, text },
        redirectURL: headers.find(([name]) => name === 'location')?.[1] ?? '',
      },
      cache: {},
      timings: { send: 0, wait: durationMs, receive: 0 },
    },
    'fixed',
  );
}

export const harText = (entries: readonly object[]): string =>
  `${JSON.stringify({ log: { version: '1.2', creator: { name: KIT_NAME, version: KIT_VERSION }, entries } })}\n`;

const TOKEN_PATH = /\/oauth\/token$/;
const REST_PATH = /\/v1\/tenants\/[^/]+\/screenings$/;

export interface Recording {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly exchanges: readonly Exchange[];
}

/** Reads the exchanges with the service; `addresses` selects it if the file has several. Throws a UsageError. */
export async function readHar(
  path: string,
  addresses: { readonly baseUrl?: string; readonly authUrl?: string } = {},
): Promise<Recording> {
  const { log } = await readJson(path, '--from-har', 'HAR file', harSchema);
  const entries = log.entries.filter(({ request }) => URL.canParse(request.url));
  const prefixOf = (form: RegExp): string | undefined => {
    const found = entries
      .map(({ request }) => new URL(request.url))
      .find(({ pathname }) => form.test(pathname));
    return found && `${found.origin}${found.pathname.replace(form, '')}`;
  };
  const baseUrl = addresses.baseUrl ?? prefixOf(REST_PATH);
  const authUrl = addresses.authUrl ?? prefixOf(TOKEN_PATH);
  const known = baseUrl ?? authUrl;
  if (known === undefined) throw new UsageError(`--from-har: ${path} contains no request to the service`);
  const ours = entries.flatMap((entry, index) => exchangeFrom(entry, index, baseUrl, authUrl) ?? []);
  return { baseUrl: baseUrl ?? known, authUrl: authUrl ?? known, exchanges: ours };
}

function exchangeFrom(
  { request, response, startedDateTime, time }: Entry,
  index: number,
  baseUrl: string | undefined,
  authUrl: string | undefined,
): Exchange | undefined {
  const { origin, pathname } = new URL(request.url);
  const address = `${origin}${pathname}`;
  const { method } = request;
  // Other methods, such as a browser's preflight requests, are not specified.
  const channel =
    method === 'POST' && address === `${authUrl}/oauth/token`
      ? 'token'
      : method === 'GET' && address.startsWith(`${baseUrl}/v1/`) && REST_PATH.test(pathname)
        ? 'rest'
        : undefined;
  // Status 0: the browser blocked the request or it was in flight. 304: the body is not in the file.
  if (!channel || response.status === 0 || response.status === 304) return undefined;
  const { authorization: given, ...headers } = Object.fromEntries(
    request.headers.map(({ name, value }) => [name.toLowerCase(), value]),
  );
  const authorization: Authorization =
    given === undefined
      ? { kind: 'none' }
      : { kind: 'header', value: given, label: 'as recorded', shell: 'Bearer $TOKEN' };
  const body = bodyOf(response.content);
  if (body === undefined) return undefined;
  const form = channel === 'token' ? formOf(request.postData) : undefined;
  return exchangeOf({
    seq: index + 1,
    request: {
      channel,
      method,
      url: request.url,
      headers,
      authorization,
      ...(form ? { form } : {}),
      suspicious: request._isOdd,
    },
    status: response.status,
    headers: response.headers.map(({ name, value }) => [name.toLowerCase(), value] as const),
    text: body,
    startedAtMs: Date.parse(startedDateTime) || 0,
    durationMs: time,
  });
}

/** The body; undefined if the recorder left it out, as the format allows, or cut it short. */
function bodyOf({ size, text, encoding }: Entry['response']['content']): string | undefined {
  if (text === undefined) return size === 0 ? '' : undefined;
  const octets = Buffer.from(text, encoding === 'base64' ? 'base64' : 'utf8');
  const body = octets.toString();
  // Redaction shortens a body too, but leaves it JSON.
  return octets.length < size && parseJson(body) === undefined ? undefined : body;
}

function formOf(postData: Entry['request']['postData']): [string, string][] | undefined {
  if (!postData?.mimeType.startsWith(FORM)) return undefined;
  const params = (postData.params ?? []).map(({ name = '', value = '' }): [string, string] => [name, value]);
  return params.length > 0 ? params : [...new URLSearchParams(postData.text ?? '')];
}

// -- --from-har: recorded traffic is judged by the observers only ----------------------------------

/** Requirements that a recording cannot show: they need the current time, repeated requests, or the octets of bodies. */
const NOT_FROM_RECORDS: ReadonlySet<RequirementId> = new Set<RequirementId>([
  '2.1-expires_in',
  '2.1-expires_in-3600',
  '2.2-iat',
  '2.2-iss',
  '2.3-id-stable',
  '7.2-no-unprovoked-5xx',
]);

/** Leaves out failures of requests that were served later, and what a guard may have refused, as a live run does. */
function judgedAsLive(exchanges: readonly Exchange[]): (exchange: Exchange) => boolean {
  const served = exchanges.filter(({ status }) => status >= 200 && status < 300);
  const lastServed = new Map(served.map(({ request, seq }) => [request.url, seq]));
  const bearerOf = ({ request: { authorization: by } }: Exchange): string =>
    by.kind === 'header' ? by.value : '';
  // The client's own token, or none if the recorder removed all of them.
  const accepted = new Set(served.map(bearerOf));
  let nowMs = 0;
  const guards = new Guards({
    clock: { ...systemClock, now: () => nowMs },
    probe: () => Promise.reject(new Error('nothing is sent for a recording')),
  });
  return (exchange) => {
    const { request, status, json, seq, startedAtMs } = exchange;
    nowMs = startedAtMs;
    guards.note(exchange);
    const isOwn = accepted.has(bearerOf(exchange));
    const by: Authorization = isOwn ? { kind: 'client', client: 'primary' } : request.authorization;
    const isByGuard =
      ([403, 429].includes(status) && json === undefined) ||
      guards.mayHaveThrottled({ ...exchange, request: { ...request, authorization: by } });
    const isServedLater = isOwn && (lastServed.get(request.url) ?? 0) > seq;
    return !isByGuard && !(status >= 500 && isServedLater);
  };
}

/** Recorders often remove tokens; a removed token cannot be judged. */
const isRedacted = ({ json }: Exchange): boolean => {
  const token = member(json, 'access_token');
  return typeof token === 'string' && (token.includes(TOKEN) || token.includes(REDACTED) || token === '');
};

/** A proxy lost the body, as a live run finds when it sends the request again: another answer to it has one. */
const isLost = (exchange: Exchange, all: readonly Exchange[]): boolean =>
  isWithoutBody(exchange) && all.some((one) => one.text !== '' && isAlike(one, exchange));

const isAlike = ({ request: a }: Exchange, { request: b }: Exchange): boolean =>
  a.url === b.url && formEncode(a.form ?? []) === formEncode(b.form ?? []);

export const targetOfRecording = ({ baseUrl, authUrl }: Recording): Target => ({
  name: `recorded traffic with ${baseUrl}`,
  baseUrl,
  authUrl,
  clients: { primary: { clientId: '', clientSecret: '' } },
  trustedOrigins: [],
  headers: {},
});

/** In milliseconds; a recording may hold more exchanges than a call may have arguments. */
export const beginOf = (exchanges: readonly Pick<Exchange, 'startedAtMs'>[]): number =>
  exchanges.reduce((first, { startedAtMs }) => Math.min(first, startedAtMs), Date.now());

/** Sends nothing: only the observers judge. What no exchange of the recording shows is untested. */
export async function judgeRecording(
  { exchanges }: Recording,
  target: Target,
  options: CertifyOptions,
): Promise<Report> {
  await using kit = new Kit(target, kitOptions(options));
  // The target cannot be asked how it reads a raw + in next.
  kit.knowledge.keepsRawPlus = true;
  const began = performance.now();
  const isJudged = judgedAsLive(exchanges.filter(({ request }) => request.channel === 'rest'));
  const judged = exchanges.filter(
    (exchange) =>
      (exchange.request.channel === 'rest' ? isJudged(exchange) : !isRedacted(exchange)) &&
      !isLost(exchange, exchanges),
  );
  for (const exchange of judged) kit.judgeRecorded(exchange, NOT_FROM_RECORDS);
  const seen = REQUIREMENTS.map(({ id }) => id).filter((id) => kit.ledger.checks.has(id));
  kit.ledger.end({ title: 'recorded traffic', ids: seen, state: 'done', isSupplement: false });
  kit.ledger.end({
    title: 'what recorded traffic does not show',
    ids: REQUIREMENTS.map(({ id }) => id).filter((id) => !seen.includes(id)),
    state: 'untested',
    reason: 'recorded traffic does not show it; certify the target itself',
    isSupplement: false,
  });
  return buildReport(kit, {
    startedAt: new Date(beginOf(exchanges)),
    durationMs: performance.now() - began,
    planned: 1,
    selection: options.only,
    replay: options.replay,
  });
}
