/** capacity: the highest arrival rate at which the SLO holds and answers stay correct. */
import { setTimeout } from 'node:timers/promises';
import { checkRate, searchCapacity } from '../estimate/capacity.ts';
import type { Quota } from '../estimate/quota.ts';
import { type Found, type RunStep, SEARCH_DEFAULTS, type SearchSettings } from '../estimate/figures.ts';
import type { LoadConfig } from '../k6/lib/config.ts';
import type { CapacityFigure, LoadResult } from '../result.ts';
import type { ArrivalsRun, Session } from '../run/session.ts';
import { FLAGS, type Scenario, type ScenarioOptions } from './flags.ts';
import { perSecond, quantiles } from './words.ts';

export const capacity: Scenario = {
  about: 'the highest arrival rate at which the SLO holds',
  flags: [
    FLAGS.pageSize(100),
    FLAGS.startRate(),
    FLAGS.maxRate(),
    FLAGS.at(),
    FLAGS.thoroughness(),
    FLAGS.sloP99(),
    FLAGS.sloErrors(),
    FLAGS.maxVUs(),
  ],
  run: measure,
};

/** Duration of the check of a single rate. */
const CHECK_SECONDS = 180;

async function measure(session: Session, options: ScenarioOptions): Promise<Partial<LoadResult>> {
  const all = session.prepared.base.clients;
  const alone = await search(session, options, all.slice(0, 1));
  const figure =
    alone.basis !== 'one-rate' && alone.limitedBy === 'quota' && all.length > 1
      ? {
          ...alone,
          perServer: await search(
            session,
            { ...options, startRate: startRateOfAll(alone, options, all.length) },
            all,
          ),
        }
      : alone;
  return {
    capacity: figure,
    held: figure.confirmed && figure.requestsPerSecond > 0,
    summary: [...summaryLines(figure), ...connectionLines(session)],
  };
}

/** Start rate for all clients: above the sum of their quotas, if each has a quota of its own. */
const startRateOfAll = (
  alone: CapacityFigure,
  { startRate, maxRate }: ScenarioOptions,
  clients: number,
): number => Math.min(maxRate, Math.max(startRate, 1.5 * clients * alone.requestsPerSecond));

function connectionLines({ connections: { accepted, refused } }: Session): string[] {
  if (!Number.isFinite(refused)) return [];
  return [
    `${accepted} connections at once were accepted and ${refused} were not: the figure is of what so many carry`,
  ];
}

const search = async (
  session: Session,
  options: ScenarioOptions,
  clients: LoadConfig['clients'],
): Promise<CapacityFigure> => ({
  ...(await searchRate(session, options, () => ({ clients }), 'arrivals')),
  clients: clients.length,
  slo: session.settings.slo,
});

/** Searches for the highest rate of a script's arrivals; `over` returns the configuration that depends on the rate. */
export async function searchRate(
  session: Session,
  { startRate, maxRate, thoroughness, at }: ScenarioOptions,
  over: (rate: number) => Partial<LoadConfig>,
  script: string,
  seen: (run: ArrivalsRun) => void = () => {},
): Promise<Found> {
  const { slo } = session.settings;
  const runStep: RunStep = async (rate, seconds, { countsOnly, pauseSeconds = 0 } = {}) => {
    if (pauseSeconds > 0) await setTimeout(pauseSeconds * 1000, undefined, { signal: session.signal });
    // If only counts matter, the run is not repeated for generator lag.
    const vus = Math.min(session.settings.maxVUs, Math.ceil(rate) + 20);
    const run = countsOnly
      ? { ...(await session.tryArrivals(rate, seconds, { ...over(rate), vus }, 0, script)), void: undefined }
      : await session.tryArrivals(rate, seconds, over(rate), 1, script);
    seen(run);
    const { samples, void: why } = run;
    session.tell(
      `  ${perSecond(rate)} for ${seconds.toFixed(0)} s: ${quantiles(samples.map((one) => one.latencyMs))}${why ? `; void: ${why}` : ''}`,
    );
    return { samples, ...(why ? { void: why } : {}) };
  };
  const settings: SearchSettings = {
    slo,
    startRate,
    maxRate,
    bracketSeconds: SEARCH_DEFAULTS.bracketSeconds * thoroughness,
    overloadSeconds: SEARCH_DEFAULTS.overloadSeconds * thoroughness,
    stepSeconds: SEARCH_DEFAULTS.stepSeconds * thoroughness,
    confirmSeconds: SEARCH_DEFAULTS.confirmSeconds * thoroughness,
    maxSeconds: SEARCH_DEFAULTS.maxSeconds * thoroughness,
    tell: (line) => session.tell(`  ${line}`),
  };
  return at === undefined
    ? searchCapacity(runStep, settings)
    : checkRate(runStep, settings, at, CHECK_SECONDS * thoroughness);
}

/** Share of rejections just below a quota above which callers have to space their requests. */
const NEEDS_SPACING = 0.01;

function quotaLines({ steps, watchedSeconds }: Found, { refusedBelow = 0 }: Quota): string[] {
  const passed = steps.reduce((sum, step) => sum + step.accepted * step.seconds, 0);
  return [
    `slower quotas, of more than the ${passed.toFixed(0)} requests that it let through in ${watchedSeconds} s of load, are not excluded`,
    ...(refusedBelow > NEEDS_SPACING
      ? [
          `just below it ${(refusedBelow * 100).toFixed(0)} % are refused of requests that come by chance: it takes few at once`,
        ]
      : []),
  ];
}

const LIMIT_LABELS: Readonly<Record<Found['limitedBy'], string>> = {
  quota: 'its quota (it answers 429)',
  saturation: 'its hardware (answers become slow)',
  'none-found': 'nothing up to the highest rate tried',
};

function summaryLines(figure: CapacityFigure): string[] {
  const { requestsPerSecond, interval, limitedBy, slo, perServer, clients } = figure;
  const who = clients === 1 ? 'one client' : `${clients} clients`;
  const { collapse, quota, watchedSeconds, samples } = figure;
  const at = `p99 < ${slo.p99Ms} ms and errors ≤ ${slo.errorRate * 100} %`;
  const [low, high] = interval.map((end) => end.toFixed(1));
  const between = Number.isFinite(interval[1])
    ? `between ${low} and ${high}`
    : `at least ${low}, and how much more was not seen`;
  const { prediction } = figure;
  const predicted = prediction
    ? [
        `${prediction.asPredicted.toLocaleString('en-GB')} of ${prediction.requests.toLocaleString('en-GB')} as predicted in ${prediction.seconds} s at ${perSecond(prediction.requestsPerSecond)}: ${prediction.what}`,
      ]
    : [];
  if (figure.basis === 'one-rate') {
    const { offered } = figure.steps[0]!;
    const answer = !figure.confirmed
      ? `UNDECIDED (${figure.unconfirmed})`
      : requestsPerSecond > 0
        ? 'yes'
        : 'no';
    return [`does ${who} get ${perSecond(offered)} at ${at}: ${answer}`, ...predicted];
  }
  return [
    figure.basis === 'no-rate'
      ? `${who}: the SLO (${at}) holds at no rate that was tried, ${between}`
      : `${who}: ${perSecond(requestsPerSecond)}, ${between}, at ${at}`,
    `by ${samples} answers in ${watchedSeconds} s of load; ${figure.confirmed ? 'confirmed' : `NOT confirmed: ${figure.unconfirmed}`}`,
    ...predicted,
    ...(figure.basis === 'no-rate'
      ? []
      : [
          `stopped first by ${figure.atOnce === undefined ? LIMIT_LABELS[limitedBy] : `its limit of ${figure.atOnce} requests at once (it answers 429)`}`,
        ]),
    ...(quota?.windowSeconds === undefined
      ? []
      : [
          `${quota.limit} requests in ${quota.windowSeconds} s ${quota.declared ? 'are let through by what its RateLimit headers declare; nothing that was seen contradicts it' : `were let through, by ${quota.releases} releases`}`,
        ]),
    ...(quota ? quotaLines(figure, quota) : []),
    ...(collapse
      ? [
          `overload lowers its throughput: from ${perSecond(collapse.from)} on it answers ${perSecond(collapse.answersPerSecond)}, and recovers only when less is asked than that`,
        ]
      : []),
    ...(figure.gotFaster
      ? [`it got faster while it was watched (${watchedSeconds} s): the figure is of what it was at the end`]
      : []),
    ...(perServer ? summaryLines(perServer) : []),
  ];
}
