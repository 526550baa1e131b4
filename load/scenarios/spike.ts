/** spike: as many times the rate for a third of the run; the last part has to be as good as the SLO again. */
import { quantile } from '../estimate/numbers.ts';
import { failed } from '../estimate/step.ts';
import { FLAGS } from './flags.ts';
import { arrivalFlags, type Scenario } from './scenario.ts';
import { overTime, perSecond, tooFew } from './words.ts';

export const spike: Scenario = {
  about: 'a burst of arrivals, and the recovery from it',
  flags: [...arrivalFlags(20, 60), FLAGS.spikeFactor()],
  script: 'spike',
  async run(session, { requestsPerSecond, seconds, spikeFactor }) {
    const { slo, maxVUs } = session.settings;
    const peak = requestsPerSecond * spikeFactor;
    const vus = Math.min(maxVUs, Math.ceil(peak) + 20);
    const { samples } = await session.arrivals(requestsPerSecond, seconds, { spikeFactor, vus }, 'spike');
    const spikeEndMs = (seconds * 2000) / 3;
    const p99 = (from: number, to: number): number => {
      const part = samples.filter(
        (one) => one.dueMs >= from * seconds * 1000 && one.dueMs < to * seconds * 1000,
      );
      return quantile(
        part.map((one) => one.latencyMs).sort((a, b) => a - b),
        0.99,
      );
    };
    const [before, during, after] = [p99(0, 1 / 3), p99(1 / 3, 2 / 3), p99(5 / 6, 1)];
    if ([before, during, after].some(Number.isNaN)) throw tooFew(samples.length, seconds);
    const lost = samples.filter((one) => failed(one.status) && one.status !== 429).length;
    const late = samples.filter((one) => one.dueMs >= spikeEndMs && one.latencyMs >= slo.p99Ms);
    const recoveredMs = late.reduce((last, one) => Math.max(last, one.dueMs + one.latencyMs), spikeEndMs);
    return {
      held: after < slo.p99Ms && lost === 0,
      seconds,
      summary: [
        `before, at ${perSecond(requestsPerSecond)}: p99 ${before.toFixed(0)} ms; during, at ${perSecond(peak)}: ${during.toFixed(0)} ms; at the end: ${after.toFixed(0)} ms; by ${samples.length} answers`,
        `${samples.filter((one) => one.status === 429).length} were answered 429, ${lost} failed otherwise`,
        `recovered ${((recoveredMs - spikeEndMs) / 1000).toFixed(1)} s after the spike`,
      ],
      tables: { time: overTime(samples) },
    };
  },
};
