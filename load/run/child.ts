/** Starts servers of the kit in child processes, so that they do not share an event loop with the measurement. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface Child extends AsyncDisposable {
  readonly pid: number;
  /** The first line of its output: the listening address. */
  readonly line: string;
}

/** Runs a module that exits when its standard input closes, which also happens when this process ends. */
export async function startChild(module: URL, args: readonly string[]): Promise<Child> {
  const main = fileURLToPath(module);
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), main, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const lines = createInterface({ input: child.stdout });
  const first = await Promise.race([once(lines, 'line'), exited.then(() => undefined)]);
  if (!first) throw new Error(`${main} ${args[0]} did not start`);
  return {
    pid: child.pid!,
    line: String(first[0]),
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      child.kill('SIGTERM');
      await exited;
    },
  };
}
