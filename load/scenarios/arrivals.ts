/** Scenarios with one run of open-model arrivals (which do not wait for answers): smoke, poll, token, soak, spike. */
import { ascending, largest, linesOf, median, quantile } from '../estimate/numbers.ts';
import { failed, judgeStep, meetsSlo, type Slo, type Step } from '../estimate/step.ts';
import { HEAD_SECONDS, PRESETS } from '../k6/lib/presets.ts';
import type { ArrivalRecord } from '../k6/lib/record.ts';
import { SLO } from '../run/flags.ts';
import { type ArrivalsRun, type Scenario, type Session, vusFor } from '../run/session.ts';
import { arrivalsUnderOutages, type ChaosRun } from './chaos.ts';
import { brokenThresholds, failuresText, perSecond, quantiles, timeSeries, tooFew } from './format.ts';

type Ran = Pick<ArrivalsRun, 'samples' | 'run'> & Partial<ChaosRun>;
type Judge = (ran: Ran & { step: Step }, session: Session) => { held: boolean; lines: readonly string[] };

interface Kind extends Pick<Scenario, 'about' | 'over'> {
  readonly flags?: Scenario['flags'];
  readonly unit: string;
  /** Additional lines, and the verdict; by default the SLO and the script's thresholds must hold. */
  readonly judge?: Judge;
}

const arrivals = (script: keyof typeof PRESETS, { about, flags, unit, over, judge }: Kind): Scenario => ({
  about,
  flags: {
    ...{ pageSize: 100, rate: PRESETS[script].requestsPerSecond, duration: PRESETS[script].seconds },
    ...{ ...SLO, out: undefined, kubernetes: undefined, parallelism: undefined, ...flags },
  },
  over,
  async run(session) {
    const { rate, duration, chaos } = session.options;
    const own = over?.(session.options) ?? {};
    const ran: Ran = chaos
      ? await arrivalsUnderOutages(session, own.vus!)
      : await session.arrivals(script, rate, duration, own, VOID_RETRIES);
    const { samples, run } = ran;
    // A run that was stopped early is judged by its own length.
    const seconds = run.isHopeless ? samples.at(-1)!.dueMs / 1000 : duration;
    const judged = judgeStep(rate, seconds, samples, session.slo);
    // Late answers during the warm-up do not count, but failed ones do.
    const lost = samples.filter(({ status }) => failed(status)).length;
    const step = { ...judged, held: judged.held && meetsSlo(lost, lost, samples.length, session.slo) };
    const bySlo = { held: step.held && run.status === 0, lines: [] };
    const sorted = ascending(samples.map(({ latencyMs }) => latencyMs));
    const at = (share: number): number => quantile(sorted, share);
    const { held, lines } = judge?.({ ...ran, step }, session) ?? bySlo;
    const share = run.oneIn > 1 ? ` (one in ${run.oneIn} measured)` : '';
    const failures = failuresText(samples);
    return {
      held,
      seconds,
      latency: { requests: samples.length * run.oneIn, p50Ms: at(0.5), p99Ms: at(0.99) },
      summary: linesOf(
        `${samples.length * run.oneIn} ${unit}${share} at ${perSecond(rate)} over ${seconds.toFixed(0)} s: ${quantiles(samples.map((one) => one.latencyMs))}, ${step.late} of ${step.counted} late or failed after the warm-up`,
        failures !== '' && `answered with ${failures}`,
        ...lines,
        ...(ran.lines ?? []),
        ...brokenThresholds(run.summary?.thresholds),
      ),
      tables: { time: timeSeries(samples), shares: SHARES.map((share) => ({ share, ms: at(share) })) },
    };
  },
});

const VOID_RETRIES = 2;

const SHARES = Array.from({ length: 100 }, (_, index) => (index + 1) / 100);

/** Sorted latencies in a part of the run; from and to are shares of its duration. */
function latenciesIn(samples: readonly ArrivalRecord[], seconds: number, from: number, to: number): number[] {
  const isIn = ({ dueMs }: ArrivalRecord): boolean =>
    dueMs >= from * seconds * 1000 && dueMs < to * seconds * 1000;
  return ascending(samples.filter(isIn).map(({ latencyMs }) => latencyMs));
}

export const smoke = arrivals('smoke', {
  about: 'light load for half a minute, every page judged; for nightly runs',
  unit: 'pages',
});

export const token = arrivals('token', { about: 'open arrivals at the token endpoint', unit: 'tokens' });

/** The load model of `plan`: tenants request new items since their last poll, so windows are short and pages small. */
export const poll = arrivals('poll', {
  about: 'polls of many tenants: short windows at the end of the data',
  flags: { head: HEAD_SECONDS },
  unit: 'polls',
  over: ({ head }) => ({ headSeconds: head }),
});

/** In shorter runs, warm-up looks like drift. */
const LEAST_SECONDS_TO_DRIFT = 60;
/** Latency drifts if it grows from the first to the last quarter by this factor, and by more than the noise. */
const DRIFT = { factor: 2, ms: 5 };

export const soak = arrivals('soak', {
  about: 'constant rate for a long time: drift, leaks, stalls and expiry',
  flags: { chaos: undefined },
  unit: 'pages',
  // Enough VUs for a target that lets every request time out.
  over: (options) => ({ vus: vusFor(options.rate * options.timeout, options) }),
  judge({ samples, run, step, flat = true }, { findings }) {
    const { seconds } = step;
    const [first, last] = [0, 0.75].map((from) => median(latenciesIn(samples, seconds, from, from + 0.25)));
    const seen = !Number.isNaN(first! + last!);
    // A target that never recovered is a finding, not a void run.
    if (!seen && findings.length === 0) throw tooFew(samples.length, seconds);
    const drifts =
      seconds >= LEAST_SECONDS_TO_DRIFT && last! > DRIFT.factor * first! && last! > first! + DRIFT.ms;
    const { token_calls = 0, unauthenticated = 0 } = run.summary?.counts ?? {};
    const slowest = samples.reduce((most, one) => Math.max(most, one.latencyMs), 0);
    return {
      held: run.status === 0 && step.held && !drifts && flat,
      lines: [
        `slowest page ${(slowest / 1000).toFixed(2)} s${seen ? `; median latency ${first!.toFixed(1)} ms in the first quarter, ${last!.toFixed(1)} ms in the last` : ''}${drifts ? ': latency drifts' : ''}`,
        `${token_calls} token requests, ${unauthenticated} answers 401`,
      ],
    };
  },
});

/** Multiplies the rate in the middle third of the run; the last sixth must meet the SLO again, also without 429. */
export const spike = arrivals('spike', {
  about: 'a burst of arrivals, and the recovery from it',
  flags: { spikeFactor: PRESETS.spike.spikeFactor },
  unit: 'pages',
  over: ({ rate, spikeFactor, maxVus }) => ({ spikeFactor, vus: vusFor(rate * spikeFactor, { maxVus }) }),
  judge({ samples, step }, { slo, options: { rate, spikeFactor } }) {
    const { seconds } = step;
    const p99 = (from: number, to: number) => quantile(latenciesIn(samples, seconds, from, to), 0.99);
    const [before, during, after] = [p99(0, 1 / 3), p99(1 / 3, 2 / 3), p99(5 / 6, 1)];
    if (Number.isNaN(before + during + after)) throw tooFew(samples.length, seconds);
    const { lost, recoveredMs, isNormal, end } = recoveryOf(samples, seconds, slo);
    return {
      held: isNormal && lost === 0,
      lines: [
        `p99 ${before.toFixed(0)} ms before the spike; ${during.toFixed(0)} ms during it, at ${perSecond(rate * spikeFactor)}; ${after.toFixed(0)} ms at the end`,
        isNormal
          ? `recovered ${(recoveredMs / 1000).toFixed(1)} s after the spike`
          : `the end of the run does not meet the SLO: ${end.late} of ${end.requests} late, ${end.failed} rejected or failed`,
      ],
    };
  },
});

/** After a spike: failures other than 429, how long others were late or rejected, and whether the end met the SLO. */
export function recoveryOf(samples: readonly ArrivalRecord[], seconds: number, slo: Slo) {
  const spikeEndMs = (seconds * 2000) / 3;
  const end = samples.filter(({ dueMs }) => dueMs >= (seconds * 5000) / 6);
  const bad = ({ status, latencyMs }: ArrivalRecord): boolean => failed(status) || latencyMs >= slo.p99Ms;
  const endsMs = samples
    .filter((one) => one.dueMs >= spikeEndMs && bad(one))
    .map(({ dueMs, latencyMs }) => dueMs + latencyMs);
  const [wrong, failures] = [end.filter(bad).length, end.filter(({ status }) => failed(status)).length];
  return {
    lost: samples.filter(({ status }) => failed(status) && status !== 429).length,
    recoveredMs: largest(endsMs, spikeEndMs) - spikeEndMs,
    isNormal: meetsSlo(wrong, failures, end.length, slo),
    end: { requests: end.length, late: wrong - failures, failed: failures },
  };
}
