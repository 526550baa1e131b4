/** A well-behaved client in k6: tokens are kept and renewed as section 5.6 says, each answer is judged on samples. */
import { check } from 'k6';
import http, { type RefinedParams, type RefinedResponse } from 'k6/http';
import { Counter, Rate, Trend } from 'k6/metrics';
import { handsOver, type LoadClient, type LoadConfig } from './config.ts';
import {
  judgeLimited,
  judgePage,
  linkedNext,
  parseQuery,
  policyOf,
  type Finding,
  type RatePolicy,
} from './judge.ts';
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

/** From dialling to the last byte: k6's duration leaves out the connection, which a client waits for all the same. */
const timeOf = ({ timings }: RefinedResponse<'text'>): number =>
  timings.duration + Math.max(0, timings.connecting) + Math.max(0, timings.tls_handshaking);

export interface Place {
  /** For the tag of that name. */
  readonly page: 'first' | 'next' | 'poll';
  readonly url: string;
  readonly to: string;
}

/** Where its window begins; of a next, where its page does. */
export const beginOf = ({ url }: Place): string => parseQuery(url)['from'] ?? '';

/** The first page's address of a window. */
export function firstPage(
  config: LoadConfig,
  client: LoadClient,
  from: string,
  to: string,
  pageSize: number,
): Place {
  const query = `from=${encodeURIComponent(from)}&to=${encodeURIComponent(to)}&pageSize=${pageSize}`;
  return {
    url: `${config.baseUrl}/v1/tenants/${client.tenantId}/screenings?${query}`,
    page: 'first',
    to,
  };
}

/** The place that a page's next leads to; none where it leads to an origin that must not see the token. */
export function nextPlace(config: LoadConfig, sent: Sent, to: string): Place | undefined {
  const url = sent.next === undefined ? undefined : trusted(config, sent.next);
  return url === undefined ? undefined : { url, page: 'next', to };
}

function trusted(config: LoadConfig, next: string): string | undefined {
  if (next.startsWith(`${config.baseUrl}/`)) return next;
  const origin = originOf(config.baseUrl);
  if (/^\/(?!\/)/.test(next)) return `${origin}${next}`;
  return [origin, ...config.trustedOrigins].includes(originOf(next)) ? next : undefined;
}

const originOf = (url: string): string => /^https?:\/\/[^/?#@]+/i.exec(url)?.[0].toLowerCase() ?? '';

const earlier = ({ renewAtMs }: Token): number => renewAtMs - 0.1 * Math.random() * (renewAtMs - Date.now());

const SERVED = 'a page is answered 200, or 429';

function unanswered(times: Pick<Sent, 'serviceMs' | 'latencyMs'>): Sent {
  errors.add(1);
  failures.add(true);
  check(0, { [SERVED]: () => false });
  return { status: 0, errorCode: 0, ...times };
}

/** One client's requests within one VU. */
export class Session {
  readonly #config: LoadConfig;
  readonly client: LoadClient;
  /** The kit reads what is written of each request: metrics cost more than that, and are for whoever else reads them. */
  readonly #counts: boolean;
  #token: Token;
  /** Of the token, by the kind of page and its size. */
  #params: Record<string, RefinedParams<'text'>> = {};
  /** VUs that begin with the same token renew it one after another, over a tenth of its time. */
  #renewAtMs: number;
  /** Every token that it had: whatever a target repeats of them is written nowhere. */
  readonly #held: string[] = [];

  constructor(config: LoadConfig, client: LoadClient, token: Token) {
    this.#config = config;
    this.client = client;
    this.#counts = !handsOver || config.metricsRead === true;
    this.#token = token;
    this.#renewAtMs = earlier(token);
    this.#held.push(token.value);
  }

  /** Another token takes the place of the one in use. */
  renew(): void {
    this.#token = mint(this.#config, this.client);
    this.#params = {};
    this.#renewAtMs = earlier(this.#token);
    this.#held.push(this.#token.value);
  }

  /** Asks for a page; after a 401 once more with a new token (section 5.6). dueAtMs: when it was meant to be asked. */
  ask(place: Place, pageSize: number, dueAtMs: number): Sent {
    const sentAtMs = Date.now();
    let alone = true;
    if (sentAtMs >= this.#renewAtMs) {
      this.renew();
      alone = false;
    }
    let response = this.#get(place, pageSize);
    if (response.status === 401) {
      unauthenticated.add(1);
      this.renew();
      response = this.#get(place, pageSize);
      alone = false;
    }
    const doneAtMs = Date.now();
    const exactMs = timeOf(response);
    // The clock counts whole milliseconds: it is needed only where more than one request was made.
    const serviceMs = alone ? exactMs : Math.max(exactMs, doneAtMs - sentAtMs);
    const latencyMs = Math.max(serviceMs, doneAtMs - dueAtMs);
    if (this.#counts) {
      pages.add(1);
      pageMs.add(latencyMs, { page: place.page });
      if (latencyMs >= this.#config.p99Ms) late.add(1);
    }
    return this.#judge(place, pageSize, response, { serviceMs, latencyMs });
  }

  /** A token that is not to be had fails the request that needed it, and not the run. */
  tryAsk(place: Place, pageSize: number, dueAtMs: number): Sent {
    const sentAtMs = Date.now();
    try {
      return this.ask(place, pageSize, dueAtMs);
    } catch {
      const nowMs = Date.now();
      return unanswered({ serviceMs: nowMs - sentAtMs, latencyMs: Math.max(0, nowMs - dueAtMs) });
    }
  }

  /** The page without waiting for others under way, and without a second try: for whoever counts each request. */
  async askAhead(place: Place, pageSize: number): Promise<{ sent: Sent; sentAtMs: number }> {
    const startedAtMs = Date.now();
    try {
      if (startedAtMs >= this.#renewAtMs) this.renew();
    } catch {
      return { sent: unanswered({ serviceMs: 0, latencyMs: 0 }), sentAtMs: startedAtMs };
    }
    const response = (await http.asyncRequest(
      'GET',
      place.url,
      null,
      this.#paramsOf(place, pageSize),
    )) as RefinedResponse<'text'>;
    if (this.#counts) pages.add(1);
    const serviceMs = response.timings.duration;
    const sent = this.#judge(place, pageSize, response, { serviceMs, latencyMs: timeOf(response) });
    // What it took to connect lies before it was sent.
    return { sent, sentAtMs: startedAtMs + timeOf(response) - serviceMs };
  }

  #get(place: Place, pageSize: number): RefinedResponse<'text'> {
    return http.get(place.url, this.#paramsOf(place, pageSize));
  }

  #paramsOf({ page }: Place, pageSize: number): RefinedParams<'text'> {
    return (this.#params[`${page} ${pageSize}`] ??= {
      headers: {
        ...extraHeaders(),
        Authorization: `Bearer ${this.#token.value}`,
        Accept: 'application/json',
      },
      timeout: `${this.#config.timeoutSeconds}s`,
      redirects: 0,
      // A cursor in the URL must not become a time series of its own.
      tags: { name: 'page', page, page_size: String(pageSize), client: this.client.clientId },
      responseType: 'text',
    });
  }

  #judge(
    place: Place,
    pageSize: number,
    response: RefinedResponse<'text'>,
    times: Pick<Sent, 'serviceMs' | 'latencyMs'>,
  ): Sent {
    const { status } = response;
    const sent = { ...times, status, response, errorCode: response.error_code };
    if (this.#counts) failures.add(status !== 200);
    if (!handsOver) check(status, { [SERVED]: () => status === 200 || status === 429 });
    const judged = Math.random() < (this.#config.judgedShare ?? 1);
    if (judged && handsOver) this.#handOver(place, response);
    if (status === 429) {
      limited.add(1);
      const { findings, retryAfterSeconds, policy } = judgeLimited(response);
      if (!handsOver) this.#tell(findings, place.url, 429);
      return { ...sent, retryAfterSeconds, policy };
    }
    if (status !== 200) {
      errors.add(1);
      return sent;
    }
    if (judged && (!handsOver || this.#config.metricsRead)) {
      const found = judgePage(
        { ...place, from: beginOf(place), tenantId: this.client.tenantId, pageSize },
        response,
      );
      check(found, { 'a page holds what was asked for, in order': ({ length }) => length === 0 });
      this.#tell(found, place.url, 200);
    }
    const next = linkedNext(response.headers['Link']);
    const policy = judged ? policyOf(response.headers) : undefined;
    return { ...times, status, response, errorCode: 0, next: next ?? nextAtEnd(response.body ?? ''), policy };
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
      if (handsOver) continue;
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
