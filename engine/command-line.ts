/** Flags, exit statuses, interruption and the end of all commands but `load`. */
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { commandName } from './called-from.ts';
import { UsageError } from './errors.ts';
import { KIT_VERSION } from './package.ts';
import { INTERRUPTED_STATUS, onToldToEnd, type EndReason } from './process.ts';

/** See the README: only 1 reports a fault of what is certified, only 0 is green. */
export const EXIT = { conformant: 0, 'non-conformant': 1, usage: 2, incomplete: 3, kit: 4 } as const;

export const EXIT_HELP =
  '\nExit status: 0 conformant, 1 non-conformant, 2 wrong usage, 3 incomplete, 4 the kit itself failed, 130 or 143 interrupted';

export const command = (script: string, about: string): Command =>
  new Command(commandName(script)).description(about).version(KIT_VERSION);

/** The flags, as commander has them. Undefined where help was asked for and given. Throws a UsageError of one line. */
export function flagsOf<T extends object>(parser: Command, argv: readonly string[]): T | undefined {
  try {
    return parser
      .exitOverride()
      .configureOutput({ writeErr: () => {} })
      .parse(argv, { from: 'user' })
      .opts<T>();
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return undefined;
    throw new UsageError(error.message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' '));
  }
}

/** The same of the process's own; where they are wrong, or help was asked for, the process ends. */
export const ownFlags = <T extends object>(parser: Command): T =>
  parser
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : EXIT.usage))
    .parse()
    .opts<T>();

/** Reads a flag's value; what it throws, and undefined, is told with what was expected. */
export const reading =
  <T>(expected: string, read: (text: string) => T | undefined) =>
  (text: string): T => {
    const value = read(text);
    if (value === undefined) throw new InvalidArgumentError(expected);
    return value;
  };

export const whole = (least: number, most: number): ((text: string) => number) =>
  reading(`expected ${least} to ${most}.`, (text) => {
    const value = /^\d{1,12}$/.test(text) ? Number(text) : NaN;
    return value >= least && value <= most ? value : undefined;
  });

export const seconds = (most: number): ((text: string) => number) =>
  reading(`expected seconds, more than 0, at most ${most}.`, (text) => {
    const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
    return value > 0 && value <= most ? value : undefined;
  });

export const matching = (pattern: RegExp, expected: string): ((text: string) => string) =>
  reading(expected, (text) => (pattern.test(text) ? text : undefined));

/** An unset variable leaves an empty value, which is not meant as one. */
export const notEmpty = matching(/[^]/, 'it is empty.');

/** The words of a list that is separated by commas. */
export const listed = (text: string): string[] =>
  text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');

/** A signal that is aborted when the process is told to end, and the exit status that follows from it. */
export function interruption(): { readonly signal: AbortSignal; status(): number | undefined } {
  const aborting = new AbortController();
  let by: EndReason | undefined;
  onToldToEnd((why) => {
    by = why;
    aborting.abort('interrupted');
  });
  return { signal: aborting.signal, status: () => by && INTERRUPTED_STATUS[by] };
}

/** Runs a command to its end; what it throws becomes a line and a status. */
export async function runCommand(name: string, main: () => Promise<number>): Promise<never> {
  // The reader of the pipe may have ended; the report is still written.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  const status = await main().catch((error: unknown) => {
    if (error instanceof UsageError) {
      console.error(`${name}: ${error.message}`);
      return EXIT.usage;
    }
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    console.error(`${name}: the kit itself failed: ${text}`);
    return EXIT.kit;
  });
  // All is written and stopped: what a target or standard input still holds open is not waited for.
  process.exit(status);
}
