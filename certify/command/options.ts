/** Parses the command line of `npm run certify`. Every mistake throws a UsageError of one line. */
import { Option, type Command } from 'commander';
import {
  command,
  EXIT_HELP,
  parseCommand,
  commaSeparated,
  notEmpty,
  seconds,
  wholeNumber,
} from '../../engine/command-line.ts';
import { DEFAULTS, type KitOptions } from '../../engine/run/state/context.ts';
import {
  CLASSES,
  REQUIREMENTS,
  type RequirementClass,
  type RequirementId,
} from '../../engine/requirements.ts';
import { noSuch } from '../../engine/target/usage.ts';
import { commandLine, commandName } from '../../engine/package.ts';
import { CONCURRENCY, DEFAULT_DEADLINE_MS, selectIds } from '../certify.ts';
import { shellWord } from '../../engine/run/evidence/evidence.ts';
import { UsageError } from '../../engine/errors.ts';

export interface Options {
  // Modes that print or write something instead of certifying; at most one is set.
  readonly list?: true;
  readonly explain?: string;
  readonly init?: true;
  readonly checkTarget?: true;
  readonly target?: string;
  readonly baseUrl?: string;
  readonly authUrl?: string;
  readonly clientId?: string;
  readonly dataset?: string;
  readonly reportDir: string;
  readonly only?: readonly RequirementId[];
  /** Classes required for a conformant verdict, in addition to core. */
  readonly require: readonly RequirementClass[];
  readonly failFast: boolean;
  readonly deadlineMs?: number;
  readonly baseline?: string;
  readonly knownFailures?: string;
  /** Exit with 1 only for failures that neither the baseline nor the known failures contain. */
  readonly failOnNew: boolean;
  readonly har?: string;
  readonly fromHar?: string;
  readonly history?: string;
  /** A private key (JWK) to sign certificate.jws with. */
  readonly sign?: string;
  /** Run again on a key press, or when files in this folder change. */
  readonly watch?: true | string;
  readonly kit: Partial<KitOptions>;
}

const CALLED = commandName('certify');

export const SECRET_VARIABLE = 'SCREENINGS_CLIENT_SECRET';
const LARGEST_SEED = 2 ** 31 - 1;

/** Flags that control requests, and therefore conflict with --from-har. */
const SENDING = [
  'har',
  'baseUrl',
  'watch',
  'waitForExpiry',
  'runs',
  'maxRequests',
  'budget',
  'concurrency',
  'timeout',
  'deadline',
  'failFast',
];

const MODES = ['list', 'explain', 'init', 'checkTarget'];

const mode = (flag: string, about: string): Option => {
  const option = new Option(`--${flag}`, about);
  return option.conflicts(MODES.filter((name) => name !== option.attributeName()));
};

const parserOf = (): Command =>
  command(
    'certify',
    'Certifies an implementation of the Screenings Retrieval Service; without a target, the reference server.',
  )
    .addOption(
      new Option('--target <file>', 'target file that describes the implementation').conflicts([
        ...['baseUrl', 'authUrl', 'clientId'],
      ]),
    )
    .option('--base-url <url>', 'address of its REST API (instead of a target file)')
    .option('--auth-url <url>', 'address of its token endpoint')
    .option('--client-id <id>', `its client; the secret comes from ${SECRET_VARIABLE}`)
    .option('--dataset <file>', 'all screenings of the client’s tenant, one per line')
    .option('--report-dir <dir>', 'folder of the report', notEmpty, 'reports')
    .option('--only <ids>', 'requirement ids or sections, separated by commas', selection)
    .option('--require <classes>', 'classes required in addition to core, separated by commas')
    .option('--fail-fast', 'end the run at the first broken MUST')
    .option('--baseline <file>', 'report.json of an earlier run to compare with')
    .option('--known-failures <file>', 'expected failures: ids with reason and expiry date')
    .addOption(
      new Option(
        '--fail-on <what>',
        'exit with 1 only for failures that are not in the baseline or the known failures',
      ).choices(['new']),
    )
    .option('--history <dir>', 'keep reports there, draw the latest ones, compare with the previous one')
    .option(
      '--watch [dir]',
      'run again on key r, or when the target file or files in a folder change; failed checks first',
    )
    .option('--har <file>', 'write every request and answer there, redacted (HAR)')
    .addOption(new Option('--from-har <file>', 'judge recorded traffic; nothing is sent').conflicts(SENDING))
    .option('--wait-for-expiry', 'wait 66 minutes until a token of this run has expired, and send it')
    .option('--sign <key>', `write certificate.jws, signed with this private JWK (${commandLine('keys')})`)
    .addOption(mode('list', 'print every requirement, and end'))
    .addOption(mode('explain <name>', 'print what a requirement or a known mistake is, and end'))
    .addOption(mode('init', 'write a target file (--target FILE, else target.json), and end'))
    .addOption(
      mode(
        'check-target',
        'fetch a token and a few pages, print what contradicts the target file and what a run would exercise, and end',
      ),
    )
    .option('--runs <number>', `cases of each law (default ${DEFAULTS.runs})`, wholeNumber(1, 100_000))
    .option('--seed <number>', 'replays the same random cases', wholeNumber(0, LARGEST_SEED))
    .option(
      '--max-requests <number>',
      `request budget of the run (default ${DEFAULTS.maxRequests})`,
      wholeNumber(1, 10_000_000),
    )
    .option(
      '--budget <number>',
      'number of requests of the whole run, the most important ones first',
      wholeNumber(20, 10_000_000),
    )
    .option(
      '--concurrency <number>',
      `concurrency limit of checks (default ${CONCURRENCY}; 1: request by request)`,
      wholeNumber(1, 64),
    )
    .option(
      '--timeout <seconds>',
      `timeout of one request (default ${DEFAULTS.timeoutMs / 1000})`,
      seconds(3600),
    )
    .option(
      '--deadline <seconds>',
      `end the run then and report what was tested (default ${DEFAULT_DEADLINE_MS / 1000})`,
      seconds(86_400),
    )
    .allowExcessArguments()
    .addHelpText('after', EXIT_HELP);

/** The options as commander returns them, before values that depend on several flags are derived. */
type Flags = Omit<Options, 'require' | 'failFast' | 'deadlineMs' | 'failOnNew' | 'kit'> &
  Partial<Pick<KitOptions, 'runs' | 'seed' | 'maxRequests' | 'budget' | 'concurrency' | 'waitForExpiry'>> & {
    readonly require?: string;
    readonly failFast?: true;
    readonly failOn?: 'new';
    /** Seconds. */
    readonly timeout?: number;
    /** Seconds. */
    readonly deadline?: number;
  };

/** Returns undefined if help was requested and printed. Throws a UsageError. */
export function parseOptions(argv: readonly string[], env: NodeJS.ProcessEnv): Options | undefined {
  const parser = parserOf();
  const flags = parseCommand<Flags>(parser, argv);
  if (!flags) return undefined;
  rejectLostFlags(parser.args, flags, env);
  checkAddressFlags(flags, env);
  const { require, failFast = false, failOn, timeout, deadline, ...rest } = flags;
  const { runs, seed, maxRequests, budget, concurrency, waitForExpiry, ...others } = rest;
  if (failOn && !flags.baseline && !flags.knownFailures && !flags.history)
    throw new UsageError('--fail-on new goes with --baseline, --history or --known-failures');
  return {
    ...others,
    require: classes(require, flags.only),
    failFast,
    ...(deadline === undefined ? {} : { deadlineMs: 1000 * deadline }),
    failOnNew: failOn !== undefined,
    kit: {
      ...{ runs, seed, maxRequests, budget, concurrency, waitForExpiry },
      timeoutMs: timeout === undefined ? undefined : 1000 * timeout,
    },
  };
}

/** npm consumes flags before `--` and passes on only their values. */
function rejectLostFlags(words: readonly string[], flags: Flags, env: NodeJS.ProcessEnv): void {
  const { npm_config_target: target, npm_config_base_url: baseUrl } = env;
  const kept = env['npm_lifecycle_event'] === 'certify' && (target?.endsWith('.json') || baseUrl);
  if (words.length === 0 && (!kept || flags.target || flags.baseUrl)) return;
  const what = words.length > 0 ? `"${words[0]}" belongs to no flag` : 'npm consumed the flags';
  throw new UsageError(`${what}; write flags like this: ${CALLED} --target target.json`);
}

const DIRECT = { baseUrl: '--base-url', authUrl: '--auth-url', clientId: '--client-id' } as const;

function checkAddressFlags(flags: Flags, env: NodeJS.ProcessEnv): void {
  const names = Object.keys(DIRECT) as (keyof typeof DIRECT)[];
  const given = names.filter((name) => flags[name] !== undefined);
  const missing = names.filter((name) => flags[name] === undefined);
  const needing = flags.checkTarget ? '--check-target' : flags.dataset ? '--dataset' : undefined;
  if (given.length === 0) {
    if (needing && !flags.target)
      throw new UsageError(`${needing} goes with --target, or with --base-url, --auth-url and --client-id`);
    return;
  }
  if (missing.length > 0) {
    const others = missing.map((name) => DIRECT[name]).join(' and ');
    throw new UsageError(`${DIRECT[given[0]!]} also needs ${others}`);
  }
  if (!env[SECRET_VARIABLE])
    throw new UsageError(`set ${SECRET_VARIABLE} to the secret of ${flags.clientId}`);
}

function selection(text: string): RequirementId[] {
  const words = commaSeparated(text);
  const known = [
    ...REQUIREMENTS.map(({ id }) => id as string),
    ...new Set(REQUIREMENTS.map(({ section }) => section)),
  ];
  for (const word of words) {
    if (selectIds([word]).length > 0) continue;
    const sections = known.filter((name) => /^[\d.]+$/.test(name)).join(', ');
    throw /^[\d.]+$/.test(word)
      ? new UsageError(`--only: no section "${word}"; the sections are ${sections}`)
      : noSuch('--only', 'requirement', word, known);
  }
  if (words.length === 0) throw new UsageError('--only selects nothing; name requirement ids or sections');
  return selectIds(words);
}

function classes(
  text: string | undefined,
  selected: readonly RequirementId[] | undefined,
): RequirementClass[] {
  const inReach = REQUIREMENTS.filter(({ id }) => selected?.includes(id) ?? true).map(({ class: of }) => of);
  return commaSeparated(text ?? '').map((word) => {
    const found = CLASSES.find((name) => name === word);
    if (!found) throw noSuch('--require', 'class', word, CLASSES);
    if (!inReach.includes(found)) throw new UsageError(`--only selects nothing of --require ${found}`);
    return found;
  });
}

/** Whether the arguments describe a target; otherwise the reference server is certified. */
export const isDescribed = ({ target, baseUrl, fromHar }: Options): boolean =>
  target !== undefined || baseUrl !== undefined || fromHar !== undefined;

export function replayCommand(
  { target, baseUrl, authUrl, clientId, dataset, only, require, deadlineMs, kit }: Options,
  seed: number,
): string {
  const flags: [string, string | number | undefined][] = [
    ['--target', target],
    ['--base-url', baseUrl],
    ['--auth-url', authUrl],
    ['--client-id', clientId],
    ['--dataset', dataset],
    ['--only', only?.join(',')],
    ['--require', require.join(',') || undefined],
    ['--runs', kit.runs],
    ['--max-requests', kit.maxRequests],
    ['--budget', kit.budget],
    ['--concurrency', kit.concurrency],
    ['--timeout', kit.timeoutMs === undefined ? undefined : kit.timeoutMs / 1000],
    ['--deadline', deadlineMs === undefined ? undefined : deadlineMs / 1000],
    ['--seed', seed],
  ];
  const words = flags.flatMap(([flag, value]) =>
    value === undefined ? [] : [flag, shellWord(String(value))],
  );
  return [CALLED, ...words].join(' ');
}
