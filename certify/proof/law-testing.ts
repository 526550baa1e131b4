/** Targets for tests of the laws, and counterexamples from their reports. */
import type { Report } from '../report.ts';
import { resolveTarget, type Target } from '../../engine/target/target.ts';
import type { ReferenceServer } from '../../reference-server/run/start.ts';

/** full: with the dataset. bare: addresses and credentials of primary. filled: also with a tenant to fill. */
export type Mode = 'full' | 'bare' | 'filled';

/** The complete target, resolved once per set of data because datasets are long. */
export async function resolvedTarget(server: ReferenceServer): Promise<Target> {
  const { fault: _, ingest: __, ...file } = server.target();
  return resolveTarget(file);
}

/** The target in a mode. Ingest runs in this process, because a command would be slow. */
export async function lawTargetOf(server: ReferenceServer, mode: Mode, known: Target): Promise<Target> {
  const { baseUrl, authUrl, clients } = server.target();
  const { clientId, clientSecret } = clients.primary;
  switch (mode) {
    case 'full':
      return { ...known, baseUrl, authUrl };
    case 'bare':
      return resolveTarget({ baseUrl, authUrl, clients: { primary: { clientId, clientSecret } } });
    case 'filled':
      return { ...known, baseUrl, authUrl, ingest: (lines) => server.ingest(lines) };
  }
}

export interface Counterexample {
  readonly law: string;
  readonly script: readonly string[];
  readonly seed: number;
  readonly path: string;
}

/** The counterexample of a law; undefined if it found none. */
export function counterexampleOf(report: Report, law: string): Counterexample | undefined {
  const failures = report.requirements.flatMap((requirement) => requirement.failures);
  const found = failures.find(({ counterexample }) => counterexample?.['law'] === law);
  return found?.counterexample as Counterexample | undefined;
}

/** Every failure, warning and error of a report, in words. */
export const problemsOf = (report: Report): string[] =>
  report.requirements
    .filter(({ status }) => ['fail', 'warn', 'error'].includes(status))
    .map(({ id, failures, reason }) => `${id}: ${failures[0]?.message ?? reason} ${failures[0]?.curl ?? ''}`);
