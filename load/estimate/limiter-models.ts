/**
 * The four common rate limiters by their definitions: the simulated server limits by them, and the estimator
 * asks which of them would have answered as the target did. Pure; runs in k6 and in Node alike. Times in ms.
 */

export const LIMITER_KINDS = ['fixed-window', 'sliding-log', 'sliding-counter', 'token-bucket'] as const;
export type LimiterKind = (typeof LIMITER_KINDS)[number];

export interface LimiterSettings {
  readonly kind: LimiterKind;
  /** Requests a window; for a token bucket, tokens added in windowMs. */
  readonly limit: number;
  readonly windowMs: number;
  /** What a full bucket holds; token bucket only. */
  readonly burst?: number;
  /** Where windows begin: at phaseMs modulo windowMs. Windows on the clock only. */
  readonly phaseMs?: number;
}

export interface Limiter {
  /** How long until a request would be let through; 0 where it is, and then it is counted. */
  ask(nowMs: number): number;
}

export function createLimiter(settings: LimiterSettings): Limiter {
  switch (settings.kind) {
    case 'fixed-window':
      return fixedWindow(settings);
    case 'sliding-log':
      return slidingLog(settings);
    case 'sliding-counter':
      return slidingCounter(settings);
    case 'token-bucket':
      return tokenBucket(settings);
  }
}

/** Windows side by side; each counts anew. */
function fixedWindow({ limit, windowMs, phaseMs = 0 }: LimiterSettings): Limiter {
  let window = -Infinity;
  let count = 0;
  return {
    ask(nowMs) {
      const current = Math.floor((nowMs - phaseMs) / windowMs);
      if (current !== window) [window, count] = [current, 0];
      if (count >= limit) return (current + 1) * windowMs + phaseMs - nowMs;
      count += 1;
      return 0;
    },
  };
}

/** Remembers every request let through: never more than the limit within any stretch of one window. */
function slidingLog({ limit, windowMs }: LimiterSettings): Limiter {
  const times: number[] = [];
  return {
    ask(nowMs) {
      while (times.length > 0 && times[0]! <= nowMs - windowMs) times.shift();
      if (times.length >= limit) return times[times.length - limit]! + windowMs - nowMs;
      times.push(nowMs);
      return 0;
    },
  };
}

/** Two counts: the window before weighs by the share of it that a sliding window would still cover. */
function slidingCounter({ limit, windowMs, phaseMs = 0 }: LimiterSettings): Limiter {
  let window = -Infinity;
  let [before, count] = [0, 0];
  return {
    ask(nowMs) {
      const current = Math.floor((nowMs - phaseMs) / windowMs);
      if (current !== window) {
        before = current === window + 1 ? count : 0;
        [window, count] = [current, 0];
      }
      const intoMs = nowMs - phaseMs - current * windowMs;
      if (before * (1 - intoMs / windowMs) + count + 1 <= limit) {
        count += 1;
        return 0;
      }
      if (count + 1 > limit) {
        // Nothing more in this window; in the next, this one's count has to fade far enough.
        return windowMs - intoMs + windowMs * Math.max(0, 1 - (limit - 1) / count);
      }
      return windowMs * (1 - (limit - 1 - count) / before) - intoMs;
    },
  };
}

/** Tokens drip in at an even pace up to the burst; each request takes one. */
function tokenBucket({ limit, windowMs, burst = limit }: LimiterSettings): Limiter {
  const msPerToken = windowMs / limit;
  let tokens = burst;
  let lastMs = 0;
  return {
    ask(nowMs) {
      tokens = Math.min(burst, tokens + (nowMs - lastMs) / msPerToken);
      lastMs = nowMs;
      if (tokens >= 1 - 1e-9) {
        tokens -= 1;
        return 0;
      }
      return (1 - tokens) * msPerToken;
    },
  };
}
