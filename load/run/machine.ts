/** The state of the generating machine: processor time and memory of one process, and pressure by others. */
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

/** Linux counts in hundredths of a second for every process. */
const TICKS_A_SECOND = 100;

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** Seconds of processor time, user and system; undefined where the system does not tell (only Linux does). */
export function cpuSeconds(pid: number): number | undefined {
  const stat = read(`/proc/${pid}/stat`);
  // The name in parentheses may hold spaces: fields are counted from after it.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields && (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
}

/** The resident memory of a process; undefined where the system does not tell. */
export function residentMegabytes(pid: number): number | undefined {
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(read(`/proc/${pid}/status`) ?? '')?.[1];
  return kilobytes === undefined ? undefined : Number(kilobytes) / 1024;
}

/** Shares of the time: a task waited for a processor, the hypervisor kept it, the container's quota was spent. */
export interface Pressure {
  readonly waiting: number;
  readonly stolen: number;
  readonly throttled: number;
  /** Share of all processors that was in use. */
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

/** Where a container finds its own accounts: cgroup v2 in microseconds, v1 in nanoseconds. */
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

/** Starts to watch; what it returns says how it was since. What the system does not tell is 0. */
export function watchPressure(): () => Pressure {
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

const LOOK_MS = 800;

/** How busy the machine is while nothing of the kit's own is going on. */
export async function pressureAtRest(): Promise<Pressure> {
  const pressure = watchPressure();
  await setTimeout(LOOK_MS);
  return pressure();
}
