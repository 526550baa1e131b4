/**
 * Guards against brute force and scans in front of the target (fail2ban, HAProxy, a WAF): they answer 403 or 429 in
 * their own words to requests that were served before, or close connections.
 */
import type { Clock } from '../clock.ts';
import { TargetGuarded } from '../errors.ts';
import { isPlain, type Exchange, type RequestOut } from './exchange.ts';
import { isSame } from './failures.ts';
import { stringsIn } from './json.ts';

/** A blocked request is probed after 0.5, 1, 2 … 16, 16, 16 s: longer than a window of a minute. */
const PROBES = 8;
const LONGEST_PAUSE_MS = 16_000;
/** A request that meets a guard this often triggers it. */
const MEETINGS = 3;
/** The same for a guard that closes connections: it ends as soon as fewer of the last seconds' requests are rejected. */
const CLOSED_MEETINGS = 12;

/** Number of 401 answers within ATTACK_MS that count as brute force; five is the default of fail2ban. */
const GUESSES = 5;
/** Number of 4xx answers within ATTACK_MS that count as a scan: often ten for http_err_rate of HAProxy. */
const REJECTIONS = 10;
const ATTACK_MS = 60_000;
/** Some guards count refused tokens in a row: after this many, a request is sent that is served. */
const IN_A_ROW = 5;

/** The values of `error` in RFC 6749, 5.2. */
const OAUTH_ERRORS = /^(invalid_(request|client|grant|scope)|unauthorized_client|unsupported_grant_type)$/;

/** A rejection of a guard: 403 (423 for a locked client) without a code of section 7. */
export function isGuardRefusal(exchange: Exchange): boolean {
  const { request, status } = exchange;
  const said = (): string[] => stringsIn(exchange.json);
  return request.channel === 'token'
    ? [403, 423].includes(status) && !said().some((text) => OAUTH_ERRORS.test(text))
    : status === 403 && !said().includes('forbidden');
}

/** Not of the service itself: a 4xx that is no JSON (sections 7.1 and 7.2), or a closed connection, as by nginx for 444. */
export const isOfGateway = ({ status, json, transportError: broken }: Exchange): boolean =>
  (status >= 400 && status < 500 && json === undefined) || (broken?.kind === 'reset' && !broken.answerBegun);

const pathOf = ({ url }: RequestOut): string => url.split('?')[0]!;

const keysOf = (request: RequestOut): string[] => [
  ...(request.authorization.kind === 'client' ? [request.authorization.client] : []),
  pathOf(request),
  'any',
];

export interface GuardOptions {
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** Sends a request once and resolves with any answer; detects recovery. */
  readonly probe: (request: RequestOut) => Promise<Exchange>;
}

export class Guards {
  /** By path and by client: the first and the latest request that were served. */
  private readonly served = new Map<string, readonly [RequestOut, RequestOut]>();
  /** By path: whether its guard ends while it is probed. */
  private readonly waits = new Map<string, Promise<boolean>>();
  private refusedTokens = 0;
  private refusedInARow = 0;
  private wereActive = false;
  private haveClosed = false;
  /** The 4xx answers of the last minute; 429 answers and broken connections do not end that minute. */
  private rejections: readonly { readonly status: number; readonly atMs: number }[] = [];
  /** Whether a page was served after the latest 401. */
  private isServedSince = false;

  constructor(private readonly options: GuardOptions) {}

  note({ request, status }: Exchange): void {
    const { channel, offPath } = request;
    this.noteRejection(status);
    if (channel !== 'rest') return;
    if (status === 401) {
      this.refusedTokens++;
      this.refusedInARow++;
    }
    if (status !== 200 || offPath) return;
    this.refusedInARow = 0;
    this.isServedSince = true;
    for (const key of keysOf(request)) this.served.set(key, [this.served.get(key)?.[0] ?? request, request]);
  }

  /** Sends a request that is served, if `next` would be one more without a client's token after refused ones. */
  async endRow({ channel, authorization }: RequestOut): Promise<void> {
    const served = this.served.get('any');
    if (channel !== 'rest' || authorization.kind === 'client') return;
    if (this.refusedInARow < IN_A_ROW || !served) return;
    this.refusedInARow = 0;
    await this.options.probe(served[1]);
  }

  private noteRejection(status: number): void {
    // An active guard answers everything: the rejections that activated it must remain.
    if (status === 0 || status === 429) return;
    const nowMs = this.options.clock.now();
    if (status === 401) this.isServedSince = false;
    const rejected = status >= 400 && status < 500 ? [{ status, atMs: nowMs }] : [];
    this.rejections = [...this.rejections, ...rejected].filter(({ atMs }) => atMs > nowMs - ATTACK_MS);
  }

  private get looksLikeGuessing(): boolean {
    return this.rejections.filter(({ status }) => status === 401).length >= GUESSES;
  }

  private get looksLikeScan(): boolean {
    return this.looksLikeGuessing || this.rejections.length >= REJECTIONS;
  }

  /**
   * Whether a guard may have sent this 429, and not the rate limit of section 7.2: it lacks the code rate_limited, and
   * this request or earlier ones looked like an attack. `isBurst`: the request is part of a burst beyond the limit.
   */
  mayHaveThrottled({ request, status, json }: Exchange, isBurst = false): boolean {
    if (request.channel !== 'rest' || status !== 429 || stringsIn(json).includes('rate_limited'))
      return false;
    const { authorization: by } = request;
    const isOwn = by.kind === 'client' || (by.kind === 'header' && by.of !== undefined);
    if (!isOwn) return true;
    if (isBurst) return this.looksLikeGuessing && !this.isServedSince;
    // A proxy that stops a scan answers with a page, a service with JSON.
    return json === undefined ? this.looksLikeScan : this.looksLikeGuessing;
  }

  /** Whether a guard may have closed this connection. */
  mayHaveClosed({ transportError }: Exchange): boolean {
    return transportError?.kind === 'reset' && !transportError.answerBegun && this.looksLikeScan;
  }

  /** Whether a guard, which closed connections before, may have closed this one. */
  hasClosed(failed: Exchange): boolean {
    return this.haveClosed && this.mayHaveClosed(failed);
  }

  /** Whether a guard closes the connection of another request too. Throws TargetGuarded. */
  async closesBoth(failed: Exchange, other: RequestOut, attempt: { guards: number }): Promise<boolean> {
    if (!this.mayHaveClosed(failed) || !this.mayHaveClosed(await this.options.probe(other))) return false;
    this.haveClosed = true;
    if (attempt.guards++ < CLOSED_MEETINGS) return true;
    throw new TargetGuarded(
      'connections close without an answer to what was served before, after many rejected requests: a guard (HAProxy) keeps the kit out; exempt its address for the run',
    );
  }

  /**
   * Waits until a guard ends; true if the request is to be sent again. Throws TargetGuarded. If only this one
   * request is refused, there is no guard: a guard also refuses another request that was served before. `inFlight`: the
   * most requests in flight during this one; a guard that counts them has ended when the other one is sent.
   */
  async isToRetry(refused: Exchange, attempt: { guards: number }, inFlight = 1): Promise<boolean> {
    const { request } = refused;
    if (request.channel !== 'rest' || request.provoked || !isPlain(request) || !isGuardRefusal(refused))
      return false;
    for (const key of keysOf(request)) {
      const other = this.served.get(key)?.find((known) => !isSame(known, request));
      if (!other || !isGuardRefusal(await this.options.probe(other))) continue;
      this.wereActive = true;
      if (attempt.guards++ < MEETINGS && (await this.hasEnded(other))) return true;
      throw new TargetGuarded(
        `403 without the code forbidden to what was served before, after ${this.refusedTokens} refused tokens: a guard (fail2ban, a WAF) keeps the kit out; exempt its address for the run`,
      );
    }
    // The guard may have ended between the refusal and the probe.
    return (this.wereActive || inFlight > 1) && attempt.guards++ === 0;
  }

  /** All requests that meet the same guard share one wait; a guard that did not end is not waited for again. */
  private hasEnded(served: RequestOut): Promise<boolean> {
    const path = pathOf(served);
    const running = this.waits.get(path) ?? this.wait(served);
    this.waits.set(path, running);
    return running;
  }

  private async wait(served: RequestOut): Promise<boolean> {
    const { clock, signal, probe } = this.options;
    for (let probes = 0; probes < PROBES; probes++) {
      await clock.sleep(Math.min(500 * 2 ** probes, LONGEST_PAUSE_MS), signal);
      if (isGuardRefusal(await probe(served))) continue;
      this.waits.delete(pathOf(served));
      return true;
    }
    return false;
  }
}
