/** Parses the command line of `npm run certify`. Every mistake throws a UsageError of one line. */
import { Option } from 'commander';
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
import { CLASSES, REQUIREMENTS, selectionWords, selectIds } from '../../engine/requirements.ts';
import type { RequirementClass, RequirementId } from '../../engine/requirements.ts';
import { noSuch } from '../../engine/target/usage.ts';
import { commandLine, commandName } from '../../engine/package.ts';
import { CONCURRENCY, DEFAULT_DEADLINE_MS } from '../certify.ts';
import { shellWord } from '../../engine/run/evidence/evidence.ts';
import { UsageError } from '../../engine/errors.ts';

type Switch = 'list' | 'init' | 'checkTarget' | 'failFast';
type Address = 'baseUrl' | 'authUrl' | 'clientId';
type Path = 'target' | 'dataset' | 'baseline' | 'knownFailures' | 'har' | 'fromHar' | 'history' | 'sign';
type KitFlag = 'runs' | 'seed' | 'maxRequests' | 'budget' | 'concurrency' | 'waitForExpiry';

/** The values of the flags, by their names in camel case; FLAGS says what they mean. Times are in seconds. */
export interface Options
  extends
    Partial<Readonly<Record<Switch, true>>>,
    Partial<Readonly<Record<Address | Path | 'explain', string>>>,
    Partial<Readonly<Record<'timeout' | 'deadline', number>>>,
    Partial<Pick<KitOptions, KitFlag>> {
  readonly reportDir: string;
  readonly only?: readonly RequirementId[];
  readonly require: readonly RequirementClass[];
  readonly failOn?: 'new';
  readonly watch?: true | string;
}

const CALLED = commandName('certify');

export const SECRET_VARIABLE = 'SCREENINGS_CLIENT_SECRET';
const LARGEST_SEED = 2 ** 31 - 1;

/** A flag of the command line; the marks are explained at FLAGS. */
class Flag extends Option {
  constructor(
    flags: string,
    about: string,
    readonly marks = '',
    parse?: (text: string) => unknown,
  ) {
    super(flags, about);
    if (parse) this.argParser(parse);
  }

  valueIn(options: object): unknown {
    return (options as Readonly<Record<string, unknown>>)[this.attributeName()];
  }
}

const number = (name: string, about: string, least: number, most: number): Flag =>
  new Flag(`--${name} <number>`, about, 'rs', wholeNumber(least, most));
const time = (name: string, about: string, usualMs: number, most: number): Flag =>
  new Flag(`--${name} <seconds>`, `${about} (default ${usualMs / 1000})`, 'rs', seconds(most));

/**
 * Every flag, in the order of the help, with its marks:
 * a: names the addresses and the client, instead of a target file;
 * m: a mode, which prints or writes something instead of certifying; at most one is given;
 * r: the replay command repeats it;
 * s: controls requests, and therefore conflicts with --from-har.
 */
const FLAGS: readonly Flag[] = [
  new Flag('--target <file>', 'target file that describes the implementation', 'r'),
  new Flag('--base-url <url>', 'address of its REST API (instead of a target file)', 'ars'),
  new Flag('--auth-url <url>', 'address of its token endpoint', 'ar'),
  new Flag('--client-id <id>', `its client; the secret comes from ${SECRET_VARIABLE}`, 'ar'),
  new Flag('--client-secret <secret>', '', '', () => {
    throw new UsageError(`other users can read a command line: set ${SECRET_VARIABLE} to the secret`);
  }).hideHelp(),
  new Flag('--dataset <file>', 'all screenings of the client’s tenant, one per line', 'r'),
  new Flag('--report-dir <dir>', 'directory of the report', '', notEmpty).default('reports'),
  new Flag('--only <ids>', 'requirement ids or sections, separated by commas', 'r', selection),
  new Flag('--require <classes>', 'classes required in addition to core, separated by commas', 'r'),
  new Flag('--fail-fast', 'end the run at the first broken MUST', 's'),
  new Flag('--baseline <file>', 'report.json of an earlier run to compare with'),
  new Flag('--known-failures <file>', 'expected failures: ids with reason and expiry date'),
  new Flag(
    '--fail-on <what>',
    'exit with 1 only for failures that are not in the baseline or the known failures',
  ).choices(['new']),
  new Flag(
    '--history <dir>',
    'keep reports there, draw the latest ones, compare with the previous one',
    '',
    notEmpty,
  ),
  new Flag(
    '--watch [dir]',
    'run again on key r, or when the target file or files in a directory change; failed checks first',
    's',
  ),
  new Flag('--har <file>', 'write every request and answer there, redacted (HAR)', 's'),
  new Flag('--from-har <file>', 'judge recorded traffic; nothing is sent', 'r'),
  new Flag('--wait-for-expiry', 'wait 66 minutes until a token of this run has expired, and send it', 'rs'),
  new Flag('--sign <key>', `write certificate.jws, signed with this private JWK (${commandLine('keys')})`),
  new Flag('--list', 'print every requirement, or those of --only, and end', 'm'),
  new Flag('--explain <name>', 'print what a requirement or a known mistake is, and end', 'm'),
  new Flag('--init', 'write a target file (--target FILE, else target.json), and end', 'm'),
  new Flag(
    '--check-target',
    'fetch a token and a few pages, print what contradicts the target file and what a run would exercise, and end',
    'm',
  ),
  number('runs', `random cases of each property (default ${DEFAULTS.runs})`, 1, 100_000),
  new Flag('--seed <number>', 'replays the same random cases', '', wholeNumber(0, LARGEST_SEED)),
  number(
    'max-requests',
    `request limit of the run; the remaining checks are untested (default ${DEFAULTS.maxRequests})`,
    1,
    10_000_000,
  ),
  number(
    'budget',
    'request budget: run the most important checks that it allows, one at a time',
    20,
    10_000_000,
  ),
  number('concurrency', `concurrency limit of checks (default ${CONCURRENCY}; 1: request by request)`, 1, 64),
  time('timeout', 'timeout of one request', DEFAULTS.timeoutMs, 3600),
  time('deadline', 'end the run then and report what was tested', DEFAULT_DEADLINE_MS, 86_400),
];

const marked = (mark: 'a' | 'm' | 'r' | 's'): Flag[] => FLAGS.filter(({ marks }) => marks.includes(mark));

function conflictsOf(flag: Flag): Flag[] {
  if (flag.long === '--target') return marked('a');
  if (flag.long === '--from-har') return marked('s');
  const modes = marked('m');
  return modes.includes(flag) ? modes.filter((other) => other !== flag) : [];
}

for (const flag of FLAGS) flag.conflicts(conflictsOf(flag).map((other) => other.attributeName()));

const parser = command(
  'certify',
  'Certifies an implementation of the Screenings Retrieval Service; without a target, the reference server.',
)
  .allowExcessArguments()
  .addHelpText('after', EXIT_HELP);
for (const flag of FLAGS) parser.addOption(flag);

type Flags = Omit<Options, 'require'> & { readonly require?: string };

/** Returns undefined if help was requested and printed. Throws a UsageError. */
export function parseOptions(argv: readonly string[], env: NodeJS.ProcessEnv): Options | undefined {
  const flags = parseCommand<Flags>(parser, argv);
  if (!flags) return undefined;
  rejectLostFlags(parser.args, flags, env);
  checkAddressFlags(flags, env);
  if (flags.failOn && !flags.baseline && !flags.knownFailures && !flags.history)
    throw new UsageError('--fail-on new goes with --baseline, --history or --known-failures');
  return { ...flags, require: classes(flags.require, flags.only) };
}

/** npm consumes flags before `--` and passes on only their values. */
function rejectLostFlags(words: readonly string[], flags: Flags, env: NodeJS.ProcessEnv): void {
  const { npm_config_target: target, npm_config_base_url: baseUrl } = env;
  const kept = env['npm_lifecycle_event'] === 'certify' && (target?.endsWith('.json') || baseUrl);
  if (words.length === 0 && (!kept || flags.target || flags.baseUrl)) return;
  const what = words.length > 0 ? `"${words[0]}" belongs to no flag` : 'npm consumed the flags';
  throw new UsageError(`${what}; write flags like this: ${CALLED} --target target.json`);
}

function checkAddressFlags(flags: Flags, env: NodeJS.ProcessEnv): void {
  const [given] = marked('a').filter((flag) => flag.valueIn(flags) !== undefined);
  const missing = marked('a').filter((flag) => flag.valueIn(flags) === undefined);
  const needing = flags.checkTarget ? '--check-target' : flags.dataset ? '--dataset' : undefined;
  if (!given) {
    if (needing && !flags.target)
      throw new UsageError(`${needing} goes with --target, or with --base-url, --auth-url and --client-id`);
    return;
  }
  if (missing.length > 0)
    throw new UsageError(`${given.long} also needs ${missing.map(({ long }) => long).join(' and ')}`);
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

function classes(text: string | undefined, only: readonly RequirementId[] | undefined): RequirementClass[] {
  const inReach = REQUIREMENTS.filter(({ id }) => only?.includes(id) ?? true).map(({ class: of }) => of);
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

export function kitOptionsOf(options: Options): Partial<KitOptions> {
  const { runs, seed, maxRequests, budget, concurrency, waitForExpiry, timeout } = options;
  const timeoutMs = timeout && 1000 * timeout;
  return { runs, seed, maxRequests, budget, concurrency, waitForExpiry, timeoutMs };
}

export function replayCommand(options: Options, seed: number): string {
  const given = { ...options, only: options.only && selectionWords(options.only) };
  const words = marked('r').flatMap((flag) => {
    const values = [flag.valueIn(given) ?? []].flat();
    if (values.length === 0) return [];
    return flag.isBoolean() ? [flag.long] : [flag.long, shellWord(values.join(','))];
  });
  return [CALLED, ...words, '--seed', seed].join(' ');
}
