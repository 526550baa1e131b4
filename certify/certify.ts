/** One certification, in this process: what the command line runs, and what every proof by a fault runs. */
import { Kit, DEFAULTS, type KitOptions } from '../fixtures/run/kit.ts';
import type { Finding } from '../fixtures/run/ledger.ts';
import { inOrder, type Probe } from '../fixtures/run/probe.ts';
import { preconditionsOf, runProbe } from '../fixtures/run/run-probe.ts';
import { REQUIREMENTS, type RequirementId } from '../fixtures/requirements.ts';
import type { Target } from '../fixtures/target/target.ts';
import { LAWS } from '../properties/laws.ts';
import { PROBES } from '../specs/probes.ts';
import { buildReport } from './build-report.ts';
import type { Report } from './report.ts';

/** How far a run is. */
export interface Progress {
  readonly planned: number;
  readonly done: number;
  /** The probe that begins now; undefined at the end. */
  readonly probe?: Probe | undefined;
  /** What has been confirmed since the last call. */
  readonly findings: readonly Finding[];
}

export interface CertifyOptions extends Partial<KitOptions> {
  /** Requirement ids; all where absent. */
  readonly only?: readonly RequirementId[] | undefined;
  /** Default: every probe and every law. */
  readonly probes?: readonly Probe[];
  /** The command that repeats the run, as the report prints it. */
  readonly replay?: string;
  readonly onProgress?: (progress: Progress) => void;
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

export function kitOptions({
  seed,
  runs,
  maxRequests,
  timeoutMs,
  path,
  signal,
}: Partial<KitOptions>): KitOptions {
  return {
    seed: seed ?? Math.floor(Math.random() * 2 ** 31),
    runs: runs ?? DEFAULTS.runs,
    maxRequests: maxRequests ?? DEFAULTS.maxRequests,
    timeoutMs: timeoutMs ?? DEFAULTS.timeoutMs,
    path,
    signal,
  };
}

/**
 * Certifies a target. Never rejects for anything that the target does; interrupted by its signal, it resolves to
 * the report of what was done.
 */
export async function certify(target: Target, options: CertifyOptions = {}): Promise<Report> {
  await using kit = new Kit(target, kitOptions(options));
  const startedAt = new Date();
  const began = performance.now();
  const probes = selectProbes(options.probes ?? [...PROBES, ...LAWS], options.only);
  const tell = (done: number, findings: readonly Finding[], probe?: Probe): void =>
    options.onProgress?.({ planned: probes.length, done, probe, findings });
  let findings: readonly Finding[] = [];
  for (const [done, probe] of probes.entries()) {
    tell(done, findings, probe);
    await runProbe(kit, probe);
    findings = await kit.confirmFindings();
  }
  const preconditions = await preconditionsOf(kit).catch(() => ({}));
  tell(probes.length, [...findings, ...(await kit.conclude())]);
  return buildReport(kit, {
    startedAt,
    durationMs: performance.now() - began,
    planned: probes.length,
    selection: options.only,
    basis: preconditions,
    replay: options.replay ?? `npm run certify -- --seed ${kit.options.seed}`,
    interrupted: kit.client.gone,
  });
}
