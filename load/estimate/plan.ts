/** Capacity planning: tenants and their habits against a measured capacity. Arithmetic only, each step shown. */

export interface PlanInput {
  /** Requests a second that one server carries, with its interval's lower end; and what stops it. */
  readonly capacity: number;
  readonly capacityLow: number;
  readonly limitedBy: 'quota' | 'saturation' | 'none-found';
  /** Page size of the measurement. */
  readonly measuredPageSize: number;
  readonly tenants: number;
  readonly pollSeconds: number;
  readonly screeningsPerDay: number;
  readonly pageSize: number;
  readonly tokenLifetimeSeconds: number;
  /** Share of a replica that may be used at the peak. */
  readonly targetUtilisation: number;
  /** The busiest hour against the mean. */
  readonly peakFactor: number;
}

export interface Plan {
  readonly pollsPerSecond: number;
  readonly pagesPerPoll: number;
  readonly pagesPerSecond: number;
  readonly tokensPerSecond: number;
  readonly requestsPerSecond: number;
  readonly peakRequestsPerSecond: number;
  readonly perTenantPerSecond: number;
  /** Against one server, or one client's quota. */
  readonly utilisation: number;
  /** How many times the load would still be carried. */
  readonly headroom: number;
  /** Absent where a quota per client is the limit: replicas do not widen it. */
  readonly replicas?: number;
  readonly limitedFirstBy: string;
  readonly steps: readonly string[];
}

const MARGIN_SECONDS = 60;

/** Throws a RangeError for figures that are not positive. */
export function plan(input: PlanInput): Plan {
  for (const [name, value] of Object.entries(input)) {
    if (typeof value === 'number' && !(value > 0))
      throw new RangeError(`${name} must be above 0, got ${value}`);
  }
  const { tenants, pollSeconds, screeningsPerDay, pageSize, capacityLow, limitedBy, peakFactor } = input;
  const pollsPerSecond = tenants / pollSeconds;
  const itemsPerPoll = (screeningsPerDay * pollSeconds) / 86_400;
  // A poll asks at least one page; screenings beyond full pages cost one more each.
  const pagesPerPoll = Math.max(1, Math.ceil(itemsPerPoll / pageSize));
  const pagesPerSecond = pollsPerSecond * pagesPerPoll;
  const lifetime = input.tokenLifetimeSeconds;
  const usable = lifetime - Math.min(MARGIN_SECONDS, lifetime / 4);
  const renewal = Math.max(usable, pollSeconds);
  const tokensPerSecond = tenants / renewal;
  const requestsPerSecond = pagesPerSecond + tokensPerSecond;
  const peak = requestsPerSecond * peakFactor;
  const perTenant = (pagesPerPoll / pollSeconds) * peakFactor;
  const quota = limitedBy === 'quota';
  const utilisation = quota ? perTenant / capacityLow : peak / capacityLow;
  const replicas = Math.max(1, Math.ceil(peak / (capacityLow * input.targetUtilisation)));
  const show = (value: number): string => String(Number(value.toPrecision(4)));
  const percent = (value: number): string => `${(value * 100).toFixed(1)} %`;
  return {
    pollsPerSecond,
    pagesPerPoll,
    pagesPerSecond,
    tokensPerSecond,
    requestsPerSecond,
    peakRequestsPerSecond: peak,
    perTenantPerSecond: perTenant,
    utilisation,
    headroom: 1 / utilisation,
    ...(quota ? {} : { replicas }),
    limitedFirstBy: quota
      ? 'the quota of one client: more replicas do not widen it, and the servers were not measured beyond it'
      : limitedBy === 'saturation'
        ? 'the hardware: more replicas carry more'
        : 'nothing that was found: the capacity is the highest rate that was tried, so replicas are an upper bound',
    steps: [
      `polls: ${tenants} tenants / ${pollSeconds} s = ${show(pollsPerSecond)}/s`,
      `screenings a poll: ${screeningsPerDay} a day × ${pollSeconds} s / 86400 s = ${show(itemsPerPoll)}`,
      `pages a poll: max(1, ⌈${show(itemsPerPoll)} / ${pageSize}⌉) = ${pagesPerPoll}`,
      `pages: ${show(pollsPerSecond)}/s × ${pagesPerPoll} = ${show(pagesPerSecond)}/s`,
      `tokens: ${tenants} tenants / ${show(renewal)} s = ${show(tokensPerSecond)}/s`,
      `requests: ${show(pagesPerSecond)} + ${show(tokensPerSecond)} = ${show(requestsPerSecond)}/s; at the peak × ${peakFactor} = ${show(peak)}/s`,
      quota
        ? `utilisation of one client's quota: ${show(perTenant)}/s / ${show(capacityLow)}/s = ${percent(utilisation)}`
        : `utilisation of one server: ${show(peak)}/s / ${show(capacityLow)}/s = ${percent(utilisation)} (the interval's lower end)`,
      `headroom: 1 / ${percent(utilisation)} = ${show(1 / utilisation)} ×`,
      ...(quota
        ? []
        : [
            `replicas: ⌈${show(peak)} / (${show(capacityLow)} × ${percent(input.targetUtilisation)})⌉ = ${replicas}`,
          ]),
      ...(input.measuredPageSize === pageSize
        ? []
        : [`note: the capacity was measured with pages of ${input.measuredPageSize}, not of ${pageSize}`]),
    ],
  };
}
