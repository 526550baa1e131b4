/**
 * The interface of checks to a run: the target, the client, and the ledger. Observers judge every exchange that
 * passes through it.
 */
import { systemClock, type Clock } from '../clock.ts';
import { Client, type SendOptions } from '../client/client.ts';
import { sayRequest, type Exchange, type RequestOut } from '../client/exchange.ts';
import { pageUrl, screeningsUrl, type PageQuery } from '../client/page.ts';
import type { Token } from '../client/token.ts';
import { sayMismatch, type Judge, type MismatchWithEvidence } from '../checks/mismatch.ts';
import type { Oracle } from '../data/oracle.ts';
import { BudgetExhausted } from '../errors.ts';
import type { RequirementId } from '../requirements.ts';
import type { ClientName, Target } from '../target/target.ts';
import { confirmFindings } from './attribution/confirmation.ts';
import {
  brokenConnectionsFinding,
  environmentNotes,
  incidentsFinding,
  lostBodiesNotes,
} from './attribution/incidents.ts';
import type { Baseline } from './combinations/factors.ts';
import { ExchangeObserver } from './observers/exchange-observer.ts';
import type { KitOptions, RunContext, Sender } from './state/context.ts';
import { PageRequests, type PageOptions } from './page-requests.ts';
import { Knowledge } from './state/knowledge.ts';
import { Ledger, type Finding, type NewFinding } from './state/ledger.ts';
import { oracleOf, tenantOf } from './tenants.ts';

export class Kit implements AsyncDisposable, RunContext {
  readonly client: Client;
  readonly ledger = new Ledger();
  readonly knowledge = new Knowledge();
  /** The request that combinations vary; set when the first rule is tested in them. */
  baseline: Baseline | undefined;
  /** Called for each explicit check with its requirement, and the mismatch in words. */
  onCheck: ((id: RequirementId, label: string, mismatch: string | undefined) => void) | undefined;
  private readonly observer: ExchangeObserver;
  private readonly memory = new Map<string, Promise<unknown>>();
  private readonly requests = new PageRequests(this);

  /** The target file, without members that turned out to be wrong. */
  readonly target: Target;
  readonly clock: Clock;

  constructor(
    target: Target,
    readonly options: KitOptions,
  ) {
    this.target = { ...target };
    this.clock = options.clock ?? systemClock;
    this.client = new Client(this.target, {
      ...options,
      onExchange: (exchange) => this.observer.observe(exchange),
      onAnswer: (exchange) => {
        if (exchange.http2Failure) this.ledger.observe('http2', exchange.http2Failure);
        options.onExchange?.(exchange);
      },
      onIncident: (failed, inFlight) => {
        const isByGuard = this.client.health.guards.mayHaveClosed(failed);
        this.ledger.incidents.push({ failed, inFlight, servedAtMs: Date.now(), isByGuard });
      },
    });
    this.observer = new ExchangeObserver(this);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client[Symbol.asyncDispose]();
  }

  once<T>(name: string, compute: () => Promise<T>): Promise<T> {
    const known = this.memory.get(name);
    if (known) return known as Promise<T>;
    const running = compute();
    this.memory.set(name, running);
    // Stopped by its budget share: a later caller may have enough.
    running.catch((error: unknown) => {
      if (error instanceof BudgetExhausted) this.memory.delete(name);
    });
    return running;
  }

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

  oracle(client: ClientName = 'primary'): Promise<Oracle> {
    return oracleOf(this, client);
  }

  // -- requests --------------------------------------------------------------------------------

  request(tenantId: string, query: string | PageQuery, by: Sender = 'primary'): RequestOut {
    const { baseUrl } = this.target;
    const isText = typeof query === 'string';
    const url = isText ? `${screeningsUrl(baseUrl, tenantId)}${query}` : pageUrl(baseUrl, tenantId, query);
    return this.requestTo(url, by);
  }

  requestTo(url: string, by: Sender = 'primary'): RequestOut {
    return {
      channel: 'rest',
      method: 'GET',
      url,
      headers: { ...this.target.headers, accept: 'application/json' },
      authorization: typeof by === 'string' ? { kind: 'client', client: by } : by,
    };
  }

  /** The answer to any request; the observers judge it, also that of the other methods here. */
  send(request: RequestOut, options?: Pick<SendOptions, 'isExclusive'>): Promise<Exchange> {
    return this.client.send(request, options);
  }

  /** The answer to a valid query, of any status (PageRequests.ask). */
  ask(query: PageQuery, options?: PageOptions): Promise<Exchange> {
    return this.requests.ask(query, options);
  }

  /** The page for a valid query. Throws PreconditionFailed if there is none. */
  page(query: PageQuery, options?: PageOptions): Promise<Exchange> {
    return this.requests.page(query, options);
  }

  /** The answer to a `next`, which is sent unchanged; anything but 200 breaks 4.2-r5-exactly-once. */
  follow(url: string, by?: Sender): Promise<Exchange> {
    return this.requests.follow(url, by);
  }

  // -- judging ---------------------------------------------------------------------------------

  /** Judges an exchange by a requirement; true if it holds. */
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

  /** Judges several answers by a law; `run` is called again for confirmation. True if it holds. */
  async checkAll(
    law: Pick<NewFinding, 'id' | 'cause' | 'needsAgain'>,
    run: () => Promise<MismatchWithEvidence | undefined>,
  ): Promise<boolean> {
    this.ledger.check(law.id);
    const mismatch = await run();
    this.onCheck?.(law.id, law.cause, mismatch && sayMismatch(mismatch));
    if (mismatch) {
      const { exchange, counterexample } = mismatch;
      this.ledger.add({ ...law, mismatch, exchange, counterexample, again: run });
    }
    return mismatch === undefined;
  }

  /** Records a finding of answers that the caller has judged. */
  fail(finding: NewFinding): void {
    this.ledger.add(finding);
  }

  judgeRecorded(exchange: Exchange, except: ReadonlySet<RequirementId>): void {
    this.observer.judgeRecorded(exchange, except);
  }

  // -- confirmation ----------------------------------------------------------------------------

  confirmFindings(): Promise<readonly Finding[]> {
    return this.observer.unobserved(() => confirmFindings(this, this.baseline));
  }

  /** Ends a run: judges earlier answers by later ones, such as a page that lacks a screening of its range. */
  async conclude(): Promise<readonly Finding[]> {
    await this.observer.judgeEarlierPages();
    const notes = [
      ...environmentNotes(this.target, this.client.clock),
      ...lostBodiesNotes(this.ledger.incidents),
    ];
    for (const note of notes) this.ledger.notes.add(note);
    const incidents = await incidentsFinding(this.ledger.incidents, this.client.requests, (request) =>
      this.client.send(request, { keep5xx: true, keep429: true, unjudged: true }),
    );
    const broken = brokenConnectionsFinding(await this.client.tryNewConnections());
    for (const finding of [incidents, broken]) if (finding) this.ledger.add(finding);
    const confirmed = await this.confirmFindings();
    // Findings about the whole run are not sent again.
    return [
      ...confirmed,
      ...this.ledger.findings.filter((one) => one.confirmed !== undefined && !one.settled),
    ];
  }
}
