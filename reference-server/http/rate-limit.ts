/** Rate limits per client (section 8 leaves kind, threshold and window open; section 7.2 requires Retry-After). */
import type { RateLimiter } from '../parts.ts';

export const RATE_ALGORITHMS = ['fixed-window', 'sliding-window', 'token-bucket'] as const;
export type RateAlgorithm = (typeof RATE_ALGORITHMS)[number];

export interface RateLimit {
  readonly limit: number;
  readonly windowMs: number;
  /** Default fixed-window. */
  readonly algorithm?: RateAlgorithm;
  /** Capacity of the bucket. Default: the limit. For the token bucket only. */
  readonly burst?: number;
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Parses `100/10s` (units ms, s, m, h); undefined for anything else. */
export function parseRate(text: string): Pick<RateLimit, 'limit' | 'windowMs'> | undefined {
  const match = /^(\d+)\/(\d*)(ms|s|m|h)$/.exec(text);
  const limit = Number(match?.[1]);
  const windowMs = Number(match?.[2] || 1) * (UNIT_MS[match?.[3] ?? ''] ?? NaN);
  return limit >= 1 && windowMs >= 1 ? { limit, windowMs } : undefined;
}

export function createRateLimiter(rate: RateLimit): RateLimiter {
  return { 'fixed-window': fixedWindow, 'sliding-window': slidingWindow, 'token-bucket': tokenBucket }[
    rate.algorithm ?? 'fixed-window'
  ](rate);
}

/** Rounds up, so that a request after this wait is admitted. */
const inSeconds = (waitMs: number): number => Math.max(1, Math.ceil(waitMs / 1000));

/** Fixed windows, aligned to the clock. */
function fixedWindow({ limit, windowMs }: RateLimit): RateLimiter {
  const counts = new Map<string, { window: number; count: number }>();
  return (clientId, nowMs) => {
    const window = Math.floor(nowMs / windowMs);
    const held = counts.get(clientId);
    if (held?.window !== window) {
      counts.set(clientId, { window, count: 1 });
      return undefined;
    }
    if (held.count >= limit) return inSeconds((window + 1) * windowMs - nowMs);
    held.count += 1;
    return undefined;
  };
}

/** Admits at most `limit` requests in any interval of one window's length. */
function slidingWindow({ limit, windowMs }: RateLimit): RateLimiter {
  // A ring buffer of the last `limit` admissions; `next` is the index of the oldest.
  const rings = new Map<string, { moments: Float64Array; next: number }>();
  return (clientId, nowMs) => {
    let ring = rings.get(clientId);
    if (!ring) rings.set(clientId, (ring = { moments: new Float64Array(limit).fill(-Infinity), next: 0 }));
    const oldest = ring.moments[ring.next] ?? -Infinity;
    if (oldest + windowMs > nowMs) return inSeconds(oldest + windowMs - nowMs);
    ring.moments[ring.next] = nowMs;
    ring.next = (ring.next + 1) % limit;
    return undefined;
  };
}

/** A bucket of `burst` tokens that refills at `limit` per window; each request takes one. */
function tokenBucket({ limit, windowMs, burst = limit }: RateLimit): RateLimiter {
  const msPerToken = windowMs / limit;
  // The state is the moment at which the bucket is full, so that rounding errors do not accumulate.
  const fullAt = new Map<string, number>();
  return (clientId, nowMs) => {
    const full = Math.max(fullAt.get(clientId) ?? nowMs, nowMs);
    const waitMs = full - nowMs - (burst - 1) * msPerToken;
    if (waitMs > 0) return inSeconds(waitMs);
    fullAt.set(clientId, full + msPerToken);
    return undefined;
  };
}
