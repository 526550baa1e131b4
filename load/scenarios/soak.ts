/** soak: even load for a long time. What drifts, leaks, freezes or expires shows here; arrivals do not wait for answers. */
import { median } from '../estimate/numbers.ts';
import { judgeStep } from '../estimate/step.ts';
import { arrivalsUnderOutages, type ChaosRun } from './chaos.ts';
import { FLAGS } from './flags.ts';
import type { ArrivalsRun } from '../run/session.ts';
import { arrivalFlags, type Scenario } from './scenario.ts';
import { brokenThresholds, overTime, perSecond, quantiles, tooFew } from './words.ts';

/** How many parts a long run is cut into, to see what drifts. */
const PARTS = 4;
/** A shorter run shows how the server and the machine wake up. */
const LEAST_SECONDS_TO_DRIFT = 60;

export const soak: Scenario = {
  about: 'even load for a long time: what drifts, leaks, freezes or expires',
  flags: [...arrivalFlags(20, 120), FLAGS.chaos()],
  script: 'soak',
  async run(session, { requestsPerSecond, seconds, chaos = false }) {
    const { slo, maxVUs, timeoutSeconds } = session.settings;
    // As many VUs as a target that answers nothing at all would hold.
    const vus = Math.min(maxVUs, Math.ceil(requestsPerSecond * timeoutSeconds) + 20);
    const {
      samples,
      run,
      lines = [],
      flat = true,
    }: Pick<ArrivalsRun, 'samples' | 'run'> & Partial<ChaosRun> = chaos
      ? await session.finishing(arrivalsUnderOutages(session, requestsPerSecond, seconds, vus))
      : await session.arrivals(requestsPerSecond, seconds, { vus }, 'soak');
    const medians = Array.from({ length: PARTS }, (_, part) =>
      median(
        samples
          .filter((one) => Math.floor((PARTS * one.dueMs) / (seconds * 1000)) === part)
          .map((one) => one.latencyMs),
      ),
    );
    const [first, last] = [medians[0]!, medians.at(-1)!];
    const seen = !Number.isNaN(first) && !Number.isNaN(last);
    // A target that never served again has broken a requirement.
    if (!seen && session.findings.length === 0) throw tooFew(samples.length, seconds);
    const drifts = seconds >= LEAST_SECONDS_TO_DRIFT && last > 2 * first && last > first + 5;
    const step = judgeStep(requestsPerSecond, seconds, samples, slo);
    const slowest = samples.reduce((most, one) => Math.max(most, one.latencyMs), 0);
    const counts = run.summary?.counts ?? {};
    return {
      held: run.status === 0 && step.held && !drifts && flat,
      seconds,
      summary: [
        `${samples.length * run.oneIn} pages${run.oneIn > 1 ? ` (told by one in ${run.oneIn})` : ''} at ${perSecond(requestsPerSecond)} over ${seconds} s: ${quantiles(samples.map((one) => one.latencyMs))}, the slowest ${(slowest / 1000).toFixed(2)} s, ${step.late} of ${step.counted} late or failed`,
        ...(seen
          ? [
              `median of the first quarter ${first.toFixed(1)} ms, of the last ${last.toFixed(1)} ms${drifts ? ': it drifts' : ''}`,
            ]
          : []),
        `${counts['token_calls'] ?? 0} token calls, ${counts['unauthenticated'] ?? 0} answers 401`,
        ...lines,
        ...brokenThresholds(run.summary?.thresholds),
      ],
      tables: { time: overTime(samples) },
    };
  },
};
