/** Capacity planning: compares the tenants' demand with a measured capacity, and shows each step of the arithmetic. */
import type { Quota } from '../estimate/figures.ts';
import { memoizeLatest } from '../../engine/data/memoize.ts';
import { bisect, linesOf, percent, rounded } from '../estimate/numbers.ts';
import { meanPages, pagesAtMost, pagesOfPolls, simulatePolls, type Waits } from './simulate.ts';

/** What is assumed about the tenants and the operation, with the names of the flags of `plan`; times in seconds. */
export interface Assumptions {
  readonly tenants: number;
  readonly poll: number;
  /** Length of the part of each interval in which polls arrive; the interval if they are independent. */
  readonly pollSpread: number;
  readonly screeningsPerDay: number;
  readonly pageSize: number;
  readonly tokenLifetime: number;
  /** The costs of a token call, an empty page and each screening on a page, in pages as measured. */
  readonly tokenPrice: number;
  readonly emptyPrice: number;
  readonly itemPrice: number;
  /** The busiest hour's screenings as a multiple of the mean; the number of polls stays the same. */
  readonly peakFactor: number;
  /** Share of the requests that are repeated. */
  readonly retries: number;
  /** Years of stored screenings; bytes of a screening in a page, and in a database with its indexes. */
  readonly history: number;
  readonly itemBytes: number;
  readonly rowBytes: number;
  /** Maximum utilisation of a replica at the peak. */
  readonly utilisation: number;
  readonly spare: number;
  readonly outage: number;
  readonly growth: number;
  readonly costPerReplica?: number;
}

const SECONDS_PER_DAY = 86_400;
const MARGIN_SECONDS = 60;

/** Requests of all tenants per second, on average and at the peak, and the arithmetic as text. */
function demandOf(assumed: Assumptions) {
  const { tenants, poll, screeningsPerDay, pageSize, peakFactor, retries, tokenPrice } = assumed;
  const polls = tenants / poll;
  const screenings = (screeningsPerDay * poll) / SECONDS_PER_DAY;
  const screeningsAtPeak = screenings * peakFactor;
  const pages = meanPages(screenings, pageSize);
  const pagesAtPeak = meanPages(screeningsAtPeak, pageSize);
  const lifetime = assumed.tokenLifetime;
  const usable = lifetime - Math.min(MARGIN_SECONDS, lifetime / 4);
  // A token is renewed by the first poll after its renewal is due.
  const renewal = Math.ceil(usable / poll) * poll;
  const tokensPerPoll = poll / renewal;
  const tokenPages = tokensPerPoll * tokenPrice;
  const work = workOf(pages, screenings, assumed);
  const workAtPeak = workOf(pagesAtPeak, screeningsAtPeak, assumed);
  const rate = (workEach: number): number => (polls * (workEach + tokenPages)) / (1 - retries);
  const [requests, peak] = [rate(work), rate(workAtPeak)];
  return {
    ...{ pages, pagesAtPeak, screeningsAtPeak, tokensPerPoll, requests, peak },
    /** The cost of a page at the peak. */
    pagePrice: workAtPeak / pagesAtPeak,
    steps: [
      `polls: ${tenants} tenants / ${poll} s = ${show(polls)}/s, at any hour`,
      `screenings per poll: ${screeningsPerDay} per day × ${poll} s / 86400 s = ${show(screenings)}; at the peak × ${peakFactor} = ${show(screeningsAtPeak)}`,
      `pages per poll: mean of max(1, ⌈N / ${pageSize}⌉) for Poisson N = ${show(pages)}; at the peak ${show(pagesAtPeak)}`,
      `tokens: one per tenant every ${show(renewal)} s, each costing ${show(tokenPrice)} pages = ${show(tokenPages)} per poll`,
      `their cost: ${show(pages)} × ${show(assumed.emptyPrice)} + ${show(screenings)} screenings × ${show(assumed.itemPrice)} = ${show(work)} pages as measured; at the peak ${show(workAtPeak)}`,
      `requests: ${show(polls)}/s × (${show(work)} + ${show(tokenPages)}) / (1 − ${retries} repeated) = ${show(requests)}/s; at the peak ${show(peak)}/s`,
    ],
  };
}

/** The cost of pages with screenings, in pages as measured. */
export const workOf = (
  pages: number,
  screenings: number,
  { emptyPrice, itemPrice }: Pick<Assumptions, 'emptyPrice' | 'itemPrice'>,
): number => pages * emptyPrice + screenings * itemPrice;

const show = (value: number): string => String(rounded(value));

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

export function plan(measured: Measured, assumed: Assumptions) {
  const { tenants, poll, pollSpread, screeningsPerDay, pageSize, peakFactor, retries, history } = assumed;
  const { perSecond, clientQuota } = measured;
  const load = demandOf(assumed);
  const each = perSecond / measured.replicas;
  const slo = measured.p99Ms / 1000;
  /** Whether more replicas raise the capacity. */
  const scales = measured.server === 'capacity';
  const utilisation = load.peak / perSecond;

  const simulate = (more: { replicas?: number; tenants?: number; pollSpread?: number } = {}, beside = {}) => {
    const replicas = (more.replicas ?? measured.replicas) / measured.replicas;
    const workers = Math.max(1, Math.round(measured.workers * replicas));
    return simulatePolls(
      { perSecond: measured.saturation * replicas, workers },
      {
        tenants: Math.ceil((more.tenants ?? tenants) / (1 - retries)),
        ...{ poll, pollSpread: more.pollSpread ?? pollSpread, pageSize, of: measured.of },
        ...{ screenings: load.screeningsAtPeak, tokensPerPoll: load.tokensPerPoll },
        ...{ tokenPrice: assumed.tokenPrice, pagePrice: load.pagePrice },
        ...beside,
      },
    );
  };
  const keepsSlo = (...of: Parameters<typeof simulate>): boolean => simulate(...of).quantile(0.99) < slo;
  const replicasFor = (some: number): number =>
    Math.max(1, Math.ceil((load.peak * (some / tenants)) / (each * assumed.utilisation) - 1e-9));
  const needed = memoizeLatest((some: number): number => {
    let count = replicasFor(some);
    while (!keepsSlo({ replicas: count, tenants: some }) && count < MAX_REPLICAS)
      count += Math.ceil(count / 50);
    return count;
  }, YEARS + 1);

  const alone = simulate();
  const p99Seconds = alone.quantile(0.99);
  const backfillWork = measured.backfillWork ?? 1000 / pageSize;
  const backfillGapMs = 1000 / (clientQuota?.perSecond ?? Infinity);
  const beside = simulate({}, { backfills: 1, backfillWork, backfillGapMs });
  const stored = screeningsPerDay * 365 * history;
  // Without the servers' capacity, only the quota is known.
  const backfillSeconds = scales
    ? stored / 1000 / beside.backfilled
    : clientQuota && stored / 1000 / clientQuota.perSecond;

  const { limit, windowSeconds } = clientQuota ?? {};
  const hasWindow = limit !== undefined && windowSeconds !== undefined;
  const pollsInWindow = Math.ceil((windowSeconds ?? 0) / poll);
  const pagesAtMostAPoll = pagesAtMost(pagesOfPolls(load.screeningsAtPeak, pageSize), ADMITTED_SHARE);
  const clientAsks = hasWindow ? (pollsInWindow * pagesAtMostAPoll) / windowSeconds : load.pagesAtPeak / poll;
  const clientUtilisation = clientQuota && clientAsks / clientQuota.perSecond;

  // A capacity is measured by the arrivals of independent polls; of a quota or a lower bound only the rate is known.
  const busiest = (load.peak * poll) / pollSpread;
  const isKnown = scales || busiest <= perSecond || (measured.server === 'quota' && utilisation > 1);
  const isBroken =
    (clientUtilisation ?? 0) > 1 || (isKnown && (utilisation > 1 || (scales && p99Seconds >= slo)));
  const carried = isBroken ? false : isKnown && !measured.arePricesUnknown ? true : undefined;
  // More replicas do not shorten a single poll.
  const canKeepSlo = scales && keepsSlo({ tenants: 1 });
  const replicas = canKeepSlo ? needed(tenants) : undefined;
  const spreadNeededSeconds =
    scales && keepsSlo({ pollSpread: poll })
      ? bisect(poll, 10, (spread) => !keepsSlo({ pollSpread: spread }))[1]
      : undefined;
  const most = Math.floor(tenants / utilisation);
  const isLowerBound = measured.server === 'at-least';
  // A rate of unknown polls, or of polls that a client's quota rejects, is not even a lower bound of tenants.
  const areTenantsUnknown = isLowerBound && (measured.arePricesUnknown || (clientUtilisation ?? 0) > 1);
  const tenantsCarried = areTenantsUnknown
    ? undefined
    : !scales || most < 1 || keepsSlo({ tenants: most })
      ? most
      : Math.floor(bisect(most, Math.min(8, Math.log2(most)), (some) => keepsSlo({ tenants: some }))[0]);

  const outageScreenings = (screeningsPerDay * assumed.outage * peakFactor) / SECONDS_PER_DAY;
  const missedPages = meanPages(outageScreenings, pageSize);
  const missedWork = workOf(missedPages, outageScreenings, assumed);
  const waiting = tenants * (missedWork + assumed.tokenPrice);
  const never = isLowerBound ? undefined : Infinity;
  const catchUpSeconds = utilisation < 1 ? waiting / (perSecond - load.peak) : never;

  const { costPerReplica } = assumed;
  const years = Array.from({ length: YEARS + 1 }, (_, year) => {
    const some = Math.ceil(tenants * (1 + assumed.growth) ** year);
    const count = canKeepSlo ? needed(some) + assumed.spare : undefined;
    const cost = count === undefined || costPerReplica === undefined ? undefined : count * costPerReplica;
    // The stored history per tenant, plus a year of screenings per year.
    const rows = some * screeningsPerDay * (365 * (history + year));
    return { year, tenants: some, rows, databaseGb: (rows * assumed.rowBytes) / 1e9, replicas: count, cost };
  });
  const [today, last] = [years[0]!, years.at(-1)!];
  const bytesPerDay = screeningsPerDay * assumed.itemBytes + (SECONDS_PER_DAY / poll) * EMPTY_PAGE;
  const egressGbPerMonth = (DAYS_PER_MONTH * tenants * bytesPerDay) / 1e9;
  const screeningsPerMonth = tenants * screeningsPerDay * DAYS_PER_MONTH;
  const lever = (other: Partial<Assumptions>): number => demandOf({ ...assumed, ...other }).peak / load.peak;
  const levers: Readonly<Record<string, number>> = {
    [`polls every ${show(2 * poll)} s`]: lever({ poll: 2 * poll }),
    ...(pageSize < 1000 ? { 'pages of 1,000': lever({ pageSize: 1000 }) } : {}),
    'tokens that last a day': lever({ tokenLifetime: SECONDS_PER_DAY }),
  };

  const perClient = (clientUtilisation ?? 0) > utilisation || (clientQuota && !scales);
  const noLimit =
    'none found: the capacity is the highest tested rate, so the number of replicas is an upper bound';
  const limitedFirstBy =
    measured.server === 'quota'
      ? 'the shared quota of all clients, which more replicas do not raise'
      : perClient
        ? `the quota of one client, which more replicas do not raise${scales ? '' : '; the servers were not measured beyond it'}`
        : !scales
          ? measured.limitedBy === 'quota'
            ? 'the rate limit (429); whether it is per client or for all was not measured'
            : noLimit
          : !canKeepSlo
            ? `the latency of single ${measured.of}, which more replicas do not shorten`
            : p99Seconds >= slo && utilisation <= 1
              ? 'simultaneous polls: spread them or add replicas'
              : 'the hardware: add replicas';
  const ofReplicas = measured.replicas > 1 ? `${measured.replicas} replicas` : 'one replica';
  return {
    pagesPerPoll: load.pages,
    requestsPerSecond: load.requests,
    peakRequestsPerSecond: load.peak,
    /** At the peak: utilisation of the measured capacity or of the shared quota, and of one client's quota. */
    utilisation,
    clientUtilisation,
    /** p99 on the measured replicas; null if they are saturated. */
    p99Seconds: finite(p99Seconds),
    /** Quantiles of the latency of what the SLO is of, by share such as 0.5; without and with one back-fill. */
    waits: shares(alone),
    waitsBesideBackfill: shares(beside),
    /** A lower bound if the servers' capacity is unknown; absent if the client's quota is, too. */
    backfillSeconds: finite(backfillSeconds),
    egressGbPerMonth,
    /** Load at the peak after a change of one habit, as a share of the present load. */
    levers,
    /** The smallest spread with which the measured replicas keep the SLO; absent if there is none. */
    spreadNeededSeconds,
    /** Absent if a quota or the latency of a lone poll is the limit, which replicas do not change. */
    replicas: replicas && replicas + assumed.spare,
    /** Time to catch up after an outage; null if never, absent if unknown. */
    catchUpSeconds: finite(catchUpSeconds),
    /** The most tenants that the measured replicas carry; a lower bound if the capacity is one. Absent if unknown. */
    tenantsCarried,
    limitedFirstBy,
    years,
    warnings: linesOf(
      measured.arePricesUnknown &&
        'what a page with screenings costs was not measured, so the figures are too favourable: repeat `tenants` with a back-fill',
      !isKnown &&
        carried === undefined &&
        `whether this load is carried is unknown: ${show(Math.max(load.peak, busiest))}/s were not measured, only ${show(perSecond)}/s`,
      scales &&
        (replicas ?? 0) > measured.replicas &&
        measured.replicas < 2 &&
        'the capacity of several replicas was not measured: measure two and give --measured-replicas 2',
      measured.pageSize !== pageSize &&
        `the capacity was measured with pages of ${measured.pageSize}, not of ${pageSize}`,
      p99Seconds >= slo &&
        spreadNeededSeconds !== undefined &&
        `polls within ${show(pollSpread)} s of one another break the SLO on ${ofReplicas} although ${percent(1 - Math.min(1, utilisation))} of the capacity is free; spread over ${show(spreadNeededSeconds)} s they keep the SLO`,
    ),
    /** Whether the measured replicas carry the load; undefined if that was not measured. */
    carried,
    steps: linesOf(
      ...load.steps,
      `utilisation of ${SERVERS[measured.server]} at the peak: ${show(load.peak)}/s / ${show(perSecond)}/s = ${percent(utilisation)} (the interval's lower end); headroom ${show(1 / utilisation)} ×`,
      clientQuota &&
        (hasWindow
          ? `one client's quota: ${pollsInWindow} polls of up to ${pagesAtMostAPoll} pages in ${show(windowSeconds)} s, of ${limit}: ${percent(clientUtilisation!)}`
          : `one client's quota: ${show(clientAsks)}/s / ${show(clientQuota.perSecond)}/s = ${percent(clientUtilisation!)}`),
      scales &&
        `p99 of ${measured.of} on ${ofReplicas} (concurrency ${measured.workers}, ${show(measured.saturation)}/s at saturation), polls within ${show(pollSpread)} s: ${seconds(p99Seconds)}, SLO ${show(slo)} s`,
      scales &&
        (spreadNeededSeconds === undefined
          ? `${ofReplicas}: no spread of the polls keeps the SLO`
          : `polls spread over ${show(spreadNeededSeconds)} s or more keep the SLO on ${ofReplicas}`),
      replicas !== undefined &&
        `replicas: ⌈${show(load.peak)} / (${show(each)} × ${percent(assumed.utilisation)})⌉ = ${replicasFor(tenants)}, ${replicas} for the p99, + ${assumed.spare} spare = ${replicas + assumed.spare}`,
      tenantsCarried !== undefined &&
        `${isLowerBound ? 'at least' : 'at most'} ${tenantsCarried} such tenants on ${ofReplicas}${scales ? '' : ', if their polls are spread evenly'}`,
      `after an outage of ${show(assumed.outage)} s: ${tenants} × (${show(missedWork)} for ${show(missedPages)} pages + ${show(assumed.tokenPrice)} for a token) = ${show(waiting)} requests' work, at ${show(perSecond)} − ${show(load.peak)}/s caught up in ${seconds(catchUpSeconds)}`,
      scales &&
        `latency of ${measured.of} on ${ofReplicas}: ${quantilesText(alone)}; during a back-fill ${quantilesText(beside)}`,
      backfillSeconds === undefined
        ? "how long a back-fill takes is unknown: neither the servers' capacity nor a client's quota was measured"
        : `a back-fill of ${show(365 * history)} days: ${show(stored)} screenings in pages of 1,000${scales ? `, each costing ${show(backfillWork)} such pages` : ''}, take ${scales ? '' : 'at least '}${seconds(backfillSeconds)}${clientQuota ? ` with one client's quota of ${show(clientQuota.perSecond)}/s` : ''}`,
      ...[today, last].map(
        ({ year, rows, databaseGb }) =>
          `${year === 0 ? 'today' : `in ${year} years`}: ${show(rows)} rows, ${show(databaseGb)} GB at ${assumed.rowBytes} bytes each with indexes`,
      ),
      `egress: ${show(egressGbPerMonth)} GB per month at ${assumed.itemBytes} bytes per screening; ${show((egressGbPerMonth * 1e9) / screeningsPerMonth)} bytes per screening including empty polls`,
      `levers, as shares of the load at the peak: ${Object.entries(levers)
        .map(([name, share]) => `${name} ${percent(share)}`)
        .join(', ')}`,
      ...years
        .slice(assumed.growth > 0 ? 1 : years.length)
        .map(
          (of) =>
            `year ${of.year}: ${tenants} × ${show(1 + assumed.growth)}^${of.year} = ${of.tenants} tenants${of.replicas === undefined ? '' : `, ${of.replicas} replicas`}${of.cost === undefined ? '' : `, cost ${show(of.cost)}`}`,
        ),
      today.cost !== undefined &&
        `cost per month: ${today.replicas} replicas × ${costPerReplica} = ${show(today.cost)}, ${show((today.cost * 1e6) / screeningsPerMonth)} per million screenings, ${show(today.cost / tenants)} per tenant`,
    ),
  };
}

const finite = <Figure extends number | undefined>(value: Figure): Figure | null =>
  value === undefined || Number.isFinite(value) ? value : null;
const SHARES = [0.5, 0.9, 0.95, 0.99, 0.999];
const shares = (waits: Waits): Record<string, number | null> =>
  Object.fromEntries(SHARES.map((share) => [String(share), finite(waits.quantile(share))]));
const quantilesText = (waits: Waits): string =>
  SHARES.map((share) => `p${share * 100} ${seconds(waits.quantile(share))}`).join(', ');
function seconds(value: number | undefined): string {
  if (value === undefined) return 'an unknown time';
  return Number.isFinite(value) ? `${show(value)} s` : 'never';
}
