/** `verify limiters`: the limiter's probe in virtual time, behind round trips of 0 to 80 ms. */
import { identifyLimiter } from '../estimate/limiter-fit.ts';
import { createLimiter } from '../estimate/limiter-models.ts';
import { randomSource } from '../k6/lib/random.ts';
import { probeVirtually } from '../simulated/probe.ts';
import { drawLimiters, errorsOf, type RateLimitRow } from './rate-limit.ts';

const LIMITS = { maxRequests: 5000, maxSeconds: 360 };

export function verifyLimiters(limiters: number, seed: number): RateLimitRow[] {
  const random = randomSource(seed ^ 0x1177);
  return drawLimiters(limiters, seed).map((truth, index) => {
    const limiter = createLimiter(truth);
    const rttMs = Math.round(80 * random());
    const way = { rttMs, jitterMs: 0.2 + random() * (0.3 + rttMs / 60) };
    const probed = probeVirtually((atMs) => ({ waitMs: limiter.ask(atMs) }), way, LIMITS, seed + index);
    const found = identifyLimiter(probed);
    return { truth, found, rttMs, ...errorsOf(truth, found) };
  });
}
