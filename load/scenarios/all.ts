/** The scenarios by name, and the function that runs one and returns its result. */
import { conformant, gatherFindings, type LoadResult } from '../result.ts';
import { type Scenario, type Session, VoidRun } from '../run/session.ts';
import { Unreachable } from '../run/target.ts';
import { poll, smoke, soak, spike, token } from './arrivals.ts';
import { capacity } from './capacity.ts';
import { paging } from './paging.ts';
import { rateLimit } from './rate-limit.ts';
import { tenants } from './tenants.ts';

export const SCENARIOS = {
  smoke,
  paging,
  'rate-limit': rateLimit,
  capacity,
  tenants,
  poll,
  token,
  soak,
  spike,
} as const satisfies Record<string, Scenario>;

export type ScenarioName = keyof typeof SCENARIOS;

/** Runs a scenario. If the run says nothing about the target, the result is void, with the reason. */
export async function runScenario(name: ScenarioName, session: Session): Promise<LoadResult> {
  const startedAt = new Date();
  let outcome: Partial<LoadResult> = {};
  let why: false | string = false;
  try {
    // An abort ends the run of k6, and so the scenario.
    const ended = await SCENARIOS[name].run(session);
    session.signal.throwIfAborted();
    outcome = ended;
  } catch (error) {
    if (session.signal.aborted)
      why = `interrupted after ${((Date.now() - startedAt.getTime()) / 1000).toFixed(0)} s`;
    else if (error instanceof VoidRun || error instanceof Unreachable) why = error.message;
    else throw error;
  }
  const findings = gatherFindings(session.findings);
  return {
    ...{ scenario: name, target: session.prepared.target.name, startedAt: startedAt.toISOString() },
    durationMs: Date.now() - startedAt.getTime(),
    ...{ void: why, conformant: conformant(findings), findings, summary: [] },
    ...{ requests: session.requests, tokenCalls: session.tokenCalls },
    pageSize: session.options.pageSize,
    generator: { cpuShare: session.cpuShare && Number(session.cpuShare.toFixed(3)) },
    thresholds: session.thresholds,
    ...outcome,
    held: (outcome.held ?? false) && conformant(findings),
  };
}
