/** What the table and the tests of the laws share: targets of servers under test, and what laws said of them. */
import type { Report } from '../report.ts';
import { resolveTarget, type Target } from '../../engine/target/target.ts';
import type { ReferenceServer } from '../../reference-server/run/start.ts';

/** full: with the dataset. bare: addresses and primary's credentials. filled: with a tenant to fill as well. */
export type Mode = 'full' | 'bare' | 'filled';

/** Everything that is known of servers over one set of data: read once, since datasets are long. */
export async function resolvedTarget(server: ReferenceServer): Promise<Target> {
  const { fault: _, ingest: __, ...file } = server.target();
  return resolveTarget(file);
}

/** What the kit is told of a server. Filling goes on in this process: a command would take its time. */
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

/** The counterexample of a law, where it found one. */
export function counterexampleOf(report: Report, law: string): Counterexample | undefined {
  const failures = report.requirements.flatMap((requirement) => requirement.failures);
  const found = failures.find(({ counterexample }) => counterexample?.['law'] === law);
  return found?.counterexample as Counterexample | undefined;
}

/** Whatever a report blames, the kit itself included, in words. */
export const blamed = (report: Report): string[] =>
  report.requirements
    .filter(({ status }) => ['fail', 'warn', 'error'].includes(status))
    .map(({ id, failures, reason }) => `${id}: ${failures[0]?.message ?? reason} ${failures[0]?.curl ?? ''}`);
