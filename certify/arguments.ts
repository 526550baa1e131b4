/** The command line of `npm run certify`. Every mistake is a UsageError of one line. */
import { Option, type Command } from 'commander';
import { command, EXIT_HELP, flagsOf, listed, notEmpty, seconds, whole } from '../engine/command-line.ts';
import { DEFAULTS, type KitOptions } from '../engine/run/kit.ts';
import { CLASSES, REQUIREMENTS, type RequirementClass, type RequirementId } from '../engine/requirements.ts';
import { noSuch } from '../engine/target/usage.ts';
import { commandLine, commandName } from '../engine/called-from.ts';
import { CONCURRENCY, DEFAULT_DEADLINE_MS, selectIds } from './certify.ts';
import { shellWord } from '../engine/run/evidence/shell.ts';
import { UsageError } from '../engine/errors.ts';

/** Modes in which the command does not certify. */
export type Mode = 'list' | 'explain' | 'init' | 'check-target';

export interface Arguments {
  readonly mode?: Mode | undefined;
  readonly explain?: string;
  readonly target?: string;
  readonly baseUrl?: string;
  readonly authUrl?: string;
  readonly clientId?: string;
  readonly dataset?: string;
  readonly reportDir: string;
  readonly only?: readonly RequirementId[];
  /** Classes that are a condition, beside core. */
  readonly require: readonly RequirementClass[];
  readonly failFast: boolean;
  /** Of the whole run. */
  readonly deadlineMs?: number;
  readonly baseline?: string;
  readonly knownFailures?: string;
  /** 1 is kept for what the baseline and the known failures did not have. */
  readonly failOnNew: boolean;
  /** Where every exchange is written. */
  readonly har?: string;
  /** Recorded traffic to judge instead of asking. */
  readonly fromHar?: string;
  /** A folder that keeps a report a run. */
  readonly history?: string;
  /** A private key (JWK) to sign certificate.jws with. */
  readonly sign?: string;
  /** Run again when asked, or when files in this folder change. */
  readonly watch?: true | string;
  readonly kit: Partial<KitOptions>;
}

const CALLED = commandName('certify');

export const SECRET_VARIABLE = 'SCREENINGS_CLIENT_SECRET';
const LARGEST_SEED = 2 ** 31 - 1;

const parserOf = (): Command =>
  command(
    'certify',
    'Certifies an implementation of the Screenings Retrieval Service; without a target, the reference server.',
  )
    .option('--target <file>', 'target file that describes the implementation')
    .option('--base-url <url>', 'address of its REST API (instead of a target file)')
    .option('--auth-url <url>', 'address of its token endpoint')
    .option('--client-id <id>', `its client; the secret comes from ${SECRET_VARIABLE}`)
    .option('--dataset <file>', 'exactly what the client’s tenant holds, one screening a line')
    .option('--report-dir <dir>', 'where the report goes', notEmpty, 'reports')
    .option('--only <ids>', 'requirement ids or sections, separated by commas')
    .option('--require <classes>', 'classes that must have been exercised too, separated by commas')
    .option('--fail-fast', 'end the run at the first broken MUST')
    .option('--baseline <file>', 'report.json of an earlier run: say what changed since')
    .option('--known-failures <file>', 'ids with reason and expiry date, strict both ways')
    .addOption(
      new Option(
        '--fail-on <what>',
        'exit with 1 only for what baseline and known failures have not',
      ).choices(['new']),
    )
    .option('--history <dir>', 'keep this report there, draw the last ones, compare with the one before')
    .option(
      '--watch [dir]',
      'run again when asked (r), or when the target file or files in a folder change, what failed first',
    )
    .option('--har <file>', 'write every request and answer there, redacted (HAR)')
    .option('--from-har <file>', 'judge recorded traffic; nothing is sent')
    .option(
      '--wait-for-expiry',
      'wait until a token has expired, an hour and a minute, where none is supplied',
    )
    .option('--sign <key>', `write certificate.jws, signed with this private JWK (${commandLine('keys')})`)
    .option('--list', 'print every requirement, and end')
    .option('--explain <name>', 'print what a requirement or a known mistake is, and end')
    .option('--init', 'write a target file (--target FILE, else target.json), and end')
    .option(
      '--check-target',
      'fetch a token and a few pages, say what contradicts the target file and what a run would exercise, and end',
    )
    .option('--runs <number>', `cases of each law (default ${DEFAULTS.runs})`, whole(1, 100_000))
    .option('--seed <number>', 'replays the same random cases', whole(0, LARGEST_SEED))
    .option(
      '--max-requests <number>',
      `request budget of the run (default ${DEFAULTS.maxRequests})`,
      whole(1, 10_000_000),
    )
    .option(
      '--budget <number>',
      'requests of the whole run, the most telling ones first',
      whole(20, 10_000_000),
    )
    .option(
      '--concurrency <number>',
      `concurrency limit of checks (default ${CONCURRENCY}; 1: request by request)`,
      whole(1, 64),
    )
    .option('--timeout <seconds>', `of one request (default ${DEFAULTS.timeoutMs / 1000})`, seconds(3600))
    .option(
      '--deadline <seconds>',
      `of the run, which then reports what it has (default ${DEFAULT_DEADLINE_MS / 1000})`,
      seconds(86_400),
    )
    .allowExcessArguments()
    .addHelpText('after', EXIT_HELP);

/** Flags that say how requests are sent. */
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

/** Undefined where help was asked for and given. */
export function parseArguments(
  argv: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Arguments | undefined {
  const parser = parserOf();
  const flags = flagsOf<Record<string, string & number>>(parser, argv);
  if (!flags) return undefined;
  refuseLost(parser.args, flags, env);
  checkTarget(flags, env);
  const { target, baseUrl, authUrl, clientId, dataset, reportDir, only, runs, seed, maxRequests, timeout } =
    flags;
  const { deadline } = flags;
  const { require, failFast, baseline, knownFailures, failOn, sign, explain, har, fromHar, history, watch } =
    flags;
  if (failOn && !baseline && !knownFailures && !history)
    throw new UsageError('--fail-on new goes with --baseline, --history or --known-failures');
  const sending = parser.options.find(
    (option) =>
      SENDING.includes(option.attributeName()) &&
      parser.getOptionValueSource(option.attributeName()) === 'cli',
  );
  if (fromHar && sending) throw new UsageError(`--from-har sends nothing: it goes without ${sending.long}`);
  const chosen = only === undefined ? undefined : selection(only);
  return {
    ...defined({
      target,
      baseUrl,
      authUrl,
      clientId,
      dataset,
      baseline,
      knownFailures,
      sign,
      explain,
      har,
      fromHar,
      history,
    }),
    ...(watch === undefined ? {} : { watch: watch as true | string }),
    reportDir: reportDir!,
    ...defined({ mode: modeOf(flags) }),
    ...defined({ only: chosen }),
    require: classes(require, chosen),
    failFast: Boolean(failFast),
    ...defined({ deadlineMs: deadline === undefined ? undefined : deadline * 1000 }),
    failOnNew: failOn !== undefined,
    kit: defined({
      runs,
      seed,
      maxRequests,
      budget: flags['budget'],
      concurrency: flags['concurrency'],
      timeoutMs: timeout === undefined ? undefined : timeout * 1000,
      waitForExpiry: flags['waitForExpiry'] ? true : undefined,
    }),
  };
}

function defined<T extends object>(fields: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}

/** Flags before the `--` are npm's: it keeps them, and passes on what stood after them. */
function refuseLost(words: readonly string[], flags: Record<string, unknown>, env: NodeJS.ProcessEnv): void {
  const { npm_config_target: target, npm_config_base_url: baseUrl } = env;
  const kept = env['npm_lifecycle_event'] === 'certify' && (target?.endsWith('.json') || baseUrl);
  if (words.length === 0 && (!kept || flags['target'] || flags['baseUrl'])) return;
  const what = words.length > 0 ? `"${words[0]}" belongs to no flag` : 'npm kept the flags for itself';
  throw new UsageError(`${what}; flags are written so: ${CALLED} --target target.json`);
}

function checkTarget(flags: Record<string, unknown>, env: NodeJS.ProcessEnv): void {
  const direct = { baseUrl: '--base-url', authUrl: '--auth-url', clientId: '--client-id' } as const;
  const given = Object.entries(direct).filter(([name]) => flags[name] !== undefined);
  const missing = Object.entries(direct).filter(([name]) => flags[name] === undefined);
  if (given.length === 0) {
    if (flags['dataset'] && !flags['target']) {
      throw new UsageError('--dataset goes with --target, or with --base-url, --auth-url and --client-id');
    }
    return;
  }
  if (flags['target']) throw new UsageError(`--target and ${given[0]![1]} exclude each other`);
  if (missing.length > 0) {
    throw new UsageError(`${given[0]![1]} also needs ${missing.map(([, flag]) => flag).join(' and ')}`);
  }
  if (!env[SECRET_VARIABLE])
    throw new UsageError(`set ${SECRET_VARIABLE} to the secret of ${String(flags['clientId'])}`);
}

function selection(text: string): RequirementId[] {
  const words = listed(text);
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

function modeOf(flags: Readonly<Record<string, unknown>>): Mode | undefined {
  const modes = { list: 'list', explain: 'explain', init: 'init', checkTarget: 'check-target' } as const;
  const given = Object.entries(modes).filter(([name]) => flags[name] !== undefined);
  if (given.length > 1)
    throw new UsageError(`${given.map(([, mode]) => `--${mode}`).join(' and ')} exclude each other`);
  if (flags['checkTarget'] && !flags['target'] && !flags['baseUrl'])
    throw new UsageError('--check-target goes with --target, or with --base-url, --auth-url and --client-id');
  return given[0]?.[1];
}

function classes(
  text: string | undefined,
  selected: readonly RequirementId[] | undefined,
): RequirementClass[] {
  const inReach = REQUIREMENTS.filter(({ id }) => selected?.includes(id) ?? true).map(({ class: of }) => of);
  return listed(text ?? '').map((word) => {
    const found = CLASSES.find((name) => name === word);
    if (!found) throw noSuch('--require', 'class', word, CLASSES);
    if (!inReach.includes(found)) throw new UsageError(`--only selects nothing of --require ${found}`);
    return found;
  });
}

/** Whether there is a target to certify; else it is the reference server. */
export const isDescribed = ({ target, baseUrl, fromHar }: Arguments): boolean =>
  target !== undefined || baseUrl !== undefined || fromHar !== undefined;

/** The command that repeats a run. */
export function replayCommand(
  { target, baseUrl, authUrl, clientId, dataset, only, require, deadlineMs, kit }: Arguments,
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
