/** Models of the four common rate limiters, for simulated servers and the estimator; in k6 and in Node. Times in ms. */

export const LIMITER_KINDS = ['fixed-window', 'sliding-log', 'sliding-counter', 'token-bucket'] as const;
export type LimiterKind = (typeof LIMITER_KINDS)[number];

export interface LimiterSettings {
  readonly kind: LimiterKind;
  /** Requests per window; for a token bucket, tokens added in windowMs. */
  readonly limit: number;
  readonly windowMs: number;
  /** Capacity of the bucket; token bucket only. */
  readonly burst?: number;
  /** Windows begin at phaseMs modulo windowMs; clock-aligned windows only. */
  readonly phaseMs?: number;
  /** A window begins with the first request after the previous window ended; fixed windows only. */
  readonly anchored?: boolean;
}

/** State of a limiter. atMs may lie slightly before the last counted request. */
interface Model {
  /** Distance to the limit in requests; the next one is admitted from 0 on. */
  spare(atMs: number): number;
  /** slackMs: how uncertain the time is. */
  count(atMs: number, slackMs?: number): void;
  /** Time until a request would be admitted. */
  waitMs(atMs: number): number;
}

/** Admits and counts a request and returns 0, or returns the time until one would be admitted. */
export type Limiter = (nowMs: number) => number;

export function createLimiter(settings: LimiterSettings): Limiter {
  const model = limiterModel(settings);
  return (nowMs) => {
    if (model.spare(nowMs) < 0) return model.waitMs(nowMs);
    model.count(nowMs);
    return 0;
  };
}

const MODELS = {
  'fixed-window': windows,
  'sliding-log': slidingLog,
  'sliding-counter': windows,
  'token-bucket': tokenBucket,
};
export const limiterModel = (settings: LimiterSettings): Model => MODELS[settings.kind](settings);

/** Half a request: the threshold lies between the last admitted count and the first rejected one. */
const BETWEEN = 0.5;

/** Successive windows. A sliding counter adds the previous count, weighted by the share that still overlaps. */
function windows({ kind, limit, windowMs, phaseMs = 0, anchored }: LimiterSettings): Model {
  let [beginMs, window, older, before, count] = [phaseMs, -Infinity, 0, 0, 0];
  const isWeighted = kind === 'sliding-counter';
  const indexOf = (atMs: number): number => Math.floor((atMs - beginMs) / windowMs);
  const remainingShare = (atMs: number): number => 1 - ((atMs - beginMs) / windowMs - indexOf(atMs));
  return {
    spare(atMs) {
      const ahead = indexOf(atMs) - window;
      const now = ahead === 0 ? count : ahead < 0 ? before : 0;
      if (!isWeighted) return limit - now - BETWEEN;
      const last = ahead === 0 ? before : ahead === 1 ? count : ahead < 0 ? older : 0;
      return limit - 1 - now - last * remainingShare(atMs);
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
      const leftMs = windowMs * remainingShare(atMs);
      if (!isWeighted) return leftMs;
      const ahead = indexOf(atMs) - window;
      const [last, now] = ahead === 0 ? [before, count] : [count, 0];
      // This window is full; in the next one, its weighted count has to drop far enough.
      if (now + 1 > limit) return leftMs + windowMs * Math.max(0, 1 - (limit - 1) / now);
      return leftMs - (windowMs * (limit - 1 - now)) / last;
    },
  };
}

/** Stores the time of every admitted request: at most `limit` in any interval of windowMs. */
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

/** Refills tokens at a constant rate up to the burst; each request takes one. */
function tokenBucket({ limit, windowMs, burst = limit }: LimiterSettings): Model {
  const msPerToken = windowMs / limit;
  let [tokens, lastMs] = [burst, 0];
  const spare = (atMs: number): number =>
    Math.min(burst, tokens + (atMs - lastMs) / msPerToken) - 1 + ROUNDING;
  return {
    spare,
    count(atMs, slackMs = 0) {
      // A replay counts every request that the target admitted, even without a token. Tokens of the uncertain time stay
      // owed: forgiven ones would add up, and the rate would seem lower.
      [tokens, lastMs] = [Math.max(-BETWEEN - slackMs / msPerToken, spare(atMs)), atMs];
    },
    waitMs: (atMs) => -spare(atMs) * msPerToken,
  };
}

const ROUNDING = 1e-9;
