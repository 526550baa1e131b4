/** Starts servers of the kit in child processes, so that they do not share an event loop with the measurement. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const START_TIMEOUT_MS = 10 * 60_000;
const STOP_TIMEOUT_MS = 20_000;

interface Child extends AsyncDisposable {
  readonly pid: number;
  /** The line of its output that said that it is ready. */
  readonly line: string;
}

interface ChildOptions {
  readonly name?: string;
  /** Default: the first line. */
  readonly isReady?: (line: string) => boolean;
  /** Gets the lines of its standard error. */
  readonly tell?: (line: string) => void;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs a module that ends when this process does: by STARTED_BY, or when its standard input closes. */
export async function startChild(
  module: URL,
  args: readonly string[],
  { name = module.pathname, isReady = () => true, tell, env = {} }: ChildOptions = {},
): Promise<Child> {
  const node = ['--import', import.meta.resolve('tsx'), fileURLToPath(module), ...args];
  const child = spawn(process.execPath, node, {
    stdio: ['pipe', 'pipe', tell ? 'pipe' : 'inherit'],
    env: { ...process.env, ...env, STARTED_BY: String(process.pid) },
  });
  const exited = once(child, 'exit');
  let lastLine = '';
  if (child.stderr)
    createInterface({ input: child.stderr }).on('line', (line) => tell?.(`  ${(lastLine = line)}`));
  const stop = async (): Promise<void> => {
    child.stdin!.end();
    child.kill('SIGTERM');
    const kill = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await exited;
    clearTimeout(kill);
  };
  const ready = await new Promise<string | undefined>((done) => {
    createInterface({ input: child.stdout! }).on('line', (line) => isReady(line) && done(line));
    void exited.then(() => done(undefined));
    setTimeout(done, START_TIMEOUT_MS, undefined).unref();
  });
  if (ready === undefined) {
    await stop();
    throw new Error(`${name} did not start: ${lastLine}`);
  }
  return { pid: child.pid!, line: ready, [Symbol.asyncDispose]: stop };
}

export interface RunningReference extends AsyncDisposable {
  /** The content of its target file. */
  readonly target: Record<string, unknown>;
}

/** Starts the reference server with these screenings and flags. Throws an Error with its last line if it does not start. */
export async function startReference(
  screenings: number,
  flags: readonly string[],
  tell: (line: string) => void,
  env: Readonly<Record<string, string>> = {},
): Promise<RunningReference> {
  const directory = await mkdtemp(join(tmpdir(), 'screenings-reference-'));
  const remove = (): Promise<void> => rm(directory, { recursive: true, force: true });
  try {
    const file = join(directory, 'target.json');
    const args = ['--port', '0', '--screenings', String(screenings), '--write-target', file, ...flags];
    const child = await startChild(new URL('../../reference-server/main.ts', import.meta.url), args, {
      name: 'the reference server',
      isReady: (line) => line === 'ready',
      tell,
      env,
    });
    return {
      target: JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>,
      async [Symbol.asyncDispose]() {
        await child[Symbol.asyncDispose]();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}
