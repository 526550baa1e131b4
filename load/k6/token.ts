/** Open arrivals at the token endpoint. One client mints rarely (section 5.6), but many clients together mint often. */
import { type DueRequest, openArrivals } from './lib/arrivals.ts';
import { refuseShortcuts, SETUP, type SetupData, startSoon } from './lib/setup.ts';
import { countToken, mintInTurn } from './lib/client.ts';
import { atLeastOne, readConfig, sharedRun, thresholdsOf } from './lib/config.ts';
import { PRESETS } from './lib/presets.ts';

const config = readConfig({ scenario: 'token', ...PRESETS.token });
const arrivals = openArrivals(config, sendTokenRequest);

export const options = {
  ...SETUP,
  scenarios: { token: arrivals.scenario },
  thresholds: thresholdsOf({
    ...atLeastOne('token_calls'),
    http_req_duration: [`p(99)<${config.p99Ms}`],
    http_req_failed: [`rate<=${config.errorRate}`],
  }),
};

export function setup(): Pick<SetupData, 'startAtMs'> {
  refuseShortcuts();
  return startSoon();
}

export default arrivals.iteration;

function sendTokenRequest(_: unknown, { dueAtMs }: DueRequest) {
  const sentAtMs = Date.now();
  const isIssued = mintInTurn(config);
  const serviceMs = Date.now() - sentAtMs;
  const latencyMs = Math.max(serviceMs, Date.now() - dueAtMs);
  if (sharedRun) countToken(config, latencyMs, isIssued);
  return { status: isIssued ? 200 : 0, serviceMs, latencyMs };
}
