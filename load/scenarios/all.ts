/** The scenarios by name, and one way to run any of them into a result. */
import { conformant, gatherFindings, type LoadResult } from '../result.ts';
import { VoidRun, type Session } from '../run/session.ts';
import { Unreachable } from '../run/prepare.ts';
import { capacity, type CapacityOptions } from './capacity.ts';
import { paging, type PagingOptions } from './paging.ts';
import { rateLimit, type RateLimitOptions } from './rate-limit.ts';
import { smoke, soak, spike, token, type SteadyOptions } from './steady.ts';

export type ScenarioOptions = CapacityOptions & PagingOptions & RateLimitOptions & SteadyOptions;

type Scenario = (session: Session, options: ScenarioOptions) => Promise<Partial<LoadResult>>;

export const SCENARIOS = {
  smoke,
  paging,
  'rate-limit': rateLimit,
  capacity,
  token,
  soak,
  spike,
} as const satisfies Record<string, Scenario>;

export type ScenarioName = keyof typeof SCENARIOS;

/** Runs a scenario. A run that says nothing about the target is a result too: void, with the reason. */
export async function runScenario(
  name: ScenarioName,
  session: Session,
  options: ScenarioOptions,
): Promise<LoadResult> {
  const startedAt = new Date();
  let outcome: Partial<LoadResult> = {};
  let why: false | string = false;
  try {
    outcome = await (SCENARIOS[name] as Scenario)(session, options);
  } catch (error) {
    if (!(error instanceof VoidRun) && !(error instanceof Unreachable)) throw error;
    why = error.message;
  }
  const findings = gatherFindings(session.findings);
  return {
    scenario: name,
    target: session.prepared.name,
    startedAt: startedAt.toISOString(),
    durationMs: Date.now() - startedAt.getTime(),
    void: why,
    conformant: conformant(findings),
    held: false,
    findings,
    summary: [],
    requests: session.requests,
    tokenCalls: session.tokenCalls,
    pageSize: session.settings.pageSize,
    generator: {
      ...(session.cpuShare === undefined ? {} : { cpuShare: Number(session.cpuShare.toFixed(3)) }),
      schedulerLagP99Ms: session.schedulerLagP99Ms,
    },
    histogram: session.histogram,
    thresholds: session.thresholds,
    ...outcome,
  };
}
