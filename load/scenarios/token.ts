/** token: the token endpoint by itself. */
import { judgeStep } from '../estimate/step.ts';
import { arrivalFlags, type Scenario } from './scenario.ts';
import { overTime, perSecond, quantiles } from './words.ts';

export const token: Scenario = {
  about: 'open arrivals at the token endpoint',
  flags: arrivalFlags(20, 30),
  script: 'token',
  async run(session, { requestsPerSecond, seconds }) {
    const { slo } = session.settings;
    const { samples } = await session.arrivals(requestsPerSecond, seconds, {}, 'token');
    const step = judgeStep(requestsPerSecond, seconds, samples, slo);
    return {
      held: step.held,
      seconds,
      requests: samples.length,
      summary: [
        `${samples.length} tokens at ${perSecond(requestsPerSecond)} over ${seconds} s: ${quantiles(samples.map((one) => one.latencyMs))}, ${(step.errorRate * 100).toFixed(2)} % failed`,
      ],
      tables: { time: overTime(samples) },
    };
  },
};
