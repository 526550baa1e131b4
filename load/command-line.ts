/** The command line of load: what is to be run, without running it. */
import { Argument, Command } from 'commander';
import { flagsOf } from '../engine/command-line.ts';
import { UsageError } from '../engine/errors.ts';
import { unlessAborted } from '../engine/clock.ts';
import type { BenchFlags } from './bench/command.ts';
import { mergeCommand } from './commands/merge.ts';
import { planCommand, type PlanFlags } from './commands/plan.ts';
import { scenarioCommand, type ScenarioFlags } from './commands/scenario.ts';
import { writeScripts } from './commands/write-scripts.ts';
import { EXIT } from './result.ts';
import { ensureK6, installK6 } from './run/find-k6.ts';
import { SCENARIOS, type ScenarioName } from './scenarios/all.ts';
import { above0, COMMON, duration, from0, pageSize, share, whole } from './scenarios/flags.ts';

interface Io {
  /** Takes a line of progress. */
  readonly tell: (line: string) => void;
  /** Aborted where the process is told to end. */
  readonly signal: AbortSignal;
}

/** Returns the exit status. Throws UsageError before anything is started, and Unreachable. */
type Run = (io: Io) => Promise<number>;

/** Undefined where help was asked for and given. Throws a UsageError of one line. */
export function parse(argv: readonly string[]): Run | undefined {
  let chosen: Run | undefined;
  const program = programOf((run) => (chosen = run));
  if (argv.length === 0) throw new UsageError('name a command: --help lists them');
  return flagsOf(program, argv) && chosen;
}

function programOf(choose: (run: Run) => void): Command {
  const program = new Command('npm run load --')
    .description(
      'Loads an implementation of the Screenings Retrieval Service with k6 and says what it carries.',
    )
    // Commands take these over as they are added.
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .addHelpText(
      'after',
      '\nExit status: 0 held, 1 the SLO or a requirement broke, 2 wrong usage, 3 void or unreachable, 4 the kit itself failed, 130 or 143 interrupted',
    );

  for (const [name, { about, flags }] of Object.entries(SCENARIOS)) {
    const command = program.command(name).description(about);
    for (const flag of [...COMMON, ...flags]) command.addOption(flag);
    const isGiven = (flag: string): boolean => command.getOptionValueSource(flag) === 'cli';
    command.action((given: ScenarioFlags) =>
      choose(({ tell, signal }) => scenarioCommand(name as ScenarioName, given, tell, signal, isGiven)),
    );
  }

  program
    .command('plan')
    .description('requests, utilisation, waiting, replicas and cost for tenants and their habits')
    .requiredOption('--from <file>', 'a load-tenants.json or a load-capacity.json')
    .requiredOption('--tenants <n>', 'tenants that poll', whole)
    .requiredOption('--poll <time>', 'how often each polls, such as 60s', duration)
    .requiredOption('--screenings-per-day <n>', 'of each tenant', above0)
    .option('--poll-spread <time>', 'polls come within so much of each interval; default the whole', duration)
    .option('--page-size <n>', 'items a page', pageSize, 100)
    .option('--token-lifetime <time>', 'of access tokens', duration, 3600)
    .option('--token-from <file>', 'a load-token.json: what a token call costs; default as much as a page')
    .option('--poll-from <file>', 'a load-poll.json: what a poll costs, together with a load-capacity.json')
    .option('--history <years>', 'of screenings that are kept and that a back-fill reads', above0, 5)
    .option('--item-bytes <n>', 'octets of a screening in a page', above0, 250)
    .option('--row-bytes <n>', 'octets of a screening in the database, with its indexes', above0, 300)
    .option('--measured-replicas <n>', 'that carried the capacity together', whole, 1)
    .option('--utilisation <share>', 'of a replica at the peak', share, 0.7)
    .option('--peak-factor <n>', "the busiest hour's screenings against the mean", above0, 1)
    .option('--retries <share>', 'of requests, asked again', from0, 0.01)
    .option('--spare <n>', 'replicas that may fail', from0, 1)
    .option('--outage <time>', 'that has to be caught up with', duration, 3600)
    .option('--growth <share>', 'of tenants a year, such as 0.3', from0, 0)
    .option('--cost-per-replica <n>', 'in any currency, a month', above0)
    .option('--html <file>', 'the page with the picture', 'reports/load-plan.html')
    .option('--json', 'as JSON')
    .action((flags: PlanFlags) => choose(() => planCommand(flags)));

  program
    .command('merge')
    .description('adds up the results of several runners: load-*.json, or the lines that runners printed')
    .argument('<files...>')
    .option('--output <file>', 'write the sum as JSON')
    .action((files: string[], { output }: { output?: string }) => choose(() => mergeCommand(files, output)));

  program
    .command('accuracy')
    .description(
      'the estimators against simulated servers whose truth is known, in virtual time: the accuracy table',
    )
    .argument('[families...]', 'of the zoo; default all')
    .option('--servers <n>', 'of each family', whole, 24)
    .option('--seed <n>', 'draws the servers', whole, 1)
    .option('--all', 'tells those that were right one by one as well')
    .action((families: string[], flags: AccuracyFlags) =>
      choose(({ signal }) => unlessAborted(signal, accuracy(families, flags))),
    );

  program
    .command('bench')
    .description(
      "What the reference server's pages and tokens cost, a certificate, and a page that k6 judges: npm run bench.",
    )
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
    .action((part: string | undefined, flags: BenchFlags) =>
      choose(async ({ tell, signal }) => {
        const { bench } = await import('./bench/command.ts');
        return unlessAborted(signal, bench(part, flags, tell));
      }),
    );

  program
    .command('write-scripts')
    .description('copies the k6 scripts out, to be run with k6 alone, and prints their paths')
    .argument('<dir>')
    .action((directory: string) =>
      choose(async () => {
        console.log((await writeScripts(directory)).join('\n'));
        return EXIT.held;
      }),
    );

  program
    .command('install-k6')
    .description('builds k6 with Go into the cache, unless it is found already, and prints its path')
    .option('--force', 'build even if it is there')
    .action(({ force }: { force?: boolean }) =>
      choose(async ({ tell, signal }) => {
        console.log(await unlessAborted(signal, force ? installK6() : ensureK6(tell)));
        return EXIT.held;
      }),
    );

  return program;
}

interface AccuracyFlags {
  readonly servers: number;
  readonly seed: number;
  readonly all?: boolean;
}

async function accuracy(given: string[], { servers, seed, all = false }: AccuracyFlags): Promise<number> {
  const { accuracyTable, FAMILIES, visit } = await import('./zoo/accuracy.ts');
  const unknown = given.find((name) => !(FAMILIES as string[]).includes(name));
  if (unknown) throw new UsageError(`${unknown} is no family of the zoo: ${FAMILIES.join(', ')}`);
  const rows = [];
  for (const family of given.length > 0 ? (given as typeof FAMILIES) : FAMILIES)
    rows.push(...(await visit(family, servers, seed)));
  const { text, ok } = accuracyTable(rows, all);
  console.log(text);
  return ok ? EXIT.held : EXIT.broken;
}
