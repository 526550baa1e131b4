/** token: the token endpoint by itself. */
import { quantile } from '../estimate/numbers.ts';
import { judgeStep } from '../estimate/step.ts';
import { arrivalsOf } from '../run/k6-run.ts';
import { VoidRun } from '../run/session.ts';
import { starved } from '../run/starvation.ts';
import { overTime } from './over-time.ts';
import { arrivalFlags, type Scenario } from './scenario.ts';
import { perSecond, quantiles } from './words.ts';

export const token: Scenario = {
  about: 'open arrivals at the token endpoint',
  flags: arrivalFlags(20, 30),
  script: 'token',
  async run(session, { requestsPerSecond, seconds }) {
    const { slo, maxVUs } = session.settings;
    const vus = Math.min(maxVUs, Math.ceil((requestsPerSecond * 2 * slo.p99Ms) / 1000) + 20);
    const run = await session.run('token', session.config('token', { requestsPerSecond, seconds, vus }));
    const samples = arrivalsOf(run.records);
    const lags = samples.map((one) => one.schedulerLagMs).sort((a, b) => a - b);
    const starvation = starved({ ...run, summary: undefined }, samples, quantile(lags, 0.99), slo);
    if (starvation) throw new VoidRun(starvation.reason);
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
