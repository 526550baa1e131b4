/** Open-model arrivals during repeated outages of the target: judges failures, recovery and lost data. */
import { setTimeout as sleep } from 'node:timers/promises';
import { largest, median, smallest } from '../estimate/numbers.ts';
import { failed } from '../estimate/step.ts';
import { Unreachable } from '../run/ask.ts';
import type { Arrival, K6Run } from '../run/k6-run.ts';
import { type Session, VoidRun } from '../run/session.ts';
import { changes, oracleOf, readStored, type Stored } from '../run/stored.ts';
import type { Target } from '../../engine/target/target.ts';
import { randomSource } from '../k6/lib/random.ts';

export interface ChaosRun {
  /** Requests not affected by an outage. */
  readonly samples: readonly Arrival[];
  readonly run: K6Run;
  /** Summary lines about the outages. */
  readonly lines: readonly string[];
  /** Whether the server's memory and connections stayed constant; true without metrics. */
  readonly flat: boolean;
}

/** Maximum recovery time after a fault (section 7.2). */
const RECOVERY_MS = 30_000;

/** Adds findings to the session. Throws VoidRun if a fault command fails, or makes no request fail. */
export async function arrivalsUnderOutages(
  session: Session,
  requestsPerSecond: number,
  seconds: number,
  vus: number,
): Promise<ChaosRun> {
  const { prepared, settings } = session;
  const { fault, metricsUrl } = prepared.target;
  const stored = await readStored(prepared);
  session.tell(`  ${stored.items.flat().length} screenings are read before the first outage`);
  for (const [index, { tenantId }] of prepared.base.clients.entries())
    session.judge.know(tenantId, oracleOf(stored.items[index]!));
  const metrics = metricsUrl === undefined ? undefined : watchMetrics(metricsUrl);
  const outages = beginOutages(fault!, seconds, settings.seed);
  const arrivals = session.tryArrivals(
    requestsPerSecond,
    seconds,
    {
      vus,
      outages: true,
      judgedShare: 1,
      window: stored.window,
      // The script does not know which failures are expected; that is judged below.
      thresholds: { findings: ['count<1'], unauthenticated: ['count<1'] },
    },
    0,
    'soak',
  );
  const ended = (): Promise<[readonly Outage[], readonly Reading[] | undefined]> =>
    Promise.all([outages.end(), metrics?.end()]);
  const { samples, run, void: generatorOverload } = await arrivals.finally(ended);
  if (generatorOverload) throw new VoidRun(generatorOverload);
  const [outageTimes, readings = []] = await ended();
  const after = await readAgain(session, stored);

  const startAtMs = run.summary?.startAtMs;
  if (startAtMs === undefined) throw new VoidRun('k6 does not say when it began');
  const timed = samples.map((one) => ({ ...one, atMs: startAtMs + one.dueMs }));
  const healed = outageTimes.map((outage) => ({ ...outage, servedMs: servedAgain(outage, timed) }));
  const isCalm = ({ atMs, latencyMs }: { atMs: number; latencyMs: number }): boolean =>
    !healed.some(({ beganAtMs, endedAtMs, servedMs }) => {
      const until = servedMs ?? endedAtMs + RECOVERY_MS;
      return atMs <= until && atMs + latencyMs >= beganAtMs;
    });
  const disturbed = timed.filter((one) => !isCalm(one));
  const refused = disturbed.filter(({ status }) => failed(status));
  if (refused.length === 0)
    throw new VoidRun(
      `${outageTimes.length} calls of the fault command made no request fail: is it the right one?`,
    );
  const lastAtMs = timed.reduce((last, { atMs }) => Math.max(last, atMs), 0);
  for (const { endedAtMs, servedMs } of healed)
    // For an outage close to the end of the run, the final read shows whether the target recovered.
    if (servedMs === undefined && (!after || lastAtMs > endedAtMs + RECOVERY_MS))
      session.findings.push({
        id: '7.2-server-error',
        message: `not served again within ${RECOVERY_MS / 1000} s of the fault's end (${new Date(endedAtMs).toISOString()})`,
      });
  return {
    samples: timed.filter(isCalm),
    run,
    lines: [
      describeOutages(healed, refused),
      compareWithStored(session, stored, after),
      ...describeReadings(readings),
    ],
    flat: isFlat(readings),
  };
}

/** Time of the first 200 for a request due after the outage; undefined if later than RECOVERY_MS. */
function servedAgain(
  { endedAtMs }: Outage,
  samples: readonly (Arrival & { readonly atMs: number })[],
): number | undefined {
  const served = samples
    .filter(({ atMs, status }) => atMs >= endedAtMs && status === 200)
    .map(({ atMs, latencyMs }) => atMs + latencyMs)
    .reduce((least, one) => Math.min(least, one), Infinity);
  return served <= endedAtMs + RECOVERY_MS ? served : undefined;
}

/** Reads the stored screenings again; undefined if the target does not recover. */
async function readAgain({ prepared }: Session, { window }: Stored): Promise<Stored | undefined> {
  for (const untilMs = Date.now() + RECOVERY_MS; Date.now() <= untilMs; await sleep(500)) {
    try {
      return await readStored(prepared, window);
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
    }
  }
  return undefined;
}

function describeOutages(
  outages: readonly (Outage & { readonly servedMs: number | undefined })[],
  refused: readonly Arrival[],
): string {
  const seconds = (ms: number): string => (ms / 1000).toFixed(1);
  const lengths = outages.map(({ beganAtMs, endedAtMs }) => endedAtMs - beganAtMs);
  const slowest = largest(outages.map(({ endedAtMs, servedMs = endedAtMs }) => servedMs - endedAtMs));
  const counts = new Map<number, number>();
  for (const { status } of refused) counts.set(status, (counts.get(status) ?? 0) + 1);
  const answers = [...counts].map(([status, count]) => `${status || 'no answer'} × ${count}`);
  return [
    `${outages.length} outages of ${seconds(smallest(lengths))} to ${seconds(largest(lengths))} s: ${answers.join(', ')}`,
    `served again after ${seconds(slowest)} s at most`,
  ].join('; ');
}

/** Adds findings for pages that differ from the screenings stored before; returns the summary line. */
function compareWithStored(session: Session, before: Stored, after: Stored | undefined): string {
  const { lost, added } = changes(before, after ?? before);
  if (lost.length > 0)
    session.findings.push({
      id: '4.2-repeatable',
      message: `${lost.length} screenings that were served before the outages are not served after them, the first of them item ${lost[0]!.id}`,
    });
  const { comparedPages, storedMismatches } = session.judge;
  if (added) return `screenings were added meanwhile: ${comparedPages} pages are held against nothing`;
  session.findings.push(...storedMismatches);
  return `${comparedPages} pages held against the ${before.items.flat().length} screenings stored`;
}

/** With fewer readings growth is not judged, as a process grows while it warms up. */
const LEAST_READINGS = 120;
const GROWTH = 1.25;
const ROOM_MB = 16;

const quarter = (readings: readonly Reading[], from: number): readonly Reading[] =>
  readings.slice(Math.floor((readings.length * from) / 4), Math.floor((readings.length * (from + 1)) / 4));

const growthOf = (readings: readonly Reading[], of: keyof Reading): readonly [number, number] => [
  median(quarter(readings, 1).map((one) => one[of])),
  median(quarter(readings, 3).map((one) => one[of])),
];

function isFlat(readings: readonly Reading[]): boolean {
  if (readings.length < LEAST_READINGS) return true;
  return (['memoryMb', 'connections', 'resources'] as const).every((of) => {
    const [before, then] = growthOf(readings, of);
    return then <= before * GROWTH + ROOM_MB;
  });
}

function describeReadings(readings: readonly Reading[]): string[] {
  if (readings.length < 4) return [];
  const say = (of: keyof Reading, unit: string): string => {
    const [before, then] = growthOf(readings, of);
    return `${before.toFixed(0)} and ${then.toFixed(0)} ${unit}`;
  };
  return [
    `the server in the second quarter and in the last: ${say('memoryMb', 'MB')}, ${say('connections', 'connections to the database')}, ${say('resources', 'open resources')}${isFlat(readings) ? '' : ': it grows'}`,
  ];
}

interface Reading {
  readonly memoryMb: number;
  /** Connections to its database. */
  readonly connections: number;
  /** Sockets, timers and other handles that keep the process alive. */
  readonly resources: number;
}

const EVERY_MS = 1_000;

/** Reads until `end` is called; failed readings are skipped. */
function watchMetrics(url: string): { end(): Promise<readonly Reading[]> } {
  const stopped = new AbortController();
  const readings: Reading[] = [];
  const watching = (async () => {
    while (!stopped.signal.aborted) {
      const text = await fetch(url, { signal: stopped.signal }).then(
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
      await sleep(EVERY_MS, undefined, { signal: stopped.signal }).catch(() => undefined);
    }
  })();
  return {
    async end() {
      stopped.abort();
      await watching;
      return readings;
    },
  };
}

interface Outage {
  /** When the start command was called, and when the stop command had returned, in milliseconds since the epoch. */
  readonly beganAtMs: number;
  readonly endedAtMs: number;
}

/** Time before the first outage, so that requests are in flight, and after the last one. */
const LEAD_MS = 8_000;
const TAIL_MS = 2_000;
/** Ranges from which the healthy and the failing periods are drawn. */
const HEALTHY_MS = [4_000, 10_000] as const;
const FAILING_MS = [1_000, 4_000] as const;
/** A shorter run has no room for outages. */
export const LEAST_SECONDS = 15;

/** Runs outages until `end` is called, which ends the fault. `end` throws VoidRun if a command failed. */
function beginOutages(
  fault: NonNullable<Target['fault']>,
  seconds: number,
  seed: number,
): { end(): Promise<readonly Outage[]> } {
  const random = randomSource(seed);
  const between = ([least, most]: readonly [number, number]): number => least + random() * (most - least);
  const stopped = new AbortController();
  const untilMs = Date.now() + seconds * 1000 - TAIL_MS;
  const outages: Outage[] = [];
  const pause = (ms: number): Promise<void> => sleep(ms, undefined, { signal: stopped.signal });

  const run = async (): Promise<void> => {
    for (let healthyMs = LEAD_MS; ; healthyMs = between(HEALTHY_MS)) {
      await pause(healthyMs);
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
    (error: unknown) => (stopped.signal.aborted ? undefined : (error as Error)),
  );
  return {
    async end() {
      stopped.abort();
      const error = await running;
      if (error) throw new VoidRun(`a fault command failed: ${error.message}`);
      return outages;
    },
  };
}
