/** The processor time that a process has used. */
import { readFileSync } from 'node:fs';

/** Linux counts in hundredths of a second for every process. */
const TICKS_A_SECOND = 100;

/** Seconds of processor time, user and system; undefined where the system does not tell (only Linux does). */
export function cpuSeconds(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may hold spaces: fields are counted from behind it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
  } catch {
    return undefined;
  }
}
