/** Parses the command line of `npm run certify-client`. Every mistake throws a UsageError of one line. */
import { command, EXIT_HELP, parseCommand, commaSeparated, wholeNumber } from '../../engine/command-line.ts';
import { UsageError } from '../../engine/errors.ts';
import { noSuch } from '../../engine/target/usage.ts';
import { SITUATIONS } from './situations/all.ts';

export interface Arguments {
  /** Exactly one of `command` and `listen` is set. */
  readonly command?: string;
  readonly listen?: number;
  readonly name?: string;
  readonly reportDir: string;
  readonly only?: readonly string[];
  readonly concurrency: number;
  /** The seconds without progress after which a client is stopped; 0: never. */
  readonly timeout: number;
}

const ENVIRONMENT = `
The client finds in its environment: SCREENINGS_BASE_URL, SCREENINGS_AUTH_URL,
SCREENINGS_CLIENT_ID, SCREENINGS_CLIENT_SECRET, SCREENINGS_TENANT_ID,
SCREENINGS_FROM, SCREENINGS_TO, and at times SCREENINGS_PAGE_SIZE and
SCREENINGS_EVENTS (a file of events). The command may also hold {base_url},
{auth_url}, {client_id}, {client_secret}, {tenant_id}, {from}, {to},
{page_size} and {events}. It prints each screening that it collected, one JSON
object per line, and exits with 0 if it collected the whole window, with any
other status if it gave up.
${EXIT_HELP}`;

const parser = command(
  'certify-client',
  'Certifies a client of the Screenings Retrieval Service by its behaviour in a series of situations.',
)
  .option('--command <command>', 'shell command that runs the client once')
  .option(
    '--listen <port>',
    'prints the values and waits for a client that you start by hand',
    wholeNumber(1, 65_535),
  )
  .option('--name <text>', 'name of the client in the report (default: the command)')
  .option('--report-dir <dir>', 'directory of the report', 'reports')
  .option('--only <situations>', 'names of situations, separated by commas', selection)
  .option('--concurrency <number>', 'concurrency limit of situations', wholeNumber(1, 16), 4)
  .option('--timeout <seconds>', 'how long a client may make no progress', wholeNumber(1, 3600), 90)
  .option('--list', 'prints the situations')
  .allowExcessArguments(false)
  .addHelpText('after', ENVIRONMENT);

/** Returns undefined if help or the list was requested and printed. Throws a UsageError. */
export function parseArguments(
  argv: readonly string[],
  tell: (text: string) => void = console.log,
): Arguments | undefined {
  const flags = parseCommand<Arguments & { readonly list?: true }>(parser, argv);
  if (flags?.list) {
    for (const { name, section, level, title } of SITUATIONS) tell(`${name}  ${level} §${section}  ${title}`);
    return undefined;
  }
  if (flags && (flags.command === undefined) === (flags.listen === undefined))
    throw new UsageError('give --command "…", or --listen PORT for a client that is started by hand');
  if (flags?.command?.trim() === '') throw new UsageError('--command is empty');
  return flags;
}

function selection(text: string): string[] {
  const known = SITUATIONS.map(({ name }) => name);
  const names = commaSeparated(text);
  const wrong = names.find((name) => !known.includes(name));
  if (wrong !== undefined) throw noSuch('--only', 'situation', wrong, known);
  if (names.length === 0) throw new UsageError('--only selects nothing; --list names the situations');
  return names;
}
