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

const SERVER_WORDS = {
  capacity: 'one replica',
  quota: 'the quota for all',
  'at-least': "the lower bound of the servers' capacity",
} as const;

const MAX_REPLICAS = 10_000;
const YEARS = 3;
/** Share of polls that a client's quota has to admit. */
const ADMITTED_SHARE = 0.999;

/** Throws a RangeError for figures that are not positive. */
export function plan(measured: Measured, habits: Habits, policy: Policy) {
  for (const [name, value] of Object.entries({ ...measured, ...habits, ...policy })) {
    const least = ['retries', 'spare', 'growth', 'tokenPrice', 'spreadSeconds'].includes(name)
      ? 0
      : Number.MIN_VALUE;
    if (typeof value === 'number' && !(value >= least))
      throw new RangeError(`${name} must be above 0, got ${value}`);
  }
  const { tenants, pollSeconds, screeningsPerDay, pageSize, peakFactor, retries } = habits;
  const each = measured.perSecond / measured.replicas;
  const servers = (replicas: number): Servers => ({
    perSecond: (measured.saturation / measured.replicas) * replicas,
    workers: Math.max(1, Math.round((measured.workers / measured.replicas) * replicas)),
  });
  const load = demandOf(habits);
  const scales = measured.server === 'capacity';
  const utilisation = load.peak / each;
  const keepsSlo = (seconds: number): boolean => !scales || seconds < slo;
  const slo = measured.p99Ms / 1000;
  const pollsOf = (some: Habits) => ({
    tenants: Math.ceil(some.tenants / (1 - retries)),
    pollSeconds,
    spreadSeconds: some.spreadSeconds,
    screenings: load.screeningsAtPeak,
    pageSize,
    tokensPerPoll: load.tokensPerPoll,
    tokenPrice: habits.tokenPrice,
  });
  const p99 = (replicas: number, spreadSeconds = habits.spreadSeconds, some = habits): number =>
    simulatePolls(servers(replicas), pollsOf({ ...some, spreadSeconds })).quantile(0.99);
  const needed = (some: Habits): number => {
    const peak = load.peak * (some.tenants / tenants);
    let replicas = Math.max(1, Math.ceil(peak / (each * policy.utilisation) - 1e-9));
    while (p99(replicas, some.spreadSeconds, some) >= slo && replicas < MAX_REPLICAS)
      replicas += Math.ceil(replicas / 50);
    return replicas;
  };
  const replicas = needed(habits);
  const spreadNeededSeconds = smallestSpread((seconds) => p99(1, seconds) < slo, pollSeconds);
  const tenantsAtMost = mostTenants(Math.floor((tenants * each) / load.peak), (some) =>
    keepsSlo(p99(1, habits.spreadSeconds, { ...habits, tenants: some })),
  );

  const backlog = pagesOfPoll(
    (screeningsPerDay * policy.outageSeconds * peakFactor) / SECONDS_PER_DAY,
    pageSize,
  );
  const waiting = tenants * (backlog + habits.tokenPrice);
  const carrying = each * (scales ? replicas : 1);
  const catchUpSeconds = carrying > load.peak ? waiting / (carrying - load.peak) : Infinity;

  const { clientQuota } = measured;
  const pollsInWindow = clientQuota?.windowSeconds ? Math.ceil(clientQuota.windowSeconds / pollSeconds) : 0;
  const clientAsks =
    clientQuota?.limit && clientQuota.windowSeconds
      ? (pollsInWindow * pagesAtMost(load.screeningsAtPeak, pageSize, ADMITTED_SHARE)) /
        clientQuota.windowSeconds
      : load.atPeak / pollSeconds;
  const clientUtilisation = clientQuota && clientAsks / clientQuota.perSecond;
  const alone = simulatePolls(servers(1), pollsOf(habits));
  const history = screeningsPerDay * habits.historyDays;
  const backfillWork = measured.backfillWork ?? 1000 / pageSize;
  const beside = simulatePolls(servers(1), { ...pollsOf(habits), backfills: 1, backfillWork });
  const backfillSeconds = beside.backfilled > 0 ? history / 1000 / beside.backfilled : Infinity;
  const one = alone.quantile(0.99);
  const overServer = measured.server !== 'at-least' && utilisation > 1;
  const carried = !overServer && (clientUtilisation ?? 0) <= 1 && keepsSlo(one);
  const years = Array.from({ length: YEARS + 1 }, (_, year) => {
    const some = Math.ceil(tenants * (1 + policy.growth) ** year);
    const count = scales ? needed({ ...habits, tenants: some }) + policy.spare : undefined;
    const { costPerReplica } = policy;
    const cost = count === undefined || costPerReplica === undefined ? undefined : count * costPerReplica;
    // The stored history per tenant, plus a year of screenings per year.
    const rows = some * screeningsPerDay * (habits.historyDays + 365 * year);
    return { year, tenants: some, rows, databaseGb: (rows * habits.rowBytes) / 1e9, replicas: count, cost };
  });
  const egressGbPerMonth =
    (DAYS_PER_MONTH *
      tenants *
      (screeningsPerDay * habits.itemBytes + (SECONDS_PER_DAY / pollSeconds) * EMPTY_PAGE)) /
    1e9;
  const months = tenants * screeningsPerDay * DAYS_PER_MONTH;
  const lever = (other: Partial<Habits>): number => demandOf({ ...habits, ...other }).peak / load.peak;
  const levers: Readonly<Record<string, number>> = {
    [`polls every ${show(2 * pollSeconds)} s`]: lever({ pollSeconds: 2 * pollSeconds }),
    ...(pageSize < 1000 ? { 'pages of 1,000': lever({ pageSize: 1000 }) } : {}),
    'tokens that last a day': lever({ tokenLifetimeSeconds: SECONDS_PER_DAY }),
  };
  const warnings = [
    ...(scales && replicas > measured.replicas && measured.replicas < 2
      ? ['the capacity of several replicas was not measured: measure two and give --measured-replicas 2']
      : []),
    ...(measured.pageSize === pageSize
      ? []
      : [`the capacity was measured with pages of ${measured.pageSize}, not of ${pageSize}`]),
    ...(scales && one >= slo && spreadNeededSeconds !== undefined
      ? [
          `polls within ${show(habits.spreadSeconds)} s of one another break the SLO on one replica although ${percent(1 - Math.min(1, utilisation))} of it is free; spread over ${show(spreadNeededSeconds)} s they keep the SLO`,
        ]
      : []),
  ];
  const limit =
    measured.server === 'quota'
      ? 'the shared quota of all clients, which more replicas do not raise'
      : measured.server === 'at-least'
        ? 'the quota of one client, which more replicas do not raise; the servers were not measured beyond it'
        : (clientUtilisation ?? 0) > utilisation
          ? 'the quota of one client, which more replicas do not raise'
          : one >= slo && utilisation <= 1
            ? 'simultaneous polls: spread them or add replicas'
            : measured.limitedBy === 'none-found'
              ? 'none found: the capacity is the highest rate tried, so the number of replicas is an upper bound'
              : 'the hardware: add replicas';
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
    limitedFirstBy: limit,
    /** Load per hour. */
    day: Array.from({ length: 24 }, (_, hour) => (hour === 12 ? load.peak : load.offPeak)),
    years,
    warnings,
    /** Whether the measured replicas carry the load. */
    carried,
    steps: [
      ...load.steps,
      `utilisation of ${SERVER_WORDS[measured.server]} at the peak: ${show(load.peak)}/s / ${show(each)}/s = ${percent(utilisation)} (${measured.replicas > 1 ? `${show(measured.perSecond)}/s of ${measured.replicas} replicas, ` : ''}the interval's lower end); headroom ${show(1 / utilisation)} ×`,
      ...(clientQuota
        ? [
            clientQuota.limit && clientQuota.windowSeconds
              ? `one client's quota: ${pollsInWindow} polls of up to ${show((clientAsks * clientQuota.windowSeconds) / pollsInWindow)} pages in ${show(clientQuota.windowSeconds)} s, of ${clientQuota.limit}: ${percent(clientUtilisation!)}`
              : `one client's quota: ${show(clientAsks)}/s / ${show(clientQuota.perSecond)}/s = ${percent(clientUtilisation!)}`,
          ]
        : []),
      ...(!scales
        ? []
        : [
            `p99 on one replica (concurrency ${measured.workers / measured.replicas}, ${show(servers(1).perSecond)}/s at saturation), polls within ${show(habits.spreadSeconds)} s: ${seconds(one)}, SLO ${show(slo)} s`,
            spreadNeededSeconds === undefined
              ? 'one replica does not keep the SLO with any spread of the polls'
              : `polls spread over ${show(spreadNeededSeconds)} s or more keep the SLO on one replica`,
          ]),
      ...(scales
        ? [
            `replicas: ⌈${show(load.peak)} / (${show(each)} × ${percent(policy.utilisation)})⌉ = ${Math.max(1, Math.ceil(load.peak / (each * policy.utilisation) - 1e-9))}, ${replicas} for the p99 (then ${seconds(p99(replicas))}), + ${policy.spare} spare = ${replicas + policy.spare}`,
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
      ...[years[0]!, years.at(-1)!].map(
        ({ year, rows, databaseGb }) =>
          `${year === 0 ? 'today' : `in ${year} years`}: ${show(rows)} rows, ${show(databaseGb)} GB at ${habits.rowBytes} bytes each with indexes`,
      ),
      `egress: ${show(egressGbPerMonth)} GB per month at ${habits.itemBytes} bytes per screening; ${show((egressGbPerMonth * 1e9) / months)} per screening including empty polls`,
      `levers, as shares of the load at the peak: ${Object.entries(levers)
        .map(([name, share]) => `${name} ${percent(share)}`)
        .join(', ')}`,
      ...years
        .slice(policy.growth > 0 ? 1 : years.length)
        .map(
          (one) =>
            `year ${one.year}: ${tenants} × ${show(1 + policy.growth)}^${one.year} = ${one.tenants} tenants${one.replicas === undefined ? '' : `, ${one.replicas} replicas`}${one.cost === undefined ? '' : `, cost ${show(one.cost)}`}`,
        ),
      ...(years[0]?.cost === undefined
        ? []
        : [
            `cost per month: ${years[0].replicas} replicas × ${policy.costPerReplica} = ${show(years[0].cost)}, ${show((years[0].cost * 1e6) / months)} per million screenings, ${show(years[0].cost / tenants)} per tenant`,
          ]),
    ],
  };
}

const DAYS_PER_MONTH = 30;
/** Bytes of an empty page with its headers. */
const EMPTY_PAGE = 400;

const finite = (value: number): number | null => (Number.isFinite(value) ? value : null);
const SHARES = [0.5, 0.9, 0.95, 0.99, 0.999];
const shares = (waits: Waits): Record<string, number | null> =>
  Object.fromEntries(SHARES.map((share) => [String(share), finite(waits.quantile(share))]));
const quantilesText = (waits: Waits): string =>
  SHARES.map((share) => `p${share * 100} ${seconds(waits.quantile(share))}`).join(', ');

/** Returns the smallest sufficient spread by bisection; undefined if even the whole interval is too short. */
function smallestSpread(good: (spreadSeconds: number) => boolean, pollSeconds: number): number | undefined {
  if (!good(pollSeconds)) return undefined;
  let [low, high] = [0, pollSeconds];
  for (let round = 0; round < 10; round += 1) {
    const middle = (low + high) / 2;
    if (middle > 0 && good(middle)) high = middle;
    else low = middle;
  }
  return high;
}

/** Returns the highest number of tenants that is carried, by bisection; `most` is the limit by capacity alone. */
function mostTenants(most: number, carried: (tenants: number) => boolean): number {
  if (most < 1 || carried(most)) return most;
  let [low, high] = [0, most];
  while (high - low > Math.max(1, most / 200)) {
    const middle = Math.floor((low + high) / 2);
    if (carried(middle)) low = middle;
    else high = middle;
  }
  return low;
}

const seconds = (value: number): string => (Number.isFinite(value) ? `${show(value)} s` : 'never');
