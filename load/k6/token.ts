/** Open arrivals at the token endpoint. One client mints rarely (section 5.6), but many clients together mint often. */
import exec from 'k6/execution';
import { openArrivals, waitUntilDue } from './lib/arrivals.ts';
import { refuseShortcuts, SETUP, type SetupData } from './lib/setup.ts';
import { countToken, mint } from './lib/client.ts';
import { areRecordsRead, readConfig, sharedRun, thresholdsOf } from './lib/config.ts';
import { PRESETS } from './lib/presets.ts';
import { write } from './lib/record.ts';

const config = readConfig({ scenario: 'token', ...PRESETS.token });

export const options = {
  ...SETUP,
  scenarios: { token: openArrivals(config) },
  thresholds: thresholdsOf({
    http_req_duration: [`p(99)<${config.p99Ms}`],
    http_req_failed: [`rate<=${config.errorRate}`],
  }),
};

export function setup(): Pick<SetupData, 'startAtMs'> {
  refuseShortcuts();
  return { startAtMs: Date.now() };
}

export default function ({ startAtMs }: Pick<SetupData, 'startAtMs'>): void {
  const { dueAtMs, schedulerLagMs } = waitUntilDue(config);
  const sentAtMs = Date.now();
  let status = 200;
  try {
    mint(config, config.clients[exec.scenario.iterationInTest % config.clients.length]!);
  } catch {
    status = 0;
  }
  const serviceMs = Date.now() - sentAtMs;
  const latencyMs = Math.max(serviceMs, Date.now() - dueAtMs);
  const dueMs = dueAtMs - startAtMs;
  if (sharedRun) countToken(config, latencyMs, status === 200);
  if (areRecordsRead) write({ kind: 'arrival', dueMs, latencyMs, serviceMs, status, schedulerLagMs });
}
