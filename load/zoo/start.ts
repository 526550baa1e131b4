/** Simulated servers and their target files. */
import { startChild } from '../run/child.ts';
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
  const child = await startChild(new URL('./server.ts', import.meta.url), [JSON.stringify(settings)]);
  const { port } = JSON.parse(child.line) as { port: number };
  const baseUrl = `http://127.0.0.1:${port}`;
  const [primary, secondTenant] = simulatedClients(settings.clients ?? 1);
  return {
    baseUrl,
    pid: child.pid,
    target: () => ({
      name: 'simulated server',
      baseUrl,
      authUrl: baseUrl,
      clients: { primary, ...(secondTenant ? { secondTenant } : {}) },
      window: createScreenings(settings.screenings ?? 20_000).window,
    }),
    counts: async () => (await (await fetch(`${baseUrl}/counts`)).json()) as SimulatedCounts,
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}
