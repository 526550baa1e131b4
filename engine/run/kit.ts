/**
 * The interface of checks to a run: the target, the client, and the ledger. Observers judge every exchange that
 * passes through it.
 */
import { systemClock, type Clock } from '../clock.ts';
import { Client, type SendOptions } from '../client/client.ts';
import { isUnread, sayRequest, type Exchange, type RequestOut } from '../client/exchange.ts';
import { pageUrl, screeningsUrl, type PageQuery } from '../client/page.ts';
import type { Token } from '../client/token.ts';
import { answered200, sayRefusal } from '../checks/errors.ts';
import { sayMismatch, type Judge, type MismatchWithEvidence } from '../checks/mismatch.ts';
import { formatInstant, instant, isMovable, type Instant } from '../data/instant.ts';
import type { Oracle } from '../data/oracle.ts';
import { AnswerTooLarge, BudgetExhausted, PreconditionFailed, SupplyUnusable, Untested } from '../errors.ts';
import type { RequirementId } from '../requirements.ts';
import type { ClientName, Target } from '../target/target.ts';
import { confirmFindings } from './attribution/confirmation.ts';
import {
  brokenConnectionsFinding,
  environmentNotes,
  incidentsFinding,
  lostBodiesNotes,
} from './attribution/incidents.ts';
import { DIALECTS } from './combinations/dialects.ts';
import type { Baseline } from './combinations/factors.ts';
import { ExchangeObserver } from './observers/exchange-observer.ts';
import type { KitOptions, RunContext, Sender } from './state/context.ts';
import { Knowledge } from './state/knowledge.ts';
import { Ledger, type Finding, type NewFinding } from './state/ledger.ts';
import { oracleOf, tenantOf } from './tenants.ts';

export interface PageOptions {
  readonly client?: ClientName;
  /** The tenant in the path; default: the client's own. */
  readonly tenantId?: string;
  /** Requirement to report when this valid request does not return 200. */
  readonly id?: RequirementId;
  /** Replaces the client's current token. */
  readonly authorization?: Sender;
  /** Rewrites the request in an equivalent dialect. */
  readonly toDialect?: (request: RequestOut) => RequestOut;
}

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
  /** Clients whose own path was served. */
  private readonly onboarded = new Set<ClientName>();
  /** The requirement under which an answer to a valid request was reported. */
  private readonly attributedTo = new WeakMap<Exchange, RequirementId>();

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
  send(request: RequestOut, options?: SendOptions): Promise<Exchange> {
    return this.client.send(request, options);
  }

  /**
   * The answer to a valid query, of any status. If it is not 200, it breaks `id`; without `id`, the requirement for
   * the rejected part of the query, or 4.2-success.
   */
  async ask(
    query: PageQuery,
    { client = 'primary', tenantId, id, authorization = client, toDialect }: PageOptions = {},
  ): Promise<Exchange> {
    const tenant = tenantId ?? (await this.tenantOf(client));
    await this.oracle(client);
    const requestFor = (asked: PageQuery): RequestOut => this.request(tenant, asked, authorization);
    const usual = requestFor(query);
    const exchange = await this.sendReadable(toDialect?.(usual) ?? usual);
    if (exchange.status === 404 && client !== 'primary' && !this.onboarded.has(client))
      throw new SupplyUnusable(
        `the tenant of clients.${client} is not onboarded: its own path was answered ${sayRefusal(exchange)}`,
      );
    this.onboarded.add(client);
    const refused = exchange.status >= 400 && exchange.status < 500;
    const isDialect = refused && toDialect && (await this.send(usual)).status === 200;
    const broken =
      id ?? (refused && !isDialect ? await this.isolateRejectedParameter(query, requestFor) : '4.2-success');
    return isDialect
      ? this.require200(
          broken,
          exchange,
          'dialect',
          DIALECTS.map(({ name }) => name),
        )
      : this.require200(broken, exchange);
  }

  /** The requirement for the part of a rejected query without which the target answers 200. */
  private async isolateRejectedParameter(
    query: PageQuery,
    requestFor: (query: PageQuery) => RequestOut,
  ): Promise<RequirementId> {
    for (const [id, without] of simplerQueries(query))
      if ((await this.send(requestFor(without))).status === 200) return id;
    return '4.2-success';
  }

  /** The page for a valid query. Throws PreconditionFailed if there is none. */
  async page(query: PageQuery, options?: PageOptions): Promise<Exchange> {
    const exchange = await this.ask(query, options);
    if (exchange.status === 200) return exchange;
    throw new PreconditionFailed(
      `it rests on ${sayRequest(exchange.request)}, which was answered ${sayRefusal(exchange)}`,
      this.attributedTo.get(exchange),
    );
  }

  /** The answer to a `next`, which is sent unchanged; anything but 200 breaks 4.2-r5-exactly-once. */
  async follow(url: string, by?: Sender): Promise<Exchange> {
    const traversalSeq = this.knowledge.traversalSeqOf(url);
    const request = { ...this.requestTo(url, by), followed: true, traversalSeq };
    return this.require200('4.2-r5-exactly-once', await this.sendReadable(request));
  }

  /** The answer to a valid request. Throws Untested if none can be read in time. */
  private async sendReadable(request: RequestOut): Promise<Exchange> {
    const exchange = await this.send(request);
    if (isUnread(exchange)) {
      const Reason = exchange.transportError?.kind === 'too-large' ? AnswerTooLarge : Untested;
      throw new Reason(`${exchange.transportError!.message}: ${sayRequest(request)}`);
    }
    return exchange;
  }

  private require200(
    id: RequirementId,
    exchange: Exchange,
    ...more: [cause?: string, varied?: readonly string[]]
  ): Exchange {
    if (!this.check(id, exchange, answered200, ...more)) this.attributedTo.set(exchange, id);
    return exchange;
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

/** The query without one of its parts, each with the requirement for that part. */
function simplerQueries(query: PageQuery): [RequirementId, PageQuery][] {
  const { from, to, pageSize } = query;
  const rewritten = (text: string, at: Instant): string => (isMovable(at) ? formatInstant(at) : text);
  const plain = (text: string): string => rewritten(text, instant(text));
  const whole = (text: string): string => rewritten(text, { ...instant(text), fraction: '' });
  const simpler: [RequirementId, PageQuery][] = [
    ['4.2-from_id', { ...query, fromId: undefined }],
    ['4.2-pageSize-bounds', { ...query, pageSize: pageSize === undefined ? undefined : 10 }],
    ['4.2-offsets', { ...query, from: plain(from), to: plain(to) }],
    ['4.2-fractions', { ...query, from: whole(from), to: whole(to) }],
  ];
  const url = pageUrl('', '', query);
  return simpler.filter(([, without]) => pageUrl('', '', without) !== url);
}
