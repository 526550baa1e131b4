/** The limiter's probe in virtual time: a limiter, a way there and back, and nothing to wait for. */
import { probeLimiter, type Probed, type ProbeLimits, type Reply } from '../estimate/limiter-probe.ts';
import { exponential, randomSource } from '../k6/lib/random.ts';

/** Decides on a request at a moment: how long until it would be let through (0: it is), and how long it is held back. */
export type Decide = (atMs: number) => { readonly waitMs: number; readonly delayMs?: number };

export interface Way {
  /** There and back; what jitter adds to each way, in the mean. */
  readonly rttMs: number;
  readonly jitterMs: number;
  /** What Retry-After says of a wait, in seconds; rounded up where it is not said. */
  readonly retryAfter?: (seconds: number) => number;
}

export function probeVirtually(decide: Decide, way: Way, limits: ProbeLimits, seed: number): Probed {
  const random = randomSource(seed);
  const jitter = (): number => 0.2 + exponential(random, way.jitterMs);
  const plan = probeLimiter(limits);
  // Whatever was before is long over.
  const originMs = 10_000_000;
  let nowMs = originMs;
  let step = plan.next();
  while (!step.done) {
    const { notBeforeMs, count, spacingMs } = step.value;
    const startMs = Math.max(nowMs, originMs + notBeforeMs);
    const requests = Array.from({ length: count }, (_, i) => {
      // Sending takes a moment too.
      const sentMs = startMs + i * Math.max(spacingMs, 0.06);
      return { sentMs, arrivesMs: sentMs + way.rttMs / 2 + jitter() };
    });
    const replies = requests
      .sort((a, b) => a.arrivesMs - b.arrivesMs)
      .map(({ sentMs, arrivesMs }): Reply => {
        const { waitMs, delayMs = 0 } = decide(arrivesMs);
        const rttMs = arrivesMs - sentMs + delayMs + way.rttMs / 2 + jitter();
        nowMs = Math.max(nowMs, sentMs + rttMs);
        const retryAfterSeconds = Math.max(0, (way.retryAfter ?? Math.ceil)(waitMs / 1000));
        return {
          sentMs: Math.floor(sentMs - originMs),
          rttMs,
          ok: waitMs === 0,
          ...(waitMs > 0 ? { retryAfterSeconds } : {}),
        };
      });
    step = plan.next(replies);
  }
  return step.value;
}
