/** Capacity planning: compares the tenants' demand with a measured capacity, and shows each step of the arithmetic. */
import type { Quota } from '../estimate/figures.ts';
import { memoizeLatest } from '../../engine/data/memoize.ts';
import { bisect, percent } from '../estimate/numbers.ts';
import { MAX_PAGE_SIZE } from '../k6/lib/presets.ts';
import { type Assumptions, demandOf, SECONDS_PER_DAY, show, workOf } from './demand.ts';
import { meanPages, pagesAtMost, pagesOfPolls, simulatePolls, type Waits } from './simulate.ts';

/** The measured capacity of all measured replicas together. */
export interface Measured {
  /** Requests per second, the lower end of the interval. */
  readonly perSecond: number;
  readonly limitedBy: 'quota' | 'saturation' | 'none-found';
  /** Requests per second at saturation, and the concurrency there. */
  readonly saturation: number;
  readonly workers: number;
  /** One client's quota, if it was reached: requests per second, and its window if known. */
  readonly clientQuota?: Pick<Quota, 'perSecond' | 'limit' | 'windowSeconds'> | undefined;
  /** The meaning of perSecond: the servers' capacity, a quota for all clients together, or a lower bound. */
  readonly server: 'capacity' | 'quota' | 'at-least';
  readonly pageSize: number;
  /** The SLO, and what it is of. */
  readonly p99Ms: number;
  readonly of: 'polls' | 'pages';
  readonly replicas: number;
  /** The cost of a page of 1,000 items, in pages of pageSize, if measured. */
  readonly backfillWork?: number | undefined;
  /** The prices of pages are not measured: those of the assumptions are lower bounds. */
  readonly arePricesUnknown?: boolean;
}

const SERVERS = {
  capacity: 'the measured replicas',
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

type Variation = Readonly<Partial<Record<'replicas' | 'tenants' | 'pollSpread', number>>>;

type Servers = ReturnType<typeof serversUnder>;

/** The measured servers under the load of the tenants at the peak, and the lines of the plan so far. */
function serversUnder(measured: Measured, assumed: Assumptions) {
  const load = demandOf(assumed);
  const [steps, warnings]: [string[], string[]] = [[...load.steps], []];
  const sloSeconds = measured.p99Ms / 1000;
  const simulate = (varied: Variation = {}, backfill = {}): Waits => {
    const factor = (varied.replicas ?? measured.replicas) / measured.replicas;
    const workers = Math.max(1, Math.round(measured.workers * factor));
    const { poll, pollSpread, pageSize, tokenPrice } = assumed;
    return simulatePolls(
      { perSecond: measured.saturation * factor, workers },
      {
        tenants: Math.ceil((varied.tenants ?? assumed.tenants) / (1 - assumed.retries)),
        ...{ poll, pollSpread: varied.pollSpread ?? pollSpread, pageSize, of: measured.of },
        ...{ screenings: load.screeningsAtPeak, tokensPerPoll: load.tokensPerPoll },
        ...{ tokenPrice, pagePrice: load.pagePrice },
        ...backfill,
      },
    );
  };
  return {
    ...{ measured, assumed, load, sloSeconds, simulate, steps, warnings },
    /** Add a line of the arithmetic, and a reason to distrust it. */
    step: (text: string): void => void steps.push(text),
    warn: (text: string): void => void warnings.push(text),
    /** Whether more replicas raise the capacity. */
    scales: measured.server === 'capacity',
    /** Utilisation of the measured capacity or of the shared quota. */
    utilisation: load.peak / measured.perSecond,
    name: measured.replicas > 1 ? `${measured.replicas} replicas` : 'one replica',
    keepSlo: (varied: Variation): boolean => simulate(varied).quantile(0.99) < sloSeconds,
  };
}

/** The load of a tenant on the quota of its client, as a share; undefined without a quota. */
function clientUtilisationOf({ measured, assumed, load, step }: Servers): number | undefined {
  if (!measured.clientQuota) return undefined;
  const { poll, pageSize } = assumed;
  const { perSecond, limit, windowSeconds } = measured.clientQuota;
  let asks = load.pagesAtPeak / poll;
  let how = `${show(asks)}/s / ${show(perSecond)}/s = `;
  if (limit !== undefined && windowSeconds !== undefined) {
    const polls = Math.ceil(windowSeconds / poll);
    const pages = pagesAtMost(pagesOfPolls(load.screeningsAtPeak, pageSize), ADMITTED_SHARE);
    asks = (polls * pages) / windowSeconds;
    how = `${polls} polls of up to ${pages} pages in ${show(windowSeconds)} s, of ${limit}: `;
  }
  step(`one client's quota: ${how}${percent(asks / perSecond)}`);
  return asks / perSecond;
}

/** Latency of what the SLO is of, on the measured replicas; Infinity if they are saturated. */
function latencyOf(servers: Servers) {
  const { measured, assumed, scales, sloSeconds, name, keepSlo, step, warn } = servers;
  const { poll, pollSpread } = assumed;
  const waits = servers.simulate();
  const p99Seconds = waits.quantile(0.99);
  const spreadNeededSeconds =
    scales && keepSlo({ pollSpread: poll })
      ? bisect(poll, 10, (spread) => !keepSlo({ pollSpread: spread }))[1]
      : undefined;
  if (scales) {
    step(
      `latency of ${measured.of} on ${name} (concurrency ${measured.workers}, ${show(measured.saturation)}/s at saturation), polls within ${show(pollSpread)} s: ${quantilesText(waits)}, SLO ${show(sloSeconds)} s`,
    );
    step(
      spreadNeededSeconds === undefined
        ? `${name}: no spread of the polls keeps the SLO`
        : `polls spread over ${show(spreadNeededSeconds)} s or more keep the SLO on ${name}`,
    );
  }
  if (p99Seconds >= sloSeconds && spreadNeededSeconds !== undefined)
    warn(
      `polls within ${show(pollSpread)} s of one another break the SLO on ${name} although ${percent(1 - Math.min(1, servers.utilisation))} of the capacity is free; spread over ${show(spreadNeededSeconds)} s they keep the SLO`,
    );
  return {
    p99Seconds,
    /** Quantiles by share, such as 0.5. */
    waits: shares(waits),
    /** The smallest spread of polls that keeps the SLO; absent if there is none. */
    spreadNeededSeconds,
  };
}

/** The number of replicas for a number of tenants, without spare ones; undefined if more replicas do not help. */
function replicasNeeded({ measured, assumed, load, scales, keepSlo, step, warn }: Servers) {
  // More replicas do not shorten a single poll.
  if (!scales || !keepSlo({ tenants: 1 })) return undefined;
  const { tenants: today, utilisation, spare } = assumed;
  const each = measured.perSecond / measured.replicas;
  const byLoad = (tenants: number): number =>
    Math.max(1, Math.ceil((load.peak * (tenants / today)) / (each * utilisation) - 1e-9));
  const needed = memoizeLatest((tenants: number): number => {
    let replicas = byLoad(tenants);
    while (!keepSlo({ replicas, tenants }) && replicas < MAX_REPLICAS) replicas += Math.ceil(replicas / 50);
    return replicas;
  }, YEARS + 1);
  step(
    `replicas: ⌈${show(load.peak)} / (${show(each)} × ${percent(utilisation)})⌉ = ${byLoad(today)}, ${needed(today)} for the p99, + ${spare} spare = ${needed(today) + spare}`,
  );
  if (needed(today) > measured.replicas && measured.replicas < 2)
    warn('the capacity of several replicas was not measured: measure two and give --measured-replicas 2');
  return needed;
}

/** Whether the measured replicas carry these tenants, and how many they carry. */
function tenantsOf(servers: Servers, p99Seconds: number, clientUtilisation = 0) {
  const { measured, assumed, load, scales, utilisation, keepSlo } = servers;
  const { perSecond, server, arePricesUnknown = false } = measured;
  // A capacity is measured by the arrivals of independent polls; of a quota or a lower bound only the rate is known.
  const busiest = (load.peak * assumed.poll) / assumed.pollSpread;
  const isKnown = scales || busiest <= perSecond || (server === 'quota' && utilisation > 1);
  const isLate = scales && p99Seconds >= servers.sloSeconds;
  const isBroken = clientUtilisation > 1 || (isKnown && (utilisation > 1 || isLate));
  const carried = isBroken ? false : isKnown && !arePricesUnknown ? true : undefined;
  if (!isKnown && carried === undefined)
    servers.warn(
      `whether this load is carried is unknown: ${show(Math.max(load.peak, busiest))}/s were not measured, only ${show(perSecond)}/s`,
    );
  const most = Math.floor(assumed.tenants / utilisation);
  const isLowerBound = server === 'at-least';
  // A rate of unknown polls, or of polls that a client's quota rejects, is not even a lower bound of tenants.
  const areTenantsUnknown = isLowerBound && (arePricesUnknown || clientUtilisation > 1);
  const tenantsCarried = areTenantsUnknown
    ? undefined
    : !scales || most < 1 || keepSlo({ tenants: most })
      ? most
      : Math.floor(bisect(most, Math.min(8, Math.log2(most)), (tenants) => keepSlo({ tenants }))[0]);
  if (tenantsCarried !== undefined)
    servers.step(
      `${isLowerBound ? 'at least' : 'at most'} ${tenantsCarried} such tenants on ${servers.name}${scales ? '' : ', if their polls are spread evenly'}`,
    );
  return {
    /** Undefined if that was not measured. */
    carried,
    /** A lower bound if the capacity is one; absent if unknown. */
    tenantsCarried,
  };
}

/** The time to catch up after an outage: Infinity if never, undefined if unknown. */
function catchUpSecondsOf({ measured, assumed, load, utilisation, step }: Servers): number | undefined {
  const { tenants, screeningsPerDay, outage, peakFactor, tokenPrice } = assumed;
  const screenings = (screeningsPerDay * outage * peakFactor) / SECONDS_PER_DAY;
  const pages = meanPages(screenings, assumed.pageSize);
  const work = workOf(pages, screenings, assumed);
  const waiting = tenants * (work + tokenPrice);
  const never = measured.server === 'at-least' ? undefined : Infinity;
  const catchUpSeconds = utilisation < 1 ? waiting / (measured.perSecond - load.peak) : never;
  step(
    `after an outage of ${show(outage)} s: ${tenants} × (${show(work)} for ${show(pages)} pages + ${show(tokenPrice)} for a token) = ${show(waiting)} requests' work, at ${show(measured.perSecond)} − ${show(load.peak)}/s caught up in ${seconds(catchUpSeconds)}`,
  );
  return catchUpSeconds;
}

const LARGEST_PAGES = `pages of ${MAX_PAGE_SIZE.toLocaleString('en-US')}`;

/** How long a tenant takes to read its history, and the latency for the others meanwhile. */
function backfillOf({ measured, assumed, scales, name, simulate, step }: Servers) {
  const { clientQuota } = measured;
  const backfillWork = measured.backfillWork ?? MAX_PAGE_SIZE / assumed.pageSize;
  const backfillGapMs = 1000 / (clientQuota?.perSecond ?? Infinity);
  const beside = simulate({}, { backfills: 1, backfillWork, backfillGapMs });
  const stored = assumed.screeningsPerDay * 365 * assumed.history;
  // Without the servers' capacity, only the quota is known.
  const perSecond = scales ? beside.backfilled : clientQuota?.perSecond;
  const backfillSeconds = perSecond === undefined ? undefined : stored / MAX_PAGE_SIZE / perSecond;
  if (scales) step(`latency of ${measured.of} on ${name} during a back-fill: ${quantilesText(beside)}`);
  const price = scales ? `, each costing ${show(backfillWork)} such pages` : '';
  const quota = clientQuota ? ` with one client's quota of ${show(clientQuota.perSecond)}/s` : '';
  step(
    backfillSeconds === undefined
      ? "how long a back-fill takes is unknown: neither the servers' capacity nor a client's quota was measured"
      : `a back-fill of ${show(365 * assumed.history)} days: ${show(stored)} screenings in ${LARGEST_PAGES}${price}, take ${scales ? '' : 'at least '}${seconds(backfillSeconds)}${quota}`,
  );
  return {
    /** A lower bound if only the client's quota is known; absent if neither is. */
    backfillSeconds,
    waitsBesideBackfill: shares(beside),
  };
}

/** Tenants, stored data, replicas and cost today and in the following years. */
function yearsOf({ assumed, step }: Servers, needed?: (tenants: number) => number) {
  const { tenants, growth, screeningsPerDay, costPerReplica } = assumed;
  const years = Array.from({ length: YEARS + 1 }, (_, year) => {
    const some = Math.ceil(tenants * (1 + growth) ** year);
    const replicas = needed && needed(some) + assumed.spare;
    const cost =
      replicas === undefined || costPerReplica === undefined ? undefined : replicas * costPerReplica;
    // The stored history per tenant, plus a year of screenings per year.
    const rows = some * screeningsPerDay * (365 * (assumed.history + year));
    return { year, tenants: some, rows, databaseGb: (rows * assumed.rowBytes) / 1e9, replicas, cost };
  });
  const [today, last] = [years[0]!, years.at(-1)!];
  for (const { year, rows, databaseGb } of [today, last])
    step(
      `${year === 0 ? 'today' : `in ${year} years`}: ${show(rows)} rows, ${show(databaseGb)} GB at ${assumed.rowBytes} bytes each with indexes`,
    );
  for (const of of growth > 0 ? years.slice(1) : [])
    step(
      `year ${of.year}: ${tenants} × ${show(1 + growth)}^${of.year} = ${of.tenants} tenants${of.replicas === undefined ? '' : `, ${of.replicas} replicas`}${of.cost === undefined ? '' : `, cost ${show(of.cost)}`}`,
    );
  const { replicas, cost } = today;
  if (cost !== undefined)
    step(
      `cost per month: ${replicas} replicas × ${costPerReplica} = ${show(cost)}, ${show((cost * 1e6) / screeningsPerMonth(assumed))} per million screenings, ${show(cost / tenants)} per tenant`,
    );
  return years;
}

const screeningsPerMonth = ({ tenants, screeningsPerDay }: Assumptions): number =>
  tenants * screeningsPerDay * DAYS_PER_MONTH;

/** What the tenants download, and the load at the peak after a change of one habit, as a share of the present load. */
function trafficOf({ assumed, load, step }: Servers) {
  const { tenants, poll, pageSize, screeningsPerDay, itemBytes } = assumed;
  const bytesPerDay = screeningsPerDay * itemBytes + (SECONDS_PER_DAY / poll) * EMPTY_PAGE;
  const egressGbPerMonth = (DAYS_PER_MONTH * tenants * bytesPerDay) / 1e9;
  const lever = (other: Partial<Assumptions>): number => demandOf({ ...assumed, ...other }).peak / load.peak;
  const levers: Readonly<Record<string, number>> = {
    [`polls every ${show(2 * poll)} s`]: lever({ poll: 2 * poll }),
    ...(pageSize < MAX_PAGE_SIZE ? { [LARGEST_PAGES]: lever({ pageSize: MAX_PAGE_SIZE }) } : {}),
    'tokens that last a day': lever({ tokenLifetime: SECONDS_PER_DAY }),
  };
  const habits = Object.entries(levers).map(([name, share]) => `${name} ${percent(share)}`);
  step(
    `egress: ${show(egressGbPerMonth)} GB per month at ${itemBytes} bytes per screening; ${show((egressGbPerMonth * 1e9) / screeningsPerMonth(assumed))} bytes per screening including empty polls`,
  );
  step(`levers, as shares of the load at the peak: ${habits.join(', ')}`);
  return { egressGbPerMonth, levers };
}

/** The first limit that the growing load reaches. */
function limitOf(servers: Servers, canKeepSlo: boolean, p99Seconds: number, clientUtilisation = 0): string {
  const { measured, scales, utilisation } = servers;
  if (measured.server === 'quota') return 'the shared quota of all clients, which more replicas do not raise';
  if (clientUtilisation > utilisation || (measured.clientQuota && !scales))
    return `the quota of one client, which more replicas do not raise${scales ? '' : '; the servers were not measured beyond it'}`;
  if (!scales)
    return measured.limitedBy === 'quota'
      ? 'the rate limit (429); whether it is per client or for all was not measured'
      : 'none found: the capacity is the highest tested rate, a lower bound';
  if (!canKeepSlo) return `the latency of single ${measured.of}, which more replicas do not shorten`;
  return p99Seconds >= servers.sloSeconds && utilisation <= 1
    ? 'simultaneous polls: spread them or add replicas'
    : 'the hardware: add replicas';
}

/** Each figure adds its arithmetic to the steps, in this order. */
export function plan(measured: Measured, assumed: Assumptions) {
  const servers = serversUnder(measured, assumed);
  const { load, utilisation, steps, step, warnings, warn } = servers;
  if (measured.arePricesUnknown)
    warn(
      'what a page with screenings costs was not measured, so the figures are too favourable: repeat `tenants` with a back-fill',
    );
  if (measured.pageSize !== assumed.pageSize)
    warn(`the capacity was measured with pages of ${measured.pageSize}, not of ${assumed.pageSize}`);
  step(
    `utilisation of ${SERVERS[measured.server]} at the peak: ${show(load.peak)}/s / ${show(measured.perSecond)}/s = ${percent(utilisation)} (the interval's lower end); headroom ${show(1 / utilisation)} ×`,
  );
  const clientUtilisation = clientUtilisationOf(servers);
  const latency = latencyOf(servers);
  const { p99Seconds } = latency;
  const needed = replicasNeeded(servers);
  const tenants = tenantsOf(servers, p99Seconds, clientUtilisation);
  const catchUpSeconds = catchUpSecondsOf(servers);
  const backfill = backfillOf(servers);
  const years = yearsOf(servers, needed);
  const traffic = trafficOf(servers);
  return {
    pagesPerPoll: load.pages,
    requestsPerSecond: load.requests,
    peakRequestsPerSecond: load.peak,
    ...{ utilisation, clientUtilisation, catchUpSeconds, years },
    ...latency,
    ...tenants,
    ...backfill,
    ...traffic,
    /** With spare ones; absent if a quota or the latency of a lone poll is the limit, which replicas do not change. */
    replicas: years[0]!.replicas,
    limitedFirstBy: limitOf(servers, needed !== undefined, p99Seconds, clientUtilisation),
    ...{ warnings, steps },
  };
}

const SHARES = [0.5, 0.9, 0.95, 0.99, 0.999];
const shares = (waits: Waits): Record<string, number> =>
  Object.fromEntries(SHARES.map((share) => [String(share), waits.quantile(share)]));
const quantilesText = (waits: Waits): string =>
  SHARES.map((share) => `p${share * 100} ${seconds(waits.quantile(share))}`).join(', ');
function seconds(value: number | undefined): string {
  if (value === undefined) return 'an unknown time';
  return Number.isFinite(value) ? `${show(value)} s` : 'never';
}
