/** Certifies an allowed variant, and says what keeps it from being conformant. */
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
  /** Cases that each law tries. */
  readonly runs?: number;
  readonly seed?: number;
  /** In mode full, the scratch tenant is filled. */
  readonly fills?: boolean;
  /** Requests go straight to the handler, over this store, in place of sockets and the database. */
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
  // The variant adds only what cannot be found out.
  return await certify(
    mode === 'full' ? { ...said, ...ingest } : { ...target, issuer: said.issuer, rateLimit: said.rateLimit },
    {
      seed,
      dispatcher: inProcess,
      ...(runs === undefined ? {} : { runs }),
    },
  );
}

/** Empty for a conformant target of which every core MUST was exercised. */
export function blamesOf({ requirements, verdict, summary, basis, diagnosis }: Report): string[] {
  const diagnosed = diagnosis.map(({ root }) => `${root} is diagnosed`);
  const odd = requirements.flatMap(({ id, level, class: needs, status, reason, failures }) => {
    if (status === 'fail' || status === 'error')
      return [`${id} is ${status}: ${reason ?? failures[0]?.message}`];
    const open = status === 'untested' && level === 'MUST' && needs === 'core' && reason !== basis;
    return open ? [`${id} is untested: ${reason}`] : [];
  });
  const blamed = [...odd, ...diagnosed];
  return verdict === 'conformant' ? blamed : [`the verdict is ${verdict}: ${summary}`, ...blamed];
}
