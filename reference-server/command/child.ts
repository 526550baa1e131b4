/** Starts servers of the kit in child processes, which share no event loop with what measures or judges them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { EXIT } from '../../engine/command-line.ts';
import { UsageError } from '../../engine/errors.ts';
import { temporaryFolder } from '../../engine/files.ts';

const START_TIMEOUT_MS = 10 * 60_000;
const STOP_TIMEOUT_MS = 20_000;
/** An installed package is compiled. */
const EXTENSION = import.meta.filename.slice(-2);

interface ChildOptions {
  /** Gets the lines of its standard error. */
  readonly tell?: (line: string) => void;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Runs a module in its own process group, so that Ctrl-C does not reach it. It ends when this process does: by
 * STARTED_BY, or when its standard input closes. Throws an Error with its last line if it does not start, a UsageError
 * if it was used wrongly.
 *
 * @param isReady whether this line of its output says that it is ready; default: the first line
 * @returns `line`: the one that said so
 */
export async function startChild(
  module: URL,
  args: readonly string[],
  { tell = console.error, env = {} }: ChildOptions = {},
  isReady: (line: string) => boolean = () => true,
): Promise<AsyncDisposable & { readonly line: string }> {
  const loader = EXTENSION === 'ts' ? ['--import', import.meta.resolve('tsx')] : [];
  const child = spawn(process.execPath, [...loader, fileURLToPath(module), ...args], {
    stdio: 'pipe',
    detached: true,
    env: { ...process.env, ...env, STARTED_BY: String(process.pid) },
  });
  const exited = once(child, 'exit');
  let lastLine = '';
  createInterface({ input: child.stderr }).on('line', (line) => tell((lastLine = line)));
  const stop = async (): Promise<void> => {
    child.stdin.end();
    child.kill('SIGTERM');
    const kill = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await exited;
    clearTimeout(kill);
  };
  const line = await new Promise<string | undefined>((done) => {
    createInterface({ input: child.stdout }).on('line', (one) => isReady(one) && done(one));
    void exited.then(() => done(undefined));
    setTimeout(done, START_TIMEOUT_MS, undefined).unref();
  });
  if (line !== undefined) return { line, [Symbol.asyncDispose]: stop };
  await stop();
  throw child.exitCode === EXIT.usage ? new UsageError(lastLine) : new Error(lastLine);
}

export interface RunningReference extends AsyncDisposable {
  /** Its target file, and the content of it. */
  readonly file: string;
  readonly target: Readonly<Record<string, unknown>>;
}

/** Starts the reference server on any free port, with flags of its command. Throws as startChild does. */
export async function startReference(
  flags: readonly string[],
  { hasEvents, ...options }: ChildOptions & { readonly hasEvents?: boolean } = {},
): Promise<RunningReference> {
  const directory = await temporaryFolder('screenings-reference');
  try {
    const file = join(directory.path, 'target.json');
    const events = hasEvents ? ['--events', join(directory.path, 'events.ndjson')] : [];
    const args = ['--port', '0', '--write-target', file, ...events, ...flags];
    const module = new URL(`../main.${EXTENSION}`, import.meta.url);
    const child = await startChild(module, args, options, (line) => line === 'ready');
    const target = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>;
    const stop = async (): Promise<void> => {
      await child[Symbol.asyncDispose]();
      await directory[Symbol.asyncDispose]();
    };
    return { file, target, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await directory[Symbol.asyncDispose]();
    throw error;
  }
}
