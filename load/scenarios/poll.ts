/** poll: what `plan` plans with. Tenants ask for what came since they asked last: short windows, few items or none. */
import { judgeStep } from '../estimate/step.ts';
import { FLAGS } from './flags.ts';
import { arrivalFlags, type Scenario } from './scenario.ts';
import { brokenThresholds, overTime, perSecond, quantiles } from './words.ts';

export const poll: Scenario = {
  about: 'polls of many tenants: short windows at the end of the data',
  flags: [...arrivalFlags(20, 30), FLAGS.head()],
  script: 'poll',
  async run(session, { requestsPerSecond, seconds, headSeconds }) {
    const { samples, run } = await session.arrivals(requestsPerSecond, seconds, { headSeconds }, 'poll');
    const step = judgeStep(requestsPerSecond, seconds, samples, session.settings.slo);
    return {
      held: step.held && run.status === 0,
      seconds,
      summary: [
        `${samples.length} polls of the last ${headSeconds} s at ${perSecond(requestsPerSecond)} over ${seconds} s: ${quantiles(samples.map((one) => one.latencyMs))}, ${step.late} of ${step.counted} late or failed`,
        ...brokenThresholds(run.summary?.thresholds),
      ],
      tables: { time: overTime(samples) },
    };
  },
};
