/** Starts simulated servers in processes of their own, so that they share no event loop with what measures them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { createScreenings } from './screenings.ts';
import { simulatedClients, type SimulatedCounts, type SimulatedSettings } from './server.ts';

export interface SimulatedServer extends AsyncDisposable {
  readonly baseUrl: string;
  readonly pid: number;
  /** The content of a target file for it. */
  target(): Record<string, unknown>;
  counts(): Promise<SimulatedCounts>;
}

export async function startSimulatedServer(settings: SimulatedSettings): Promise<SimulatedServer> {
  const main = fileURLToPath(new URL('./server.ts', import.meta.url));
  const child = spawn(
    process.execPath,
    ['--import', import.meta.resolve('tsx'), main, JSON.stringify(settings)],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  const exited = once(child, 'exit');
  const lines = createInterface({ input: child.stdout });
  const line = await Promise.race([once(lines, 'line'), exited.then(() => undefined)]);
  if (!line) throw new Error('the simulated server did not start');
  const { port } = JSON.parse(String(line[0])) as { port: number };
  const baseUrl = `http://127.0.0.1:${port}`;
  const [primary, secondTenant] = simulatedClients(settings.clients ?? 1);
  return {
    baseUrl,
    pid: child.pid!,
    target: () => ({
      name: 'simulated server',
      baseUrl,
      authUrl: baseUrl,
      clients: { primary, ...(secondTenant ? { secondTenant } : {}) },
      window: createScreenings(settings.screenings ?? 20_000).window,
    }),
    counts: async () => (await (await fetch(`${baseUrl}/counts`)).json()) as SimulatedCounts,
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      child.kill('SIGTERM');
      await exited;
    },
  };
}
