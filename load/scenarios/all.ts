/** The scenarios by name, and one way to run any of them into a result. */
import type { Option } from 'commander';
import { FLAGS } from '../commands/flags.ts';
import { conformant, gatherFindings, type LoadResult } from '../result.ts';
import { VoidRun, type Session } from '../run/session.ts';
import { Unreachable } from '../run/prepare.ts';
import { capacity, type CapacityOptions } from './capacity.ts';
import { paging, type PagingOptions } from './paging.ts';
import { rateLimit, type RateLimitOptions } from './rate-limit.ts';
import { smoke, soak, spike, token, type SteadyOptions } from './steady.ts';

export type ScenarioOptions = CapacityOptions & PagingOptions & RateLimitOptions & SteadyOptions;

export interface Scenario {
  readonly about: string;
  /** Besides what every scenario takes. */
  readonly flags: readonly Option[];
  readonly run: (session: Session, options: ScenarioOptions) => Promise<Partial<LoadResult>>;
}

const { rate, duration, pageSize } = FLAGS;
const slo = [FLAGS.sloP99(), FLAGS.sloErrors(), FLAGS.maxVUs()];
const cluster = [FLAGS.kubernetes(), FLAGS.parallelism()];
const steady = (requestsPerSecond: number, seconds: number): Option[] => [
  pageSize(100),
  rate(requestsPerSecond),
  duration(seconds),
  ...slo,
  ...cluster,
];

/** A scenario is an entry here, its file beside this one, and a script in k6/ where none of those there will do. */
export const SCENARIOS = {
  smoke: {
    about: 'half a minute of little load, every page judged: for every night',
    flags: steady(5, 30),
    run: smoke,
  },
  paging: {
    about: 'what a page costs by depth, page size and window',
    flags: [pageSize(500)],
    run: paging,
  },
  'rate-limit': {
    about: 'which limiter there is, its limit, window and burst',
    flags: [FLAGS.maxRequests(), FLAGS.maxSeconds()],
    run: rateLimit,
  },
  capacity: {
    about: 'the highest arrival rate at which the SLO holds',
    flags: [pageSize(100), FLAGS.startRate(), FLAGS.maxRate(), FLAGS.thoroughness(), ...slo],
    run: capacity,
  },
  token: { about: 'open arrivals at the token endpoint', flags: steady(20, 30), run: token },
  soak: {
    about: 'even load for a long time: what drifts, leaks, freezes or expires',
    flags: steady(20, 120),
    run: soak,
  },
  spike: {
    about: 'a burst of arrivals, and the recovery from it',
    flags: [...steady(20, 60), FLAGS.spikeFactor()],
    run: spike,
  },
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
    outcome = await SCENARIOS[name].run(session, options);
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
