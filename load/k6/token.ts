/** Open arrivals at the token endpoint. One client mints rarely (section 5.6), but many clients together mint often. */
import exec from 'k6/execution';
import { dueMomentsOf, openArrivals, waitUntilDue } from './lib/arrivals.ts';
import { refuseShortcuts, SETUP, type SetupData, startSoon } from './lib/setup.ts';
import { countToken, mint } from './lib/client.ts';
import { areRecordsRead, readConfig, sharedRun, thresholdsOf } from './lib/config.ts';
import { PRESETS } from './lib/presets.ts';
import { write } from './lib/record.ts';

const config = readConfig({ scenario: 'token', ...PRESETS.token });
const due = dueMomentsOf(config);

export const options = {
  ...SETUP,
  scenarios: { token: openArrivals(config, due) },
  thresholds: thresholdsOf({
    http_req_duration: [`p(99)<${config.p99Ms}`],
    http_req_failed: [`rate<=${config.errorRate}`],
  }),
};

export function setup(): Pick<SetupData, 'startAtMs'> {
  refuseShortcuts();
  return startSoon();
}

export default function (data: Pick<SetupData, 'startAtMs'>): void {
  const request = waitUntilDue(config, data, due);
  if (!request) return;
  const { dueAtMs, dueMs, schedulerLagMs } = request;
  const sentAtMs = Date.now();
  let status = 200;
  try {
    mint(config, config.clients[exec.scenario.iterationInTest % config.clients.length]!);
  } catch {
    status = 0;
  }
  const serviceMs = Date.now() - sentAtMs;
  const latencyMs = Math.max(serviceMs, Date.now() - dueAtMs);
  if (sharedRun) countToken(config, latencyMs, status === 200);
  if (areRecordsRead) write({ kind: 'arrival', dueMs, latencyMs, serviceMs, status, schedulerLagMs });
}
