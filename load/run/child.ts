/** Servers of the kit's own in processes of their own, so that they share no event loop with what measures them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface Child extends AsyncDisposable {
  readonly pid: number;
  /** The first line that it printed: where it listens. */
  readonly line: string;
}

/** Runs a module; it has to end when its standard input closes, which this process's end does. */
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
