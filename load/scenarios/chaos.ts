/** Open-model arrivals during repeated outages of the target: judges failures, recovery and lost data. */
import { setTimeout as sleep } from 'node:timers/promises';
import { largest, median, smallest, sum } from '../estimate/numbers.ts';
import { failed } from '../estimate/step.ts';
import type { ArrivalRecord } from '../k6/lib/record.ts';
import { type ArrivalsRun, type Session, VoidRun } from '../run/session.ts';
import { failuresText } from './format.ts';
import { changes, mint, readStored, type Stored, Unreachable } from '../run/target.ts';
import type { Target } from '../../engine/target/target.ts';
import { randomSource } from '../estimate/random.ts';

/** The requests that no outage affected. */
export interface ChaosRun extends Pick<ArrivalsRun, 'samples' | 'run'> {
  readonly lines: readonly string[];
  /** Whether the server's memory and connections stayed constant; true without metrics. */
  readonly flat: boolean;
}

/** Maximum recovery time after a fault (section 7.2). */
const RECOVERY_MS = 30_000;

/** Adds findings to the session. Throws VoidRun if a fault command fails, or makes no request fail. */
export async function arrivalsUnderOutages(session: Session, vus: number): Promise<ChaosRun> {
  const { prepared } = session;
  const { rate, duration, seed } = session.options;
  const { fault, metricsUrl } = prepared.target;
  const stored = await readStored(prepared);
  session.tell(`  ${countOf(stored)} screenings read before the first outage`);
  for (const [index, { tenantId }] of prepared.base.clients.entries())
    session.judge.know(tenantId, stored.oracles[index]!);
  const stopped = new AbortController();
  const metrics = metricsUrl === undefined ? [] : readMetrics(metricsUrl, stopped.signal);
  const outages = runOutages(fault!, duration, seed, stopped.signal);
  // A failed command is reported at the end of the load.
  outages.catch(() => undefined);
  const end = async (): Promise<[readonly Outage[], readonly Reading[]]> => {
    stopped.abort();
    return Promise.all([outages, metrics]);
  };
  const over = { vus, outages: true, window: stored.window };
  const { samples, run } = await session.arrivals('soak', rate, duration, over, 0).finally(end);
  const [ended, readings] = await end();
  const growth = growthOf(readings);
  const after = await readAgain(session, stored);

  const startAtMs = run.summary?.startAtMs;
  if (startAtMs === undefined) throw new VoidRun('k6 does not report its start time');
  const timed = samples.map((one) => ({ ...one, atMs: startAtMs + one.dueMs }));
  const recovered = ended.map((outage) => ({ ...outage, servedMs: servedAgain(outage, timed) }));
  const isCalm = ({ atMs, latencyMs }: Timed): boolean =>
    recovered.every(
      ({ beganAtMs, endedAtMs, servedMs = endedAtMs + RECOVERY_MS }) =>
        atMs > servedMs || atMs + latencyMs < beganAtMs,
    );
  const failures = timed.filter((one) => !isCalm(one) && failed(one.status));
  if (failures.length === 0)
    throw new VoidRun(
      `${ended.length} calls of the fault command made no request fail: is it the right one?`,
    );
  const lastAtMs = largest(timed.map(({ atMs }) => atMs));
  for (const { endedAtMs, servedMs } of recovered)
    // For an outage close to the end of the run, the final read shows whether the target recovered.
    if (servedMs === undefined && (!after || lastAtMs > endedAtMs + RECOVERY_MS))
      session.findings.push({
        id: '7.2-server-error',
        message: `not served again within ${RECOVERY_MS / 1000} s of the fault's end (${new Date(endedAtMs).toISOString()})`,
      });
  return {
    samples: timed.filter(isCalm),
    run,
    lines: [describeOutages(recovered, failures), compareWithStored(session, stored, after), ...growth.lines],
    flat: growth.flat,
  };
}

type Timed = ArrivalRecord & { readonly atMs: number };

/** Time of the first 200 for a request due after the outage; undefined if later than RECOVERY_MS. */
function servedAgain({ endedAtMs }: Outage, samples: readonly Timed[]): number | undefined {
  const served = samples.filter(({ atMs, status }) => atMs >= endedAtMs && status === 200);
  const firstMs = smallest(served.map(({ atMs, latencyMs }) => atMs + latencyMs));
  return firstMs <= endedAtMs + RECOVERY_MS ? firstMs : undefined;
}

/** Reads the stored screenings again; undefined if the target does not recover in time. */
async function readAgain({ prepared }: Session, { window }: Stored): Promise<Stored | undefined> {
  for (const untilMs = Date.now() + RECOVERY_MS; Date.now() <= untilMs; await sleep(500)) {
    try {
      await mint(prepared.target);
      // The client repeats failed token requests for longer than that.
      return Date.now() > untilMs ? undefined : await readStored(prepared, window);
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
    }
  }
  return undefined;
}

function describeOutages(outages: readonly Recovered[], failures: readonly Timed[]): string {
  const seconds = (ms: number): string => (ms / 1000).toFixed(1);
  const lengths = outages.map(({ beganAtMs, endedAtMs }) => endedAtMs - beganAtMs);
  const slowest = largest(outages.map(({ endedAtMs, servedMs = endedAtMs }) => servedMs - endedAtMs));
  return `${outages.length} outages of ${seconds(smallest(lengths))} to ${seconds(largest(lengths))} s: ${failuresText(failures)}; served again after ${seconds(slowest)} s at most`;
}

/** Adds findings for pages that differ from the screenings stored before; returns the summary line. */
function compareWithStored(session: Session, before: Stored, after: Stored | undefined): string {
  const { lost, added } = changes(before, after ?? before);
  if (lost.length > 0)
    session.findings.push({
      id: '4.2-repeatable',
      message: `${lost.length} screenings that were served before the outages are missing after them, the first one is item ${lost[0]!.id}`,
    });
  const { comparedPages, storedMismatches } = session.judge;
  if (added) return `screenings were added during the run: ${comparedPages} pages were not compared`;
  session.findings.push(...storedMismatches);
  return `${comparedPages} pages compared with the ${countOf(before)} screenings stored`;
}

const countOf = ({ oracles }: Stored): number => sum(oracles.map(({ items }) => items.length));

/** Metrics of the reference server, with their unit in the report. */
const METRICS = [
  ['process_resident_memory_bytes', 'MB of memory', 1e6],
  ['database_connections', 'connections to the database', 1],
  // Sockets, timers and other handles that keep the process alive.
  ['nodejs_active_resources_total', 'open resources', 1],
] as const;
type Reading = readonly number[];

/** With fewer readings growth is not judged, as a process grows while it warms up. */
const LEAST_READINGS = 120;
/** Metrics grow if they exceed their earlier median by this factor and this many units: garbage collection alone does not. */
const GROWTH = 1.25;
const ROOM = 16;

/** Medians of each metric in the second and in the last quarter, and whether they stayed constant. */
export function growthOf(readings: readonly Reading[]): { lines: string[]; flat: boolean } {
  if (readings.length < 4) return { lines: [], flat: true };
  const { length } = readings;
  const inQuarter = (from: number, metric: number): number =>
    median(readings.slice(from * length, (from + 0.25) * length).map((one) => one[metric]!));
  let flat = true;
  const figures = METRICS.map(([, unit], metric) => {
    const [before, then] = [inQuarter(0.25, metric), inQuarter(0.75, metric)];
    if (then > before * GROWTH + ROOM && readings.length >= LEAST_READINGS) flat = false;
    return `${before.toFixed(0)} and ${then.toFixed(0)} ${unit}`;
  });
  const line = `the server in the second and in the last quarter: ${figures.join(', ')}`;
  return { lines: [`${line}${flat ? '' : ': they grow'}`], flat };
}

const EVERY_MS = 1_000;

/** Reads the metrics until the signal is aborted; failed readings are skipped. */
async function readMetrics(url: string, signal: AbortSignal): Promise<readonly Reading[]> {
  const readings: Reading[] = [];
  while (!signal.aborted) {
    const text = await fetch(url, { signal }).then(
      (answer) => answer.text(),
      () => '',
    );
    const values = METRICS.map(
      ([metric, , per]) =>
        Number(new RegExp(`^${metric}(?:\\{[^}]*\\})? ([\\d.e+]+)$`, 'm').exec(text)?.[1]) / per,
    );
    if (values.every(Number.isFinite)) readings.push(values);
    await sleep(EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
  return readings;
}

interface Outage {
  /** When the start command was called, and when the stop command had returned, in milliseconds since the epoch. */
  readonly beganAtMs: number;
  readonly endedAtMs: number;
}

type Recovered = Outage & { readonly servedMs: number | undefined };

/** Time before the first outage, so that requests are in flight, and after the last one. */
const LEAD_MS = 8_000;
const TAIL_MS = 2_000;
/** Ranges from which the healthy and the failing periods are drawn. */
const HEALTHY_MS = [4_000, 10_000] as const;
const FAILING_MS = [1_000, 4_000] as const;
/** A shorter run has no room for outages. */
export const LEAST_SECONDS = 15;

/** Runs outages until the signal is aborted, which ends the fault. Throws VoidRun if a command fails. */
async function runOutages(
  fault: NonNullable<Target['fault']>,
  seconds: number,
  seed: number,
  signal: AbortSignal,
): Promise<readonly Outage[]> {
  const random = randomSource(seed);
  const between = ([least, most]: readonly [number, number]): number => least + random() * (most - least);
  const untilMs = Date.now() + seconds * 1000 - TAIL_MS;
  const outages: Outage[] = [];
  try {
    for (let healthyMs = LEAD_MS; ; healthyMs = between(HEALTHY_MS)) {
      await sleep(healthyMs, undefined, { signal });
      const failingMs = between(FAILING_MS);
      if (Date.now() + failingMs > untilMs) return outages;
      const beganAtMs = Date.now();
      try {
        await fault.start();
        await sleep(failingMs, undefined, { signal });
      } finally {
        await fault.stop();
        outages.push({ beganAtMs, endedAtMs: Date.now() });
      }
    }
  } catch (error) {
    if (!signal.aborted) throw new VoidRun(`a fault command failed: ${(error as Error).message}`);
    return outages;
  }
}
