/** Certifies a variant, and lists what prevents it from being conformant. */
import { certify } from '../certify.ts';
import type { Report } from '../report.ts';
import type { Database } from '../../reference-server/store/database.ts';
import { targetFor, type Mode } from './faults.ts';
import { InProcess } from '../../reference-server/http/in-process.ts';
import type { ScreeningStore } from '../../reference-server/parts.ts';
import type { Provisioned } from '../../reference-server/run/provisioning.ts';
import { startServer } from '../../reference-server/run/start.ts';
import type { Variant } from '../../reference-server/variants/variant.ts';

interface VariantOptions {
  /** The number of cases per law. */
  readonly runs?: number;
  readonly seed?: number;
  /** Whether the scratch tenant is filled in mode full. */
  readonly fills?: boolean;
  /** Sends requests directly to the handler, with this store instead of sockets and a database. */
  readonly store?: ScreeningStore;
}

export async function certifyVariant(
  database: Database,
  provisioned: Provisioned,
  variant: Variant,
  mode: Mode,
  { runs, seed = 1, fills = false, store }: VariantOptions = {},
): Promise<Report> {
  const inProcess = store && new InProcess();
  await using server = await startServer(database, provisioned, {
    ...variant.server,
    ...(inProcess && { inProcess, store }),
  });
  const target = await targetFor(server, mode);
  const said = variant.target?.(target) ?? target;
  const ingest = fills ? { ingest: (lines: readonly string[]) => server.ingest(lines) } : {};
  // The minimal target contains only what cannot be discovered.
  return await certify(
    mode === 'full' ? { ...said, ...ingest } : { ...target, issuer: said.issuer, rateLimit: said.rateLimit },
    {
      seed,
      dispatcher: inProcess,
      ...(runs === undefined ? {} : { runs }),
    },
  );
}

/** The obstacles to conformance; empty if the target is conformant and every core MUST was exercised. */
export function obstaclesOf({ requirements, verdict, summary, basis, diagnosis }: Report): string[] {
  const diagnosed = diagnosis.map(({ root }) => `${root} is diagnosed`);
  const odd = requirements.flatMap(({ id, level, class: needs, status, reason, failures }) => {
    if (status === 'fail' || status === 'error')
      return [`${id} is ${status}: ${reason ?? failures[0]?.message}`];
    const open = status === 'untested' && level === 'MUST' && needs === 'core' && reason !== basis;
    return open ? [`${id} is untested: ${reason}`] : [];
  });
  const obstacles = [...odd, ...diagnosed];
  return verdict === 'conformant' ? obstacles : [`the verdict is ${verdict}: ${summary}`, ...obstacles];
}
