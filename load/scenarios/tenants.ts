/** tenants: how many periodically polling tenants the target carries, alone and during back-fills. */
import { median, quantile, sum } from '../estimate/numbers.ts';
import type { Found } from '../estimate/figures.ts';
import type { LoadResult, TenantsCarried, TenantsFigure } from '../result.ts';
import type { ArrivalsRun, Session } from '../run/session.ts';
import { searchRate } from './capacity.ts';
import { FLAGS, type Scenario, type ScenarioOptions } from './flags.ts';

export const tenants: Scenario = {
  about: 'how many tenants are carried: polls, back-fills and token requests together',
  flags: [
    FLAGS.pageSize(100),
    FLAGS.poll(),
    FLAGS.backfills(),
    FLAGS.renewal(),
    FLAGS.maxRate(),
    FLAGS.thoroughness(),
    FLAGS.sloP99(),
    FLAGS.sloErrors(),
    FLAGS.maxVUs(),
  ],
  run: measure,
};

/** Latencies collected during the search. */
interface Latencies {
  readonly polls: { readonly ms: number; readonly pages: number }[];
  readonly backfill: { readonly ms: number; readonly items: number }[];
}

async function measure(session: Session, options: ScenarioOptions): Promise<Partial<LoadResult>> {
  const { poll: pollSeconds, backfills } = options;
  const alone = await carried(session, options, 0);
  const startRate = Math.max(1, alone.tenants / pollSeconds / 4);
  const beside = backfills > 0 && (await carried(session, { ...options, startRate }, backfills));
  const { slo } = session.settings;
  const figure: TenantsFigure = { pollSeconds, backfills, slo, alone, ...(beside ? { beside } : {}) };
  return { tenants: figure, held: alone.confirmed && alone.tenants > 0, summary: summaryLines(figure) };
}

async function carried(
  session: Session,
  options: ScenarioOptions,
  backfills: number,
): Promise<TenantsCarried> {
  const { poll: pollSeconds, tokenRenewal } = options;
  const latencies: Latencies = { polls: [], backfill: [] };
  const found = await searchRate(
    session,
    options,
    (rate) => ({
      tenants: { pollSeconds, backfills, tokensPerSecond: (rate * pollSeconds) / tokenRenewal },
    }),
    'tenants',
    (run) => collectLatencies(run, latencies),
  );
  return figures(found, latencies, pollSeconds);
}

function collectLatencies({ samples, run }: ArrivalsRun, latencies: Latencies): void {
  for (const { status, latencyMs, pages = 1 } of samples)
    if (status === 200) latencies.polls.push({ ms: latencyMs, pages });
  for (const one of run.records)
    if (one.kind === 'page' && one.status === 200) latencies.backfill.push({ ms: one.ms, items: one.items });
}

function figures(found: Found, { polls, backfill }: Latencies, pollSeconds: number): TenantsCarried {
  const { requestsPerSecond, interval, confirmed, unconfirmed, prediction, steps, limitedBy } = found;
  const held = steps.filter((step) => step.offered <= requestsPerSecond && !step.void);
  const full = backfill.map(({ ms }) => ms).sort((a, b) => a - b);
  return {
    tenants: Math.floor(requestsPerSecond * pollSeconds),
    interval: [Math.floor(interval[0] * pollSeconds), Math.ceil(interval[1] * pollSeconds)],
    limitedBy,
    confirmed,
    ...(unconfirmed === undefined ? {} : { unconfirmed }),
    ...(prediction ? { prediction } : {}),
    pollMs: median(held.map((step) => step.p50Ms)),
    pagesPerPoll: sum(polls.map(({ pages }) => pages)) / Math.max(1, polls.length),
    ...(full.length > 0
      ? { backfillPageMs: { p50: quantile(full, 0.5), mean: sum(full) / full.length } }
      : {}),
  };
}

function summaryLines({ pollSeconds, backfills, slo, alone, beside }: TenantsFigure): string[] {
  const number = (value: number): string => value.toLocaleString('en-GB');
  const many = backfills === 1 ? 'one of them reads' : `${backfills} of them read`;
  const describe = ({ prediction, confirmed, unconfirmed, interval }: TenantsCarried): string => {
    const between = Number.isFinite(interval[1])
      ? `between ${number(interval[0])} and ${number(interval[1])}`
      : `at least ${number(interval[0])}`;
    const confirmation = confirmed ? 'confirmed' : `NOT confirmed: ${unconfirmed}`;
    return `${between}, ${confirmation}${prediction ? `; ${number(prediction.asPredicted)} of ${number(prediction.requests)} polls of ${prediction.seconds} s as predicted` : ''}`;
  };
  return [
    `carries ${number(alone.tenants)} tenants${beside ? `; ${number(beside.tenants)} while ${many} everything` : ''}`,
    `each polls every ${pollSeconds} s over a connection of its own; 99 % of polls within ${slo.p99Ms} ms`,
    `alone: ${describe(alone)}`,
    ...(beside ? [`beside back-fills: ${describe(beside)}`] : []),
    `${alone.pagesPerPoll.toFixed(2)} pages a poll, ${alone.pollMs.toFixed(1)} ms in the middle`,
    ...(beside?.backfillPageMs
      ? [`a page of a back-fill of 1,000 takes ${beside.backfillPageMs.mean.toFixed(1)} ms meanwhile`]
      : []),
  ];
}
