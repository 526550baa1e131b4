/** Runs checks, preconditions first, and separates failures of the kit from those of the target. */
import { readToken, whyNoToken } from '../../client/token.ts';
import { header, sayRequest, type Exchange, type RequestOut } from '../../client/exchange.ts';
import { resolveUrl } from '../../client/link-header.ts';
import { isObject, member } from '../../client/json.ts';
import { pageUrl, SOME_WINDOW, type PageQuery } from '../../client/page.ts';
import { formatInstant } from '../../data/instant.ts';
import { differs, type Judge } from '../../checks/mismatch.ts';
import type { Kit } from '../kit.ts';
import { sayRefusal } from '../../checks/errors.ts';
import type { Outcome } from '../state/ledger.ts';
import type { Check, Precondition } from '../check.ts';
import { sampleDataOf, WIDE_WINDOWS } from '../walk/survey.ts';
import { correctTargetFile } from '../attribution/configuration-mismatches.ts';
import { TargetGone, Untested } from '../../errors.ts';

/** The reason for each failed precondition; empty if all hold. */
type FailedPreconditions = Partial<Record<Precondition, string>>;

/** Tests the preconditions of checks once: a token, a page, screenings. */
export const preconditionsOf = (kit: Kit): Promise<FailedPreconditions> =>
  kit.once('preconditions', () => checkPreconditions(kit));

async function checkPreconditions(kit: Kit): Promise<FailedPreconditions> {
  const token = await reasonOf(() => tokenPrecondition(kit));
  if (token) return { token, page: token, data: token };
  await correctTargetFile(kit);
  const page = await reasonOf(() => pagePrecondition(kit));
  if (page) return { page, data: page };
  const data = await reasonOf(() => sampleDataOf(kit));
  return data ? { data } : {};
}

async function reasonOf(look: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await look();
    return undefined;
  } catch (error) {
    if (error instanceof Untested) return error.message;
    throw error;
  }
}

const issuesToken: Judge = (answer) =>
  readToken(answer) ? undefined : differs('200 with a token', whyNoToken(answer));

async function tokenPrecondition(kit: Kit): Promise<void> {
  const exchange = await kit.client.mint();
  if (readToken(exchange)) return;
  // Rejected once and then accepted: the credentials are right.
  if (readToken(await kit.client.mint())) {
    kit.check('4.1-success', exchange, issuesToken);
    return;
  }
  const { url } = exchange.request;
  const why = whyNoToken(exchange);
  if (exchange.status === 401 && member(exchange.json, 'error') === 'invalid_client') {
    const { clientId, clientSecret } = kit.target.clients.primary;
    // Copying from files and cells often adds blanks.
    const blanks = Object.entries({ clientId, clientSecret }).filter(([, value]) => value !== value.trim());
    const hint = blanks.map(([name]) => ` (${name} begins or ends with a blank or a line end)`).join('');
    throw new Untested(
      `the credentials of clients.primary were not accepted (${why}); check clientId and clientSecret${hint}`,
    );
  }
  const elsewhere = redirection(exchange, 'authUrl', '/oauth/token');
  if (elsewhere) throw new Untested(elsewhere);
  if (isNoTokenEndpoint(exchange)) {
    throw new Untested(`POST ${url} was answered ${sayRefusal(exchange)}; check authUrl`);
  }
  kit.check('4.1-success', exchange, issuesToken);
  throw new Untested(`no token for clients.primary: ${why} to POST ${url}`);
}

/** The redirection target as the member of the target file should name it; undefined without a redirection. */
function redirection(exchange: Exchange, member: 'authUrl' | 'baseUrl', path: string): string | undefined {
  const { status, request } = exchange;
  if (![301, 302, 303, 307, 308].includes(status)) return undefined;
  const location = resolveUrl(header(exchange, 'location') ?? '', request.url) ?? request.url;
  const to = location.split(/[?#]/)[0]!;
  const named = to.endsWith(path) ? to.slice(0, -path.length) : to;
  const itself = named === request.url.split(/[?#]/)[0]!.slice(0, -path.length);
  return itself
    ? `${sayRequest(request)} is redirected (${status}) to itself; check ${member}`
    : `the address redirects (${status}) to ${named}; name that as ${member}: no secret and no token follows a redirect`;
}

/** Something else answers at this URL: without JSON, or with 404 or 405. */
function isNoTokenEndpoint({ status, json }: Exchange): boolean {
  return [404, 405].includes(status) || (status >= 400 && status < 500 && !isObject(json));
}

async function pagePrecondition(kit: Kit): Promise<void> {
  const { window } = kit.target;
  const named = window && { from: formatInstant(window.from), to: formatInstant(window.to) };
  const query: PageQuery = { ...(named ?? SOME_WINDOW), pageSize: 10 };
  const tenantId = await kit.tenantOf();
  const first = kit.request(tenantId, query);
  const plain = await kit.send(first);
  const elsewhere = redirection(plain, 'baseUrl', `/v1/tenants/${tenantId}/screenings`);
  if (elsewhere) throw new Untested(elsewhere);
  // The target may fail only for an empty window.
  const [[from, to]] = WIDE_WINDOWS;
  const everything: PageQuery = { from, to, pageSize: 10 };
  if (plain.status === 404 && (await kit.send(kit.request(tenantId, everything))).status !== 200) {
    await otherPrefix(kit, first, tenantId, query);
    throw new Untested(
      `${sayRequest(first)} was answered ${sayRefusal(plain)}; check baseUrl, and that the tenant is onboarded`,
    );
  }
  const asked = await kit.ask(query);
  const exchange = asked.status === 200 ? asked : await kit.page(everything);
  if (!isObject(exchange.json)) {
    throw new Untested(
      `${sayRequest(exchange.request)} was answered 200 without a JSON object; check baseUrl`,
    );
  }
}

/** Throws if the API answers under another prefix than /v1 (section 9). */
async function otherPrefix(kit: Kit, first: RequestOut, tenantId: string, query: PageQuery): Promise<void> {
  const { baseUrl } = kit.target;
  for (const prefix of ['', '/v2', '/api/v1']) {
    const url = pageUrl(`${baseUrl}${prefix}`, tenantId, query).replace(`${prefix}/v1/`, `${prefix}/`);
    const elsewhere = await kit.send({ ...first, url, offPath: true });
    if (elsewhere.status !== 200 || !Array.isArray(member(elsewhere.json, 'items'))) continue;
    kit.check('9-prefix', elsewhere, () =>
      differs('the API under /v1', `it answers at ${new URL(url).pathname}`),
    );
    throw new Untested(`the API answers at ${new URL(url).pathname}, not under /v1`);
  }
}

/** Runs one check and records its outcome in the ledger. */
export async function runCheck(kit: Kit, { ids, title, needs, isSupplement, run }: Check): Promise<void> {
  const outcome = { title, ids, isSupplement };
  const began = performance.now();
  const end = (fields: Pick<Outcome, 'state'> & Partial<Outcome>): void => {
    kit.ledger.end({ ...outcome, ...fields, durationMs: performance.now() - began });
  };
  try {
    const missing = (await preconditionsOf(kit))[needs];
    if (missing) throw new Untested(missing);
    if (kit.client.health.gone) throw new TargetGone(kit.client.health.gone);
    if (kit.ledger.hangs.some(({ id }) => id === ids[0]))
      throw new Untested('a request before it got no answer, twice');
    await run(kit);
    end({ state: 'done' });
  } catch (error) {
    const state = error instanceof Untested ? 'untested' : 'error';
    const reason = error instanceof Error ? error.message : String(error);
    const where = state === 'error' && error instanceof Error ? ` (${firstFrame(error)})` : '';
    end({ state, reason: `${reason}${where}`, error });
  }
}

/** The source location at which the kit failed, without the machine's folders. */
function firstFrame(error: Error): string {
  const frame = error.stack?.split('\n').find((line) => /\.ts:\d+/.test(line)) ?? '';
  return /([\w.-]+\/[\w.-]+\.ts:\d+)/.exec(frame)?.[1] ?? 'unknown place';
}
