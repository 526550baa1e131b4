/** The end of a run: sends the requests of findings again, and reduces what remains to a minimal failing combination. */
import type { Exchange, RequestOut } from '../../client/exchange.ts';
import type { Baseline } from '../combinations/factors.ts';
import type { RunContext } from '../state/context.ts';
import type { Finding } from '../state/ledger.ts';
import { confirm, type ConfirmContext } from './confirmation.ts';
import { withMinimalCombination } from './minimal-combination.ts';
import { clientsInDoubt, correctTenant } from './configuration-mismatches.ts';

/** Confirms every finding that was not confirmed yet; returns those that remain. */
export async function confirmFindings(run: RunContext, baseline: Baseline | undefined): Promise<Finding[]> {
  const { client, knowledge, ledger } = run;
  const context: ConfirmContext = {
    send: (request, options) => client.send(request, options),
    oracleOf: knowledge.oracleOf,
    pages: knowledge.pages,
  };
  for (const name of clientsInDoubt(run)) await correctTenant(run, name);
  const stand: Finding[] = [];
  // Reuse answers, so that a request which breaks several requirements gets the same answer for each reduction.
  const asked = new Map(ledger.unconfirmed.map(({ exchange }) => [keyOf(exchange?.request), exchange]));
  const sendOnce = async (request: RequestOut): Promise<Exchange> => {
    const exchange = asked.get(keyOf(request)) ?? (await context.send(request));
    asked.set(keyOf(request), exchange);
    return exchange;
  };
  for (const finding of ledger.unconfirmed) {
    const confirmed = await confirm(finding, context);
    const kept = confirmed && (await withMinimalCombination(confirmed, baseline, sendOnce));
    ledger.settle(finding, kept);
    if (kept) stand.push(kept);
  }
  return stand;
}

const keyOf = (request: RequestOut | undefined): string =>
  JSON.stringify(request && [request.method, request.url, request.headers, request.authorization]);
