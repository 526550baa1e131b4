/**
 * Confirmation: sends a failed check again before it is reported, and reduces what remains to a minimal failing
 * combination.
 */
import { endedAtMs, isHang, type Exchange, type RequestOut } from '../../client/exchange.ts';
import { isServerFailure } from '../../client/failures.ts';
import { orderedItems, pageOf, parseQuery, withPlusEncoded } from '../../client/page.ts';
import type { RequirementId } from '../../requirements.ts';
import type { Finding } from '../state/ledger.ts';
import { COVERAGE, displacedOn, lacksFormer, missingFrom } from '../../checks/coverage.ts';
import type { MismatchWithEvidence } from '../../checks/mismatch.ts';
import { isTrusted, NEXT_TIMES } from '../../checks/next.ts';
import { TargetGone, TargetGuarded, unlessUntested, Untested, wentWrong } from '../../errors.ts';
import type { Baseline } from '../combinations/factors.ts';
import {
  LONGEST_CACHED_MS,
  LONGEST_LAG_MS,
  stillThereLater,
  untilReplicasShow,
  type RunContext,
} from '../state/context.ts';
import { clientsInDoubt, correctTenant } from './configuration-mismatches.ts';
import { withMinimalCombination } from './minimal-combination.ts';

interface Waits {
  /** Until every replica must show what was shown before this answer; later items then do not count. */
  readonly settle: (exchange: Exchange | undefined) => Promise<void>;
  /** Until no cache may repeat a page of before then. Returns false if none may any more. */
  readonly outlastCaches: () => Promise<boolean>;
}

const CONFIRMATIONS = 2;

/** Requirements under which a server failure is reported. */
const SERVER_FAILURES: readonly RequirementId[] = ['7.2-no-unprovoked-5xx', '7.2-body', '7.2-server-error'];

const SELECTION =
  /^(2\.3-(id|object)-stable|4\.2-(from|to-|window|offsets|fractions|lowercase|pageSize|r5|repeatable))/;

/** Differences between answers that a new screening explains; a replica may show it later than another. */
const mayLag = (id: RequirementId): boolean => COVERAGE.includes(id) || SELECTION.test(id);

/** Differences that a deleted screening explains. */
const mayHaveMoved = (id: RequirementId): boolean => mayLag(id) && id !== '4.2-repeatable';

const tenantOf = (exchange: Exchange | undefined): string | undefined =>
  exchange && parseQuery(exchange.request.url)?.tenantId.toLowerCase();

/** Whether they ask for screenings of one tenant, or may. */
const mayShareTenant = (tenantId: string | undefined, other: string | undefined): boolean =>
  tenantId === undefined || other === undefined || tenantId === other;

/**
 * Whether a screening appeared that an earlier answer for its range did not have, moved, or was deleted, during the
 * run. Those of another tenant explain nothing: the kit itself stores some in the scratch tenant.
 */
const dataChanges = (
  exchange: Exchange | undefined,
  { knowledge: { pages, oracleOf, hasChanges } }: RunContext,
): boolean =>
  hasChanges ||
  pages.some(
    (page) =>
      mayShareTenant(tenantOf(exchange), tenantOf(page)) &&
      missingFrom(page, oracleOf).some(({ firstSeen }) => firstSeen >= page.seq),
  );

/** Confirms every finding that was not confirmed yet; returns those that remain. */
export async function confirmFindings(run: RunContext, baseline: Baseline | undefined): Promise<Finding[]> {
  const { client, knowledge, ledger } = run;
  let settledSinceMs = -Infinity;
  let newestMs = 0;
  const settle: Waits['settle'] = async (exchange) => {
    // It may have come while another finding was confirmed.
    if (exchange && endedAtMs(exchange) < settledSinceMs) return;
    settledSinceMs = Date.now();
    knowledge.knownBefore = client.requests + 1;
    newestMs = Math.max(0, ...[...knowledge.newAtMs.values()].map((times) => times.at(-1)!));
    await untilReplicasShow(run, newestMs);
  };
  const outlastCaches = (): Promise<boolean> => untilReplicasShow(run, newestMs, LONGEST_CACHED_MS);
  for (const name of clientsInDoubt(run)) await correctTenant(run, name);
  await learnRawPlus(run);
  const kept: Finding[] = [];
  // Reuse answers, so that a request which breaks several requirements gets the same answer for each reduction.
  const answers = new Map(ledger.unconfirmed.map(({ exchange }) => [keyOf(exchange?.request), exchange]));
  const sendOnce = async (request: RequestOut): Promise<Exchange> => {
    const exchange = answers.get(keyOf(request)) ?? (await client.send(request));
    answers.set(keyOf(request), exchange);
    return exchange;
  };
  // A corrected testTime explains other findings.
  const next = (): Finding | undefined =>
    ledger.unconfirmed.find(({ id }) => id === '2.3-id-stable') ?? ledger.unconfirmed[0];
  // A dropped finding may be followed by a spare.
  for (let finding = next(); finding; finding = next()) {
    const confirmed = await confirm(finding, run, { settle, outlastCaches });
    const reduced = confirmed && (await withMinimalCombination(confirmed, baseline, sendOnce));
    ledger.settle(finding, reduced);
    if (reduced) kept.push(reduced);
  }
  knowledge.knownBefore = Infinity;
  return kept;
}

/** Drops findings about a raw + in next if the target reads it as +: then it leads to the same page as %2B. */
async function learnRawPlus({ client, knowledge, ledger, target }: RunContext): Promise<void> {
  if (knowledge.keepsRawPlus !== undefined) return;
  for (const { id, exchange } of ledger.unconfirmed) {
    const { nextUrl } = (NEXT_TIMES.includes(id) && exchange && pageOf(exchange)) || {};
    if (!nextUrl?.includes('+') || !isTrusted(nextUrl, target)) continue;
    const idsAt = async (url: string): Promise<string | undefined> => {
      const page = await unlessUntested(client.send({ ...exchange!.request, url, followed: true }));
      return page?.status === 200
        ? orderedItems(page)
            .map(({ id: one }) => one)
            .join()
        : undefined;
    };
    const expected = await idsAt(withPlusEncoded(nextUrl));
    // A failed request decides nothing.
    if (expected === undefined) return;
    knowledge.keepsRawPlus = (await idsAt(nextUrl)) === expected;
    if (knowledge.keepsRawPlus) ledger.reconsider(NEXT_TIMES);
    return;
  }
}

const keyOf = (request: RequestOut | undefined): string =>
  JSON.stringify(request && [request.method, request.url, request.headers, request.authorization]);

/** The finding with its confirmation count; undefined if it was not confirmed. */
async function confirm(
  finding: Finding,
  run: RunContext,
  { settle, outlastCaches }: Waits,
): Promise<Finding | undefined> {
  const { exchange, judge, again, needsAgain } = finding;
  // It was sent twice, and each repetition takes two timeouts, of which a run has few.
  if (exchange && isHang(exchange)) return { ...finding, confirmed: '2 of 2' };
  const isFailure = exchange !== undefined && isServerFailure(exchange);
  // Plain repetition without backoff shows whether a failure recurs, unless a guard causes it.
  const keep5xx = isFailure && !run.client.health.guards.hasClosed(exchange);
  const ask: (() => Promise<MismatchWithEvidence | undefined>) | undefined =
    again ??
    (exchange && judge
      ? async () => {
          const repeated = await run.client.send(exchange.request, { keep5xx, isExclusive: isFailure });
          if (exchange.status === 429 && repeated.status !== 429)
            throw new Untested('the rate limit admits requests again');
          const mismatch = judge(repeated);
          return mismatch && { ...mismatch, exchange: repeated };
        }
      : undefined);
  if (!ask) return finding;
  let seen = 1;
  let sent = 1;
  let latest = exchange;
  try {
    const maySettle = mayLag(finding.id) && isBare(exchange, run);
    if (maySettle) await settle(exchange);
    for (let i = 0; i < CONFIRMATIONS; i++) {
      const mismatch = await ask();
      sent++;
      if (!mismatch) continue;
      seen++;
      latest = mismatch.exchange ?? latest;
    }
    // Only what outlasts replicas is worth a longer wait: a cache may have repeated a page of before an arrival.
    if (seen === sent && maySettle && (await outlastCaches()) && !(await ask())) return undefined;
    if (seen === 1 && (needsAgain || (maySettle && (isEarly(exchange, run) || dataChanges(exchange, run)))))
      return undefined;
    // A 5xx that did not recur is reported as a server failure, not as a wrong answer to this request.
    if (seen === 1 && isFailure && !SERVER_FAILURES.includes(finding.id)) return undefined;
    if (latest && mayHaveMoved(finding.id) && (await dataMoved(finding, latest, run))) return undefined;
  } catch (error) {
    if (!(error instanceof Untested)) {
      return { ...finding, confirmed: `not sent again: ${wentWrong(error)}` };
    }
    // A connection that broke when the target went away, or that a guard closes, is not a finding.
    if ((error instanceof TargetGone || error instanceof TargetGuarded) && exchange?.transportError)
      return undefined;
    // Data that arrives or disappears explains it, and it can no longer be confirmed.
    if ((needsAgain && seen === 1) || (mayLag(finding.id) && isBare(exchange, run))) return undefined;
    if (sent === 1) return { ...finding, confirmed: `not sent again: ${error.message}` };
  }
  return { ...finding, confirmed: seen === sent ? `${seen} of ${sent}` : `flaky, ${seen} of ${sent}` };
}

/** Whether new screenings were returned shortly before or with this answer: another replica may return them later. */
function isEarly(exchange: Exchange | undefined, run: RunContext): boolean {
  if (!exchange) return false;
  const lagMs = run.pollingMs(LONGEST_LAG_MS);
  const isBefore = (atMs: number): boolean =>
    atMs <= endedAtMs(exchange) && exchange.startedAtMs < atMs + lagMs;
  return [...run.knowledge.newAtMs].some(
    ([tenantId, newAtMs]) => mayShareTenant(tenantOf(exchange), tenantId) && newAtMs.some(isBefore),
  );
}

function isBare(exchange: Exchange | undefined, { knowledge }: RunContext): boolean {
  const tenantId = tenantOf(exchange);
  return tenantId === undefined || knowledge.oracleOf(tenantId)?.authoritative !== true;
}

/**
 * Without a dataset, screenings may arrive, move or disappear during the run: an answer that lacks some is wrong only if
 * one of them existed before it and still exists. The latest answer decides, because other screenings may be missing
 * there than from the first.
 */
async function dataMoved({ cause, judge }: Finding, latest: Exchange, run: RunContext): Promise<boolean> {
  const { oracleOf } = run.knowledge;
  const certain = missingFrom(latest, oracleOf);
  // Includes items next to an edge that the observers leave open, because a check may have requested exactly such an item.
  const missing = certain.length > 0 ? certain : missingFrom(latest, oracleOf, () => true);
  const lost = [...missing, ...displacedOn(latest, oracleOf)];
  if ((await stillThereLater(run, latest, lost)).length > 0) return false;
  // Observers expect what is known, other checks what was known when they began.
  return cause === 'observed'
    ? judge !== undefined && judge(latest) === undefined
    : lost.length > 0 || lacksFormer(latest, oracleOf);
}
