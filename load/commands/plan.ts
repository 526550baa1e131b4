/** `npm run load -- plan`: requests, utilisation, waiting times, replicas and cost from a measured capacity. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { extremesOf, type Found } from '../estimate/figures.ts';
import { bisect, linesOf, percent } from '../estimate/numbers.ts';
import { LATE_SHARE } from '../estimate/step.ts';
import { MAX_PAGE_SIZE } from '../k6/lib/presets.ts';
import type { Assumptions } from '../plan/demand.ts';
import { type Measured, plan } from '../plan/plan.ts';
import { meanPages } from '../plan/simulate.ts';
import { type CapacityFigure, EXIT, failedShare, type LoadResult, type TenantsFigure } from '../result.ts';
import { UsageError } from '../../engine/errors.ts';
import { markup } from '../../certify/render/markup.ts';
import { loadPage } from '../report/write.ts';
import { plot } from '../report/plot.ts';

export interface PlanFlags extends Omit<
  Assumptions,
  'tokenPrice' | 'emptyPrice' | 'itemPrice' | 'pollSpread'
> {
  readonly from: string;
  readonly tokenFrom?: string;
  readonly pollFrom?: string;
  readonly pollSpread?: number;
  readonly measuredReplicas: number;
  readonly html: string;
  readonly json?: boolean;
}

/**
 * Prints the plan and writes its page. Returns 0 if the measured replicas carry the load, 1 if not, 3 if that was not
 * measured, or the capacity is unconfirmed or measured with wrong answers. Throws UsageError.
 */
export async function planCommand(flags: PlanFlags): Promise<number> {
  const result = await readResult(flags.from, 'capacity', 'tenants');
  const figure = result.capacity ?? result.tenants?.alone;
  if (!figure || result.void !== false) {
    throw new UsageError(
      `${flags.from}: contains no capacity${result.void ? ` (the run was void: ${result.void})` : ''}`,
    );
  }
  if (!(figure.interval[0] > 0)) {
    const known = figure.confirmed ? 'the capacity is 0' : 'no capacity is confirmed';
    console.log(`${known}, so there is nothing to plan: ${(result.summary ?? []).join('; ')}`);
    return EXIT.void;
  }
  const { pollSpread = flags.poll } = flags;
  if (pollSpread > flags.poll) throw new UsageError('--poll-spread must not exceed --poll');
  if (result.tenants && flags.pollFrom !== undefined)
    throw new UsageError(
      '--poll-from is for a load-capacity.json: a load-tenants.json has the cost of polls',
    );
  if (flags.retries >= 1) throw new UsageError('--retries must be below 1');
  const measured = result.tenants
    ? measuredByTenants(result, result.tenants, flags.measuredReplicas)
    : measuredBy(result, result.capacity!, flags.measuredReplicas);
  const pollMs = flags.pollFrom === undefined ? undefined : await medianOf(flags.pollFrom, 'poll');
  const alone = result.tenants?.alone;
  const pageMs = alone ? alone.pollMs / alone.pagesPerPoll : extremesOf(result.capacity!).quietMs;
  const tokenPrice =
    flags.tokenFrom === undefined ? 1 : (await medianOf(flags.tokenFrom, 'token')) / (pollMs ?? pageMs);
  // Polls find few screenings and cost less than full pages, so a server carries more of them; a quota counts requests.
  const cheaper = pollMs === undefined || measured.server !== 'capacity' ? 1 : pageMs / pollMs;
  const prices = alone
    ? pricesBy(alone, measured.backfillWork, result.pageSize)
    : { emptyPrice: 1, itemPrice: Math.max(0, cheaper - 1) / result.pageSize };
  const planned = plan(
    {
      ...measured,
      perSecond: measured.perSecond * cheaper,
      saturation: measured.saturation * cheaper,
      backfillWork: pollMs ? ((MAX_PAGE_SIZE / measured.pageSize) * pageMs) / pollMs : measured.backfillWork,
    },
    { ...flags, tokenPrice, ...prices, pollSpread },
  );
  const { tenants, capacity } = result;
  const figures = tenants
    ? { 'number of tenants': tenants.alone, 'number of tenants during back-fills': tenants.beside }
    : { 'capacity for one client': capacity, 'capacity for all clients': capacity?.perServer };
  const unreliable = objections(result, figures);
  const warnings = linesOf(
    ...unreliable,
    ...planned.warnings,
    (flags.tokenFrom ?? flags.pollFrom ?? tenants?.beside?.backfillPageMs) !== undefined &&
      'costs are compared by latencies, which include the network: far from the target, all costs look alike',
    flags.tokenFrom === undefined &&
      'assumes that a token call costs as much as a page: measure it and give --token-from',
    capacity &&
      pollMs === undefined &&
      'assumes that a poll costs as much as a full page: measure it and give --poll-from, or plan from `tenants`',
  );
  const lines = [...planned.steps, `the first limit: ${planned.limitedFirstBy}`];
  lines.push(...warnings.map((warning) => `warning: ${warning}`));
  console.log(flags.json ? JSON.stringify({ ...planned, warnings }, null, 2) : lines.join('\n'));
  await mkdir(dirname(flags.html), { recursive: true });
  await writeFile(flags.html, planHtml({ ...planned, warnings }, result));
  if (!flags.json) console.log(`  ${flags.html}`);
  if (planned.carried === undefined || unreliable.length > 0) return EXIT.void;
  return planned.carried ? EXIT.held : EXIT.broken;
}

/** Why the measured figures are unreliable. */
export const objections = (
  result: LoadResult,
  figures: Readonly<Record<string, Pick<Found, 'confirmed' | 'unconfirmed'> | undefined>>,
): string[] =>
  linesOf(
    ...Object.entries(figures).map(
      ([name, figure]) =>
        figure?.confirmed === false &&
        `the ${name} is not confirmed (${figure.unconfirmed}), so the plan is unreliable`,
    ),
    !result.conformant &&
      `the answers were wrong under load (${result.findings.map(({ id }) => id).join(', ')}), so the plan is unreliable`,
  );

/** With a shared quota two clients together get as much as one; with separate quotas they get twice as much. */
const SHARED = 1.3;

export function measuredBy(result: LoadResult, figure: CapacityFigure, replicas: number): Measured {
  const all = figure.perServer ?? figure;
  const isShared = all !== figure && all.requestsPerSecond < SHARED * figure.requestsPerSecond;
  const server =
    all.limitedBy === 'saturation'
      ? 'capacity'
      : all.limitedBy === 'quota' && isShared
        ? 'quota'
        : 'at-least';
  const { quietMs, saturatedAt } = extremesOf(all);
  const saturation = Math.max(all.requestsPerSecond, saturatedAt);
  return {
    perSecond: all.interval[0],
    limitedBy: all.limitedBy,
    server,
    saturation,
    workers: Math.max(1, Math.round((saturation * (quietMs || 0)) / 1000)),
    clientQuota:
      figure.quota && server !== 'quota' ? { ...figure.quota, perSecond: figure.interval[0] } : undefined,
    pageSize: result.pageSize,
    p99Ms: figure.slo.p99Ms,
    of: 'pages',
    replicas,
  };
}

/** Converts measured polls of tenants to pages. */
export function measuredByTenants(
  result: LoadResult,
  { alone, beside, pollSeconds, clients, slo }: TenantsFigure,
  replicas: number,
): Measured {
  const perSecond = (alone.interval[0] / pollSeconds) * alone.pagesPerPoll;
  const pageMs = alone.pollMs / alone.pagesPerPoll;
  // A poll of many pages may break the SLO far below the saturation.
  const saturation = Math.max(perSecond / MAX_UTILISATION, (alone.saturatedAt ?? 0) * alone.pagesPerPoll);
  return {
    perSecond,
    limitedBy: alone.limitedBy,
    // A quota was shared by the few clients of the measurement; whether the tenants share one is unknown.
    server: alone.limitedBy === 'saturation' ? 'capacity' : 'at-least',
    clientQuota: alone.quota && clients === 1 ? { perSecond } : undefined,
    saturation,
    workers: Math.max(1, Math.round((saturation * pageMs) / 1000)),
    pageSize: result.pageSize,
    p99Ms: slo.p99Ms,
    of: 'polls',
    replicas,
    backfillWork: beside?.backfillPageMs && beside.backfillPageMs.p50 / pageMs,
    arePricesUnknown: beside?.backfillPageMs === undefined,
  };
}

/**
 * By a back-fill's page, a largest one, and the measured polls, whose screenings follow from their number of pages. Without a
 * back-fill, every page costs as much as a measured one.
 */
export function pricesBy({ pagesPerPoll }: { pagesPerPoll: number }, backfillWork = 1, pageSize: number) {
  const isLess = (mean: number): boolean => meanPages(mean, pageSize) < pagesPerPoll;
  const [screenings] = bisect(pagesPerPoll * pageSize, 30, isLess);
  const perPage = screenings / Math.max(1, pagesPerPoll);
  const itemPrice = Math.max(0, backfillWork - 1) / Math.max(1, MAX_PAGE_SIZE - perPage);
  return { emptyPrice: Math.max(0, 1 - itemPrice * perPage), itemPrice };
}

/** A queue keeps its p99 up to about this share of its saturation. */
const MAX_UTILISATION = 0.95;

/** Returns the median latency of a run of open arrivals. Throws UsageError; quick failures would be a low cost. */
async function medianOf(file: string, scenario: string): Promise<number> {
  const result = await readResult(file, scenario);
  const { p50Ms: ms } = result.latency ?? { p50Ms: 0 };
  if (!(ms > 0)) throw new UsageError(`${file}: contains no latencies`);
  const failed = failedShare(result);
  if (failed > LATE_SHARE)
    throw new UsageError(
      `${file}: ${percent(failed)} of the requests failed, so that its latency is no cost: repeat the run at a lower rate`,
    );
  return ms;
}

async function readResult(file: string, ...scenarios: string[]): Promise<LoadResult> {
  try {
    const result = JSON.parse(await readFile(file, 'utf8')) as LoadResult;
    if (!scenarios.includes(result?.scenario)) throw new Error();
    return result;
  } catch {
    throw new UsageError(`${file}: not a result of \`npm run load -- ${scenarios.join(' or ')}\``);
  }
}

function planHtml(planned: ReturnType<typeof plan>, { target }: LoadResult): string {
  const { carried, steps, warnings, utilisation, peakRequestsPerSecond: peak, years } = planned;
  const carries = peak / utilisation;
  const level = { at: carries, name: `${carries.toPrecision(3)}/s` };
  const load = years.map(({ year, tenants }) => [year, (peak * tenants) / years[0]!.tenants] as const);
  const body = markup`<p>First limit: ${planned.limitedFirstBy}</p>
${warnings.map((warning) => markup`<p class="note">${warning}</p>`)}
${plot('Load at the peak by year', 'years from now', 'requests per second', { 'load at the peak': load }, { level })}
<h2>Arithmetic</h2>
<ul>${steps.map((step) => markup`<li>${step}</li>`)}</ul>`;
  const known = carried ? (['Carried', 'pass'] as const) : (['Not carried', 'fail'] as const);
  return loadPage('plan', target, carried === undefined ? ['Not measured', 'untested'] : known, body);
}
