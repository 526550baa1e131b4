/** Reads a server's own metrics in the Prometheus text format during the load. */
import { setTimeout as sleep } from 'node:timers/promises';

export interface Reading {
  readonly memoryMb: number;
  /** Connections to its database. */
  readonly connections: number;
  /** Sockets, timers and other handles that keep the process alive. */
  readonly resources: number;
}

const EVERY_MS = 1_000;

/** Reads until `end` is called; failed readings are skipped. */
export function watchMetrics(url: string): { end(): Promise<readonly Reading[]> } {
  const over = new AbortController();
  const readings: Reading[] = [];
  const watching = (async () => {
    while (!over.signal.aborted) {
      const text = await fetch(url, { signal: over.signal }).then(
        (answer) => answer.text(),
        () => undefined,
      );
      const value = (name: string): number =>
        Number(new RegExp(`^${name}(?:\\{[^}]*\\})? ([\\d.e+]+)$`, 'm').exec(text ?? '')?.[1] ?? NaN);
      const reading = {
        memoryMb: value('process_resident_memory_bytes') / 1e6,
        connections: value('database_connections'),
        resources: value('nodejs_active_resources_total'),
      };
      if (Object.values(reading).every(Number.isFinite)) readings.push(reading);
      await sleep(EVERY_MS, undefined, { signal: over.signal }).catch(() => undefined);
    }
  })();
  return {
    async end() {
      over.abort();
      await watching;
      return readings;
    },
  };
}
