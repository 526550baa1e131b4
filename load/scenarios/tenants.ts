/** tenants: how many periodically polling tenants the target carries, alone and during back-fills. */
import { confirmedUnless, extremesOf } from '../estimate/figures.ts';
import { ascending, linesOf, quantile, smallest, sum } from '../estimate/numbers.ts';
import type { LoadResult, TenantsCarried, TenantsFigure } from '../result.ts';
import { SEARCH } from '../run/flags.ts';
import type { ArrivalsRun, Scenario, Session } from '../run/session.ts';
import { type Searching, searchRate } from './capacity.ts';
import { number } from '../../certify/render/results.ts';
import { between, confirmation, predictionText } from './format.ts';

export const tenants: Scenario = {
  about: 'the number of tenants that the target carries: polls, back-fills and token requests together',
  flags: { pageSize: 100, poll: 60, backfills: 1, tokenRenewal: 3540, ...SEARCH },
  run: measure,
};

async function measure(session: Session): Promise<Partial<LoadResult>> {
  const { poll: pollSeconds, backfills } = session.options;
  const alone = await carried(session, 0);
  const startRate = Math.max(1, alone.tenants / pollSeconds / 4);
  const beside =
    backfills > 0 && alone.tenants > 0 ? await carried(session, backfills, startRate) : undefined;
  const { clients } = session.prepared.base;
  const { slo } = session;
  const figure: TenantsFigure = { pollSeconds, backfills, clients: clients.length, slo, alone, beside };
  const real = new Set(clients.map(({ tenantId }) => tenantId.toLowerCase())).size;
  const simulated = `simulated with ${clients.length} ${clients.length === 1 ? 'client' : 'clients'} of ${real} ${real === 1 ? 'tenant' : 'tenants'}: more have other data, caches and quotas`;
  const summary = [...summaryLines(figure), simulated];
  return { tenants: figure, held: alone.confirmed && alone.tenants > 0, summary };
}

export async function carried(session: Searching, backfills: number, from?: number): Promise<TenantsCarried> {
  const { poll: pollSeconds, tokenRenewal } = session.options;
  const pagesOfPolls: number[] = [];
  const backfill: { readonly rate: number; readonly ms: number }[] = [];
  let offered = 0;
  const over = (rate: number) => {
    offered = rate;
    return { tenants: { pollSeconds, backfills, tokensPerSecond: (rate * pollSeconds) / tokenRenewal } };
  };
  const seen = ({ samples, run, void: isVoid }: ArrivalsRun): void => {
    for (const { status, pages = 1 } of samples) if (status === 200) pagesOfPolls.push(pages);
    // Latencies of a void run are no evidence.
    for (const one of isVoid ? [] : run.records)
      if (one.kind === 'page' && one.status === 200) backfill.push({ rate: offered, ms: one.ms });
  };
  const found = await searchRate(session, 'tenants', over, { startRate: from, seen });
  const { requestsPerSecond, interval, confirmed, unconfirmed, prediction, limitedBy, quota } = found;
  const { quietRate, quietMs, saturatedAt } = extremesOf(found);
  // A slow page may only be served in the longer steps that follow.
  const fullRate = Math.max(quietRate, smallest(backfill.map(({ rate }) => rate)));
  const full = ascending(backfill.flatMap(({ rate, ms }) => (rate <= fullRate ? [ms] : [])));
  const isIdle = backfills > 0 && full.length === 0;
  // The few measured clients stand for all tenants, so their quotas limit the measurement.
  const high = limitedBy === 'quota' ? Infinity : interval[1];
  return {
    tenants: Math.floor(requestsPerSecond * pollSeconds),
    interval: [Math.floor(interval[0] * pollSeconds), Math.ceil(high * pollSeconds)],
    limitedBy,
    quota,
    ...confirmedUnless(isIdle ? 'no page of a back-fill was served' : !confirmed && unconfirmed),
    prediction,
    pollMs: quietMs,
    saturatedAt: saturatedAt || undefined,
    pagesPerPoll: sum(pagesOfPolls) / Math.max(1, pagesOfPolls.length),
    backfillPageMs: full.length > 0 ? { p50: quantile(full, 0.5), mean: sum(full) / full.length } : undefined,
  };
}

function tenantsOf({ tenants, limitedBy, confirmed }: TenantsCarried): string {
  if (!confirmed) return tenants === 0 ? 'an undecided number' : `maybe ${number(tenants)}`;
  return `${limitedBy === 'quota' ? 'at least ' : ''}${number(tenants)}`;
}

export function summaryLines({ pollSeconds, backfills, slo, alone, beside }: TenantsFigure): string[] {
  const reading = backfills === 1 ? 'one of them reads' : `${backfills} of them read`;
  const describe = (found: TenantsCarried): string =>
    linesOf(
      `${between(found.interval, number)}, ${confirmation(found)}`,
      found.prediction && `of the polls, ${predictionText(found.prediction)}`,
    ).join('; ');
  return linesOf(
    alone.tenants === 0 && !alone.confirmed
      ? 'the number of tenants is undecided'
      : `carries ${tenantsOf(alone)} tenants${beside ? `; ${tenantsOf(beside)} while ${reading} all screenings` : ''}`,
    `each polls every ${pollSeconds} s on a new connection; 99 % of the polls within ${slo.p99Ms} ms`,
    alone.limitedBy === 'quota' &&
      'the limit was 429 to the few clients of this measurement; with a quota per client, more tenants are carried',
    `without back-fills: ${describe(alone)}`,
    beside && `during back-fills: ${describe(beside)}`,
    alone.tenants > 0 &&
      `${alone.pagesPerPoll.toFixed(2)} pages per poll; median latency of a poll at a low rate ${alone.pollMs.toFixed(1)} ms`,
    beside?.backfillPageMs &&
      `mean latency of a back-fill's page of 1,000 at a low rate ${beside.backfillPageMs.mean.toFixed(1)} ms`,
  );
}
