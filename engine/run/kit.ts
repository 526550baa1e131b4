/**
 * The interface of checks to a run: the target, a well-behaved client, and a ledger. Every exchange that
 * passes through here is held against everything that any exchange can break.
 */
import { systemClock, type Clock } from '../clock.ts';
import { Client, type SendOptions } from '../client/client.ts';
import { sayRequest, type Authorization, type Exchange, type RequestOut } from '../client/exchange.ts';
import type { PageQuery } from '../client/page.ts';
import type { Token } from '../client/token.ts';
import { sayMismatch, type Judge, type MismatchWithEvidence } from '../checks/mismatch.ts';
import type { Oracle } from '../data/oracle.ts';
import { ShareSpent } from '../errors.ts';
import type { RequirementId } from '../requirements.ts';
import type { ClientName, Target } from '../target/target.ts';
import { confirmFindings } from './attribution/confirm-findings.ts';
import { environmentNotes } from './attribution/environment-notes.ts';
import { incidentsFinding } from './attribution/incidents.ts';
import type { Baseline } from './combinations/factors.ts';
import { Watch } from './observers/watch.ts';
import type { KitOptions } from './options.ts';
import { PageRequests, type PageOptions } from './page-requests.ts';
import type { RunContext } from './state/context.ts';
import { Knowledge } from './state/knowledge.ts';
import { Ledger, type Finding, type NewFinding } from './state/ledger.ts';
import { oracleOf, tenantOf } from './tenants.ts';

export class Kit implements AsyncDisposable, RunContext {
  readonly client: Client;
  readonly ledger = new Ledger();
  readonly knowledge = new Knowledge();
  /** What combinations are made of, once a rule was asked in them. */
  baseline: Baseline | undefined;
  /** Sees each explicit check: what it is held against, and the mismatch in words. */
  onCheck: ((id: RequirementId, label: string, mismatch: string | undefined) => void) | undefined;
  private readonly watch: Watch;
  private readonly memory = new Map<string, Promise<unknown>>();
  private readonly requests = new PageRequests(this);

  /** As its file says, but for members that turned out to be wrong. */
  readonly target: Target;
  readonly clock: Clock;

  constructor(
    target: Target,
    readonly options: KitOptions,
  ) {
    this.target = { ...target };
    const { maxRequests, budget, timeoutMs, concurrency, signal, clock = systemClock } = options;
    this.clock = clock;
    this.client = new Client(this.target, {
      maxRequests,
      budget,
      timeoutMs,
      concurrency,
      signal,
      clock,
      dispatcher: options.dispatcher,
      onExchange: (exchange) => this.watch.observe(exchange),
      onAnswer: (exchange) => {
        if (exchange.http2Failure) this.ledger.observe('http2', exchange.http2Failure);
        options.onExchange?.(exchange);
      },
      onIncident: (failed, inFlight) =>
        this.ledger.incidents.push({ failed, inFlight, servedAtMs: Date.now() }),
    });
    this.watch = new Watch(this);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client[Symbol.asyncDispose]();
  }

  /** Computes a shared basis once: what several probes look at, such as the survey. */
  once<T>(name: string, compute: () => Promise<T>): Promise<T> {
    const known = this.memory.get(name);
    if (known) return known as Promise<T>;
    const running = compute();
    this.memory.set(name, running);
    // Cut short for want of budget, it may be afforded later.
    running.catch((error: unknown) => {
      if (error instanceof ShareSpent) this.memory.delete(name);
    });
    return running;
  }

  /** How long something is waited for that may show late. */
  pollingMs(usualMs: number): number {
    return usualMs * (this.options.pollingScale ?? 1);
  }

  // -- the tenant ------------------------------------------------------------------------------

  tenantOf(client: ClientName = 'primary'): Promise<string> {
    return tenantOf(this, client);
  }

  token(client: ClientName = 'primary'): Promise<Token> {
    return this.client.token(client);
  }

  /** The known screenings of a client: its dataset, else those of answers. */
  oracle(client: ClientName = 'primary'): Promise<Oracle> {
    return oracleOf(this, client);
  }

  /** Forgets what is known of a tenant that the kit itself fills, and starts from what it put in. */
  learn(tenantId: string, known: Oracle): void {
    this.knowledge.set(tenantId, known);
  }

  // -- asking ----------------------------------------------------------------------------------

  request(tenantId: string, query: string, authorization: Authorization): RequestOut {
    return this.requests.request(tenantId, query, authorization);
  }

  send(request: RequestOut, options?: Pick<SendOptions, 'alone'>): Promise<Exchange> {
    return this.client.send(request, options);
  }

  /** The answer to a valid query, whatever it is (PageRequests.ask). */
  ask(query: PageQuery, options?: PageOptions): Promise<Exchange> {
    return this.requests.ask(query, options);
  }

  /** The page that a valid query gives. Throws PreconditionFailed where there is none. */
  page(query: PageQuery, options?: PageOptions): Promise<Exchange> {
    return this.requests.page(query, options);
  }

  /** Follows a `next` as it is given (section 4.2 rule 5). */
  follow(url: string, client?: ClientName, authorization?: Authorization): Promise<Exchange> {
    return this.requests.follow(url, client, authorization);
  }

  // -- judging ---------------------------------------------------------------------------------

  /** Holds an exchange against a sentence. True where it holds. */
  check(
    id: RequirementId,
    exchange: Exchange,
    judge: Judge,
    cause = 'probe',
    varied?: readonly string[],
  ): boolean {
    this.ledger.check(id);
    const mismatch = judge(exchange);
    this.onCheck?.(id, `${sayRequest(exchange.request)} (${cause})`, mismatch && sayMismatch(mismatch));
    if (mismatch) this.ledger.add({ id, cause, mismatch, exchange, judge, varied });
    return mismatch === undefined;
  }

  /**
   * Holds several answers against a law; `run` is asked again to confirm. `needsAgain`: seen once only,
   * data that arrived in between explains it. True where it holds.
   */
  async checkAll(
    id: RequirementId,
    cause: string,
    run: () => Promise<MismatchWithEvidence | undefined>,
    { needsAgain }: { needsAgain?: boolean } = {},
  ): Promise<boolean> {
    this.ledger.check(id);
    const mismatch = await run();
    this.onCheck?.(id, cause, mismatch && sayMismatch(mismatch));
    if (mismatch) {
      const { exchange, counterexample } = mismatch;
      this.ledger.add({ id, cause, mismatch, exchange, counterexample, again: run, needsAgain });
    }
    return mismatch === undefined;
  }

  fail(finding: NewFinding): void {
    this.ledger.add(finding);
  }

  /** Judges an exchange from a recording by all observers, except for `except`. */
  judgeRecorded(exchange: Exchange, except: ReadonlySet<RequirementId>): void {
    this.watch.judgeRecorded(exchange, except);
  }

  // -- asking again ----------------------------------------------------------------------------

  /** Asks every finding again that was not asked for again yet; the ones that stand. */
  confirmFindings(): Promise<readonly Finding[]> {
    return this.watch.without(() => confirmFindings(this, this.baseline));
  }

  /**
   * The end of a run: what later answers showed of earlier ones, such as a page that lacks a screening of its
   * stretch, seen before or since.
   */
  async conclude(): Promise<readonly Finding[]> {
    await this.watch.lookBack();
    for (const note of environmentNotes(this.target, this.client.clock)) this.ledger.notes.add(note);
    const incidents = incidentsFinding(this.ledger.incidents, this.client.requests);
    if (incidents) this.ledger.add(incidents);
    return this.confirmFindings();
  }
}
