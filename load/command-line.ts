/** The command line of load. */
import { Argument, Command } from 'commander';
import { parseCommand } from '../engine/command-line.ts';
import { UsageError } from '../engine/errors.ts';
import { unlessAborted } from '../engine/clock.ts';
import { mergeCommand } from './commands/merge.ts';
import { planCommand, type PlanFlags, planOptions } from './commands/plan.ts';
import { scenarioCommand } from './commands/scenario.ts';
import { writeScripts } from './commands/write.ts';
import { EXIT } from './result.ts';
import { ensureK6 } from './run/find-k6.ts';
import { type ScenarioName, SCENARIOS } from './scenarios/all.ts';
import { optionsOf, whole } from './run/flags.ts';
import type { ScenarioFlags } from './run/flags.ts';

interface Io {
  readonly tell: (line: string) => void;
  /** Aborted when the process is asked to stop. */
  readonly signal: AbortSignal;
}

/** Returns the exit status. Throws a UsageError with one line before anything is started, and Unreachable. */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  if (argv.length === 0) throw new UsageError('name a command: --help lists them');
  let running: Promise<number | void> | undefined;
  // Returns nothing: commander would derive a promise from it, whose rejection is not handled.
  const program = programOf(io, (command) => void (running = command));
  parseCommand(program, argv);
  return (await running) ?? EXIT.held;
}

const BENCH_PARTS = ['service', 'certify', 'k6'];

/** `start` receives the command that the arguments name. */
function programOf({ tell, signal }: Io, start: (command: Promise<number | void>) => void): Command {
  const program = new Command('npm run load --')
    .description(
      'Loads an implementation of the Screenings Retrieval Service with k6 and measures its capacity.',
    )
    // Set before commands are added, because they inherit it.
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .addHelpText(
      'after',
      '\nExit status: 0 held, 1 the SLO or a requirement broke, 2 wrong usage, 3 void or unreachable, 4 the kit itself failed, 130 or 143 interrupted',
    );

  for (const [name, scenario] of Object.entries(SCENARIOS)) {
    const command = program.command(name).description(scenario.about);
    for (const option of optionsOf(scenario.flags)) command.addOption(option);
    command.action((given: ScenarioFlags) =>
      start(scenarioCommand(name as ScenarioName, given, tell, signal)),
    );
  }

  const planning = program
    .command('plan')
    .description('plans requests, utilisation, waiting times, replicas and cost for a number of tenants')
    .action((flags: PlanFlags) => start(planCommand(flags)));
  for (const option of planOptions()) planning.addOption(option);

  program
    .command('merge')
    .description('merges the results of several runners: load-*.json files or logs of runners')
    .argument('<files...>')
    .option('--output <file>', 'write the merged result as JSON')
    .action((files: string[], { output }: { output?: string }) => start(mergeCommand(files, output)));

  program
    .command('accuracy')
    .description('checks the estimators against simulated servers with known truths, in virtual time')
    .argument('[families...]', 'families of simulated servers; default all')
    .option('--servers <n>', 'servers per family', whole, 24)
    .option('--seed <n>', 'random seed of the servers', whole, 1)
    .option('--all', 'also list the correct estimates')
    .action((given: string[], flags: { servers: number; seed: number; all?: boolean }) => {
      const measured = import('./zoo/accuracy.ts').then(({ accuracy }) => accuracy(given, flags, signal));
      start(measured.then((isGood) => (isGood ? EXIT.held : EXIT.broken)));
    });

  program
    .command('bench')
    .description(
      "measures the cost of the reference server's pages and tokens, of a certification run, and of k6's judge: npm run bench",
    )
    .addArgument(
      new Argument('[part]', 'only one part; certify also shows where its time goes').choices(BENCH_PARTS),
    )
    .option('--report-dir <dir>', 'directory for bench.json', 'reports')
    .action((part: string | undefined, { reportDir }: { reportDir: string }) => {
      const parts = import('./bench/command.ts').then(({ bench }) => bench(part, reportDir, tell));
      start(unlessAborted(signal, parts));
    });

  program
    .command('write-scripts')
    .description('copies the k6 scripts to a directory, to run with k6 alone, and prints their paths')
    .argument('<dir>')
    .action((directory: string) =>
      start(writeScripts(directory).then((paths) => console.log(paths.join('\n')))),
    );

  program
    .command('install-k6')
    .description('installs k6 into the cache unless it is found, and prints its path')
    .action(() => start(unlessAborted(signal, ensureK6(tell)).then((path) => console.log(path))));

  return program;
}
