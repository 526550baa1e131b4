/** `npm run load`: scenarios, planning, merging, and the checks of the load kit against known truths. */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { mergeCommand } from './commands/merge.ts';
import { planCommand } from './commands/plan.ts';
import { scenarioCommand, type ScenarioFlags } from './commands/scenario.ts';
import { verifyCommand, VERIFICATIONS, type VerifyFlags, type Verification } from './commands/verify.ts';
import { EXIT } from './result.ts';
import { ensureK6, installK6 } from './run/find-k6.ts';
import { Unreachable } from './run/prepare.ts';
import { SCENARIOS, type ScenarioName } from './scenarios/all.ts';
import { UsageError } from '../fixtures/errors.ts';

const above0 = (text: string): number => {
  const value = Number(text);
  if (!(value > 0) || !Number.isFinite(value))
    throw new InvalidArgumentError('a number above 0 is expected.');
  return value;
};

const whole = (text: string): number => {
  if (!/^\d{1,9}$/.test(text) || Number(text) === 0)
    throw new InvalidArgumentError('a whole number above 0 is expected.');
  return Number(text);
};

/** `90`, `90s`, `2m`, `1h` in seconds. */
const duration = (text: string): number => {
  const match = /^(\d+(?:\.\d+)?)(s|m|h)?$/.exec(text);
  if (!match || Number(match[1]) === 0)
    throw new InvalidArgumentError('a duration such as 60s or 5m is expected.');
  return Number(match[1]) * { s: 1, m: 60, h: 3600 }[(match[2] ?? 's') as 's' | 'm' | 'h'];
};

const tell = (line: string): void => console.error(line);

const program = new Command('load')
  .description(
    'Loads an implementation of the Screenings Retrieval Service with k6 and says what it carries.',
  )
  .exitOverride()
  .showHelpAfterError('(--help lists commands and flags)');

const ABOUT: Readonly<Record<ScenarioName, string>> = {
  smoke: 'half a minute of little load, every page judged: for every night',
  paging: 'what a page costs by depth, page size and window',
  'rate-limit': 'which limiter there is, its limit, window and burst',
  capacity: 'the highest arrival rate at which the SLO holds',
  token: 'open arrivals at the token endpoint',
  soak: 'even load for a long time: what drifts, leaks, freezes or expires',
  spike: 'a burst of arrivals, and the recovery from it',
};

for (const name of Object.keys(SCENARIOS) as ScenarioName[]) {
  program
    .command(name)
    .description(ABOUT[name])
    .option('--target <file>', 'the target file; without it the reference server is started')
    .option('--base-url <url>', 'of the REST API, without a target file')
    .option('--auth-url <url>', 'of the token endpoint')
    .option('--client-id <id>', 'the secret comes from SCREENINGS_CLIENT_SECRET')
    .option('--report-dir <dir>', 'where results go', 'reports')
    .option('--page-size <n>', 'items a page; default 100, 500 for paging', whole)
    .option('--rate <n>', 'arrivals a second; default 5, 20 for spike and token', above0)
    .option('--duration <time>', 'such as 30s or 5m; default 30s, 60s for spike, 2m for soak', duration)
    .option('--spike-factor <n>', 'times the rate', above0, 5)
    .option('--start-rate <n>', 'of capacity', above0, 10)
    .option('--max-rate <n>', 'of capacity', above0, 3000)
    .option('--thoroughness <n>', "scales the length of capacity's steps", above0, 1)
    .option('--slo-p99 <ms>', 'latency that 99 % of requests stay below', above0, 500)
    .option('--slo-errors <share>', 'share of requests that may fail', above0, 0.001)
    .option('--max-requests <n>', 'of rate-limit; default 5000', whole)
    .option('--max-seconds <n>', 'of rate-limit; default 360', above0)
    .option('--max-vus <n>', 'requests in flight at most', whole, 2000)
    .option('--timeout <seconds>', 'of one request', above0, 10)
    .option('--seed <n>', 'the same seed draws the same arrivals', whole, 1)
    .option('--screenings <n>', 'in the reference server', whole, 200_000)
    .option('--token-lifetime <seconds>', "of the reference server's tokens", whole)
    .option('--rate-limit <rate>', 'of the reference server, such as 100/10s')
    .addOption(
      new Option('--rate-algorithm <kind>', 'of that limit').choices([
        'fixed-window',
        'sliding-window',
        'token-bucket',
      ]),
    )
    .option(
      '--kubernetes <dir>',
      "write what k6's operator needs instead of running (not for rate-limit and capacity)",
    )
    .option('--parallelism <n>', 'runners on the cluster', whole, 3)
    .action(async (flags: ScenarioFlags) => {
      process.exitCode = await scenarioCommand(name, flags, tell);
    });
}

program
  .command('plan')
  .description('requests, utilisation, headroom and replicas for tenants and their habits')
  .requiredOption('--from <file>', 'a load-capacity.json')
  .requiredOption('--tenants <n>', 'tenants that poll', whole)
  .requiredOption('--poll <time>', 'how often each polls, such as 60s', duration)
  .requiredOption('--screenings-per-day <n>', 'of each tenant', above0)
  .option('--page-size <n>', 'items a page', whole, 100)
  .option('--token-lifetime <time>', 'of access tokens', duration, 3600)
  .option('--utilisation <share>', 'of a replica at the peak', above0, 0.7)
  .option('--peak-factor <n>', 'the busiest hour against the mean', above0, 1)
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
  .command('verify')
  .description(`the load kit against known truths: ${VERIFICATIONS.join(', ')}`)
  .addArgument(program.createArgument('<what>', 'which truth').choices(VERIFICATIONS))
  .option('--servers <n>', 'of capacity and of what is simulated of it', whole, 12)
  .option('--limiters <n>', 'of limiters and rate-limit', whole, 20)
  .option('--clean-runs <n>', 'of paging', whole, 30)
  .option('--screenings <n>', 'of paging', whole, 200_000)
  .option('--parallel <n>', 'servers measured at the same time', whole, 2)
  .option('--thoroughness <n>', "scales the length of capacity's steps", above0, 1)
  .option('--seed <n>', 'draws the servers', whole, 1)
  .action(async (what: Verification, flags: VerifyFlags) => {
    process.exitCode = await verifyCommand(what, flags, () => ensureK6(tell), tell);
  });

program
  .command('install-k6')
  .description('builds k6 with Go into the cache, unless it is found already, and prints its path')
  .option('--force', 'build even if it is there')
  .action(async ({ force }: { force?: boolean }) => {
    console.log(force ? await installK6() : await ensureK6(tell));
  });

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? EXIT.held : EXIT.usage;
  else if (error instanceof UsageError) {
    console.error(error.message);
    process.exitCode = EXIT.usage;
  } else if (error instanceof Unreachable) {
    console.error(`the target can't be loaded: ${error.message}`);
    process.exitCode = EXIT.void;
  } else if ((error as Error).name === 'AbortError') {
    console.error('interrupted');
    process.exitCode = EXIT.void;
  } else throw error;
}
