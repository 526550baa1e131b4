/** A session against a target that the kit started itself. */
import { resolveTarget } from '../../engine/target/target.ts';
import { prepare } from '../run/prepare.ts';
import { Session, type LoadSettings } from '../run/session.ts';
import type { Scenario, ScenarioOptions } from '../scenarios/scenario.ts';

export const DEFAULTS: LoadSettings = {
  slo: { p99Ms: 500, errorRate: 0.001 },
  pageSize: 100,
  seed: 1,
  judgeEvery: 10,
  timeoutSeconds: 10,
  maxVUs: 2000,
};

export async function openSession(
  k6: string,
  target: unknown,
  settings: Partial<LoadSettings> = {},
  { window }: Pick<Scenario, 'window'> = {},
): Promise<Session> {
  const prepared = await prepare(await resolveTarget(target), window);
  return new Session(k6, prepared, { ...DEFAULTS, ...settings }, () => {});
}

/** What scenarios run with here, where a verification does not say otherwise. */
export const OPTIONS: ScenarioOptions = {
  startRate: 20,
  maxRate: 1000,
  thoroughness: 0.3,
  pageSize: 10,
  maxPages: 10,
  tables: false,
  maxRequests: 100,
  maxSeconds: 10,
  requestsPerSecond: 100,
  seconds: 4,
  spikeFactor: 2,
  headSeconds: 300,
};
