/**
 * `npm run bench`: what the reference server's pages and tokens cost, a certificate, and a page that k6 judges, as
 * ratios, which mean the same on any machine. Writes bench.json; exits 0 where every goal is reached, 1 where not.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Argument, Command } from 'commander';
import { prepareDirectory } from '../certify/render/write.ts';
import { calledFrom, commandName } from '../engine/called-from.ts';
import { endWhenTold } from '../engine/process.ts';
import { certificateRows } from './bench/certificate.ts';
import { generatorRow } from './bench/generator.ts';
import type { Row } from './bench/pages.ts';
import { serviceRows } from './bench/service.ts';
import { findK6 } from './run/find-k6.ts';
import { above0, whole } from './scenarios/flags.ts';
import { textTable } from './scenarios/words.ts';

const command = new Command(commandName('bench'))
  .description("What the reference server's pages and tokens cost, a certificate, and a page that k6 judges.")
  .addArgument(
    new Argument('[part]', 'one part alone; certify also says where its time goes').choices([
      'service',
      'certify',
      'k6',
    ]),
  )
  .option('--screenings <n>', 'of the large tenant', whole, 1_000_000)
  .option('--rounds <n>', 'of which the median is taken', whole, 5)
  .option('--seconds <n>', 'of each measurement', above0, 1.5)
  .option('--report-dir <dir>', 'where bench.json goes', 'reports')
  .addHelpText('after', '\nExit status: 0 every goal is reached, 1 one is not, 2 wrong usage')
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
  .parse();
const flags = command.opts<{ screenings: number; rounds: number; seconds: number; reportDir: string }>();
const [part] = command.args;

endWhenTold();

const tell = (line: string): void => console.error(line);
process.chdir(calledFrom('bench')('.'));
await prepareDirectory(flags.reportDir).catch((error: Error) => {
  tell(`bench: ${error.message}`);
  process.exit(2);
});

const plan = { rounds: flags.rounds, seconds: flags.seconds, tell };

const wanted = (name: string): boolean => part === undefined || part === name;
const k6 = wanted('k6') ? await findK6() : undefined;
if (wanted('k6') && !k6) tell('k6 was not found: its row is left out (npm run load -- install-k6)');
const rows: Row[] = [
  ...(wanted('service') ? await serviceRows(flags.screenings, plan) : []),
  ...(wanted('certify') ? await certificateRows(tell) : []),
  ...(k6 ? [await generatorRow(k6, tell)] : []),
];

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
