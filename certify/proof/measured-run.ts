/** Runs a command of the kit as a user does, and measures duration, peak memory, output and processes left. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

export interface MeasuredRun {
  readonly seconds: number;
  readonly megabytes: number;
  readonly status: number | null;
  readonly output: string;
  /** The number of its processes that are still running. */
  readonly leftOver: number;
}

export interface Circumstances {
  readonly longestSeconds: number;
  /** Sends SIGINT this long after the first output. */
  readonly interruptedAfterMs?: number;
  /** The maximum file size in kilobytes, which simulates a full disk. */
  readonly fileKilobytes?: number;
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Writes the peak memory of the process in kilobytes to file descriptor 3. The kernel's own figure for a child
 * includes that of its parent before exec.
 */
const TELL_MEMORY = `import { readFileSync, writeSync } from 'node:fs';
process.on('exit', () => {
  let most;
  try { most = /VmHWM:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]; }
  catch { most = process.resourceUsage().maxRSS; }
  writeSync(3, String(most));
});`;

export async function measuredRun(
  main: string,
  args: readonly string[],
  { longestSeconds, interruptedAfterMs, fileKilobytes }: Circumstances,
): Promise<MeasuredRun> {
  const began = performance.now();
  const tell = `data:text/javascript,${encodeURIComponent(TELL_MEMORY)}`;
  const mark = `MEASURED_RUN=${randomUUID()}`;
  const command = [process.execPath, '--import', tell, '--import', 'tsx', main, ...args];
  const limit = fileKilobytes === undefined ? '' : `ulimit -f ${fileKilobytes}; `;
  const child = spawn('sh', ['-c', `${limit}exec env ${mark} "$@"`, 'sh', ...command], {
    cwd: ROOT,
    env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    timeout: longestSeconds * 1000,
    killSignal: 'SIGKILL',
  });
  let [output, memory] = ['', ''];
  let interrupt: NodeJS.Timeout | undefined;
  for (const index of [1, 2])
    child.stdio[index]!.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      if (interruptedAfterMs !== undefined)
        interrupt ??= setTimeout(() => child.kill('SIGINT'), interruptedAfterMs);
    });
  child.stdio[3]!.on('data', (chunk: Buffer) => (memory += chunk.toString()));
  const status = await new Promise<number | null>((done) => child.once('close', done));
  clearTimeout(interrupt);
  return {
    seconds: (performance.now() - began) / 1000,
    megabytes: Math.round(Number(memory) / 1024),
    status,
    output,
    leftOver: await countMarked(mark),
  };
}

/** Works only on Linux. */
async function countMarked(mark: string): Promise<number> {
  const processes = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const environments = await Promise.all(
    processes.map((id) => readFile(`/proc/${id}/environ`, 'utf8').catch(() => '')),
  );
  return environments.filter((text) => text.includes(mark)).length;
}
