/** A well-behaved client for k6: renews tokens as in section 5.6, and judges samples of the answers. */
import { check, sleep } from 'k6';
import exec from 'k6/execution';
import http, { type RefinedParams, type RefinedResponse } from 'k6/http';
import { Counter, Trend } from 'k6/metrics';
import type { Sample } from '../../estimate/step.ts';
import { areMetricsRead, areRecordsRead, type LoadClient, type LoadConfig } from './config.ts';
import { judgeLimited, judgePage, linkedNext, originOf, policyOf, resolved, retryAfterOf } from './judge.ts';
import { type LoadRecord, TOKEN, write } from './record.ts';

export interface Token {
  readonly value: string;
  /** Renew the token from this moment on, in milliseconds since the epoch. */
  readonly renewAtMs: number;
}

/** Headers of the target file; they may contain secrets, so they come from the environment. */
const EXTRA_HEADERS = JSON.parse(__ENV['SCREENINGS_HEADERS'] || '{}') as Record<string, string>;
/** What each request needs, bound once: k6 looks up a global or an import by its name whenever it is used. */
const { now } = Date;
const { random } = Math;
const { get } = http;
const [isRecorded, nextOf] = [areRecordsRead, linkedNext];

const MARGIN_MS = 60_000;
const MAX_RETRY_MS = 120_000;

const pageMs = new Trend('page_ms', true);
const findings = new Counter('findings');
const tokenCalls = new Counter('token_calls');
const pages = new Counter('pages');
const errors = new Counter('errors');
const limited = new Counter('limited');
/** Served answers later than the SLO: they add up over runners, which percentiles do not. */
const late = new Counter('late');
const unauthenticated = new Counter('unauthenticated');

/** Counts a token request where tokens are the load, so that `merge` can judge it. */
export function countToken({ p99Ms }: LoadConfig, latencyMs: number, isIssued: boolean): void {
  pageMs.add(latencyMs, { page: 'token' });
  if (!isIssued) errors.add(1);
  else if (latencyMs >= p99Ms) late.add(1);
}

/** Mints a token (section 4.1). Throws an Error if that fails, because load needs a token. */
export function mint(config: LoadConfig, client: LoadClient): Token {
  const secret = client.secret ?? __ENV[client.secretVariable];
  if (!secret)
    throw new Error(
      `the environment variable ${client.secretVariable} is missing: it must contain the client's secret`,
    );
  const askedAt = Date.now();
  tokenCalls.add(1);
  const url = `${config.authUrl}/oauth/token`;
  const grant = { grant_type: 'client_credentials', scope: 'screenings.read' };
  const form = { ...grant, client_id: client.clientId, client_secret: secret };
  const params = { headers: EXTRA_HEADERS, timeout: `${config.timeoutSeconds}s`, tags: { name: 'token' } };
  const response = http.post(url, form, { ...params, responseType: 'text' });
  if (response.status !== 200)
    throw new Error(`no token for ${client.clientId}: ${response.error || `status ${response.status}`}`);
  const { access_token, expires_in } = response.json() as { access_token: string; expires_in: number };
  const lifetimeMs = expires_in * 1000;
  // A minute before exp (section 5.6); shorter-lived tokens are renewed after three quarters of their lifetime.
  const marginMs = lifetimeMs > MARGIN_MS ? MARGIN_MS : lifetimeMs / 4;
  return { value: access_token, renewAtMs: askedAt + lifetimeMs - marginMs };
}

/** Mints a token for each client in turn; returns whether it was issued. */
export function mintInTurn(config: LoadConfig): boolean {
  try {
    mint(config, config.clients[exec.scenario.iterationInTest % config.clients.length]!);
    return true;
  } catch {
    return false;
  }
}

type Answer = RefinedResponse<'text'>;

export interface Sent extends Omit<Sample, 'dueMs'> {
  /** With a body only if the answer is judged. */
  readonly response?: Answer | undefined;
  readonly next?: string | undefined;
  /** k6's error code if there was no answer, else 0. */
  readonly errorCode: number;
}

/** From connecting to the last byte: k6's duration excludes connecting, for which a client waits too. */
function timeOf({ timings }: Answer): number {
  const { duration, connecting, tls_handshaking } = timings;
  return duration + (connecting > 0 ? connecting : 0) + (tls_handshaking > 0 ? tls_handshaking : 0);
}

export interface PageRequest {
  readonly page: 'first' | 'next' | 'poll';
  readonly url: string;
  readonly pageSize: number;
}

/**
 * Judges a sample of five answers per second completely, which costs little at any rate, and of a shorter run as many as
 * in four seconds; statuses always are judged.
 */
const JUDGED_PER_SECOND = 5;
const SHORT_SECONDS = 4;
const judgedShare = ({ requestsPerSecond, spikeFactor = 1, seconds }: LoadConfig): number =>
  Math.min(1, (JUDGED_PER_SECOND * Math.max(1, SHORT_SECONDS / seconds)) / (requestsPerSecond * spikeFactor));

/** One client's requests within one VU. */
export class Client {
  /** Whether to count and time pages in k6's metrics. They cost more than records, which suffice for the kit. */
  readonly #counts: boolean;
  readonly #judgedShare: number;
  readonly #base: string;
  #token!: Token;
  /** Request parameters with the current token, by their tags if there are any, and by whether the body is read. */
  #params: Record<string, RefinedParams<'text'>> = {};
  #renewAtMs = 0;
  /** Every token so far, to redact them from what is written. */
  readonly #tokens: string[] = [];

  constructor(
    private readonly config: LoadConfig,
    private readonly credentials: LoadClient,
    token: Token,
    /** Whether the requests are part of the load; those of setup are neither counted nor judged. */
    private readonly isLoad = true,
  ) {
    this.#counts = isLoad && areMetricsRead;
    this.#judgedShare = config.outages ? 1 : judgedShare(config);
    this.#base = `${config.baseUrl}/`;
    this.#use(token);
  }

  first(from: string, to: string, pageSize: number, page: PageRequest['page'] = 'first'): PageRequest {
    const query = `from=${encodeURIComponent(from)}&to=${encodeURIComponent(to)}&pageSize=${pageSize}`;
    const { tenantId } = this.credentials;
    return { url: `${this.#base}v1/tenants/${tenantId}/screenings?${query}`, page, pageSize };
  }

  /** The page that `next` leads to; undefined without next, or if its origin must not receive the token. */
  next({ url: from, pageSize }: PageRequest, next: string | undefined): PageRequest | undefined {
    if (next === undefined) return undefined;
    // The usual form, without the cost of regular expressions.
    if (next.startsWith(this.#base)) return { url: next, page: 'next', pageSize };
    const url = resolved(next, from);
    const isTrusted = [originOf(this.#base), ...this.config.trustedOrigins].includes(originOf(url));
    return isTrusted ? { url, page: 'next', pageSize } : undefined;
  }

  renew(): void {
    this.#use(mint(this.config, this.credentials));
  }

  #use(token: Token): void {
    this.#token = token;
    this.#params = {};
    this.#tokens.push(token.value);
    // VUs that start with the same token renew it at different moments, spread over a tenth of its lifetime.
    this.#renewAtMs = token.renewAtMs - 0.1 * Math.random() * (token.renewAtMs - Date.now());
  }

  /**
   * Requests a page; after a 401 again with a new token (section 5.6). Without a new token the request counts as
   * failed. `dueAtMs`: when the request was due. The body is read only if the answer is judged.
   */
  fetchPage(pageRequest: PageRequest, dueAtMs: number, isJudged = random() < this.#judgedShare): Sent {
    const sentAtMs = now();
    let response: Answer | undefined;
    let status = 0;
    let isSingle = sentAtMs < this.#renewAtMs;
    try {
      if (!isSingle) this.renew();
      response = get(pageRequest.url, this.#paramsOf(pageRequest, isJudged));
      status = response.status;
      if (status === 401) {
        isSingle = false;
        if (this.isLoad) unauthenticated.add(1);
        this.renew();
        response = get(pageRequest.url, this.#paramsOf(pageRequest, isJudged));
        status = response.status;
      }
    } catch {
      response = undefined;
      status = 0;
    }
    const doneAtMs = now();
    // Date.now() has a resolution of one millisecond, so it is used only if there was more than one request.
    const exactMs = response ? timeOf(response) : 0;
    const serviceMs = isSingle || exactMs > doneAtMs - sentAtMs ? exactMs : doneAtMs - sentAtMs;
    const sinceDueMs = doneAtMs - dueAtMs;
    const latencyMs = serviceMs > sinceDueMs ? serviceMs : sinceDueMs;
    if (this.#counts) {
      if (response) pages.add(1);
      // Also a request without a token was due, and `merge` compares their number with those that were.
      pageMs.add(latencyMs, { page: pageRequest.page });
      if (status === 200 && latencyMs >= this.config.p99Ms) late.add(1);
    }
    return this.#judge(pageRequest, response, status, serviceMs, latencyMs, isJudged);
  }

  /** Requests a page, with its body. Retries after 429 for up to two minutes. */
  fetchWithRetries(pageRequest: PageRequest): Sent {
    const untilMs = Date.now() + MAX_RETRY_MS;
    for (;;) {
      const sent = this.fetchPage(pageRequest, Date.now(), true);
      if (sent.status !== 429 || Date.now() > untilMs) return sent;
      sleep(Math.min(60, Math.max(0.05, sent.retryAfterSeconds ?? 1)));
    }
  }

  /** Requests a page without waiting for others in flight and without a retry, for callers that count requests. */
  async fetchPageAsync(pageRequest: PageRequest, isJudged = true): Promise<{ sent: Sent; sentAtMs: number }> {
    const startedAtMs = Date.now();
    try {
      if (startedAtMs >= this.#renewAtMs) this.renew();
    } catch {
      return { sent: this.#judge(pageRequest, undefined, 0, 0, 0, false), sentAtMs: startedAtMs };
    }
    const params = this.#paramsOf(pageRequest, isJudged);
    const response = await http.asyncRequest('GET', pageRequest.url, null, params);
    if (this.#counts) pages.add(1);
    const serviceMs = response.timings.duration;
    const latencyMs = timeOf(response);
    // The request is sent after connecting.
    const sentAtMs = startedAtMs + latencyMs - serviceMs;
    return {
      sent: this.#judge(pageRequest, response, response.status, serviceMs, latencyMs, isJudged),
      sentAtMs,
    };
  }

  #paramsOf({ page, pageSize }: PageRequest, isJudged: boolean): RefinedParams<'text'> {
    const kind = areMetricsRead ? `${page} ${pageSize} ${isJudged}` : isJudged ? 'judged' : 'unread';
    return (this.#params[kind] ??= {
      headers: {
        ...EXTRA_HEADERS,
        Authorization: `Bearer ${this.#token.value}`,
        Accept: 'application/json',
      },
      timeout: this.config.timeoutSeconds * 1000,
      redirects: 0,
      // A fixed name, so that each cursor in a URL does not create a time series.
      ...(areMetricsRead
        ? { tags: { name: 'page', page, page_size: String(pageSize), client: this.credentials.clientId } }
        : {}),
      // k6 then receives the body without keeping it, which costs a third less per page.
      responseType: (isJudged ? 'text' : 'none') as 'text',
    });
  }

  /** Counts, records and judges an answer, and reads its headers. */
  #judge(
    pageRequest: PageRequest,
    response: Answer | undefined,
    status: number,
    serviceMs: number,
    latencyMs: number,
    isJudged: boolean,
  ): Sent {
    const { url } = pageRequest;
    if (this.isLoad && status !== 200) (status === 429 ? limited : errors).add(1);
    if (this.isLoad && !isRecorded)
      check(status, { 'a page request returns 200 or 429': () => status === 200 || status === 429 });
    if (response && isJudged) {
      if (isRecorded) this.#record(pageRequest, response);
      if (this.isLoad && areMetricsRead) this.#tell(url, response);
    }
    const headers = response?.headers ?? {};
    // Member by member: k6 is slow at spreading objects.
    return {
      status,
      response,
      serviceMs,
      latencyMs,
      errorCode: response?.error_code ?? 0,
      next: status === 200 ? nextOf(headers['Link'], url) : undefined,
      retryAfterSeconds: status === 429 ? retryAfterOf(headers) : undefined,
      policy: status === 429 || (status === 200 && isJudged) ? policyOf(headers) : undefined,
    };
  }

  /** Failures are counted; they are judged only if the target is made to fail. */
  #record({ url, page }: PageRequest, { status, headers, body }: Answer): void {
    if (status === 0 || (status !== 200 && status !== 429 && !this.config.outages)) return;
    const followed = page === 'next';
    this.#write({ kind: 'sample', url, followed, status, headers, body: body ?? '' });
  }

  #tell(url: string, answer: Answer): void {
    const { status } = answer;
    const found = status === 200 ? judgePage(url, answer) : status === 429 ? judgeLimited(answer) : [];
    if (status === 200) check(found, { 'a page has the requested items in order': () => found.length === 0 });
    for (const finding of found) {
      findings.add(1, { requirement: finding.id });
      const evidence = { request: `GET ${url}`, response: String(status) };
      if (!isRecorded) this.#write({ kind: 'finding', ...finding, ...evidence });
    }
  }

  #write(record: LoadRecord): void {
    const tokens = new Set(this.#tokens.flatMap((token) => [token, encodeURIComponent(token)]));
    write(record, (text) =>
      [...tokens].reduce(
        (shown, token) => (shown.includes(token) ? shown.split(token).join(TOKEN) : shown),
        text,
      ),
    );
  }
}
