/** Writes certify/diagnosis/signatures.ts: what each fault of the reference server breaks. */
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { format } from 'prettier';
import { FAULTS } from '../../reference-server/faults/all.ts';
import type { Signature } from '../diagnosis/diagnose.ts';

export const SIGNATURE_FILE = fileURLToPath(new URL('../diagnosis/signatures.ts', import.meta.url));

/** The text of signatures.ts. */
export async function signatureTable(): Promise<string> {
  const signatures = FAULTS.map(({ name, trips, mayTrip = [] }): Signature => ({
    name,
    own: Object.fromEntries(Object.entries(trips).map(([id, words]) => [id, words.source])),
    may: mayTrip,
  }));
  const text = [
    '/** The faults of the reference server as signatures; written by `npx tsx certify/proof/signature-table.ts`. */',
    "import type { Signature } from './diagnose.ts';",
    '',
    `export const SIGNATURES: readonly Signature[] = ${JSON.stringify(signatures)};`,
  ];
  return format(text.join('\n'), { parser: 'typescript', singleQuote: true, printWidth: 110 });
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await writeFile(SIGNATURE_FILE, await signatureTable());
