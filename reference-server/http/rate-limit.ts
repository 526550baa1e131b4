/** Rate limits per client (section 8 leaves kind, threshold and window open; section 7.2 wants Retry-After). */
import type { Admission, RateLimiter } from '../parts.ts';

export const RATE_ALGORITHMS = ['fixed-window', 'sliding-window', 'token-bucket'] as const;
export type RateAlgorithm = (typeof RATE_ALGORITHMS)[number];

export interface RateLimit {
  /** Requests per window. */
  readonly limit: number;
  readonly windowMs: number;
  /** Default fixed-window. */
  readonly algorithm?: RateAlgorithm;
  /** What a full bucket holds. Default: the limit. Token bucket only. */
  readonly burst?: number;
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Reads `100/10s` (units ms, s, m, h). Throws a RangeError for anything else. */
export function parseRate(text: string): Pick<RateLimit, 'limit' | 'windowMs'> {
  const match = /^(\d+)\/(\d*)(ms|s|m|h)$/.exec(text);
  const limit = Number(match?.[1]);
  const windowMs = Number(match?.[2] || 1) * (UNIT_MS[match?.[3] ?? ''] ?? NaN);
  if (!(limit >= 1 && windowMs >= 1)) {
    throw new RangeError(`${JSON.stringify(text)} is no rate: expected requests/duration such as 100/10s`);
  }
  return { limit, windowMs };
}

export function createRateLimiter(rate: RateLimit): RateLimiter {
  return {
    'fixed-window': fixedWindow,
    'sliding-window': slidingWindow,
    'token-bucket': tokenBucket,
  }[rate.algorithm ?? 'fixed-window'](rate);
}

const ADMITTED: Admission = { admitted: true };

/** Whole seconds, rounded up, so that a request after that wait is served. */
const refused = (waitMs: number): Admission => ({
  admitted: false,
  retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
});

/** Fixed windows, aligned to the clock, each with its own counter. */
function fixedWindow({ limit, windowMs }: RateLimit): RateLimiter {
  const counts = new Map<string, { window: number; count: number }>();
  return {
    admit(clientId, nowMs) {
      const window = Math.floor(nowMs / windowMs);
      const held = counts.get(clientId);
      if (held?.window !== window) {
        counts.set(clientId, { window, count: 1 });
        return ADMITTED;
      }
      if (held.count >= limit) return refused((window + 1) * windowMs - nowMs);
      held.count += 1;
      return ADMITTED;
    },
  };
}

/** No stretch of one window's length, wherever it begins, holds more than the limit. */
function slidingWindow({ limit, windowMs }: RateLimit): RateLimiter {
  // The moments of the last `limit` requests admitted, in a ring: the place to be written next holds the oldest.
  const rings = new Map<string, { moments: Float64Array; next: number }>();
  return {
    admit(clientId, nowMs) {
      let ring = rings.get(clientId);
      if (!ring) rings.set(clientId, (ring = { moments: new Float64Array(limit).fill(-Infinity), next: 0 }));
      const oldest = ring.moments[ring.next] ?? -Infinity;
      if (oldest + windowMs > nowMs) return refused(oldest + windowMs - nowMs);
      ring.moments[ring.next] = nowMs;
      ring.next = (ring.next + 1) % limit;
      return ADMITTED;
    },
  };
}

/** A bucket of `burst` tokens, filled at limit per window; each request takes one. */
function tokenBucket({ limit, windowMs, burst = limit }: RateLimit): RateLimiter {
  const msPerToken = windowMs / limit;
  // Kept as the moment at which the bucket was or will be full: no rounding adds up.
  const fullAt = new Map<string, number>();
  return {
    admit(clientId, nowMs) {
      const full = Math.max(fullAt.get(clientId) ?? nowMs, nowMs);
      const waitMs = full - nowMs - (burst - 1) * msPerToken;
      if (waitMs > 0) return refused(waitMs);
      fullAt.set(clientId, full + msPerToken);
      return ADMITTED;
    },
  };
}
