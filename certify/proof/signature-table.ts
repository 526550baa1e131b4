/** Writes certify/diagnosis/signatures.ts: what each fault of the reference server breaks. */
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { FAULTS } from '../../reference-server/faults/all.ts';
import type { Signature } from '../diagnosis/signature.ts';

export const SIGNATURE_FILE = fileURLToPath(new URL('../diagnosis/signatures.ts', import.meta.url));

/** The text of signatures.ts: a line a fault. */
export function signatureTable(): string {
  const signatures = FAULTS.map(({ name, trips, mayTrip = [] }): Signature => ({
    name,
    own: Object.fromEntries(Object.entries(trips).map(([id, words]) => [id, words.source])),
    may: mayTrip,
  }));
  return [
    '/** The faults of the reference server as signatures; written by `npx tsx certify/proof/signature-table.ts`. */',
    "import type { Signature } from './signature.ts';",
    '',
    '// prettier-ignore',
    'export const SIGNATURES: readonly Signature[] = [',
    ...signatures.map((signature) => `  ${JSON.stringify(signature)},`),
    '];',
    '',
  ].join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeFile(SIGNATURE_FILE, signatureTable());
