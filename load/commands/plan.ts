/** `npm run load -- plan`: requests, utilisation, waiting times, replicas and cost from a measured capacity. */
import { readFile, writeFile } from 'node:fs/promises';
import { extremesOf, type Found } from '../estimate/figures.ts';
import { bisect, linesOf, percent } from '../estimate/numbers.ts';
import { LATE_SHARE } from '../estimate/step.ts';
import { MAX_PAGE_SIZE } from '../k6/lib/presets.ts';
import type { Option } from 'commander';
import { ASSUMED, show } from '../plan/demand.ts';
import { type Measured, plan } from '../plan/plan.ts';
import { meanPages } from '../plan/simulate.ts';
import { type CapacityFigure, EXIT, failedShare, type LoadResult, type TenantsFigure } from '../result.ts';
import { UsageError } from '../../engine/errors.ts';
import { prepareFile } from '../../engine/files.ts';
import { markup } from '../../certify/render/markup.ts';
import { loadPage } from '../report/write.ts';
import { above0, duration, type Flag, optionOf, text, type Values, whole } from '../run/flags.ts';
import { plot } from '../report/plot.ts';

/** Flags of `plan` in addition to the assumptions. */
const RESULT: Flag = ['--from <file>', 'a load-tenants.json or a load-capacity.json', text];
const WITH_DEFAULT = {
  measuredReplicas: ['--measured-replicas <n>', 'replicas in the capacity measurement', whole, 1],
  html: ['--html <file>', 'HTML page with plots', text, 'reports/load-plan.html'],
} as const;
const WITHOUT_DEFAULT = {
  pollSpread: ['--poll-spread <time>', 'part of each interval in which polls arrive; default all', duration],
  tokenFrom: ['--token-from <file>', 'a load-token.json: the cost of a token call; default a page', text],
  pollFrom: ['--poll-from <file>', 'a load-poll.json: the cost of a poll, for a load-capacity.json', text],
  costPerReplica: ['--cost-per-replica <n>', 'cost of a replica per month, in any currency', above0],
  json: ['--json', 'print JSON', Boolean],
} as const;

export type PlanFlags = Values<typeof ASSUMED & typeof WITH_DEFAULT> &
  Partial<Values<typeof WITHOUT_DEFAULT>> & { readonly from: string };

export const planOptions = (): Option[] => [
  ...[RESULT, ...Object.values<Flag>(ASSUMED)].map((flag) =>
    optionOf(flag).makeOptionMandatory(flag.length < 4),
  ),
  ...Object.values<Flag>({ ...WITH_DEFAULT, ...WITHOUT_DEFAULT }).map(optionOf),
];

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
  await prepareFile(flags.html, '--html');
  const { tenants, capacity, pageSize } = result;
  const measured = tenants ? measuredByTenants(tenants) : measuredBy(capacity!);
  const pageMs = tenants ? tenants.alone.pollMs / tenants.alone.pagesPerPoll : extremesOf(capacity!).quietMs;
  const pollMs = flags.pollFrom === undefined ? undefined : await medianOf(flags.pollFrom, 'poll');
  const tokenMs = flags.tokenFrom === undefined ? undefined : await medianOf(flags.tokenFrom, 'token');
  const tokenPrice = tokenMs === undefined ? 1 : tokenMs / (pollMs ?? pageMs);
  // Polls find few screenings and cost less than full pages, so a server carries more of them; a quota counts requests.
  const cheaper = pollMs === undefined || measured.server !== 'capacity' ? 1 : pageMs / pollMs;
  const prices = tenants
    ? pricesBy(tenants.alone, measured.backfillWork, pageSize)
    : { emptyPrice: 1, itemPrice: Math.max(0, cheaper - 1) / pageSize };
  const planned = plan(
    {
      ...{ ...measured, pageSize, replicas: flags.measuredReplicas },
      perSecond: measured.perSecond * cheaper,
      saturation: measured.saturation * cheaper,
      backfillWork: pollMs ? ((MAX_PAGE_SIZE / pageSize) * pageMs) / pollMs : measured.backfillWork,
    },
    { ...flags, tokenPrice, ...prices, pollSpread },
  );
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

type Capacity = Omit<Measured, 'pageSize' | 'replicas'>;

export function measuredBy(figure: CapacityFigure): Capacity {
  const all = figure.perServer ?? figure;
  const { limitedBy, requestsPerSecond } = all;
  const isShared = all !== figure && requestsPerSecond < SHARED * figure.requestsPerSecond;
  const ofQuota = limitedBy === 'quota' && isShared ? 'quota' : 'at-least';
  const server = limitedBy === 'saturation' ? 'capacity' : ofQuota;
  const { quietMs, saturatedAt } = extremesOf(all);
  const saturation = Math.max(requestsPerSecond, saturatedAt);
  return {
    ...{ limitedBy, server, saturation, workers: workersOf(saturation, quietMs || 0) },
    perSecond: all.interval[0],
    clientQuota:
      figure.quota && server !== 'quota' ? { ...figure.quota, perSecond: figure.interval[0] } : undefined,
    p99Ms: figure.slo.p99Ms,
    of: 'pages',
  };
}

/** Little's law: the requests in service at saturation. */
const workersOf = (saturation: number, pageMs: number): number =>
  Math.max(1, Math.round((saturation * pageMs) / 1000));

/** Converts measured polls of tenants to pages. */
export function measuredByTenants({ alone, beside, pollSeconds, clients, slo }: TenantsFigure): Capacity {
  const { limitedBy, pagesPerPoll } = alone;
  const perSecond = (alone.interval[0] / pollSeconds) * pagesPerPoll;
  const pageMs = alone.pollMs / pagesPerPoll;
  // A poll of many pages may break the SLO far below the saturation.
  const saturation = Math.max(perSecond / MAX_UTILISATION, (alone.saturatedAt ?? 0) * pagesPerPoll);
  return {
    ...{ perSecond, limitedBy, saturation, workers: workersOf(saturation, pageMs) },
    // A quota was shared by the few clients of the measurement; whether the tenants share one is unknown.
    server: limitedBy === 'saturation' ? 'capacity' : 'at-least',
    clientQuota: alone.quota && clients === 1 ? { perSecond } : undefined,
    p99Ms: slo.p99Ms,
    of: 'polls',
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
  const level = { at: carries, name: `${show(carries)}/s` };
  const load = years.map(({ year, tenants }) => [year, (peak * tenants) / years[0]!.tenants] as const);
  const body = markup`<p>First limit: ${planned.limitedFirstBy}</p>
${warnings.map((warning) => markup`<p class="note">${warning}</p>`)}
${plot('Load at the peak by year', 'years from now', 'requests per second', { 'load at the peak': load }, { level })}
<h2>Arithmetic</h2>
<ul>${steps.map((step) => markup`<li>${step}</li>`)}</ul>`;
  const known = carried ? (['Carried', 'pass'] as const) : (['Not carried', 'fail'] as const);
  return loadPage('plan', target, carried === undefined ? ['Not measured', 'untested'] : known, body);
}
