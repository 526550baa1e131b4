/**
 * The four common rate limiters, once: simulated servers limit by them, and the estimator replays what a target admitted
 * through them, to see which would have answered so. Pure; runs in k6 and in Node alike. Times in ms.
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
  /** A window begins with the first request after the one before is over. Fixed windows only. */
  readonly anchored?: boolean;
}

/** What it has counted; moments may be asked for a little before the last request that was counted. */
interface Model {
  /** By how many requests it is below its limit: from 0 on the next one is admitted. */
  spare(atMs: number): number;
  count(atMs: number): void;
  /** How long until a request would be admitted. */
  waitMs(atMs: number): number;
}

export interface Limiter {
  /** How long until a request would be admitted; 0 where it is, and then it is counted. */
  ask(nowMs: number): number;
}

export function createLimiter(settings: LimiterSettings): Limiter {
  const model = limiterModel(settings);
  return {
    ask(nowMs) {
      if (model.spare(nowMs) < 0) return model.waitMs(nowMs);
      model.count(nowMs);
      return 0;
    },
  };
}

export function limiterModel(settings: LimiterSettings): Model {
  switch (settings.kind) {
    case 'sliding-log':
      return slidingLog(settings);
    case 'token-bucket':
      return tokenBucket(settings);
    default:
      return windows(settings);
  }
}

/** Of counts, half a request lies between the last one that is admitted and the first that is not. */
const BETWEEN = 0.5;

/** Windows side by side. Two counts weigh the window before by the share of it that a sliding window would still cover. */
function windows({ kind, limit, windowMs, phaseMs = 0, anchored }: LimiterSettings): Model {
  let [beginMs, window, older, before, count] = [phaseMs, -Infinity, 0, 0, 0];
  const weighs = kind === 'sliding-counter';
  const indexOf = (atMs: number): number => Math.floor((atMs - beginMs) / windowMs);
  const faded = (atMs: number): number => 1 - ((atMs - beginMs) / windowMs - indexOf(atMs));
  return {
    spare(atMs) {
      const ahead = indexOf(atMs) - window;
      const now = ahead === 0 ? count : ahead < 0 ? before : 0;
      if (!weighs) return limit - now - BETWEEN;
      const last = ahead === 0 ? before : ahead === 1 ? count : ahead < 0 ? older : 0;
      return limit - 1 - now - last * faded(atMs);
    },
    count(atMs) {
      const ahead = indexOf(atMs) - window;
      if (ahead > 0) {
        [older, before, count] = ahead === 1 ? [before, count, 0] : [0, 0, 0];
        if (anchored) beginMs = atMs;
        window = indexOf(atMs);
      }
      if (ahead < 0) before += 1;
      else count += 1;
    },
    waitMs(atMs) {
      const leftMs = windowMs * faded(atMs);
      if (!weighs) return leftMs;
      const ahead = indexOf(atMs) - window;
      const [last, now] = ahead === 0 ? [before, count] : [count, 0];
      // Nothing more in this window; in the next, this one's count has to fade far enough.
      if (now + 1 > limit) return leftMs + windowMs * Math.max(0, 1 - (limit - 1) / now);
      return leftMs - (windowMs * (limit - 1 - now)) / last;
    },
  };
}

/** Remembers every request that it admitted: never more than the limit within any stretch of one window. */
function slidingLog({ limit, windowMs }: LimiterSettings): Model {
  const times: number[] = [];
  return {
    spare(atMs) {
      let [low, high] = [0, times.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (times[middle]! <= atMs - windowMs) low = middle + 1;
        else high = middle;
      }
      return limit - (times.length - low) - BETWEEN;
    },
    count: (atMs) => void times.push(atMs),
    waitMs: (atMs) => times[times.length - Math.ceil(limit)]! + windowMs - atMs,
  };
}

/** Tokens drip in at an even pace up to the burst; each request takes one. */
function tokenBucket({ limit, windowMs, burst = limit }: LimiterSettings): Model {
  const msPerToken = windowMs / limit;
  let [tokens, lastMs] = [burst, 0];
  const spare = (atMs: number): number =>
    Math.min(burst, tokens + (atMs - lastMs) / msPerToken) - 1 + ROUNDING;
  return {
    spare,
    count(atMs) {
      // What a target admitted it admitted: the state follows it.
      [tokens, lastMs] = [Math.max(-BETWEEN, spare(atMs)), atMs];
    },
    waitMs: (atMs) => -spare(atMs) * msPerToken,
  };
}

const ROUNDING = 1e-9;
