/** Starts servers of the kit in child processes, so that they do not share an event loop with the measurement. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../../engine/files.ts';

const START_TIMEOUT_MS = 10 * 60_000;
const STOP_TIMEOUT_MS = 20_000;

interface ChildOptions {
  /** Whether this line of its output says that it is ready; default: the first line. */
  readonly isReady?: (line: string) => boolean;
  /** Gets the lines of its standard error. */
  readonly tell?: (line: string) => void;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Runs a module that ends when this process does: by STARTED_BY, or when its standard input closes. `line`: the one
 * that said that it is ready. Throws an Error with its last line if it does not start.
 */
export async function startChild(
  module: URL,
  args: readonly string[],
  { isReady = () => true, tell = console.error, env = {} }: ChildOptions = {},
): Promise<AsyncDisposable & { readonly line: string }> {
  const node = ['--import', import.meta.resolve('tsx'), fileURLToPath(module), ...args];
  const child = spawn(process.execPath, node, {
    stdio: 'pipe',
    env: { ...process.env, ...env, STARTED_BY: String(process.pid) },
  });
  const exited = once(child, 'exit');
  let lastLine = '';
  createInterface({ input: child.stderr }).on('line', (line) => tell(`  ${(lastLine = line)}`));
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
  throw new Error(`${fileURLToPath(module)} did not start: ${lastLine}`);
}

export interface RunningReference extends AsyncDisposable {
  /** The content of its target file. */
  readonly target: Record<string, unknown>;
}

/** Starts the reference server with these screenings and flags. */
export async function startReference(
  screenings: number,
  flags: readonly string[],
  tell: (line: string) => void,
  env: Readonly<Record<string, string>> = {},
): Promise<RunningReference> {
  await using directory = await temporaryFolder('screenings-reference');
  const file = join(directory.path, 'target.json');
  const args = ['--port', '0', '--screenings', String(screenings), '--write-target', file, ...flags];
  const module = new URL('../../reference-server/main.ts', import.meta.url);
  const child = await startChild(module, args, { isReady: (line) => line === 'ready', tell, env });
  const target = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>;
  return { target, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
}
