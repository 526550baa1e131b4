/** The common practice that the kit does not trust: a ramp that a threshold aborts. It stands beside the kit's figure. */
import { begin, type Begun } from './lib/begin.ts';
import { firstPage, Session } from './lib/client.ts';
import { readConfig, thresholdsOf } from './lib/config.ts';
export { handleSummary } from './lib/summary.ts';

const config = readConfig({ requestsPerSecond: 200, seconds: 30 });

export const options = {
  scenarios: {
    ramp: {
      executor: 'ramping-arrival-rate',
      startRate: 1,
      timeUnit: '1s',
      preAllocatedVUs: config.vus,
      stages: [{ target: Math.round(config.requestsPerSecond), duration: `${config.seconds}s` }],
      gracefulStop: '2s',
    },
  },
  thresholds: Object.fromEntries(
    Object.entries(thresholdsOf(config, { page_ms: [`p(99)<${config.p99Ms}`] })).map(([metric, rules]) => [
      metric,
      rules.map((threshold) => ({ threshold, abortOnFail: true })),
    ]),
  ),
};

export const setup = (): Begun => begin(config);

let session: Session | undefined;

export default function (begun: Begun): void {
  session ??= new Session(config, begun.clients[0]!, begun.tokens[0]!);
  const { from, to } = begun.window;
  session.ask(firstPage(config, session.client, from, to, config.pageSize), config.pageSize, Date.now());
}
