/** Outages on purpose: the commands of the target file make the target fail and heal it while a run lasts. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Target } from '../../engine/target/target.ts';
import { randomSource } from '../k6/lib/random.ts';
import { VoidRun } from '../run/session.ts';

export interface Outage {
  /** When the target was told to fail, and when it had been told to be well again, in milliseconds since the epoch. */
  readonly beganAtMs: number;
  readonly endedAtMs: number;
}

/** From the start until requests are surely under way, and from an outage's last end to the end. */
const LEAD_MS = 8_000;
const TAIL_MS = 2_000;
/** Well for so long, failing for so long: drawn between these. */
const WELL_MS = [4_000, 10_000] as const;
const FAILING_MS = [1_000, 4_000] as const;
/** Short of it there is no room for outages. */
export const LEAST_SECONDS = 15;

/** Until `end` is called, which heals the target. Throws VoidRun where a command fails. */
export function beginOutages(
  fault: NonNullable<Target['fault']>,
  seconds: number,
  seed: number,
): { end(): Promise<readonly Outage[]> } {
  const random = randomSource(seed);
  const between = ([least, most]: readonly [number, number]): number => least + random() * (most - least);
  const over = new AbortController();
  const untilMs = Date.now() + seconds * 1000 - TAIL_MS;
  const outages: Outage[] = [];
  const pause = (ms: number): Promise<void> => sleep(ms, undefined, { signal: over.signal });

  const run = async (): Promise<void> => {
    for (let wellMs = LEAD_MS; ; wellMs = between(WELL_MS)) {
      await pause(wellMs);
      const failingMs = between(FAILING_MS);
      if (Date.now() + failingMs > untilMs) return;
      const beganAtMs = Date.now();
      try {
        await fault.start();
        await pause(failingMs);
      } finally {
        await fault.stop();
        outages.push({ beganAtMs, endedAtMs: Date.now() });
      }
    }
  };
  const running = run().then(
    () => undefined,
    (error: unknown) => (over.signal.aborted ? undefined : (error as Error)),
  );
  return {
    async end() {
      over.abort();
      const error = await running;
      if (error) throw new VoidRun(`a fault command failed: ${error.message}`);
      return outages;
    },
  };
}
