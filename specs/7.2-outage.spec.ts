/** Section 7.2, late in the run: the server while the target's fault command is active, and after it. */
import { about, test } from '../fixtures/test.ts';
import { missingFrom } from '../engine/checks/coverage.ts';
import { codesOf, sayRefusal } from '../engine/checks/errors.ts';
import { differs, type Mismatch } from '../engine/checks/mismatch.ts';
import { isTrusted } from '../engine/checks/next.ts';
import { bearerOf, partsOf, withAlteredSignature } from '../engine/client/altered-token.ts';
import { isUnread, type Authorization, type Exchange, type RequestOut } from '../engine/client/exchange.ts';
import { endsEmpty, orderedItems, pageOf, shows, SOME_WINDOW } from '../engine/client/page.ts';
import { readToken, type Token } from '../engine/client/token.ts';
import { compareKeys, type Key, type OracleItem } from '../engine/data/oracle.ts';
import { SupplyUnusable, Untested, unlessUntested } from '../engine/errors.ts';
import type { RequirementId } from '../engine/requirements.ts';
import type { Kit } from '../engine/run/kit.ts';
import { stillThereLater, untilReplicasShow } from '../engine/run/state/context.ts';
import type { ClientName } from '../engine/target/target.ts';
import { requestWith } from '../engine/run/combinations/factors.ts';
import { tokenHeader } from '../engine/run/observers/valid-token.ts';
import { distinctRequests, UNKNOWN_TENANT } from '../engine/run/rules/raw-request.ts';
import { expiredBearer } from '../engine/run/rules/unauthenticated.ts';
import { replaced } from '../engine/run/rules/wrong-credentials.ts';

/** The time within which the server must notice the fault, and recover from it. */
const LAG_MS = 30_000;
/** The time after which connection pools and proxies answer 503; --timeout extends it. */
const LONGEST_ANSWER_MS = 60_000;
const PAUSE_MS = 500;
/** A token that is handed out again with less of its life may expire before the last request with it. */
const LASTING_SECONDS = 300;
/** The number of unanswered requests after which no more are sent: one may hang on a connection that the fault cut. */
const MOST_UNREAD = 2;

/** A mismatch counts immediately; a `not yet` becomes one if it has not changed within the lag. */
type Verdict = 'right' | 'as before' | 'not yet' | Mismatch;

/** `deleted`: screenings that were deleted since the fault began, which a page need not show. */
type JudgeOutage = (exchange: Exchange, deleted: ReadonlySet<bigint>) => Verdict;

/** One request that is sent after the fault, and during it if `during` judges the answer. */
interface Probe {
  readonly name: string;
  readonly id: RequirementId;
  readonly request: () => RequestOut;
  readonly during?: JudgeOutage;
  readonly duringExpected?: string;
  readonly after: JudgeOutage;
  readonly afterExpected: string;
}

type Issued = Partial<Record<ClientName, Token | undefined>>;

const PRIMARY: Authorization = { kind: 'client', client: 'primary' };

async function checkFailingServer(kit: Kit): Promise<void> {
  const { fault } = kit.target;
  if (!fault)
    throw new Untested('supply fault.start and fault.stop: commands that break and repair the server');
  const probes = await probesOf(kit);
  // No probe shows what was stored in the scratch tenant.
  for (const client of ['primary', 'secondTenant'] as const) {
    if (!kit.target.clients[client]) continue;
    const tenantId = (await kit.tenantOf(client)).toLowerCase();
    await untilReplicasShow(kit, kit.knowledge.newAtMs.get(tenantId)?.at(-1) ?? 0);
  }
  const deleted = new Set<bigint>();
  let unanswered: Untested | undefined;
  try {
    await fault.start().catch((error: Error) => {
      throw new SupplyUnusable(`fault.start: ${error.message}`);
    });
    unanswered = await whileFailing(kit, probes, deleted);
  } catch (error) {
    if (!(error instanceof Untested) || error instanceof SupplyUnusable) throw error;
    unanswered = error;
  } finally {
    await fault.stop().catch((error: Error) => {
      throw new SupplyUnusable(`fault.stop: ${error.message}`);
    });
  }
  const untilMs = kit.clock.now() + kit.pollingMs(LAG_MS);
  for (const { after, afterExpected, ...probe } of probes)
    await sendUntilSettled(kit, probe, afterExpected, after, untilMs, deleted);
  if (unanswered) throw unanswered;
}

/** Returns why the outage could not be tested, if it could not. */
async function whileFailing(
  kit: Kit,
  probes: readonly Probe[],
  deleted: Set<bigint>,
): Promise<SupplyUnusable | undefined> {
  const untilMs = kit.clock.now() + kit.pollingMs(LAG_MS);
  const verdicts: Verdict[] = [];
  for (const { during, duringExpected = '', ...probe } of probes) {
    if (!during) continue;
    verdicts.push(await sendUntilSettled(kit, probe, duringExpected, during, untilMs, deleted));
    // If the server fails in the wrong way, its other answers belong to the same failure.
    if (verdicts[0] !== 'right' && verdicts[0] !== 'as before') return undefined;
  }
  return verdicts[0] === 'as before' && !verdicts.some((verdict) => typeof verdict === 'object')
    ? new SupplyUnusable(
        `fault.start: the server does not fail: it still answers as before after ${kit.pollingMs(LAG_MS) / 1000} s`,
      )
    : undefined;
}

/** Sends the request repeatedly until the answer is right, or is a mismatch. Throws Untested if no answer arrives. */
async function sendUntilSettled(
  kit: Kit,
  { id, name, request }: Pick<Probe, 'id' | 'name' | 'request'>,
  expected: string,
  judge: JudgeOutage,
  untilMs: number,
  deleted: Set<bigint>,
): Promise<Verdict> {
  for (let unread = 0; ;) {
    const isLast = kit.clock.now() > untilMs;
    const timeoutMs = Math.max(kit.options.timeoutMs, kit.pollingMs(LONGEST_ANSWER_MS));
    // A request that must be rejected may be rejected with 429, as too many guesses.
    const isServing = id === '7.2-server-error';
    const exchange = await kit.send({ ...request(), provoked: true, timeoutMs }, { keep429: !isServing });
    // After the deadline one unanswered request proves nothing, since it may be the only one of its probe.
    if (isUnread(exchange) && (++unread === MOST_UNREAD || isLast))
      throw new Untested(
        `${name}: ${exchange.transportError!.message}${unread > 1 ? `, ${unread} times` : ''}; raise --timeout to wait longer`,
      );
    let verdict: Verdict = isUnread(exchange) ? 'not yet' : judge(exchange, deleted);
    const cause = `${name}: ${expected}`;
    const lost = isServing ? missingFrom(exchange, kit.knowledge.oracleOf) : [];
    if (typeof verdict === 'object' && (await areDeleted(kit, exchange, lost))) {
      const mismatch = verdict;
      // An outage may hide screenings on every page: confirmation looks for them after it.
      const again = async (): Promise<Mismatch | undefined> => {
        const after = await kit.send(exchange.request);
        return lost.some((item) => shows(after, item)) ? mismatch : undefined;
      };
      kit.fail({ id, cause, mismatch, exchange, again, needsAgain: true });
      for (const item of lost) deleted.add(item.id);
      verdict = judge(exchange, deleted);
    }
    const isOver = typeof verdict === 'object' || (isLast && verdict === 'not yet');
    if (verdict !== 'as before') kit.ledger.check(id);
    if (isOver) {
      const received = sayRefusal(exchange, kit.target.errorCodePointer);
      const mismatch = typeof verdict === 'object' ? verdict : differs(cause, received);
      kit.fail({ id, cause, mismatch, exchange });
    }
    if (isOver || isLast || verdict === 'right') return verdict;
    await kit.clock.sleep(PAUSE_MS, kit.options.signal);
  }
}

/**
 * Without a dataset: whether screenings that a page lacks are nowhere else either, or are soon nowhere else, as a
 * replica may lag. They were deleted meanwhile.
 */
async function areDeleted(kit: Kit, page: Exchange, lost: readonly OracleItem[]): Promise<boolean> {
  return !endsEmpty(page) && lost.length > 0 && (await stillThereLater(kit, page, lost)).length === 0;
}

// -- the probes ----------------------------------------------------------------------------------

async function probesOf(kit: Kit): Promise<Probe[]> {
  const page = await distinctRequests(kit);
  return [...(await servedProbes(kit, page)), ...(await rejectedProbes(kit, page))];
}

/** The expectation after the fault. */
const heals = (kit: Kit, what: string): string =>
  `${what} within ${kit.pollingMs(LAG_MS) / 1000} s of the end of the fault`;

/** A page, its `next` and the one after, pages of other sizes and of the second tenant, and tokens. */
async function servedProbes(kit: Kit, page: () => RequestOut): Promise<Probe[]> {
  const id = '7.2-server-error';
  const fails = '5xx with internal_error or service_unavailable while the fault is on';
  const isFailure = (exchange: Exchange): boolean =>
    exchange.status >= 500 &&
    codesOf(exchange, kit.target.errorCodePointer).some((code) =>
      ['internal_error', 'service_unavailable'].includes(code),
    );
  const first = await kit.send(page());
  const traversal: [string, Exchange][] = [];
  for (const name of ['a next of before', 'a page in the middle of a traversal']) {
    const { nextUrl } = pageOf(traversal.at(-1)?.[1] ?? first);
    if (nextUrl === undefined || !isTrusted(nextUrl, kit.target)) break;
    traversal.push([name, await kit.follow(nextUrl)]);
  }
  const others = await otherPages(kit, new URL(page().url).search);
  /** During the fault, and after it. */
  const [early, minted]: [Issued, Issued] = [{}, {}];
  const page200 = (name: string, before: Exchange, send = (): RequestOut => before.request): Probe => ({
    ...{ name, id, request: send, duringExpected: fails, afterExpected: heals(kit, '200') },
    during: (exchange, deleted) => (isFailure(exchange) ? 'right' : served(name, before)(exchange, deleted)),
    after: served(name, before),
  });
  const token200 = (name: string, client: ClientName): Probe => ({
    ...{ name, id, afterExpected: heals(kit, '200 with a token') },
    request: () => kit.client.tokenRequest(kit.client.validForm(client)),
    // The token endpoint may fail or not; a rejection is reported under 4.1-success.
    during: (exchange) => {
      early[client] ??= readToken(exchange);
      return 'right';
    },
    after: (exchange) => ((minted[client] = readToken(exchange)) ? 'right' : 'not yet'),
  });
  const withToken = (request: RequestOut, token: Token | undefined, when: string): RequestOut =>
    token && !(token.expiresInSeconds! < LASTING_SECONDS)
      ? { ...request, authorization: tokenHeader(token, `issued ${when} the fault`) }
      : request;
  return [
    {
      ...page200('a page', first, page),
      during: (exchange, deleted) =>
        isFailure(exchange)
          ? 'right'
          : (endsTraversal('a page', exchange, first, deleted) ??
            (isSamePage(exchange, first) || deleted.size > 0 ? 'as before' : 'not yet')),
    },
    ...traversal.map(([name, before]) => page200(name, before)),
    token200('a token request', 'primary'),
    ...(kit.target.clients.secondTenant
      ? [token200("the second tenant's token request", 'secondTenant')]
      : []),
    ...others.map(([name, before]) =>
      page200(name, before, () =>
        before.request.authorization === PRIMARY
          ? withToken(before.request, minted.primary, 'after')
          : before.request,
      ),
    ),
    page200('a page with a token of the outage', first, () => withToken(page(), early.primary, 'during')),
  ];
}

/** Requests that must be rejected, with the fault too: it may affect the store of permissions. */
async function rejectedProbes(kit: Kit, page: () => RequestOut): Promise<Probe[]> {
  const { secondTenant, notOnboarded } = kit.target.clients;
  const other = secondTenant && (await kit.tenantOf('secondTenant'));
  const gone = notOnboarded && (await kit.tenantOf('notOnboarded').catch(() => undefined));
  const own = await kit.tenantOf();
  const expired = await unlessUntested(expiredBearer(kit));
  const altered = bearerOf(withAlteredSignature(partsOf((await kit.token()).text)), 'signature altered');
  const { search } = new URL(page().url);
  // Without a request: what the target file does not supply.
  const refused: readonly (readonly [RequirementId, string, (() => RequestOut) | undefined | ''])[] = [
    ['5-missing', 'a request without a token: 401', () => ({ ...page(), authorization: { kind: 'none' } })],
    ['5-tampered', 'a request with an altered token: 401', () => ({ ...page(), authorization: altered })],
    [
      '5-expired',
      'a request with an expired token: 401',
      expired && (() => ({ ...page(), authorization: expired })),
    ],
    [
      '4.2-r2-inverted',
      'a window with to earlier than from: 400',
      () => kit.request(own, { from: SOME_WINDOW.to, to: SOME_WINDOW.from }),
    ],
    [
      '5-forbidden-unknown',
      'the path of an unknown tenant: 403',
      () => kit.request(UNKNOWN_TENANT, search, PRIMARY),
    ],
    ['5-forbidden', "another tenant's path: 403", other && (() => kit.request(other, search, PRIMARY))],
    [
      '7.2-not_found',
      'a tenant that is not onboarded: 404',
      gone && (() => kit.request(gone, search, 'notOnboarded')),
    ],
    [
      '7.1-invalid_client-secret',
      'a token request with a wrong client_secret: 401',
      () =>
        kit.client.tokenRequest(replaced(kit.client.validForm('primary'), 'client_secret', 'not-the-secret')),
    ],
  ];
  return refused.flatMap(([id, name, request]): Probe[] => {
    if (!request) return [];
    const during = (exchange: Exchange): Verdict =>
      exchange.status === 200 ? differs(name, sayRefusal(exchange)) : 'right';
    const after = (exchange: Exchange): Verdict => (exchange.status >= 500 ? 'not yet' : during(exchange));
    return [{ name, id, request, during, after, afterExpected: heals(kit, 'no 5xx') }];
  });
}

const isSamePage = (a: Exchange, b: Exchange): boolean => {
  const [idsOfA, idsOfB] = [a, b].map((page) =>
    pageOf(page)
      .items?.map(({ id }) => id)
      .join(),
  );
  return a.status === 200 && idsOfA !== undefined && idsOfA === idsOfB;
};

/** Pages of other sizes and of the second tenant, of which a server may keep the failure. */
async function otherPages(kit: Kit, query: string): Promise<[name: string, before: Exchange][]> {
  const pages: [string, Exchange][] = [];
  const ask = async (name: string, size: string | undefined, client: ClientName): Promise<void> => {
    // From now on the run remembers the screenings that pages of this client show.
    await kit.oracle(client);
    const request = kit.request(
      await kit.tenantOf(client),
      query,
      client === 'primary' ? PRIMARY : { kind: 'client', client },
    );
    pages.push([name, await kit.send(requestWith(request, 'pageSize', size))]);
  };
  await ask('a page without pageSize, with a new token', undefined, 'primary');
  if (kit.target.clients.secondTenant)
    await ask('a page of 1000 of the second tenant', '1000', 'secondTenant');
  return pages.filter(([, { status }]) => status === 200);
}

const served =
  (name: string, before: Exchange): JudgeOutage =>
  (exchange, deleted) =>
    endsTraversal(name, exchange, before, deleted) ?? (exchange.status === 200 ? 'right' : 'not yet');

/** The mismatch if a client loses screenings: the answer ends the traversal early, or lacks an item of the earlier page. */
function endsTraversal(
  name: string,
  exchange: Exchange,
  before: Exchange,
  deleted: ReadonlySet<bigint>,
): Mismatch | undefined {
  if (exchange.status !== 200) return undefined;
  const { items = [], nextUrl } = pageOf(exchange);
  const isEarly = nextUrl === undefined && pageOf(before).nextUrl !== undefined && deleted.size === 0;
  const shown = orderedItems(exchange);
  const last = shown.at(-1);
  // New items may displace the last ones; a page that is cut by time may hold nothing yet.
  const isPassed = (item: Key): boolean => (last ? compareKeys(item, last) < 0 : nextUrl === undefined);
  const isLost = (item: Key): boolean => !deleted.has(item.id) && !shown.some(({ id }) => id === item.id);
  const lost = orderedItems(before).find((item) => isLost(item) && isPassed(item));
  if (!isEarly && !lost) return undefined;
  return differs(
    `${name}: 5xx or the earlier page, and no page that ${isEarly || !last ? 'ends the traversal' : `lacks item ${lost?.id}`}`,
    `200 with ${items.length} items and ${nextUrl === undefined ? 'no next' : 'a next'}`,
  );
}

const OUTAGE = { needs: 'page', access: 'provokes' } as const;
const once = ({ kit }: { kit: Kit }): Promise<void> => kit.once('outage', () => checkFailingServer(kit));

test(
  'internal_error, service_unavailable: a failing server answers 5xx, and serves after the failure',
  about('7.2-server-error', OUTAGE),
  once,
);

test(
  'a failing server still accepts valid credentials, and rejects invalid credentials and requests without permission',
  about(
    [
      '4.1-success',
      '5-missing',
      '5-tampered',
      '5-expired',
      '4.2-r2-inverted',
      '5-forbidden-unknown',
      '5-forbidden',
      '7.2-not_found',
      '7.1-invalid_client-secret',
    ],
    { ...OUTAGE, isSupplement: true },
  ),
  once,
);
