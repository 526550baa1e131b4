/** A well-behaved client in k6: tokens are kept and renewed as section 5.6 says, answers are judged by samples. */
import { check } from 'k6';
import http, { type RefinedParams, type RefinedResponse } from 'k6/http';
import { Counter, Rate, Trend } from 'k6/metrics';
import type { LoadClient, LoadConfig } from './config.ts';
import { judgeLimited, judgePage, linkedNext, policyOf, type Finding, type RatePolicy } from './judge.ts';
import { TOKEN, write } from './record.ts';

export interface Token {
  readonly value: string;
  /** When to ask for another, in milliseconds since the epoch. */
  readonly renewAtMs: number;
}

const MARGIN_MS = 60_000;

const pageMs = new Trend('page_ms', true);
const findings = new Counter('findings');
const tokenCalls = new Counter('token_calls');
const pages = new Counter('pages');
const errors = new Counter('errors');
/** Whatever is not answered with a page: 429, and a token that was not to be had, as well. */
const failures = new Rate('failed');
const limited = new Counter('limited');
/** Later than the SLO: counted, as a histogram's bucket may hold the SLO in its middle. */
const late = new Counter('late');
const unauthenticated = new Counter('unauthenticated');

/** Asks for a token (section 4.1). Throws where none is given: there is no load without one. */
export function mint(config: LoadConfig, client: LoadClient): Token {
  const secret = client.secret ?? __ENV[client.secretVariable];
  if (!secret)
    throw new Error(`the environment has no ${client.secretVariable}: the client's secret comes from there`);
  const askedAt = Date.now();
  tokenCalls.add(1);
  const response = http.post(
    `${config.authUrl}/oauth/token`,
    {
      grant_type: 'client_credentials',
      client_id: client.clientId,
      client_secret: secret,
      scope: 'screenings.read',
    },
    {
      headers: extraHeaders(),
      timeout: `${config.timeoutSeconds}s`,
      tags: { name: 'token' },
      responseType: 'text',
    },
  );
  if (response.status !== 200) throw new Error(`no token for ${client.clientId}: status ${response.status}`);
  const { access_token, expires_in } = response.json() as { access_token: string; expires_in: number };
  const lifetimeMs = expires_in * 1000;
  // A minute before exp (section 5.6); tokens that live no longer than that are renewed after three quarters.
  const marginMs = lifetimeMs > MARGIN_MS ? MARGIN_MS : lifetimeMs / 4;
  return { value: access_token, renewAtMs: askedAt + lifetimeMs - marginMs };
}

export interface Sent {
  readonly status: number;
  readonly response?: RefinedResponse<'text'>;
  readonly next?: string | undefined;
  /** From the moment it was sent to its last byte: connecting, minting and a second try are in it. */
  readonly serviceMs: number;
  /** The same from the moment it was due. */
  readonly latencyMs: number;
  /** k6's own, where no answer came; else 0. */
  readonly errorCode: number;
  readonly retryAfterSeconds?: number | undefined;
  readonly policy?: RatePolicy | undefined;
}

type Times = Pick<Sent, 'serviceMs' | 'latencyMs'>;

/** From dialling to the last byte: k6's duration leaves out the connection, which a client waits for too. */
function timeOf({ timings }: RefinedResponse<'text'>): number {
  const { duration, connecting, tls_handshaking } = timings;
  return duration + Math.max(0, connecting) + Math.max(0, tls_handshaking);
}

export interface Place {
  /** For the tag of that name. */
  readonly page: 'first' | 'next' | 'poll';
  readonly url: string;
  readonly pageSize: number;
}

/** The first page's address of a window. */
export function firstPage(
  { baseUrl }: LoadConfig,
  { tenantId }: LoadClient,
  from: string,
  to: string,
  pageSize: number,
): Place {
  const query = `from=${encodeURIComponent(from)}&to=${encodeURIComponent(to)}&pageSize=${pageSize}`;
  return { url: `${baseUrl}/v1/tenants/${tenantId}/screenings?${query}`, page: 'first', pageSize };
}

/** The place that a page's next leads to; none where it leads to an origin that must not see the token. */
export function nextPlace(config: LoadConfig, { pageSize }: Place, { next }: Sent): Place | undefined {
  const url = next === undefined ? undefined : trusted(config, next);
  return url === undefined ? undefined : { url, page: 'next', pageSize };
}

function trusted(config: LoadConfig, next: string): string | undefined {
  if (next.startsWith(`${config.baseUrl}/`)) return next;
  const origin = originOf(config.baseUrl);
  if (/^\/(?!\/)/.test(next)) return `${origin}${next}`;
  return [origin, ...config.trustedOrigins].includes(originOf(next)) ? next : undefined;
}

const originOf = (url: string): string => /^https?:\/\/[^/?#@]+/i.exec(url)?.[0].toLowerCase() ?? '';

/** One client's requests within one VU. */
export class Client {
  readonly #config: LoadConfig;
  readonly credentials: LoadClient;
  /** The kit reads what is written of each request: metrics cost more than that, and are for other readers. */
  readonly #counts: boolean;
  #token!: Token;
  /** Of the token, by the kind of page and its size. */
  #params: Record<string, RefinedParams<'text'>> = {};
  #renewAtMs = 0;
  /** Every token that it had: what a target repeats of them is written nowhere. */
  readonly #held: string[] = [];

  constructor(config: LoadConfig, credentials: LoadClient, token: Token) {
    this.#config = config;
    this.credentials = credentials;
    this.#counts = !config.records || config.metricsRead === true;
    this.#use(token);
  }

  /** Another token takes the place of the one in use. */
  renew(): void {
    this.#use(mint(this.#config, this.credentials));
  }

  #use(token: Token): void {
    this.#token = token;
    this.#params = {};
    this.#held.push(token.value);
    // VUs that begin with the same token renew it one after another, over a tenth of its time.
    this.#renewAtMs = token.renewAtMs - 0.1 * Math.random() * (token.renewAtMs - Date.now());
  }

  /**
   * Asks for a page; after a 401 once more with a new token (section 5.6). A token that is not to be had fails the
   * request that needed it. dueAtMs: when it was meant to be asked.
   */
  ask(place: Place, dueAtMs: number): Sent {
    const sentAtMs = Date.now();
    const params = (): RefinedParams<'text'> => this.#paramsOf(place);
    let response: RefinedResponse<'text'> | undefined;
    let alone = true;
    try {
      if (sentAtMs >= this.#renewAtMs) {
        this.renew();
        alone = false;
      }
      response = http.get(place.url, params());
      if (response.status === 401) {
        alone = false;
        unauthenticated.add(1);
        this.renew();
        response = http.get(place.url, params());
      }
    } catch {
      response = undefined;
    }
    const doneAtMs = Date.now();
    // The clock counts whole milliseconds: it is needed only where more than one request was made.
    const exactMs = response ? timeOf(response) : 0;
    const serviceMs = alone ? exactMs : Math.max(exactMs, doneAtMs - sentAtMs);
    const times = { serviceMs, latencyMs: Math.max(serviceMs, doneAtMs - dueAtMs) };
    if (this.#counts && response) {
      pages.add(1);
      pageMs.add(times.latencyMs, { page: place.page });
      if (times.latencyMs >= this.#config.p99Ms) late.add(1);
    }
    return this.#judge(place, response, times);
  }

  /** The page without waiting for others under way, and without a second try: for those that count each request. */
  async askAhead(place: Place): Promise<{ sent: Sent; sentAtMs: number }> {
    const startedAtMs = Date.now();
    try {
      if (startedAtMs >= this.#renewAtMs) this.renew();
    } catch {
      const never = { serviceMs: 0, latencyMs: 0 };
      return { sent: this.#judge(place, undefined, never), sentAtMs: startedAtMs };
    }
    const response = await http.asyncRequest('GET', place.url, null, this.#paramsOf(place));
    if (this.#counts) pages.add(1);
    const serviceMs = response.timings.duration;
    const latencyMs = timeOf(response);
    // Connecting comes before sending.
    const sentAtMs = startedAtMs + latencyMs - serviceMs;
    return { sent: this.#judge(place, response, { serviceMs, latencyMs }), sentAtMs };
  }

  #paramsOf({ page, pageSize }: Place): RefinedParams<'text'> {
    return (this.#params[`${page} ${pageSize}`] ??= {
      headers: {
        ...extraHeaders(),
        Authorization: `Bearer ${this.#token.value}`,
        Accept: 'application/json',
      },
      timeout: `${this.#config.timeoutSeconds}s`,
      redirects: 0,
      // A cursor in the URL must not become a time series of its own.
      tags: { name: 'page', page, page_size: String(pageSize), client: this.credentials.clientId },
      responseType: 'text',
    });
  }

  #judge(place: Place, response: RefinedResponse<'text'> | undefined, times: Times): Sent {
    const { records, metricsRead, judgedShare = 1 } = this.#config;
    const status = response?.status ?? 0;
    if (this.#counts) failures.add(status !== 200);
    if (!records) check(status, { 'a page is answered 200, or 429': () => status === 200 || status === 429 });
    if (status !== 200) (status === 429 ? limited : errors).add(1);
    if (!response) return { ...times, status, errorCode: 0 };
    const sent = { ...times, status, response, errorCode: response.error_code };
    const { headers } = response;
    const judged = Math.random() < judgedShare;
    if (judged && records) this.#handOver(place, response);
    if (status === 429) {
      const { findings: found, retryAfterSeconds, policy } = judgeLimited(response);
      if (!records) this.#tell(found, place.url, 429);
      return { ...sent, retryAfterSeconds, policy };
    }
    if (status !== 200) return sent;
    if (judged && (!records || metricsRead)) {
      const found = judgePage(place.url, response);
      check(found, { 'a page holds what was asked for, in order': ({ length }) => length === 0 });
      this.#tell(found, place.url, 200);
    }
    const next = linkedNext(headers['Link']) ?? nextAtEnd(response.body ?? '');
    return { ...sent, next, policy: judged ? policyOf(headers) : undefined };
  }

  /** Of a target that is not made to fail, failures are counted and not judged. */
  #handOver({ url, page }: Place, { status, headers, body }: RefinedResponse<'text'>): void {
    if (status === 0 || (status !== 200 && status !== 429 && !this.#config.outages)) return;
    const followed = page === 'next';
    write({ kind: 'sample', url, followed, status, headers, body: body ?? '' }, (text) =>
      this.#withoutTokens(text),
    );
  }

  #tell(found: readonly Finding[], url: string, status: number): void {
    for (const finding of found) {
      findings.add(1, { requirement: finding.id });
      if (this.#config.records) continue;
      const message = this.#withoutTokens(finding.message);
      const request = `GET ${this.#withoutTokens(url)}`;
      write({ kind: 'finding', id: finding.id, message, request, response: String(status) });
    }
  }

  #withoutTokens(text: string): string {
    return this.#held
      .flatMap((token) => [token, encodeURIComponent(token)])
      .reduce((shown, token) => (shown.includes(token) ? shown.split(token).join(TOKEN) : shown), text);
  }
}

/** The next of a page whose links end it, read without the rest: a page that is parsed costs several times as much. */
function nextAtEnd(body: string): string | undefined {
  const end = body.slice(body.lastIndexOf('"next"'));
  const text = /^"next"\s*:\s*("(?:[^"\\]|\\.)*")\s*\}\s*\}\s*$/.exec(end)?.[1];
  return text && (JSON.parse(text) as string);
}

let headers: Record<string, string> | undefined;
/** Headers of the target file; they may be secrets, so they come by the environment. */
function extraHeaders(): Record<string, string> {
  headers ??= JSON.parse(__ENV['SCREENINGS_HEADERS'] || '{}') as Record<string, string>;
  return headers;
}
