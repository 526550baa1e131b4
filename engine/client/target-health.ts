/**
 * The target's health, from its answers: serving, throttled (429), failing (5xx, broken connections), locked
 * (refuses right credentials, RFC 6749, 2.3.1), guarded (403 for requests that were served before) or gone. Decides
 * when a request may be sent, how many are in flight, and which requests are sent again.
 */
import { TargetGone, TargetLocked, Untested } from '../errors.ts';
import type { ClientName, Target } from '../target/target.ts';
import { ConcurrencyLimit, type Access } from './concurrency.ts';
import { formValue, isPlain, isTimeout, type Exchange, type RequestOut } from './exchange.ts';
import { isGatewayStatus, isSame, isServerFailure, ofOneDay, retryAfterMs, varied } from './failures.ts';
import type { Attempt } from './failures.ts';
import { Guards, isGuardRefusal, type GuardOptions } from './guards.ts';
import { readToken } from './token.ts';
import { formEncode } from './transport.ts';
import { UnreadAnswers } from './unread.ts';

interface HealthOptions extends GuardOptions {
  readonly target: Pick<Target, 'clients'>;
  readonly timeoutMs: number;
  readonly concurrency: number;
  /** The time of an answer by the target's clock. */
  readonly answeredAtMs: (exchange: Exchange) => number;
  /** A valid token request. */
  readonly tokenRequest: (name: ClientName) => RequestOut;
  /** Appended to the message when the target is gone. */
  readonly because?: string;
}

type Channel = RequestOut['channel'];

/** Exponential backoff: 0.2, 0.4 … 6.4 s. */
const [BACKOFF_MS, BACKOFFS] = [200, 6];
/** Backoffs before anything was served: a server that refuses connections may still be starting; a 500 is an answer. */
const BACKOFFS_UNKNOWN = { broken: 4, failed: 1 };
/** How long after an accident other requests may meet it as well. */
const UNSTEADY_MS = 5_000;
const LONGEST_BACKOFF_MS = 10_000;
const LONGEST_WAIT_MS = 90_000;
/** A single wait may be this long, for a limit per five minutes. */
const LONGEST_ASKED_MS = 310_000;
/** Without Retry-After: longer than the window of a limit per minute. */
const LONGEST_GUESS_MS = 65_000;
const MOST_THROTTLES = 40;
/** Requests in a row that got 429 or 500 until their waits were used up; for 429 one is enough if nothing was served before. */
const VAIN_IN_A_ROW = 2;
/** A locked client is probed after 0.5, 1, 2 … 16 s; after four such waits in a row in vain, it is not waited for. */
const [LOCKOUT_PROBES, VAIN_LOCKOUTS] = [6, 4];
const MOST_LOCKOUTS = 2;
/** Statuses with which a client is refused that is locked out. */
const LOCKED = [400, 401, 403, 423];
const SHORTEN = 'the client is locked out, which says nothing; shorten the lockout for the run';

const formOf = ({ form = [] }: RequestOut): string => formEncode(form);

export class TargetHealth {
  /** Why nothing more is sent. */
  gone: string | undefined;
  readonly guards: Guards;
  /** Total wait because of 429, in milliseconds. */
  waitedMs = 0;
  /** Token requests with wrong credentials that were answered 401. */
  wrongSecrets = 0;
  /** The latest answer that refused right credentials after a wrong secret, while their repetition was served immediately. */
  refusedOnce: Exchange | undefined;
  private readonly limit: ConcurrencyLimit;
  private readonly flights = new Set<{ most: number }>();
  private readonly inFlightOf = new WeakMap<Exchange, number>();
  /** The latest served request of each channel, and when it was sent. */
  private readonly served = new Map<Channel, { readonly request: RequestOut; readonly sentAtMs: number }>();
  /** Clients whose credentials were accepted before. */
  private readonly earned = new Set<ClientName>();
  /** Channels whose quota is used up, and the reason: the other one may have another quota. */
  private readonly exhausted = new Map<Channel, string>();
  private readonly rejectedInARow = new Map<Channel, number>();
  /** Since when every request of a channel was rejected. */
  private readonly rejectedSinceMs = new Map<Channel, number>();
  private readonly recoveries = new Map<Channel, Promise<boolean>>();
  private vainRecoveries = 0;
  private vainLockouts = 0;
  private throttledUntilMs = 0;
  private unsteadyUntilMs = -Infinity;
  /** False once a request failed through all retries although others were served. */
  private gatewayRecovers = true;
  private probes = 0;
  private readonly unread: UnreadAnswers;

  constructor(private readonly options: HealthOptions) {
    this.limit = new ConcurrencyLimit(options.concurrency, options.timeoutMs);
    this.guards = new Guards(options);
    this.unread = new UnreadAnswers(options.timeoutMs);
    const { signal } = options;
    const abort = (): void => void (this.gone ??= String(signal?.reason));
    if (signal?.aborted) abort();
    signal?.addEventListener('abort', abort, { once: true });
  }

  /** The most requests in flight during this one. */
  inFlight(exchange: Exchange): number {
    return this.inFlightOf.get(exchange) ?? 1;
  }

  // -- sending ---------------------------------------------------------------------------------

  /** Sends when health and concurrency limit allow it. Throws TargetGone. */
  admit({ channel }: RequestOut, send: () => Promise<Exchange>, access: Access): Promise<Exchange> {
    const end = (): string | undefined => this.gone ?? this.exhausted.get(channel);
    return this.limit.run(async () => {
      const waitMs = (): number => this.throttledUntilMs - this.options.clock.now();
      while (end() === undefined && waitMs() > 0) await this.pause(waitMs());
      const why = end();
      if (why !== undefined) throw new TargetGone(why);
      const flight = { most: 0 };
      this.flights.add(flight);
      for (const other of this.flights) other.most = Math.max(other.most, this.flights.size);
      try {
        const exchange = await send();
        this.inFlightOf.set(exchange, flight.most);
        return exchange;
      } finally {
        this.flights.delete(flight);
      }
    }, access);
  }

  /** Updates the health from an answer. Throws TargetGone if no further answer can be expected. */
  note(exchange: Exchange): void {
    const { request, status, transportError, durationMs, startedAtMs } = exchange;
    const { channel } = request;
    if (status >= 200 && status < 300) {
      this.limit.served(durationMs);
      if (!request.offPath) this.served.set(channel, { request, sentAtMs: startedAtMs });
      if (readToken(exchange) && this.hasRightCredentials(request)) this.earned.add(this.ownerOf(request));
    }
    this.guards.note(exchange);
    if (status > 0 && status !== 429) {
      this.rejectedInARow.delete(channel);
      this.rejectedSinceMs.delete(channel);
    }
    if (request.provoked) return;
    const { origin } = new URL(request.url);
    if (transportError?.kind === 'tls') this.giveUp(`${origin}: ${transportError.message}`);
    const canTryAnother = this.otherThan(request) !== undefined;
    const state = this.unread.someHang && canTryAnother ? 'does not answer some requests' : undefined;
    if (this.unread.isEnough(exchange, canTryAnother)) this.giveUp(this.unread.say(exchange), state);
  }

  /** The latest served request of the channel, if it is another one. */
  private otherThan(request: RequestOut): RequestOut | undefined {
    const known = this.served.get(request.channel)?.request;
    return known && !isSame(known, request) ? known : undefined;
  }

  // -- failing ---------------------------------------------------------------------------------

  /** The target, or a guard, failed or rejected under load: lowers the concurrency limit. */
  reduceLoad(): void {
    this.limit.reduce();
  }

  /**
   * Backs off after a server failure; true if the request is to be sent again, exclusively. A request that still
   * fails while another request of its channel is served is sent once more, since the server may have just
   * recovered. Throws TargetGone if nothing is served.
   */
  async isToRetry(failed: Exchange, attempt: Attempt): Promise<boolean> {
    if (attempt.isLast) return this.isToRetryElsewhere(failed, attempt);
    const isCrowded = failed.status === 503 && !attempt.failed && this.inFlight(failed) > 1;
    const first = (attempt.failed ??= failed);
    attempt.inFlight = Math.min(attempt.inFlight, this.inFlight(failed));
    // A concurrency limit frees capacity immediately; a rate limit does not.
    if (isCrowded && this.askedMs(failed) === undefined) return true;
    const { channel } = failed.request;
    const known = this.served.get(channel);
    const other = this.otherThan(failed.request);
    const hangs = isTimeout(failed);
    const isFirst = attempt.failures++ === 0;
    if (!isFirst && known && known.sentAtMs > first.startedAtMs + first.durationMs) attempt.isLast = true;
    else if (other && (!isFirst || hangs) && (await this.isServed(other, hangs))) attempt.isLast = true;
    else if (isFirst) await this.backOff(failed, 0);
    else return (attempt.isLast = await this.recover(failed, known?.request));
    return true;
  }

  /** Whether a request that was served before is served still; the target is gone if both hang. */
  private async isServed(other: RequestOut, hangs: boolean): Promise<boolean> {
    const answer = await this.options.probe(varied(other, this.probes++));
    if (hangs && isTimeout(answer)) this.giveUp(this.unread.say(answer));
    return !isServerFailure(answer);
  }

  /**
   * One of several instances may be failing: retries once without a wait, which may reach another instance, and then
   * with backoff while other failed requests are served on retry. A gateway that chooses the instance by the URL, or
   * keeps failures, is waited for as well, until that was in vain once.
   */
  private async isToRetryElsewhere(failed: Exchange, attempt: Attempt): Promise<boolean> {
    if (isTimeout(failed)) {
      attempt.hangs = attempt.failed !== undefined && isTimeout(attempt.failed) && this.noteHang(failed);
      return false;
    }
    const other = this.otherThan(failed.request);
    if (other && (await this.guards.closesBoth(failed, other, attempt))) return this.recover(failed, other);
    if (attempt.elsewhere > BACKOFFS) return (this.gatewayRecovers = false);
    if (attempt.elsewhere > 0) {
      const isUnsteady = this.options.clock.now() <= this.unsteadyUntilMs || this.guards.hasClosed(failed);
      if (!isUnsteady && !(this.gatewayRecovers && isGatewayStatus(failed.status))) return false;
      await this.backOff(failed, attempt.elsewhere - 1);
    }
    attempt.elsewhere++;
    return true;
  }

  /** Notes a request that hung twice although another one was answered in between. False for a guess, which a guard may delay. */
  private noteHang({ request }: Exchange): boolean {
    this.unread.noteHang();
    const { authorization } = request;
    return request.channel === 'token'
      ? !formValue(request, 'client_secret') || this.hasRightCredentials(request)
      : authorization.kind !== 'header' || authorization.of !== undefined;
  }

  /** Notes that a failed request was served on retry. */
  noteAccident(): void {
    this.vainRecoveries = 0;
    this.unsteadyUntilMs = this.options.clock.now() + UNSTEADY_MS;
  }

  /** Whether the target serves again; all requests of a channel that failed together share one wait. */
  private recover(failed: Exchange, known: RequestOut | undefined): Promise<boolean> {
    const { channel } = failed.request;
    const running =
      this.recoveries.get(channel) ??
      this.awaitRecovery(failed, known).finally(() => this.recoveries.delete(channel));
    this.recoveries.set(channel, running);
    return running;
  }

  private async awaitRecovery(failed: Exchange, known: RequestOut | undefined): Promise<boolean> {
    // The window of ten seconds of a guard may be longer, because HAProxy weights the one before it.
    const guarded = this.guards.mayHaveClosed(failed) ? 1 : 0;
    const unknown = BACKOFFS_UNKNOWN[failed.transportError ? 'broken' : 'failed'];
    const most = known || isGatewayStatus(failed.status) ? BACKOFFS + guarded : unknown;
    let last = failed;
    for (let backoff = 1; backoff < most; backoff++) {
      await this.backOff(last, backoff);
      last = await this.options.probe(known ? varied(known, this.probes++) : ofOneDay(failed.request));
      if (!isServerFailure(last)) return true;
    }
    const { request, status, transportError } = last;
    const { origin } = new URL(request.url);
    if (transportError?.kind === 'refused')
      this.giveUp(`no connection to ${origin} (${transportError.message})`);
    const remedy = this.served.size === 0 ? '; check the scheme and the port of its URL' : '';
    if (transportError)
      this.giveUp(`every connection to ${origin} breaks (${transportError.message})${remedy}`);
    const isDown = isGatewayStatus(status) || (known && ++this.vainRecoveries >= VAIN_IN_A_ROW);
    if (isDown) this.giveUp(`${origin} answers ${status} to everything`);
    return false;
  }

  private askedMs(exchange: Exchange): number | undefined {
    return retryAfterMs(exchange, this.options.answeredAtMs(exchange));
  }

  private backOff(failed: Exchange, times: number): Promise<void> {
    const askedMs = Math.min(this.askedMs(failed) ?? 0, LONGEST_BACKOFF_MS);
    return this.pause(Math.max(askedMs, BACKOFF_MS * 2 ** times));
  }

  // -- throttled -------------------------------------------------------------------------------

  /**
   * Notes a 429: nothing is sent until its wait ends. False if a suspicious request is rejected for its content.
   * Throws Untested if the waits are used up, and TargetGone if nothing else is served either. `isJudged`:
   * observers judge the rejection, which gives the end of the run its evidence.
   */
  async isThrottled(exchange: Exchange, attempt: Attempt, isJudged: boolean): Promise<boolean> {
    this.limit.reduce();
    const { request } = exchange;
    const askedMs = this.askedMs(exchange) ?? 0;
    const guessMs = Math.min(BACKOFF_MS * 2 ** attempt.throttles, LONGEST_BACKOFF_MS);
    const waitMs = Math.max(askedMs, guessMs);
    attempt.throttledMs += waitMs;
    const longestMs =
      askedMs > guessMs ? Math.max(LONGEST_WAIT_MS, Math.min(askedMs, LONGEST_ASKED_MS)) : LONGEST_GUESS_MS;
    const nowMs = this.options.clock.now();
    // Long after the last wait a rejection is a new one: it may have been of a request that was not sent again.
    const isOngoing = nowMs - exchange.durationMs < this.throttledUntilMs + UNSTEADY_MS;
    const sinceMs = (isOngoing ? this.rejectedSinceMs.get(request.channel) : undefined) ?? nowMs;
    this.rejectedSinceMs.set(request.channel, sinceMs);
    // Requests that wait for one another have waited as long as the first of them.
    const waitedMs = Math.max(attempt.throttledMs, nowMs - sinceMs);
    if (attempt.throttles++ >= MOST_THROTTLES || waitedMs > longestMs) {
      if (request.suspicious) return false;
      const isEvidence = isJudged && isPlain(request);
      throw this.keepsRejecting(
        request,
        waitedMs,
        waitMs,
        isEvidence || (await this.isEverythingRejected(request)),
      );
    }
    this.waitedMs += Math.max(0, nowMs + waitMs - Math.max(this.throttledUntilMs, nowMs));
    this.throttledUntilMs = Math.max(this.throttledUntilMs, nowMs + waitMs);
    return true;
  }

  /** Whether a request that was served before is rejected too: the other one was not rejected for its content. */
  private async isEverythingRejected({ channel }: RequestOut): Promise<boolean> {
    const known = this.served.get(channel);
    return known !== undefined && (await this.options.probe(known.request)).status === 429;
  }

  /** `counts`: the next such rejection in a row ends the run. */
  private keepsRejecting(
    { channel }: RequestOut,
    waitedMs: number,
    lastMs: number,
    counts: boolean,
  ): Untested {
    const asked = lastMs > LONGEST_ASKED_MS;
    const waited = `${asked ? 'with a Retry-After of' : 'for'} ${Math.round((asked ? lastMs : waitedMs) / 1000)} s`;
    if (channel === 'token' && this.wrongSecrets > 0)
      return new TargetLocked(
        `429 ${waited} after ${this.wrongSecrets} wrong secrets, because of a lockout or of a rate limit of the token endpoint: shorten the lockout or raise the limit for the run`,
      );
    const why = `the target ${asked ? 'answers' : 'kept answering'} 429 ${waited}; raise its rate limit for the run, or certify with --budget`;
    if (!counts) return new Untested(why);
    const rejected = (this.rejectedInARow.get(channel) ?? 0) + 1;
    this.rejectedInARow.set(channel, rejected);
    if (this.served.has(channel) && rejected < VAIN_IN_A_ROW) return new Untested(why);
    this.exhausted.set(channel, why);
    return new TargetGone(why);
  }

  // -- locked ----------------------------------------------------------------------------------

  /**
   * Waits until a lockout ends; true if the request is to be sent again. Wrong secrets, also those of other users
   * of the client, lock a client: credentials that were accepted before are refused. Throws TargetLocked.
   */
  async isUnlocked(refused: Exchange, attempt: Attempt): Promise<boolean> {
    const { request, status } = refused;
    if (request.channel !== 'token' || request.provoked || !LOCKED.includes(status)) return false;
    const owner = this.ownerOf(request);
    const earned = this.earned.has(owner);
    const valid = this.options.tokenRequest(earned ? owner : 'primary');
    const guessed = this.wrongSecrets > 0;
    // Most requests that get 400 are invalid.
    if (status === 400 && !(guessed && earned && formOf(request) === formOf(valid))) return false;
    const isRight = this.hasRightCredentials(request);
    if (status === 401 && !isRight) this.wrongSecrets++;
    // A guard may refuse every client.
    const isGuarded = isGuardRefusal(refused) && this.earned.size > 0;
    const mayBeLocked = (isRight || status !== 401) && (guessed || earned || isGuarded);
    if (!mayBeLocked || attempt.lockouts++ >= MOST_LOCKOUTS) return false;
    // It may count requests in flight, or rejections.
    if (isGuarded) this.limit.reduce();
    for (let probes = 0; probes < LOCKOUT_PROBES; probes++) {
      // A lockout lasts: a request that is served immediately was refused for another reason.
      if (readToken(await this.options.probe(valid))) {
        this.vainLockouts = 0;
        if (guessed && isRight && probes === 0) this.refusedOnce = refused;
        return guessed || probes > 0 || status !== 401;
      }
      if (this.vainLockouts >= VAIN_LOCKOUTS) break;
      await this.pause(500 * 2 ** probes);
    }
    this.vainLockouts++;
    const after = guessed ? ` after ${this.wrongSecrets} wrong secrets` : ', which earned a token before';
    throw new TargetLocked(`right credentials are answered ${status}${after}: ${SHORTEN}`);
  }

  /** The client with that client_id. */
  private ownerOf(request: RequestOut): ClientName {
    const { clients } = this.options.target;
    const id = formValue(request, 'client_id');
    const names = Object.keys(clients) as ClientName[];
    return names.find((name) => clients[name]?.clientId === id) ?? 'primary';
  }

  private hasRightCredentials(request: RequestOut): boolean {
    return Object.values(this.options.target.clients).some(
      ({ clientId, clientSecret }) =>
        clientId === formValue(request, 'client_id') && clientSecret === formValue(request, 'client_secret'),
    );
  }

  // -- gone ------------------------------------------------------------------------------------

  private giveUp(why: string, state = 'stopped answering'): never {
    this.gone = `${this.served.size > 0 ? `the target ${state}: ` : ''}${why}${this.options.because ?? ''}`;
    throw new TargetGone(this.gone);
  }

  /** Ends early on abort; the next request reports the reason. */
  private pause(ms: number): Promise<void> {
    return this.options.clock.sleep(ms, this.options.signal);
  }
}
