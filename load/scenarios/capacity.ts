/** capacity: the highest arrival rate at which the SLO holds and answers stay correct. */
import { Search } from '../estimate/capacity.ts';
import type { Found, RunStep } from '../estimate/figures.ts';
import { linesOf, sum } from '../estimate/numbers.ts';
import type { LoadConfig } from '../k6/lib/config.ts';
import type { CapacityFigure, LoadResult } from '../result.ts';
import { SEARCH } from '../run/flags.ts';
import { type ArrivalsRun, type Scenario, type Session, vusFor } from '../run/session.ts';
import { between, confirmation, percentOf, perSecond, predictionText, quantiles } from './format.ts';

export const capacity: Scenario = {
  about: 'the highest arrival rate at which the SLO holds',
  flags: { pageSize: 100, at: undefined, ...SEARCH },
  run: measure,
};

async function measure(session: Session): Promise<Partial<LoadResult>> {
  const all = session.prepared.base.clients;
  const search = async (clients: LoadConfig['clients'], startRate?: number): Promise<CapacityFigure> => ({
    ...(await searchRate(session, 'arrivals', () => ({ clients }), { startRate })),
    clients: clients.length,
    slo: session.slo,
  });
  const alone = await search(all.slice(0, 1));
  const isQuota = alone.basis !== 'one-rate' && alone.limitedBy === 'quota';
  // Starts above the sum of the quotas, if each client has a quota of its own.
  const sumOfQuotas = 1.5 * all.length * alone.requestsPerSecond;
  const { startRate, maxRate } = session.options;
  const from = Math.min(maxRate, Math.max(startRate, sumOfQuotas));
  const figure = isQuota && all.length > 1 ? { ...alone, perServer: await search(all, from) } : alone;
  const { accepted, refused } = session.connections;
  return {
    capacity: figure,
    held: figure.confirmed && figure.requestsPerSecond > 0,
    summary: linesOf(
      ...summaryLines(figure),
      Number.isFinite(refused) &&
        `connection limit: ${accepted} concurrent connections were accepted, ${refused} were not`,
    ),
  };
}

const STEP_RETRIES = 1;

/** What a search needs of a session. */
export type Searching = Pick<Session, 'options' | 'slo' | 'tell' | 'tryArrivals' | 'pause'>;

/** Searches for the highest rate of a script's arrivals; `over` returns the configuration that depends on the rate. */
export async function searchRate(
  session: Searching,
  script: string,
  over: (rate: number) => Partial<LoadConfig>,
  more: { readonly startRate?: number; readonly seen?: (run: ArrivalsRun) => void },
): Promise<Found> {
  const { slo, options } = session;
  const { maxRate, thoroughness, at } = options;
  const { startRate = options.startRate, seen } = more;
  const runStep: RunStep = async (rate, seconds, { countsOnly, pauseSeconds = 0 } = {}) => {
    await session.pause(pauseSeconds);
    // If only counts matter, the run is not repeated for generator lag.
    const vus = vusFor(rate, options);
    const run = countsOnly
      ? { ...(await session.tryArrivals(script, rate, seconds, { ...over(rate), vus }, 0)), void: undefined }
      : await session.tryArrivals(script, rate, seconds, over(rate), STEP_RETRIES);
    seen?.(run);
    const { samples, void: why } = run;
    session.tell(
      `  ${perSecond(rate)} for ${seconds.toFixed(0)} s: ${quantiles(samples.map((one) => one.latencyMs))}${why ? `; void: ${why}` : ''}`,
    );
    return { samples, void: why };
  };
  const tell = (line: string): void => session.tell(`  ${line}`);
  const search = new Search(runStep, { slo, startRate, maxRate, thoroughness, tell });
  return at === undefined ? search.find() : search.check(at);
}

const LIMITING_FACTORS: Readonly<Record<Found['limitedBy'], string>> = {
  quota: 'the rate limit (429)',
  saturation: 'saturation (answers become slow or fail)',
  'none-found': 'none up to the highest tested rate',
};

function summaryLines(figure: CapacityFigure): string[] {
  const { requestsPerSecond, slo, prediction, quota, collapse } = figure;
  const { watchedSeconds, concurrencyLimit, banSeconds } = figure;
  const clients = figure.clients === 1 ? 'one client' : `${figure.clients} clients`;
  const objective = `p99 < ${slo.p99Ms} ms and errors ≤ ${percentOf(slo.errorRate)}`;
  const predicted = prediction && predictionText(prediction);
  if (figure.basis === 'one-rate') {
    const { offered } = figure.steps[0]!;
    const known = requestsPerSecond > 0 ? 'yes' : 'no';
    const answer = figure.confirmed ? known : `UNDECIDED (${figure.unconfirmed})`;
    const question = `does the SLO (${objective}) hold at ${perSecond(offered)} for ${clients}`;
    return linesOf(`${question}: ${answer}`, predicted);
  }
  const interval = between(figure.interval, (end) => end.toFixed(1));
  const isNone = figure.basis === 'no-rate';
  // A restart or a pause of the target may fall into a step that an overload breaks anyway.
  const failing = [...figure.steps]
    .sort((a, b) => a.offered - b.offered)
    .find(({ failures, limitedRate, counted }) => failures - limitedRate * counted > 0.5);
  const admitted = sum(figure.steps.map((step) => step.accepted * step.seconds)).toFixed(0);
  const factor =
    concurrencyLimit === undefined
      ? LIMITING_FACTORS[figure.limitedBy]
      : `${concurrencyLimit} concurrent requests`;
  return linesOf(
    isNone
      ? `${clients}: the SLO (${objective}) holds at no tested rate, ${interval}`
      : `${clients}: ${perSecond(requestsPerSecond)}, ${interval}, with ${objective}`,
    `measured with ${figure.samples} answers in ${watchedSeconds} s of load; ${confirmation(figure)}`,
    predicted,
    !isNone && `limiting factor: ${factor}`,
    failing &&
      `answers failed, other than by 429, from ${perSecond(failing.offered)} on: ${failing.failures} of ${failing.counted} there`,
    quota?.windowSeconds !== undefined &&
      `${quota.limit} requests in ${quota.windowSeconds} s: ${quota.declared ? 'declared by RateLimit headers, and no answer contradicts it' : `measured over ${quota.releases} resets`}`,
    quota &&
      `limits of more than the ${admitted} requests admitted in ${watchedSeconds} s of load are not excluded`,
    quota?.withinSlo !== undefined &&
      `of requests at random times, at most ${percentOf(slo.errorRate)} are rejected up to ${perSecond(quota.withinSlo)}`,
    banSeconds !== undefined &&
      `a request beyond the limit starts a ban: for about ${banSeconds.toFixed(0)} s everything is rejected; higher rates were not tried for long`,
    collapse &&
      `overload reduces the throughput: at ${perSecond(collapse.from)} it answers ${perSecond(collapse.answersPerSecond)}`,
    figure.gotFaster &&
      `the target became faster during the ${watchedSeconds} s of load: the result is for its final state`,
    ...(figure.perServer ? summaryLines(figure.perServer) : []),
  );
}
