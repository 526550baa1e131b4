/** The command line of `npm run certify-client`. Every mistake is a UsageError of one line. */
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { UsageError } from '../../engine/errors.ts';
import { KIT_VERSION } from '../../engine/package.ts';
import { nearest } from '../../engine/target/usage.ts';
import { SITUATIONS } from './situations/all.ts';

export interface Arguments {
  /** One of the two is there. */
  readonly command?: string;
  readonly listen?: number;
  readonly name?: string;
  readonly reportDir: string;
  readonly only?: readonly string[];
  readonly concurrency: number;
  /** Seconds. */
  readonly timeout: number;
}

const within =
  (least: number, most: number) =>
  (text: string): number => {
    const value = /^\d{1,6}$/.test(text) ? Number(text) : NaN;
    if (!(value >= least && value <= most)) throw new InvalidArgumentError(`expected ${least} to ${most}.`);
    return value;
  };

const ENVIRONMENT = `
The client finds in its environment: SCREENINGS_BASE_URL, SCREENINGS_AUTH_URL, SCREENINGS_CLIENT_ID,
SCREENINGS_CLIENT_SECRET, SCREENINGS_TENANT_ID, SCREENINGS_FROM, SCREENINGS_TO, and at times
SCREENINGS_PAGE_SIZE and SCREENINGS_EVENTS (a file of events). The command may also hold {base_url},
{auth_url}, {client_id}, {client_secret}, {tenant_id}, {from}, {to}, {page_size} and {events}.
It prints each screening that it collected, one JSON object a line, and exits with 0 where it collected
the window whole, with anything else where it gave up.

Exit status: 0 conformant, 1 non-conformant, 2 wrong usage, 3 incomplete, 4 the kit itself failed,
130 or 143 interrupted`;

function parser(): Command {
  return new Command('npm run certify-client --')
    .description(
      'Judges a client of the Screenings Retrieval Service by what it does in one situation after another.',
    )
    .option('--command <command>', 'shell command that runs the client once')
    .option(
      '--listen <port>',
      'prints the values, and waits for a client that is started by hand',
      within(1, 65_535),
    )
    .option('--name <text>', 'how the report calls the client (default: the command)')
    .option('--report-dir <dir>', 'where the report goes', 'reports')
    .option('--only <situations>', 'names of situations, separated by commas')
    .option('--concurrency <number>', 'situations at once', within(1, 16), 4)
    .option('--timeout <seconds>', 'how long a client may make no headway', within(1, 3600), 90)
    .option('--list', 'prints the situations')
    .version(KIT_VERSION)
    .allowExcessArguments(false)
    .addHelpText('after', ENVIRONMENT);
}

/** Undefined where what was asked for (help, the list) has been given. */
export function parseArguments(
  argv: readonly string[],
  tell: (text: string) => void = console.log,
): Arguments | undefined {
  const command = parser()
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  try {
    command.parse(argv, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return undefined;
    throw new UsageError(error.message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' '));
  }
  const { list, only, ...flags } = command.opts<
    Omit<Arguments, 'only'> & { readonly list?: true; readonly only?: string }
  >();
  if (list) {
    for (const { name, section, level, title } of SITUATIONS) tell(`${name}  ${level} §${section}  ${title}`);
    return undefined;
  }
  if ((flags.command === undefined) === (flags.listen === undefined)) {
    throw new UsageError('give --command "…", or --listen PORT for a client that is started by hand');
  }
  if (flags.command?.trim() === '') throw new UsageError('--command is empty');
  return { ...flags, ...(only === undefined ? {} : { only: selection(only) }) };
}

function selection(text: string): string[] {
  const known = SITUATIONS.map(({ name }) => name);
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean);
  const wrong = names.find((name) => !known.includes(name));
  if (wrong !== undefined) {
    throw new UsageError(`--only: no situation "${wrong}"; did you mean "${nearest(wrong, known)}"?`);
  }
  if (names.length === 0) throw new UsageError('--only selects nothing; --list names the situations');
  return names;
}
