/** Valid page requests, and attribution of their rejections. */
import { isUnread, sayRequest, type Exchange, type RequestOut } from '../client/exchange.ts';
import { pageUrl, type PageQuery } from '../client/page.ts';
import { answered200, sayRefusal } from '../checks/errors.ts';
import type { Judge } from '../checks/mismatch.ts';
import type { Oracle } from '../data/oracle.ts';
import { AnswerTooLarge, PreconditionFailed, SupplyUnusable, Untested } from '../errors.ts';
import type { RequirementId } from '../requirements.ts';
import type { ClientName } from '../target/target.ts';
import { DIALECTS } from './combinations/dialects.ts';
import type { RunContext, Sender } from './state/context.ts';
import { formatInstant, instant, isMovable, type Instant } from '../data/instant.ts';

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

/** What page requests need in addition to the run's context. */
interface JudgingRun extends RunContext {
  oracle(client: ClientName): Promise<Oracle>;
  check(
    id: RequirementId,
    exchange: Exchange,
    judge: Judge,
    cause?: string,
    varied?: readonly string[],
  ): boolean;
}

export class PageRequests {
  /** Clients whose own path was served. */
  private readonly onboarded = new Set<ClientName>();
  /** The requirement under which an answer to a valid request was reported. */
  private readonly attributedTo = new WeakMap<Exchange, RequirementId>();

  constructor(private readonly run: JudgingRun) {}

  /**
   * The answer to a valid query, of any status. If it is not 200, it breaks `id`; without `id`, the requirement for
   * the rejected part of the query, or 4.2-success.
   */
  async ask(
    query: PageQuery,
    { client = 'primary', tenantId, id, authorization = client, toDialect }: PageOptions = {},
  ): Promise<Exchange> {
    const tenant = tenantId ?? (await this.run.tenantOf(client));
    await this.run.oracle(client);
    const requestFor = (asked: PageQuery): RequestOut => this.run.request(tenant, asked, authorization);
    const exchange = await this.sendReadable((toDialect ?? same)(requestFor(query)));
    if (exchange.status === 404 && client !== 'primary' && !this.onboarded.has(client))
      throw new SupplyUnusable(
        `the tenant of clients.${client} is not onboarded: its own path was answered ${sayRefusal(exchange)}`,
      );
    this.onboarded.add(client);
    const refused = exchange.status >= 400 && exchange.status < 500;
    const isDialect = refused && toDialect && (await this.run.client.send(requestFor(query))).status === 200;
    const attributed =
      id ?? (refused && !isDialect ? await this.isolateRejectedParameter(query, requestFor) : '4.2-success');
    const varied = isDialect ? DIALECTS.map(({ name }) => name) : undefined;
    if (!this.run.check(attributed, exchange, answered200, varied ? 'dialect' : 'probe', varied))
      this.attributedTo.set(exchange, attributed);
    return exchange;
  }

  /** The requirement for the part of a rejected query without which the target answers 200. */
  private async isolateRejectedParameter(
    query: PageQuery,
    requestFor: (query: PageQuery) => RequestOut,
  ): Promise<RequirementId> {
    for (const [id, without] of simplerQueries(query)) {
      const simpler = await this.run.client.send(requestFor(without));
      if (simpler.status === 200) return id;
    }
    return '4.2-success';
  }

  /** The page for a valid query. Throws PreconditionFailed if there is none. */
  async page(query: PageQuery, options: PageOptions = {}): Promise<Exchange> {
    return this.must200(await this.ask(query, options));
  }

  /** Follows a `next` unchanged (section 4.2 rule 5). */
  async follow(url: string, by?: Sender): Promise<Exchange> {
    const exchange = await this.sendReadable({
      ...this.run.requestTo(url, by),
      followed: true,
      traversalSeq: this.run.knowledge.traversalSeqOf(url),
    });
    if (!this.run.check('4.2-r5-exactly-once', exchange, answered200))
      this.attributedTo.set(exchange, '4.2-r5-exactly-once');
    return exchange;
  }

  /** The answer to a valid request. Throws Untested if none can be read in time. */
  private async sendReadable(request: RequestOut): Promise<Exchange> {
    const exchange = await this.run.client.send(request);
    if (isUnread(exchange)) {
      const Reason = exchange.transportError?.kind === 'too-large' ? AnswerTooLarge : Untested;
      throw new Reason(`${exchange.transportError!.message}: ${sayRequest(request)}`);
    }
    return exchange;
  }

  private must200(exchange: Exchange): Exchange {
    if (exchange.status === 200) return exchange;
    throw new PreconditionFailed(
      `it rests on ${sayRequest(exchange.request)}, which was answered ${sayRefusal(exchange)}`,
      this.attributedTo.get(exchange),
    );
  }
}

const same = (request: RequestOut): RequestOut => request;

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
  const same = (a: PageQuery): boolean => pageUrl('', '', a) === pageUrl('', '', query);
  return simpler.filter(([, without]) => !same(without));
}
