/** Confirmation: sends a failed check again before it is reported. */
import type { SendOptions } from '../../client/client.ts';
import type { Exchange, RequestOut } from '../../client/exchange.ts';
import { isServerFailure } from '../../client/failures.ts';
import { parseQuery, isPage, pageOf } from '../../client/page.ts';
import { sameInstant } from '../../data/instant.ts';
import type { Key } from '../../data/oracle.ts';
import type { RequirementId } from '../../requirements.ts';
import type { Finding } from '../state/ledger.ts';
import { COVERAGE, missingFrom } from '../../checks/coverage.ts';
import type { OracleOf } from '../../checks/page.ts';
import { TargetGone, Untested } from '../../errors.ts';

/** Prefix of the confirmation text if the kit itself failed. */
export const WENT_WRONG = 'the kit went wrong';
export const wentWrong = (error: unknown): string => `${WENT_WRONG} (${String(error)})`;

/** How often a failed check is sent again. */
const CONFIRMATIONS = 2;
/** The number of missing screenings that are looked up where they were first seen. */
const WITNESSES = 3;

/** Requirements under which a server failure is reported. */
const SERVER_FAILURES: readonly RequirementId[] = ['7.2-no-unprovoked-5xx', '7.2-body', '7.2-server-error'];

export interface ConfirmContext {
  send(request: RequestOut, options?: SendOptions): Promise<Exchange>;
  readonly oracleOf: OracleOf;
  /** Every page with items so far. */
  readonly pages: readonly Exchange[];
}

/** Differences between two answers that a newly arrived screening explains. */
const SELECTION = /^(2\.3-|4\.2-(from|to-|window|offsets|fractions|pageSize|r5|repeatable))/;

/** Differences that a deleted screening explains; a lagging replica is not an excuse. */
const mayHaveMoved = (id: RequirementId): boolean =>
  COVERAGE.includes(id) || (SELECTION.test(id) && id !== '4.2-repeatable');

/** Whether a screening appeared that an earlier answer for its range did not have: data arrives during the run. */
const dataArrives = ({ pages, oracleOf }: ConfirmContext): boolean =>
  pages.some((page) => missingFrom(page, oracleOf).some(({ firstSeen }) => firstSeen >= page.seq));

/** Whether a page has a screening at its instant; a corrected testTime moves it. */
export const shows = (page: Exchange, { id, at }: Key): boolean =>
  pageOf(page).items?.some((item) => item.id === id && item.at !== undefined && sameInstant(item.at, at)) ??
  false;

/** The finding with its confirmation count; undefined if it was not confirmed. */
export async function confirm(finding: Finding, context: ConfirmContext): Promise<Finding | undefined> {
  const { exchange, judge, again, needsAgain } = finding;
  // Plain repetition without backoff shows whether a failure recurs.
  const keep5xx = exchange !== undefined && isServerFailure(exchange);
  const ask =
    again ??
    (exchange && judge
      ? async () => judge(await context.send(exchange.request, { keep5xx, isExclusive: keep5xx }))
      : undefined);
  if (!ask) return finding;
  let seen = 1;
  let asked = 1;
  try {
    for (let i = 0; i < CONFIRMATIONS; i++) {
      const mismatch = await ask();
      asked++;
      if (mismatch) seen++;
    }
    if (needsAgain && seen === 1) return undefined;
    if (seen < asked && SELECTION.test(finding.id) && isBare(exchange, context) && dataArrives(context))
      return undefined;
    // A 5xx that did not recur is reported as a server failure, not as a wrong answer to this request.
    if (seen === 1 && keep5xx && !SERVER_FAILURES.includes(finding.id)) return undefined;
    if (exchange && mayHaveMoved(finding.id) && (await dataMoved(exchange, seen, context))) return undefined;
  } catch (error) {
    if (!(error instanceof Untested)) {
      return { ...finding, confirmed: `not sent again: ${wentWrong(error)}` };
    }
    // A connection that broke when the target went away is not a finding.
    if (error instanceof TargetGone && exchange?.transportError) return undefined;
    if (asked === 1) return { ...finding, confirmed: `not sent again: ${error.message}` };
  }
  return { ...finding, confirmed: seen === asked ? `${seen} of ${asked}` : `flaky, ${seen} of ${asked}` };
}

/** Whether the tenant's screenings are known from answers only. */
function isBare(exchange: Exchange | undefined, { oracleOf }: ConfirmContext): boolean {
  const tenantId = exchange && parseQuery(exchange.request.url)?.tenantId;
  return tenantId === undefined || oracleOf(tenantId)?.authoritative !== true;
}

/**
 * Without a dataset, screenings may arrive or disappear during the run: a page that lacks a screening is wrong only
 * if the screening existed before and is still where it was first seen.
 */
async function dataMoved(
  exchange: Exchange,
  seen: number,
  { send, oracleOf }: ConfirmContext,
): Promise<boolean> {
  const asked = isPage(exchange) ? parseQuery(exchange.request.url) : undefined;
  const known = asked && oracleOf(asked.tenantId);
  if (!known || known.authoritative) return false;
  const lost = missingFrom(exchange, oracleOf);
  if (lost.length === 0) return false;
  for (const item of lost.slice(0, WITNESSES)) {
    if (!item.witness) return false;
    const witness = await send({ ...exchange.request, url: item.witness });
    const still = shows(witness, item);
    if (still && (item.firstSeen < exchange.seq || seen > 1)) return false;
  }
  return true;
}
