/** Capacity planning: compares the tenants' demand with a measured capacity, and shows each step of the arithmetic. */
import { demandOf, type Habits, pagesAtMost, pagesOfPoll, percent, SECONDS_PER_DAY, show } from './demand.ts';
import { type Servers, simulatePolls, type Waits } from './simulate.ts';

/** The measured capacity of all measured replicas together. */
export interface Measured {
  /** Requests per second, the lower end of the interval. */
  readonly perSecond: number;
  readonly limitedBy: 'quota' | 'saturation' | 'none-found';
  /** Requests per second at saturation, and the concurrency there. */
  readonly saturation: number;
  readonly workers: number;
  /** One client's quota, if it was reached: requests per second, and its window if known. */
  readonly clientQuota?: {
    readonly perSecond: number;
    readonly limit?: number;
    readonly windowSeconds?: number;
  };
  /** The meaning of perSecond: the servers' capacity, a quota for all clients together, or a lower bound. */
  readonly server: 'capacity' | 'quota' | 'at-least';
  readonly pageSize: number;
  readonly p99Ms: number;
  readonly replicas: number;
  /** The cost of a page of 1,000 items, in pages of pageSize, if measured. */
  readonly backfillWork?: number;
}

export interface Policy {
  /** Maximum utilisation of a replica at the peak. */
  readonly utilisation: number;
  /** Additional replicas, as many as may fail. */
  readonly spare: number;
  readonly outageSeconds: number;
  /** Yearly growth of tenants. */
  readonly growth: number;
  readonly costPerReplica?: number;
}

export type Plan = ReturnType<typeof plan>;

const SERVERS = {
  capacity: 'one replica',
  quota: 'the quota for all',
  'at-least': "the lower bound of the servers' capacity",
} as const;

const MAX_REPLICAS = 10_000;
const YEARS = 3;
const DAYS_PER_MONTH = 30;
/** Share of polls that a client's quota has to admit. */
const ADMITTED_SHARE = 0.999;
/** Bytes of an empty page with its headers. */
const EMPTY_PAGE = 400;
const MAY_BE_ZERO = ['retries', 'spare', 'growth', 'tokenPrice', 'spreadSeconds'];

/** Throws a RangeError for figures that are not positive. */
export function plan(measured: Measured, habits: Habits, policy: Policy) {
  for (const [name, value] of Object.entries({ ...measured, ...habits, ...policy }))
    if (typeof value === 'number' && !(MAY_BE_ZERO.includes(name) ? value >= 0 : value > 0))
      throw new RangeError(`${name} must be above 0, got ${value}`);
  const { tenants, pollSeconds, spreadSeconds, screeningsPerDay, pageSize, peakFactor, retries } = habits;
  const load = demandOf(habits);
  const each = measured.perSecond / measured.replicas;
  const slo = measured.p99Ms / 1000;
  /** Whether more replicas raise the capacity. */
  const scales = measured.server === 'capacity';
  const utilisation = load.peak / each;

  const servers = (replicas: number): Servers => ({
    perSecond: (measured.saturation / measured.replicas) * replicas,
    workers: Math.max(1, Math.round((measured.workers / measured.replicas) * replicas)),
  });
  const simulate = (
    replicas: number,
    more: { tenants?: number; spreadSeconds?: number } = {},
    backfill = {},
  ) =>
    simulatePolls(servers(replicas), {
      tenants: Math.ceil((more.tenants ?? tenants) / (1 - retries)),
      pollSeconds,
      spreadSeconds: more.spreadSeconds ?? spreadSeconds,
      screenings: load.screeningsAtPeak,
      pageSize,
      tokensPerPoll: load.tokensPerPoll,
      tokenPrice: habits.tokenPrice,
      ...backfill,
    });
  const p99 = (...of: Parameters<typeof simulate>): number => simulate(...of).quantile(0.99);
  const keepsSlo = (seconds: number): boolean => !scales || seconds < slo;
  const replicasFor = (peak: number): number =>
    Math.max(1, Math.ceil(peak / (each * policy.utilisation) - 1e-9));
  const needed = (some: number): number => {
    let count = replicasFor(load.peak * (some / tenants));
    while (p99(count, { tenants: some }) >= slo && count < MAX_REPLICAS) count += Math.ceil(count / 50);
    return count;
  };
  const replicas = needed(tenants);
  const spreadNeededSeconds =
    p99(1, { spreadSeconds: pollSeconds }) < slo
      ? bisect(
          0,
          pollSeconds,
          pollSeconds / 1024,
          (spread) => spread === 0 || p99(1, { spreadSeconds: spread }) >= slo,
        )[1]
      : undefined;
  const most = Math.floor((tenants * each) / load.peak);
  const carries = (some: number): boolean => some === 0 || keepsSlo(p99(1, { tenants: some }));
  const tenantsAtMost =
    most < 1 || carries(most)
      ? most
      : Math.floor(bisect(0, most, Math.max(1, most / 200), (some) => carries(Math.floor(some)))[0]);

  const outageScreenings = (screeningsPerDay * policy.outageSeconds * peakFactor) / SECONDS_PER_DAY;
  const backlog = pagesOfPoll(outageScreenings, pageSize);
  const waiting = tenants * (backlog + habits.tokenPrice);
  const carrying = each * (scales ? replicas : 1);
  const catchUpSeconds = carrying > load.peak ? waiting / (carrying - load.peak) : Infinity;

  const { clientQuota } = measured;
  const { limit, windowSeconds } = clientQuota ?? {};
  const pollsInWindow = Math.ceil((windowSeconds ?? 0) / pollSeconds);
  const hasWindow = limit !== undefined && windowSeconds !== undefined;
  const clientAsks = hasWindow
    ? (pollsInWindow * pagesAtMost(load.screeningsAtPeak, pageSize, ADMITTED_SHARE)) / windowSeconds
    : load.atPeak / pollSeconds;
  const clientUtilisation = clientQuota && clientAsks / clientQuota.perSecond;
  const alone = simulate(1);
  const history = screeningsPerDay * habits.historyDays;
  const backfillWork = measured.backfillWork ?? 1000 / pageSize;
  const beside = simulate(1, {}, { backfills: 1, backfillWork });
  const backfillSeconds = beside.backfilled > 0 ? history / 1000 / beside.backfilled : Infinity;
  const one = alone.quantile(0.99);
  const overServer = measured.server !== 'at-least' && utilisation > 1;
  const carried = !overServer && (clientUtilisation ?? 0) <= 1 && keepsSlo(one);
  const { costPerReplica } = policy;
  const years = Array.from({ length: YEARS + 1 }, (_, year) => {
    const some = Math.ceil(tenants * (1 + policy.growth) ** year);
    const count = scales ? needed(some) + policy.spare : undefined;
    const cost = count === undefined || costPerReplica === undefined ? undefined : count * costPerReplica;
    // The stored history per tenant, plus a year of screenings per year.
    const rows = some * screeningsPerDay * (habits.historyDays + 365 * year);
    return { year, tenants: some, rows, databaseGb: (rows * habits.rowBytes) / 1e9, replicas: count, cost };
  });
  const bytesPerDay = screeningsPerDay * habits.itemBytes + (SECONDS_PER_DAY / pollSeconds) * EMPTY_PAGE;
  const egressGbPerMonth = (DAYS_PER_MONTH * tenants * bytesPerDay) / 1e9;
  const screeningsPerMonth = tenants * screeningsPerDay * DAYS_PER_MONTH;
  const lever = (other: Partial<Habits>): number => demandOf({ ...habits, ...other }).peak / load.peak;
  const levers: Readonly<Record<string, number>> = {
    [`polls every ${show(2 * pollSeconds)} s`]: lever({ pollSeconds: 2 * pollSeconds }),
    ...(pageSize < 1000 ? { 'pages of 1,000': lever({ pageSize: 1000 }) } : {}),
    'tokens that last a day': lever({ tokenLifetimeSeconds: SECONDS_PER_DAY }),
  };
  const warnings = textsOf(
    scales &&
      replicas > measured.replicas &&
      measured.replicas < 2 &&
      'the capacity of several replicas was not measured: measure two and give --measured-replicas 2',
    measured.pageSize !== pageSize &&
      `the capacity was measured with pages of ${measured.pageSize}, not of ${pageSize}`,
    scales &&
      one >= slo &&
      spreadNeededSeconds !== undefined &&
      `polls within ${show(spreadSeconds)} s of one another break the SLO on one replica although ${percent(1 - Math.min(1, utilisation))} of it is free; spread over ${show(spreadNeededSeconds)} s they keep the SLO`,
  );
  const noLimit =
    'none found: the capacity is the highest tested rate, so the number of replicas is an upper bound';
  const limitedFirstBy =
    measured.server === 'quota'
      ? 'the shared quota of all clients, which more replicas do not raise'
      : measured.server === 'at-least'
        ? clientQuota
          ? 'the quota of one client, which more replicas do not raise; the servers were not measured beyond it'
          : noLimit
        : (clientUtilisation ?? 0) > utilisation
          ? 'the quota of one client, which more replicas do not raise'
          : one >= slo && utilisation <= 1
            ? 'simultaneous polls: spread them or add replicas'
            : measured.limitedBy === 'none-found'
              ? noLimit
              : 'the hardware: add replicas';
  const [today, last] = [years[0]!, years.at(-1)!];
  return {
    pagesPerPoll: load.mean,
    requestsPerSecond: load.requests,
    peakRequestsPerSecond: load.peak,
    /** At the peak: utilisation of one replica's capacity or of the shared quota, and of one client's quota. */
    utilisation,
    clientUtilisation,
    /** p99 on one replica; null if it is saturated. */
    p99Seconds: finite(one),
    /** Quantiles of a page's latency, by share such as 0.5; without and with one back-fill. */
    waits: shares(alone),
    waitsBesideBackfill: shares(beside),
    backfillSeconds: finite(backfillSeconds),
    egressGbPerMonth,
    /** Load at the peak after a change of one habit, as a share of the present load. */
    levers,
    /** The smallest spread with which one replica keeps the SLO; absent if there is none. */
    spreadNeededSeconds,
    /** Absent if a quota is the limit, which replicas do not change. */
    replicas: scales ? replicas + policy.spare : undefined,
    /** Time to catch up after an outage; null if never. */
    catchUpSeconds: finite(catchUpSeconds),
    /** The most tenants for one replica, within SLO and capacity. */
    tenantsAtMost,
    limitedFirstBy,
    /** Load per hour. */
    day: Array.from({ length: 24 }, (_, hour) => (hour === 12 ? load.peak : load.offPeak)),
    years,
    warnings,
    /** Whether the measured replicas carry the load. */
    carried,
    steps: textsOf(
      ...load.steps,
      `utilisation of ${SERVERS[measured.server]} at the peak: ${show(load.peak)}/s / ${show(each)}/s = ${percent(utilisation)} (${measured.replicas > 1 ? `${show(measured.perSecond)}/s of ${measured.replicas} replicas, ` : ''}the interval's lower end); headroom ${show(1 / utilisation)} ×`,
      clientQuota &&
        (hasWindow
          ? `one client's quota: ${pollsInWindow} polls of up to ${show((clientAsks * windowSeconds) / pollsInWindow)} pages in ${show(windowSeconds)} s, of ${limit}: ${percent(clientUtilisation!)}`
          : `one client's quota: ${show(clientAsks)}/s / ${show(clientQuota.perSecond)}/s = ${percent(clientUtilisation!)}`),
      ...(scales
        ? [
            `p99 on one replica (concurrency ${measured.workers / measured.replicas}, ${show(servers(1).perSecond)}/s at saturation), polls within ${show(spreadSeconds)} s: ${seconds(one)}, SLO ${show(slo)} s`,
            spreadNeededSeconds === undefined
              ? 'one replica does not keep the SLO with any spread of the polls'
              : `polls spread over ${show(spreadNeededSeconds)} s or more keep the SLO on one replica`,
            `replicas: ⌈${show(load.peak)} / (${show(each)} × ${percent(policy.utilisation)})⌉ = ${replicasFor(load.peak)}, ${replicas} for the p99 (then ${seconds(p99(replicas))}), + ${policy.spare} spare = ${replicas + policy.spare}`,
          ]
        : []),
      `one replica carries at most ${tenantsAtMost} such tenants`,
      `after an outage of ${show(policy.outageSeconds)} s: ${tenants} × (${show(backlog)} pages + ${show(habits.tokenPrice)} for a token) = ${show(waiting)} requests' work, at ${show(carrying)} − ${show(load.peak)}/s caught up in ${seconds(catchUpSeconds)}`,
      ...(scales
        ? [
            `latency of pages on one replica: ${quantilesText(alone)}; during a back-fill ${quantilesText(beside)}`,
            `a back-fill of ${show(habits.historyDays)} days: ${show(history)} screenings in pages of 1,000, each costing ${show(backfillWork)} such pages, take ${seconds(backfillSeconds)}`,
          ]
        : []),
      ...[today, last].map(
        ({ year, rows, databaseGb }) =>
          `${year === 0 ? 'today' : `in ${year} years`}: ${show(rows)} rows, ${show(databaseGb)} GB at ${habits.rowBytes} bytes each with indexes`,
      ),
      `egress: ${show(egressGbPerMonth)} GB per month at ${habits.itemBytes} bytes per screening; ${show((egressGbPerMonth * 1e9) / screeningsPerMonth)} bytes per screening including empty polls`,
      `levers, as shares of the load at the peak: ${Object.entries(levers)
        .map(([name, share]) => `${name} ${percent(share)}`)
        .join(', ')}`,
      ...years
        .slice(policy.growth > 0 ? 1 : years.length)
        .map(
          (of) =>
            `year ${of.year}: ${tenants} × ${show(1 + policy.growth)}^${of.year} = ${of.tenants} tenants${of.replicas === undefined ? '' : `, ${of.replicas} replicas`}${of.cost === undefined ? '' : `, cost ${show(of.cost)}`}`,
        ),
      today.cost !== undefined &&
        `cost per month: ${today.replicas} replicas × ${costPerReplica} = ${show(today.cost)}, ${show((today.cost * 1e6) / screeningsPerMonth)} per million screenings, ${show(today.cost / tenants)} per tenant`,
    ),
  };
}

const textsOf = (...lines: readonly (string | false | undefined)[]): string[] =>
  lines.filter((line) => typeof line === 'string');

const finite = (value: number): number | null => (Number.isFinite(value) ? value : null);
const SHARES = [0.5, 0.9, 0.95, 0.99, 0.999];
const shares = (waits: Waits): Record<string, number | null> =>
  Object.fromEntries(SHARES.map((share) => [String(share), finite(waits.quantile(share))]));
const quantilesText = (waits: Waits): string =>
  SHARES.map((share) => `p${share * 100} ${seconds(waits.quantile(share))}`).join(', ');

/** Narrows an interval in which `isBelow` holds at the lower end and not at the upper one. */
function bisect(
  low: number,
  high: number,
  width: number,
  isBelow: (at: number) => boolean,
): [number, number] {
  let ends: [number, number] = [low, high];
  while (ends[1] - ends[0] > width) {
    const middle = (ends[0] + ends[1]) / 2;
    ends = isBelow(middle) ? [middle, ends[1]] : [ends[0], middle];
  }
  return ends;
}

const seconds = (value: number): string => (Number.isFinite(value) ? `${show(value)} s` : 'never');
