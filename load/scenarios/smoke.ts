/** smoke: a little of everything, every page judged. */
import { judgeStep } from '../estimate/step.ts';
import { arrivalFlags, type Scenario } from './scenario.ts';
import { brokenThresholds, overTime, perSecond, quantiles } from './words.ts';

export const smoke: Scenario = {
  about: 'half a minute of little load, every page judged: for every night',
  flags: arrivalFlags(5, 30),
  script: 'smoke',
  async run(session, { requestsPerSecond, seconds }) {
    const { samples, run } = await session.arrivals(requestsPerSecond, seconds, {}, 'smoke');
    const step = judgeStep(requestsPerSecond, seconds, samples, session.settings.slo);
    return {
      held: step.held && run.status === 0,
      seconds,
      summary: [
        `${samples.length} pages at ${perSecond(requestsPerSecond)} over ${seconds} s: ${quantiles(samples.map((one) => one.latencyMs))}, ${(step.errorRate * 100).toFixed(2)} % failed`,
        ...brokenThresholds(run.summary?.thresholds),
      ],
      tables: { time: overTime(samples) },
    };
  },
};
