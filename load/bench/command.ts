/** `npm run bench`: pages, tokens, a certification run and k6's judge as ratios, comparable across machines. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { prepareDirectory } from '../../engine/files.ts';
import { EXIT } from '../result.ts';
import { findK6 } from '../run/find-k6.ts';
import { certificateRows } from './certificate.ts';
import { generatorRow } from './generator.ts';
import { type Row, serviceRows, type Tell } from './service.ts';

const NONE = '{"rows":[]}';

/** Measures one part or all, and writes bench.json. Returns 0 if every goal is reached, else 1. Throws UsageError. */
export async function bench(part: string | undefined, reportDir: string, tell: Tell): Promise<number> {
  await prepareDirectory(reportDir);
  const wanted = (name: string): boolean => part === undefined || part === name;
  const k6 = wanted('k6') ? await findK6() : undefined;
  if (wanted('k6') && !k6) tell('k6 was not found: its row is left out (npm run load -- install-k6)');
  const rows: Row[] = [
    ...(wanted('service') ? await serviceRows(tell) : []),
    ...(wanted('certify') ? await certificateRows(tell) : []),
    ...(k6 ? [await generatorRow(k6, tell)] : []),
  ];
  const file = join(reportDir, 'bench.json');
  const text = part === undefined ? NONE : await readFile(file, 'utf8').catch(() => NONE);
  const { rows: known } = JSON.parse(text) as { rows: Row[] };
  // Keeps the rows of other parts.
  const others = known.filter(({ name }) => !rows.some((row) => row.name === name));
  await writeFile(file, `${JSON.stringify({ rows: [...others, ...rows] }, null, 2)}\n`);
  console.table(
    Object.fromEntries(rows.map(({ name, ratio, goal, reached }) => [name, { ratio, goal, reached }])),
  );
  console.log(file);
  return rows.every(({ reached }) => reached) ? EXIT.held : EXIT.broken;
}
