/** The load on the generator's machine: processor time and memory of a process, and pressure by other processes. */
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

/** Unit of process times on Linux. */
const TICKS_PER_SECOND = 100;

/** Empty if there is no such file, as on other systems than Linux. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Processor time in seconds, user and system; undefined except on Linux. */
export function cpuSeconds(pid: number): number | undefined {
  const stat = read(`/proc/${pid}/stat`);
  // The name in parentheses may contain spaces, so fields are counted after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return stat === '' ? undefined : (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Resident memory of a process; undefined except on Linux. */
export function residentMegabytes(pid: number): number | undefined {
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1];
  return kilobytes === undefined ? undefined : Number(kilobytes) / 1024;
}

export type Pressure = ReturnType<ReturnType<typeof measurePressure>>;

function reading() {
  const cpu = (/^cpu +(.*)/m.exec(read('/proc/stat'))?.[1] ?? '').split(' ').map(Number);
  const count = (path: string, field: RegExp): number => Number(field.exec(read(path))?.[1] ?? 0);
  return {
    atMs: performance.now(),
    waitingMs: count('/proc/pressure/cpu', /^some .*total=(\d+)/m) / 1000,
    stolenTicks: cpu[7] ?? 0,
    idleTicks: (cpu[3] ?? 0) + (cpu[4] ?? 0),
    ticks: cpu.slice(0, 8).reduce((sum, one) => sum + one, 0),
    // cgroup v2 in microseconds, v1 in nanoseconds.
    throttledMs: Math.max(
      count('/sys/fs/cgroup/cpu.stat', /^throttled_usec (\d+)/m) / 1e3,
      count('/sys/fs/cgroup/cpu/cpu.stat', /^throttled_time (\d+)/m) / 1e6,
    ),
  };
}

/**
 * Starts measuring; the returned function gives the shares of the time since then in which tasks waited for a processor,
 * the hypervisor took it away, or the container's quota was used up, and the busy share of all processors. Unknown: 0.
 */
export function measurePressure() {
  const before = reading();
  return () => {
    const now = reading();
    const grown = (of: keyof typeof now): number => now[of] - before[of];
    const [ms, ticks] = [Math.max(1, grown('atMs')), Math.max(1, grown('ticks'))];
    return {
      waiting: grown('waitingMs') / ms,
      stolen: grown('stolenTicks') / ticks,
      throttled: grown('throttledMs') / ms,
      busy: 1 - grown('idleTicks') / ticks,
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
