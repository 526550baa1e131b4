/** One certification in this process: what the command line runs, and what tests call. */
import { Kit, DEFAULTS, type KitOptions } from '../fixtures/run/kit.ts';
import { inOrder, type Probe } from '../fixtures/run/probe.ts';
import { preconditionsOf, runProbe, type FailedPreconditions } from '../fixtures/run/run-probe.ts';
import { REQUIREMENTS, type RequirementId } from '../fixtures/requirements.ts';
import type { Target } from '../fixtures/target/target.ts';
import { PROBES } from '../specs/probes.ts';
import { buildReport } from './build-report.ts';
import type { Report } from './report.ts';

export interface CertifyOptions extends Partial<KitOptions> {
  /** Requirement ids; all where absent. */
  readonly only?: readonly RequirementId[] | undefined;
  /** Probes beside those of the specs, such as laws. */
  readonly probes?: readonly Probe[];
  readonly replay?: string;
}

/** The probes that exercise any of the selected requirements, in the order in which they run. */
export const selectProbes = (
  probes: readonly Probe[],
  only: readonly RequirementId[] | undefined,
): readonly Probe[] =>
  inOrder(only ? probes.filter(({ ids }) => ids.some((id) => only.includes(id))) : probes);

/** The ids that a selection such as `4.2,5-missing` names: ids and whole sections. Empty where nothing matches. */
export function selectIds(words: readonly string[]): RequirementId[] {
  return REQUIREMENTS.filter(({ id, section }) =>
    words.some((word) => word === id || word === section || section.startsWith(`${word}.`)),
  ).map(({ id }) => id);
}

export function kitOptions(options: Partial<KitOptions>): KitOptions {
  return {
    seed: options.seed ?? Math.floor(Math.random() * 2 ** 31),
    runs: options.runs ?? DEFAULTS.runs,
    maxRequests: options.maxRequests ?? DEFAULTS.maxRequests,
    timeoutMs: options.timeoutMs ?? DEFAULTS.timeoutMs,
  };
}

/** Certifies a target. Never rejects for anything that the target does. */
export async function certify(target: Target, options: CertifyOptions = {}): Promise<Report> {
  await using kit = new Kit(target, kitOptions(options));
  const startedAt = new Date();
  const began = performance.now();
  const probes = selectProbes(options.probes ?? PROBES, options.only);
  for (const probe of probes) await runProbe(kit, probe);
  const basis: FailedPreconditions = await preconditionsOf(kit).catch(() => ({}));
  await kit.conclude();
  return buildReport(kit, {
    startedAt,
    durationMs: performance.now() - began,
    planned: probes.length,
    selection: options.only,
    basis,
    replay: options.replay ?? `npm run certify -- --seed ${kit.options.seed}`,
    interrupted: kit.client.gone,
  });
}
