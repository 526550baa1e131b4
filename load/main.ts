/** `npm run load`: scenarios, planning, merging, and the accuracy of the estimators. */
import { Command, CommanderError } from 'commander';
import { calledFrom } from '../engine/called-from.ts';
import { visible } from '../certify/render/markup.ts';
import { above0, COMMON, duration, from0, pageSize, share, whole } from './scenarios/flags.ts';
import { mergeCommand } from './commands/merge.ts';
import { planCommand } from './commands/plan.ts';
import { scenarioCommand, type ScenarioFlags } from './commands/scenario.ts';
import { writeScripts } from './commands/write-scripts.ts';
import { EXIT } from './result.ts';
import { ensureK6, installK6 } from './run/find-k6.ts';
import { Unreachable } from './run/ask.ts';
import { SCENARIOS, type ScenarioName } from './scenarios/all.ts';
import { UsageError } from '../engine/errors.ts';
import { INTERRUPTED_STATUS, onToldToEnd, unlessAborted, type EndReason } from '../engine/process.ts';

/** Told to end, a scenario tells what it has; whatever else is under way ends, and its children with it. */
const interruption = new AbortController();
let interruptedBy: EndReason | undefined;
onToldToEnd((why) => {
  interruptedBy = why;
  interruption.abort(new Error('interrupted'));
});
const { signal } = interruption;

/** What a target said in it does nothing to the terminal. */
const tell = (line: string): void => console.error(visible(line));

// Paths are relative to where the command was given (`npm --prefix kit run load`).
process.chdir(calledFrom('load')('.'));

const program = new Command('npm run load --')
  .description(
    'Loads an implementation of the Screenings Retrieval Service with k6 and says what it carries.',
  )
  .exitOverride()
  .showHelpAfterError('(--help lists commands and flags)')
  .addHelpText(
    'after',
    '\nExit status: 0 held, 1 the SLO or a requirement broke, 2 wrong usage, 3 void or unreachable, 130 or 143 interrupted',
  );

for (const [name, { about, flags }] of Object.entries(SCENARIOS)) {
  const command = program.command(name).description(about);
  for (const flag of [...COMMON, ...flags]) command.addOption(flag);
  const isGiven = (flag: string): boolean => command.getOptionValueSource(flag) === 'cli';
  command.action(async (given: ScenarioFlags) => {
    process.exitCode = await scenarioCommand(name as ScenarioName, given, tell, signal, isGiven);
  });
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
  .option('--poll-from <file>', 'a load-poll.json: what a poll costs, beside a load-capacity.json')
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
  .action(async (flags) => {
    process.exitCode = await planCommand(flags);
  });

program
  .command('merge')
  .description('adds up the results of several runners: load-*.json, or the lines that runners printed')
  .argument('<files...>')
  .option('--output <file>', 'write the sum as JSON')
  .action(async (files: string[], flags: { output?: string }) => {
    process.exitCode = await mergeCommand(files, flags.output);
  });

program
  .command('accuracy')
  .description(
    'the estimators against simulated servers whose truth is known, in virtual time: the accuracy table',
  )
  .argument('[families...]', 'of the zoo; default all')
  .option('--servers <n>', 'of each family', whole, 24)
  .option('--seed <n>', 'draws the servers', whole, 1)
  .option('--all', 'tells those that were right one by one as well')
  .action(async (given: string[], flags: { servers: number; seed: number; all?: boolean }) => {
    const { accuracyTable, FAMILIES, visit } = await import('./zoo/accuracy.ts');
    const unknown = given.find((name) => !(FAMILIES as string[]).includes(name));
    if (unknown) throw new UsageError(`${unknown} is no family of the zoo: ${FAMILIES.join(', ')}`);
    const rows = [];
    for (const family of given.length > 0 ? (given as typeof FAMILIES) : FAMILIES)
      rows.push(...(await visit(family, flags.servers, flags.seed)));
    const { text, ok } = accuracyTable(rows, flags.all ?? false);
    console.log(text);
    process.exitCode = ok ? EXIT.held : EXIT.broken;
  });

program
  .command('write-scripts')
  .description('copies the k6 scripts out, to be run with k6 alone, and prints their paths')
  .argument('<dir>')
  .action(async (directory: string) => {
    console.log((await writeScripts(directory)).join('\n'));
  });

program
  .command('install-k6')
  .description('builds k6 with Go into the cache, unless it is found already, and prints its path')
  .option('--force', 'build even if it is there')
  .action(async ({ force }: { force?: boolean }) => {
    console.log(await unlessAborted(signal, force ? installK6() : ensureK6(tell)));
  });

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? EXIT.held : EXIT.usage;
  else if (error instanceof UsageError) {
    console.error(error.message);
    process.exitCode = EXIT.usage;
  } else if (error instanceof Unreachable) {
    tell(`the target can't be loaded: ${error.message}`);
    process.exitCode = EXIT.void;
  } else if (signal.aborted) {
    console.error('interrupted');
  } else {
    const { stack, message } = error as Error;
    console.error(`the kit itself failed: ${stack ?? message}`);
    process.exitCode = EXIT.void;
  }
}
// All is written: what is still under way ends with this process.
process.exit(interruptedBy ? INTERRUPTED_STATUS[interruptedBy] : process.exitCode);
