/** The reference server in a process of its own, with many screenings: what is loaded where no target is named. */
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

const STARTED_WITHIN_MS = 10 * 60_000;
const STOPPED_WITHIN_MS = 20_000;

/** Starts it with that many screenings and further flags. Throws an Error with its last words where it does not start. */
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
    // It ends when this process does, however that ends.
    env: { ...process.env, ...env, STARTED_BY: String(process.pid) },
  });
  const exited = once(child, 'exit');
  let lastWords = '';
  createInterface({ input: child.stderr }).on('line', (line) => {
    lastWords = line;
    tell(`  ${line}`);
  });
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    const kill = setTimeout(() => child.kill('SIGKILL'), STOPPED_WITHIN_MS);
    if (child.exitCode === null && child.signalCode === null) await exited;
    clearTimeout(kill);
    await rm(directory, { recursive: true, force: true });
  };
  const started = await new Promise<boolean>((done) => {
    createInterface({ input: child.stdout }).on('line', (line) => line === 'ready' && done(true));
    void exited.then(() => done(false));
    setTimeout(done, STARTED_WITHIN_MS, false).unref();
  });
  if (!started) {
    await stop();
    throw new Error(`the reference server did not start: ${lastWords}`);
  }
  return {
    target: JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>,
    [Symbol.asyncDispose]: stop,
  };
}
