/** Flags, exit statuses, interruption and exit of every command. */
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { KIT_VERSION, commandName } from './package.ts';
import { UsageError } from './errors.ts';
import { INTERRUPTED_STATUS, onShutdown, type EndReason } from './process.ts';

/** Exit statuses (README): only 1 reports a fault of the certified implementation; only 0 means success. */
export const EXIT = { conformant: 0, 'non-conformant': 1, usage: 2, incomplete: 3, kit: 4 } as const;

export const EXIT_HELP =
  '\nExit status: 0 conformant, 1 non-conformant, 2 wrong usage, 3 incomplete,\n4 the kit itself failed, 130 or 143 interrupted';

export const command = (script: string, about: string): Command =>
  new Command(commandName(script)).description(about).version(KIT_VERSION);

/** Parses the flags. Returns undefined after `--help` or `--version`. Throws a UsageError with a one-line message. */
export function parseCommand<T extends object>(parser: Command, argv: readonly string[]): T | undefined {
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

/** Parses a flag's value; an error or undefined becomes a message that names the expected value. */
export const valueParser =
  <T>(expected: string, read: (text: string) => T | undefined) =>
  (text: string): T => {
    const value = read(text);
    if (value === undefined) throw new InvalidArgumentError(expected);
    return value;
  };

export const wholeNumber = (least: number, most: number): ((text: string) => number) =>
  valueParser(`expected ${least} to ${most}.`, (text) => {
    const value = /^\d{1,12}$/.test(text) ? Number(text) : NaN;
    return value >= least && value <= most ? value : undefined;
  });

export const seconds = (most: number): ((text: string) => number) =>
  valueParser(`expected seconds, more than 0, at most ${most}.`, (text) => {
    const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
    return value > 0 && value <= most ? value : undefined;
  });

export const matching = (pattern: RegExp, expected: string): ((text: string) => string) =>
  valueParser(expected, (text) => (pattern.test(text) ? text : undefined));

/** Rejects an empty value: it usually comes from an unset shell variable. */
export const notEmpty = matching(/[^]/, 'it is empty.');

/** Splits a comma-separated list. */
export const commaSeparated = (text: string): string[] =>
  text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');

/** Returns a signal that is aborted when the process has to end, and the exit status that follows. */
export function interruption(): { readonly signal: AbortSignal; status(): number | undefined } {
  const aborting = new AbortController();
  let by: EndReason | undefined;
  onShutdown((why) => {
    by = why;
    aborting.abort('interrupted');
  });
  return { signal: aborting.signal, status: () => by && INTERRUPTED_STATUS[by] };
}

/** Runs a command and exits; an error becomes a message and an exit status. */
export async function runCommand(name: string, main: () => Promise<number>): Promise<never> {
  // The reader of the pipe may have ended; the report is still written.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  const failed = (error: unknown): number => {
    if (error instanceof UsageError) {
      console.error(`${name}: ${error.message}`);
      return EXIT.usage;
    }
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    console.error(`${name}: the kit itself failed: ${text}`);
    return EXIT.kit;
  };
  // Node would exit with 1, which blames the target.
  process.on('uncaughtException', (error) => process.exit(failed(error)));
  const status = await main().catch(failed);
  // Do not wait for open handles: of a target, of standard input, of a container engine that does not answer.
  process.exit(status);
}
