/**
 * `npm run bench`: what the reference server's pages and tokens cost, and a certificate, as ratios, which mean the
 * same on any machine. Writes bench.json; exits 0 where every goal is reached, 1 where not.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Argument, Command } from 'commander';
import { endWhenTold } from '../fixtures/process.ts';
import { certificateRows } from './bench/certificate.ts';
import type { Row } from './bench/pages.ts';
import { serviceRows } from './bench/service.ts';
import { textTable } from './scenarios/words.ts';

const command = new Command('bench')
  .description("What the reference server's pages and tokens cost, and a certificate, as ratios.")
  .addArgument(
    new Argument('[part]', 'one part alone; certify also says where its time goes').choices([
      'service',
      'certify',
    ]),
  )
  .option('--screenings <n>', 'of the large tenant', Number, 1_000_000)
  .option('--rounds <n>', 'of which the median is taken', Number, 5)
  .option('--seconds <n>', 'of each measurement', Number, 1.5)
  .option('--report-dir <dir>', 'where bench.json goes', 'reports')
  .parse();
const flags = command.opts<{ screenings: number; rounds: number; seconds: number; reportDir: string }>();
const [part] = command.args;

endWhenTold();

const tell = (line: string): void => console.error(line);
const plan = { rounds: flags.rounds, seconds: flags.seconds, tell };

const rows: Row[] = [
  ...(part === 'certify' ? [] : await serviceRows(flags.screenings, plan)),
  ...(part === 'service' ? [] : await certificateRows(tell)),
];

await mkdir(flags.reportDir, { recursive: true });
const file = join(flags.reportDir, 'bench.json');
/** What the other part measured stays. */
const before = await readFile(file, 'utf8').then(
  (text) => (JSON.parse(text) as { rows: Row[] }).rows,
  () => [],
);
const others = part === undefined ? [] : before.filter(({ name }) => !rows.some((row) => row.name === name));
await writeFile(file, `${JSON.stringify({ rows: [...others, ...rows] }, null, 2)}\n`);
console.log(
  textTable(
    ['row', 'ratio', 'goal', 'reached'],
    rows.map(({ name, ratio, goal, reached }) => [
      name,
      ratio.toFixed(2),
      goal.toFixed(2),
      reached ? 'yes' : 'no',
    ]),
  ),
);
console.log(file);
process.exitCode = rows.every(({ reached }) => reached) ? 0 : 1;
