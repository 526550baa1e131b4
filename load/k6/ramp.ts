/** The common practice that the kit does not trust: a ramp that a threshold aborts. It stands beside the kit's figure. */
import { firstPage, mint, Session, type Token } from './lib/client.ts';
import { readConfig } from './lib/config.ts';
export { handleSummary } from './lib/summary.ts';

const config = readConfig();

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
    Object.entries(config.thresholds).map(([metric, rules]) => [
      metric,
      rules.map((threshold) => ({ threshold, abortOnFail: true })),
    ]),
  ),
};

export const setup = (): Token => mint(config, config.clients[0]!);

let session: Session | undefined;

export default function (token: Token): void {
  session ??= new Session(config, config.clients[0]!, token);
  const { from, to } = config.window;
  session.ask(firstPage(config, session.client, from, to, config.pageSize), config.pageSize, Date.now());
}
