/**
 * The interface of checks to a run: the target, a well-behaved client, and a ledger. Every exchange that
 * passes through here is held against everything that any exchange can break.
 */
import { systemClock, type Clock } from '../clock.ts';
import { Client, type ClientOptions, type SendOptions } from '../client/client.ts';
import { isUnread, type Authorization, type Exchange, type RequestOut } from '../client/exchange.ts';
import { pageUrl, screeningsUrl, type PageQuery } from '../client/page.ts';
import type { Token } from '../client/token.ts';
import { Oracle } from '../data/oracle.ts';
import type { RequirementId } from '../requirements.ts';
import type { ClientName, Target } from '../target/target.ts';
import { sayMismatch, type Judge, type MismatchWithEvidence } from '../checks/mismatch.ts';
import type { Baseline } from './combinations/factors.ts';
import { DIALECTS } from './combinations/dialects.ts';
import { confirm, type ConfirmContext } from './attribution/confirmation.ts';
import type { RunContext } from './state/context.ts';
import { withMinimalCombination } from './attribution/minimal-combination.ts';
import { simplerQueries } from './attribution/rejected-parameter.ts';
import { Ledger, type Finding, type NewFinding } from './state/ledger.ts';
import { sayRefusal, answered200 } from '../checks/errors.ts';
import { environmentNotes } from './attribution/environment-notes.ts';
import { incidentsFinding } from './attribution/incidents.ts';
import { AnswerTooLarge, PreconditionFailed, ShareSpent, SupplyUnusable, Untested } from '../errors.ts';
import { lookAtDataset } from './observers/served-dataset.ts';
import { Knowledge } from './state/knowledge.ts';
import { Watch } from './observers/watch.ts';
import { clientsInDoubt, correctTenant } from './attribution/wrong-supplies.ts';

export interface KitOptions {
  /** Replays the same random cases. */
  readonly seed: number;
  /** Cases a law tries. */
  readonly runs: number;
  readonly maxRequests: number;
  /** Requests of the whole run: the most telling ones first, a share for each check. */
  readonly budget?: number | undefined;
  readonly timeoutMs: number;
  /** Requests in flight, at most. */
  readonly concurrency?: number | undefined;
  /** Of fast-check: together with `seed`, the one case of a law that a report printed. */
  readonly path?: string | undefined;
  /** Limits of shrinking a counterexample: evaluations, and milliseconds. */
  readonly shrink?: { readonly evaluations?: number; readonly timeMs?: number } | undefined;
  /** Sees every exchange of the run, those of retries and confirmations too. */
  readonly onExchange?: ((exchange: Exchange) => void) | undefined;
  /** Wait until a token of the run has expired, where none is supplied (class expiry). */
  readonly waitForExpiry?: boolean | undefined;
  /** For what may show late: 1 waits as long as is usual, 0.1 a tenth of it. */
  readonly pollingScale?: number | undefined;
  /** Ends the run: nothing more is sent. Its reason is told. */
  readonly signal?: AbortSignal | undefined;
  /** The clock of all waits. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** Takes the requests in place of the network. */
  readonly dispatcher?: ClientOptions['dispatcher'];
}

export const DEFAULTS = { runs: 10, maxRequests: 6000, timeoutMs: 10_000 } as const;

export interface PageOptions {
  readonly client?: ClientName;
  /** Whose path; else the client's own. */
  readonly tenantId?: string;
  /** Requirement to report when this valid request does not return 200. */
  readonly id?: RequirementId;
  /** Another token than the client's current one. */
  readonly authorization?: Authorization;
  /** Puts the request in another dialect, which means the same. */
  readonly speak?: (request: RequestOut) => RequestOut;
}

const keyOf = (request: RequestOut | undefined): string =>
  JSON.stringify(request && [request.method, request.url, request.headers, request.authorization]);

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
  /** Clients whose own path was served. */
  private readonly onboarded = new Set<ClientName>();
  /** The requirement under which an answer to a valid request was reported. */
  private readonly attributedTo = new WeakMap<Exchange, RequirementId>();

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
      onAnswer: options.onExchange,
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

  /** The tenant that a client is provisioned for: as the target file says, else as its token says. */
  async tenantOf(client: ClientName = 'primary'): Promise<string> {
    const credentials = this.target.clients[client];
    if (!credentials) throw new Untested(`supply clients.${client} in the target file`);
    // Primary's is looked at before anything is asked.
    if (client !== 'primary') await correctTenant(this, client);
    const tenantId = this.target.clients[client]?.tenantId ?? (await this.client.token(client)).tenantId;
    if (!tenantId)
      throw new Untested(
        `the token of clients.${client} names no tenant_id; supply clients.${client}.tenantId`,
      );
    return tenantId;
  }

  token(client: ClientName = 'primary'): Promise<Token> {
    return this.client.token(client);
  }

  /** The known screenings of a client: its dataset, else those of answers. */
  async oracle(client: ClientName = 'primary'): Promise<Oracle> {
    const tenantId = (await this.tenantOf(client)).toLowerCase();
    const existing = this.knowledge.oracleOf(tenantId);
    if (existing) return existing;
    const dataset =
      client === 'primary'
        ? this.target.dataset
        : client === 'secondTenant'
          ? this.target.secondDataset
          : undefined;
    if (dataset) this.knowledge.record(client, tenantId, dataset);
    if (client === 'primary') this.knowledge.recordUnfinished(tenantId, this.target.unfinished ?? []);
    const known = dataset
      ? await this.once(`dataset of ${client}`, () => lookAtDataset(this, client, dataset))
      : new Oracle(false);
    // Whoever came first has put it there.
    if (!this.knowledge.oracleOf(tenantId)) this.knowledge.set(tenantId, known);
    return this.knowledge.oracleOf(tenantId)!;
  }

  /** Forgets what is known of a tenant that the kit itself fills, and starts from what it put in. */
  learn(tenantId: string, known: Oracle): void {
    this.knowledge.set(tenantId, known);
  }

  // -- asking ----------------------------------------------------------------------------------

  /** A request to the screenings path, with the query as it is to stand on the wire. */
  request(tenantId: string, query: string, authorization: Authorization): RequestOut {
    return {
      channel: 'rest',
      method: 'GET',
      url: `${screeningsUrl(this.target.baseUrl, tenantId)}${query}`,
      headers: { ...this.target.headers, accept: 'application/json' },
      authorization,
    };
  }

  send(request: RequestOut, options?: Pick<SendOptions, 'alone'>): Promise<Exchange> {
    return this.client.send(request, options);
  }

  /**
   * The answer to a valid query, whatever it is. One that is not 200 breaks `id`; where none is given, the
   * requirement whose part of the query the target stumbles over, else 4.2-success.
   */
  async ask(
    query: PageQuery,
    { client = 'primary', tenantId, id, authorization = { kind: 'client', client }, speak }: PageOptions = {},
  ): Promise<Exchange> {
    const tenant = tenantId ?? (await this.tenantOf(client));
    await this.oracle(client);
    const requestFor = (asked: PageQuery): RequestOut => ({
      ...this.request(tenant, '', authorization),
      url: pageUrl(this.target.baseUrl, tenant, asked),
    });
    const exchange = await this.deliver((speak ?? same)(requestFor(query)));
    if (exchange.status === 404 && client !== 'primary' && !this.onboarded.has(client))
      throw new SupplyUnusable(
        `the tenant of clients.${client} is not onboarded: its own path was answered ${sayRefusal(exchange)}`,
      );
    this.onboarded.add(client);
    const refused = exchange.status >= 400 && exchange.status < 500;
    const isDialect = refused && speak && (await this.client.send(requestFor(query))).status === 200;
    const blamed =
      id ?? (refused && !isDialect ? await this.isolateRejectedParameter(query, requestFor) : '4.2-success');
    const varied = isDialect ? DIALECTS.map(({ name }) => name) : undefined;
    if (!this.check(blamed, exchange, answered200, varied ? 'dialect' : 'probe', varied))
      this.attributedTo.set(exchange, blamed);
    return exchange;
  }

  /** Which part of a refused query makes the difference: without it, the same is answered 200. */
  private async isolateRejectedParameter(
    query: PageQuery,
    requestFor: (query: PageQuery) => RequestOut,
  ): Promise<RequirementId> {
    for (const [id, without] of simplerQueries(query)) {
      const simpler = await this.client.send(requestFor(without));
      if (simpler.status === 200) return id;
    }
    return '4.2-success';
  }

  /** The page that a valid query gives. Throws PreconditionFailed where there is none. */
  async page(query: PageQuery, options: PageOptions = {}): Promise<Exchange> {
    return this.must200(await this.ask(query, options));
  }

  /** Follows a `next` as it is given (section 4.2 rule 5). */
  async follow(
    url: string,
    client: ClientName = 'primary',
    authorization: Authorization = { kind: 'client', client },
  ): Promise<Exchange> {
    const exchange = await this.deliver({
      ...this.request('', '', authorization),
      url,
      followed: true,
      traversalSeq: this.knowledge.traversalSeqOf(url),
    });
    if (!this.check('4.2-r5-exactly-once', exchange, answered200))
      this.attributedTo.set(exchange, '4.2-r5-exactly-once');
    return exchange;
  }

  /** The answer to a valid request. Throws Untested where none comes in time. */
  private async deliver(request: RequestOut): Promise<Exchange> {
    const exchange = await this.client.send(request);
    if (isUnread(exchange)) {
      const Reason = exchange.transportError?.kind === 'too-large' ? AnswerTooLarge : Untested;
      throw new Reason(`${exchange.transportError!.message}: ${describe(request)}`);
    }
    return exchange;
  }

  private must200(exchange: Exchange): Exchange {
    if (exchange.status === 200) return exchange;
    throw new PreconditionFailed(
      `it rests on ${describe(exchange.request)}, which was answered ${sayRefusal(exchange)}`,
      this.attributedTo.get(exchange),
    );
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
    this.onCheck?.(id, `${describe(exchange.request)} (${cause})`, mismatch && sayMismatch(mismatch));
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
  async confirmFindings(): Promise<readonly Finding[]> {
    return this.watch.without(async () => {
      const context: ConfirmContext = {
        send: (request, options) => this.client.send(request, options),
        oracleOf: this.knowledge.oracleOf,
        pages: this.knowledge.pages,
      };
      for (const client of clientsInDoubt(this)) await correctTenant(this, client);
      const stand: Finding[] = [];
      // What one answer breaks stays one answer where it is made smaller.
      const asked = new Map(
        this.ledger.unconfirmed.map(({ exchange }) => [keyOf(exchange?.request), exchange]),
      );
      const askOnce = async (request: RequestOut): Promise<Exchange> => {
        const exchange = asked.get(keyOf(request)) ?? (await context.send(request));
        asked.set(keyOf(request), exchange);
        return exchange;
      };
      for (const finding of this.ledger.unconfirmed) {
        const confirmed = await confirm(finding, context);
        const kept = confirmed && (await withMinimalCombination(confirmed, this.baseline, askOnce));
        this.ledger.settle(finding, kept);
        if (kept) stand.push(kept);
      }
      return stand;
    });
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

export function requireSecondTenant(kit: Kit): void {
  if (!kit.target.clients.secondTenant) throw new Untested('supply clients.secondTenant in the target file');
}

export const describe = (request: RequestOut): string => `${request.method} ${request.url}`;

const same = (request: RequestOut): RequestOut => request;
