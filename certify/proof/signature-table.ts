/**
 * Writes certify/diagnosis/signatures.ts: what runs of each fault of the reference server broke, with everything that
 * a target file can say and bare. Faults that are not in it yet are run, and those that are named:
 * `npx tsx certify/proof/signature-table.ts [NAME…]`; all with `--all` (some 700 runs of 3 s of one core each).
 */
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { openDatabase } from '../../reference-server/store/database.ts';
import { FAULTS } from '../../reference-server/faults/all.ts';
import { tripped, type Fault } from '../../reference-server/faults/fault.ts';
import { defaultProvisioning, loadProvisioning } from '../../reference-server/run/provisioning.ts';
import { evidenceOf } from '../diagnosis/features.ts';
import type { Seen, Signature } from '../diagnosis/signature.ts';
import { SIGNATURES } from '../diagnosis/signatures.ts';
import type { Report } from '../report.ts';
import { certifyFault } from './faults.ts';

export const SIGNATURE_FILE = fileURLToPath(new URL('../diagnosis/signatures.ts', import.meta.url));

/** Enough to show a mistake, few enough for hundreds of runs. */
const COUNT = 600;

/** The text of signatures.ts: a line a fault, in the order of the faults. Those that were never run are left out. */
export function signatureTable(seen: ReadonlyMap<string, Signature['seen']>): string {
  const signatures = FAULTS.flatMap((fault): Signature[] => {
    const runs = seen.get(fault.name);
    return runs ? [{ name: fault.name, own: tripped(fault), may: fault.mayTrip ?? [], seen: runs }] : [];
  });
  return [
    '/** What runs of the faults of the reference server broke; written by `npx tsx certify/proof/signature-table.ts`. */',
    "import type { Signature } from './signature.ts';",
    '',
    '// prettier-ignore',
    'export const SIGNATURES: readonly Signature[] = [',
    ...signatures.map((signature) => `  ${JSON.stringify(signature)},`),
    '];',
    '',
  ].join('\n');
}

/** What a run broke, as a signature holds it. */
export const seenIn = ({ requirements }: Pick<Report, 'requirements'>): Seen =>
  Object.fromEntries([...evidenceOf(requirements)].map(([id, features]) => [id, [...features].sort()]));

export const recorded = (): Map<string, Signature['seen']> =>
  new Map(SIGNATURES.map(({ name, seen }) => [name, seen]));

async function run(faults: readonly Fault[]): Promise<void> {
  const seen = recorded();
  await using server = await openDatabase('embedded');
  await using second = await openDatabase({ url: server.url });
  await using small = await loadProvisioning(server, defaultProvisioning({ count: COUNT }));
  await using large = await loadProvisioning(second, defaultProvisioning());
  for (const [index, fault] of faults.entries()) {
    const [database, provisioned] = fault.large ? ([second, large] as const) : ([server, small] as const);
    const full = seenIn(await certifyFault(database, provisioned, fault, 'full'));
    const bare = fault.bare ? seenIn(await certifyFault(database, provisioned, fault, 'bare')) : undefined;
    // The long run of everything is kept where there was one; a run in which nothing showed tells nothing.
    const { whole } = seen.get(fault.name) ?? {};
    const runs = Object.entries({ full, bare, whole }).filter(
      ([, run]) => run && Object.keys(run).length > 0,
    );
    if (runs.length > 0) seen.set(fault.name, Object.fromEntries(runs));
    console.log(`${index + 1}/${faults.length} ${fault.name}: ${Object.keys(full).join(' ')}`);
    // Each time, so that nothing is lost that was run.
    await writeFile(SIGNATURE_FILE, signatureTable(seen));
  }
  await writeFile(SIGNATURE_FILE, signatureTable(seen));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const names = process.argv.slice(2);
  const known = recorded();
  const wanted = ({ name }: Fault): boolean =>
    names.includes('--all') || names.includes(name) || !known.has(name);
  await run(FAULTS.filter(wanted));
}
