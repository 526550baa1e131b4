/** `npm run load -- SCENARIO`: runs a scenario on a target and writes its result, or writes files for a cluster. */
import { dirname } from 'node:path';
import { prepareDirectory, reasonOf } from '../../engine/files.ts';
import { createRedactor } from '../../engine/run/evidence/redact.ts';
import { readTargetFile, resolveTarget, secretsOf, type Target } from '../../engine/target/target.ts';
import { unlessAborted } from '../../engine/clock.ts';
import { terminalSummary, writeResult } from '../report/write.ts';
import { EXIT, exitStatus } from '../result.ts';
import { ensureK6 } from '../run/find-k6.ts';
import { prepare } from '../run/target.ts';
import { type RunningReference, startReference } from '../../reference-server/command/child.ts';
import { Session } from '../run/session.ts';
import { runScenario, type ScenarioName, SCENARIOS } from '../scenarios/all.ts';
import type { ScenarioFlags } from '../run/flags.ts';
import { LEAST_SECONDS } from '../scenarios/chaos.ts';
import { refuseLoopback, writeKubernetes } from './write.ts';
import { UsageError } from '../../engine/errors.ts';

/**
 * Returns the exit status. Throws UsageError, Unreachable, and the signal's reason if it is aborted before the load
 * starts; after that an abort gives a partial result.
 */
export async function scenarioCommand(
  name: ScenarioName,
  flags: ScenarioFlags,
  tell: (line: string) => void,
  signal: AbortSignal,
): Promise<number> {
  checkFlags(flags);
  const named = await namedTarget(flags);
  if (flags.chaos && named && !named.fault)
    throw new UsageError(
      '--chaos needs `fault` in the target file: the commands that start and stop an outage',
    );
  if (flags.kubernetes && !named)
    throw new UsageError(
      '--kubernetes needs a target that the cluster can reach: give --target or --base-url',
    );
  if (flags.kubernetes) refuseLoopback(named!);
  await prepareDirectory(flags.reportDir);
  // Finds k6 first, so that its absence is reported immediately.
  const k6 = await unlessAborted(signal, ensureK6(tell));
  await using running = named ? undefined : await unlessAborted(signal, reference(flags, tell));
  const target = named ?? (await resolveTarget(withoutData(running!.target), { label: 'reference server' }));
  const metricsUrl = named ? undefined : `${new URL(target.baseUrl).origin}/metrics`;
  const asked = { ...target, metricsUrl, timeoutMs: flags.timeout * 1000 };
  const prepared = await unlessAborted(signal, prepare(asked, SCENARIOS[name].window));
  const session = new Session(k6, prepared, flags, tell, signal);
  if (flags.kubernetes) {
    console.log((await writeKubernetes(name, session, flags.kubernetes)).join('\n'));
    return 0;
  }
  tell(`${name} against ${target.name}`);
  if (target.clients.secondTenant && prepared.base.clients.length === 1)
    tell('  the second tenant has no screenings in the window: its client sends no load');
  // The target may have repeated secrets and tokens.
  const { redactDeep } = createRedactor(secretsOf(target));
  const result = redactDeep(await runScenario(name, session), 'fixed');
  const written = await writeResult(result, flags.reportDir).catch((error: Error) => error);
  console.log(terminalSummary(result));
  if (written instanceof Error) {
    console.error(`load: the result could not be written to ${flags.reportDir}: ${reasonOf(written)}`);
    return EXIT.void;
  }
  console.log(`  ${written}`);
  return exitStatus(result);
}

/** Throws a UsageError for flags without effect and for contradictory values. */
function checkFlags(flags: ScenarioFlags): void {
  const { rateAlgorithm, rateLimit, startRate, maxRate, chaos, duration, parallelism, kubernetes } = flags;
  if (rateAlgorithm && !rateLimit) throw new UsageError('--rate-algorithm requires --rate-limit');
  if (parallelism && !kubernetes) throw new UsageError('--parallelism requires --kubernetes');
  if (startRate > maxRate) throw new UsageError(`--start-rate ${startRate} exceeds --max-rate ${maxRate}`);
  if (chaos && duration < LEAST_SECONDS)
    throw new UsageError(`--chaos needs time for outages: give --duration ${LEAST_SECONDS}s or more`);
}

async function namedTarget(flags: ScenarioFlags): Promise<Target | undefined> {
  const { target: file, baseUrl, authUrl, clientId } = flags;
  if (!file && !baseUrl && !authUrl && !clientId) return undefined;
  if (!file) {
    if (!baseUrl || !authUrl || !clientId)
      throw new UsageError('--base-url, --auth-url and --client-id must be given together');
    const primary = { clientId, clientSecret: '${SCREENINGS_CLIENT_SECRET}' };
    return resolveTarget({ baseUrl, authUrl, clients: { primary } }, { label: 'flags' });
  }
  const json = withoutData(await readTargetFile(file));
  return resolveTarget(json, { directory: dirname(file), label: file });
}

/** Removes paths of datasets, which load does not need and which may be huge. */
function withoutData(json: unknown): unknown {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return json;
  const { dataset: _, secondDataset: __, events: ___, ...rest } = json as Record<string, unknown>;
  return rest;
}

function reference(flags: ScenarioFlags, tell: (line: string) => void): Promise<RunningReference> {
  const { screenings, tokenLifetime, rateLimit, rateAlgorithm: kind } = flags;
  tell(`starting the reference server with ${screenings} screenings`);
  const given = { '--token-lifetime': tokenLifetime, '--rate-limit': rateLimit, '--rate-algorithm': kind };
  const args = Object.entries(given).flatMap(([flag, value]) => (value ? [flag, String(value)] : []));
  return startReference(['--screenings', String(screenings), ...args], { tell: (line) => tell(`  ${line}`) });
}
