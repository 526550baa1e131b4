/** Starts the reference server in a child process with many screenings, for runs without a target. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface RunningReference extends AsyncDisposable {
  /** The content of its target file. */
  readonly target: Record<string, unknown>;
}

const START_TIMEOUT_MS = 10 * 60_000;
const STOP_TIMEOUT_MS = 20_000;

/** Starts the server with these screenings and flags. Throws an Error with its last line if it does not start. */
export async function startReference(
  screenings: number,
  flags: readonly string[],
  tell: (line: string) => void,
  env: Readonly<Record<string, string>> = {},
): Promise<RunningReference> {
  const directory = await mkdtemp(join(tmpdir(), 'screenings-reference-'));
  const file = join(directory, 'target.json');
  const main = fileURLToPath(new URL('../../reference-server/main.ts', import.meta.url));
  const args = ['--port', '0', '--screenings', String(screenings), '--write-target', file, ...flags];
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), main, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // The server stops when this process ends for any reason.
    env: { ...process.env, ...env, STARTED_BY: String(process.pid) },
  });
  const exited = once(child, 'exit');
  let lastLine = '';
  createInterface({ input: child.stderr }).on('line', (line) => {
    lastLine = line;
    tell(`  ${line}`);
  });
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    const kill = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    if (child.exitCode === null && child.signalCode === null) await exited;
    clearTimeout(kill);
    await rm(directory, { recursive: true, force: true });
  };
  const started = await new Promise<boolean>((done) => {
    createInterface({ input: child.stdout }).on('line', (line) => line === 'ready' && done(true));
    void exited.then(() => done(false));
    setTimeout(done, START_TIMEOUT_MS, false).unref();
  });
  if (!started) {
    await stop();
    throw new Error(`the reference server did not start: ${lastLine}`);
  }
  return {
    target: JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>,
    [Symbol.asyncDispose]: stop,
  };
}
