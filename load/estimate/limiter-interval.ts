/** How well the answers tell a limiter's window, or the rate of a bucket: what explains them about as well. */
import { countMisses, evidenceOf, type Candidate } from './limiter-evidence.ts';
import type { Observation } from './limiter-probe.ts';

/** One answer more at odds is no contradiction. */
const AS_WELL = 1;
const STEP = 1.001;
const WIDEST = 1.25;

/** The shortest and the longest window, for a bucket the time that so many tokens take, that the answers leave possible. */
export function windowsBetween(
  seen: readonly Observation[],
  found: Candidate,
): readonly [lowMs: number, highMs: number] {
  const evidence = evidenceOf(seen);
  const most = countMisses(evidence, found, Infinity) + AS_WELL;
  const middleMs = (seen[0]!.atMs + seen.at(-1)!.atMs) / 2;
  const { phaseMs } = found;
  const edgeMs =
    phaseMs === undefined
      ? undefined
      : phaseMs + Math.round((middleMs - phaseMs) / found.windowMs) * found.windowMs;
  const explains = (windowMs: number): boolean => {
    // The edge in the middle stays: a longer window moves the first ones back and the last ones on.
    const scaled = { ...found, windowMs, ...(edgeMs === undefined ? {} : { phaseMs: edgeMs % windowMs }) };
    return countMisses(evidence, scaled, most) <= most;
  };
  const furthest = (step: number): number => {
    let windowMs = found.windowMs;
    while (Math.abs(Math.log(windowMs / found.windowMs)) < Math.log(WIDEST) && explains(windowMs * step))
      windowMs *= step;
    return windowMs * step;
  };
  return [furthest(1 / STEP), furthest(STEP)];
}
