/** The load on the generator's machine: processor time and memory of a process, and pressure by other processes. */
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

/** Unit of process times on Linux. */
const TICKS_PER_SECOND = 100;

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** Processor time in seconds, user and system; undefined except on Linux. */
export function cpuSeconds(pid: number): number | undefined {
  const stat = read(`/proc/${pid}/stat`);
  // The name in parentheses may contain spaces, so fields are counted after it.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields && (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Resident memory of a process; undefined except on Linux. */
export function residentMegabytes(pid: number): number | undefined {
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(read(`/proc/${pid}/status`) ?? '')?.[1];
  return kilobytes === undefined ? undefined : Number(kilobytes) / 1024;
}

/** Shares of time: tasks waited for a processor, the hypervisor took it away, or the container's quota was used up. */
export interface Pressure {
  readonly waiting: number;
  readonly stolen: number;
  readonly throttled: number;
  /** Share of all processors in use. */
  readonly busy: number;
}

interface Reading {
  readonly atMs: number;
  readonly waitingMs: number;
  readonly stolenTicks: number;
  readonly ticks: number;
  readonly idleTicks: number;
  readonly throttledMs: number;
}

/** The container's throttling statistics: cgroup v2 in microseconds, v1 in nanoseconds. */
const THROTTLED: readonly (readonly [path: string, field: RegExp, perMs: number])[] = [
  ['/sys/fs/cgroup/cpu.stat', /^throttled_usec (\d+)/m, 1000],
  ['/sys/fs/cgroup/cpu/cpu.stat', /^throttled_time (\d+)/m, 1e6],
];

function reading(): Reading {
  const waited = /^some .*total=(\d+)/m.exec(read('/proc/pressure/cpu') ?? '')?.[1] ?? 0;
  const cpu = (/^cpu +(.*)/m.exec(read('/proc/stat') ?? '')?.[1] ?? '').split(' ').map(Number);
  const throttled = THROTTLED.map(([path, field, perMs]) => {
    const count = field.exec(read(path) ?? '')?.[1];
    return count === undefined ? 0 : Number(count) / perMs;
  });
  return {
    atMs: performance.now(),
    waitingMs: Number(waited) / 1000,
    stolenTicks: cpu[7] ?? 0,
    idleTicks: (cpu[3] ?? 0) + (cpu[4] ?? 0),
    ticks: cpu.slice(0, 8).reduce((sum, one) => sum + one, 0),
    throttledMs: Math.max(...throttled),
  };
}

/** Starts measuring; the returned function gives the pressure since then. Unknown values are 0. */
export function measurePressure(): () => Pressure {
  const before = reading();
  return () => {
    const now = reading();
    const ms = Math.max(1, now.atMs - before.atMs);
    return {
      waiting: (now.waitingMs - before.waitingMs) / ms,
      stolen: (now.stolenTicks - before.stolenTicks) / Math.max(1, now.ticks - before.ticks),
      throttled: (now.throttledMs - before.throttledMs) / ms,
      busy: 1 - (now.idleTicks - before.idleTicks) / Math.max(1, now.ticks - before.ticks),
    };
  };
}

const MEASURE_MS = 800;

/** The pressure on the machine while the kit generates no load. */
export async function pressureAtRest(): Promise<Pressure> {
  const pressure = measurePressure();
  await setTimeout(MEASURE_MS);
  return pressure();
}
