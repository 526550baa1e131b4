/** Simulated servers with a limiter of known kind and figures, probed in virtual time. */
import { identifyLimiter, type LimiterFinding } from '../estimate/limiter-fit.ts';
import { largest } from '../estimate/numbers.ts';
import { createLimiter, LIMITER_KINDS, type LimiterSettings } from '../estimate/limiter-models.ts';
import { type Probed, probeLimiter, type ProbeLimits, type Reply } from '../estimate/limiter-probe.ts';
import { exponential, randomSource } from '../k6/lib/random.ts';
import type { Draw, Judged } from './targets.ts';

/** Decides on a request that arrives at `atMs`: 0 or the time until it would be admitted, and the delay by a shaper. */
type Decide = (atMs: number) => { readonly waitMs: number; readonly delayMs?: number };

interface Network {
  /** Round-trip time, and mean jitter of each direction. */
  readonly rttMs: number;
  readonly jitterMs: number;
  /** Returns Retry-After for a wait, both in seconds; default: rounded up. */
  readonly retryAfter?: (seconds: number) => number;
}

/** Runs the limiter's probe in virtual time, without waiting. */
export function probeVirtually(decide: Decide, network: Network, limits: ProbeLimits, seed: number): Probed {
  const random = randomSource(seed);
  const jitter = (): number => 0.2 + exponential(random, network.jitterMs);
  const plan = probeLimiter(limits);
  // Later than the longest window, so that the limiters are at rest.
  const originMs = 10_000_000;
  let nowMs = originMs;
  let step = plan.next();
  while (!step.done) {
    const { notBeforeMs, count, spacingMs } = step.value;
    const startMs = Math.max(nowMs, originMs + notBeforeMs);
    const requests = Array.from({ length: count }, (_, i) => {
      // 0.06 ms: the time that sending a request takes.
      const sentMs = startMs + i * Math.max(spacingMs, 0.06);
      return { sentMs, arrivesMs: sentMs + network.rttMs / 2 + jitter() };
    });
    const replies = requests
      .sort((a, b) => a.arrivesMs - b.arrivesMs)
      .map(({ sentMs, arrivesMs }): Reply => {
        const { waitMs, delayMs = 0 } = decide(arrivesMs);
        const rttMs = arrivesMs - sentMs + delayMs + network.rttMs / 2 + jitter();
        nowMs = Math.max(nowMs, sentMs + rttMs);
        const retryAfterSeconds = Math.max(0, (network.retryAfter ?? Math.ceil)(waitMs / 1000));
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

const LIMITS = { maxRequests: 5000, maxSeconds: 360 };
const TOLERANCE = 0.05;

/** Limits of 20 to 150 in 1 to 4 s, a quarter of each kind; a bucket's burst is a third to twice its limit. */
function drawLimiter(index: number, random: () => number): LimiterSettings {
  const kind = LIMITER_KINDS[index % LIMITER_KINDS.length]!;
  const limit = 20 + Math.floor(random() * 130);
  const windowMs = Math.round(1000 + random() * 3000);
  const burst = Math.max(5, Math.floor(limit * (0.33 + random() * 1.6)));
  const phaseMs = Math.floor(random() * windowMs);
  return { kind, limit, windowMs, ...(kind === 'token-bucket' ? { burst } : { phaseMs }) };
}

const verdictOf = (found: LimiterFinding, right: boolean): Judged['verdict'] =>
  right ? 'right' : found.kind === 'cannot-tell' && !found.shaper ? 'undecided' : 'wrong';

/** Compares kind and figures with the truth; the error is the larger one of limit and window. */
function judgeLimiter(truth: LimiterSettings, found: LimiterFinding): Judged {
  const bucket = truth.kind === 'token-bucket';
  const paced = bucket ? (truth.limit * 1000) / truth.windowMs : truth.windowMs / 1000;
  const limitError = (found.limit ?? found.burst ?? NaN) / (bucket ? truth.burst! : truth.limit) - 1;
  const windowError = ((bucket ? found.ratePerSecond : found.windowSeconds) ?? NaN) / paced - 1;
  const [low, high] = found.interval ?? [0, 0];
  const right =
    found.kind === truth.kind &&
    Math.abs(limitError) <= TOLERANCE &&
    Math.abs(windowError) <= TOLERANCE &&
    paced > low * 0.99 &&
    paced < high * 1.01 &&
    found.retryAfterHonest !== false;
  const error = Math.abs(limitError) > Math.abs(windowError) ? limitError : windowError;
  return {
    found: describe(found),
    error: Number.isNaN(error) ? undefined : error,
    verdict: verdictOf(found, right),
    seconds: found.watchedSeconds,
  };
}

interface Drawn {
  readonly retryAfter?: (seconds: number) => number;
  readonly name: string;
  readonly truth: string;
  readonly decide: Decide;
  /** The relative error of the figure; undefined without a figure. */
  readonly error?: (found: LimiterFinding) => number | undefined;
  readonly right: (found: LimiterFinding) => boolean;
}

const HOUR = { kind: 'fixed-window', windowMs: 3_600_000, limit: 1000 } as const;

/**
 * nginx's limit_req as in its source: excess in thousandths of requests, whole milliseconds, rejected requests do not
 * count. Without nodelay requests beyond the rate are delayed.
 */
function limitReq(perSecond: number, burst: number, nodelay: boolean): Decide {
  let [excess, lastMs] = [0, -Infinity];
  return (atMs) => {
    const nowMs = Math.floor(atMs);
    const left = lastMs === -Infinity ? 0 : Math.max(0, excess - perSecond * (nowMs - lastMs) + 1000);
    if (left > burst * 1000) return { waitMs: (left - burst * 1000) / perSecond };
    [excess, lastMs] = [left, nowMs];
    return { waitMs: 0, delayMs: nodelay ? 0 : left / perSecond };
  };
}

const OTHER_LIMITERS: readonly ((random: () => number) => Drawn)[] = [
  (random) => {
    const limit = 20 + Math.floor(40 * random());
    const windowMs = 2000 + Math.round(3000 * random());
    const fast = createLimiter({ kind: 'fixed-window', limit, windowMs, phaseMs: windowMs * random() });
    const slow = createLimiter(HOUR);
    return {
      name: 'stacked: a fast one, and 1,000 an hour',
      truth: `${limit} in ${(windowMs / 1000).toFixed(2)} s`,
      decide: (atMs) => ({ waitMs: fast.ask(atMs) || slow.ask(atMs) }),
      error: (found) => found.limit && found.limit / limit - 1,
      right: ({ kind }) => kind === 'fixed-window',
    };
  },
  (random) => {
    const perSecond = 8 + 20 * random();
    const burst = 10 + Math.floor(30 * random());
    const fast = createLimiter({ kind: 'token-bucket', limit: perSecond, windowMs: 1000, burst });
    const slow = createLimiter(HOUR);
    return {
      name: 'stacked: a bucket, and 1,000 an hour',
      truth: `${perSecond.toFixed(1)}/s, burst ${burst}`,
      decide: (atMs) => ({ waitMs: fast.ask(atMs) || slow.ask(atMs) }),
      error: (found) => found.ratePerSecond && found.ratePerSecond / perSecond - 1,
      right: ({ kind }) => kind === 'token-bucket',
    };
  },
  (random) => {
    const perSecond = 10 + 60 * random();
    let freeAtMs = 0;
    return {
      name: 'a shaper that delays',
      truth: `${perSecond.toFixed(1)}/s`,
      decide: (atMs) => {
        freeAtMs = Math.max(freeAtMs, atMs) + 1000 / perSecond;
        return { waitMs: 0, delayMs: freeAtMs - 1000 / perSecond - atMs };
      },
      error: ({ shaper }) => shaper && shaper.ratePerSecond / perSecond - 1,
      right: ({ shaper }) => shaper !== undefined,
    };
  },
  ...(
    [
      ['rounded down', Math.floor],
      ['3 s short', (wait: number) => Math.ceil(wait) - 3],
    ] as const
  ).map(([how, retryAfter]) => (random: () => number): Drawn => {
    const limit = 20 + Math.floor(40 * random());
    const limiter = createLimiter({ kind: 'fixed-window', limit, windowMs: 4500, phaseMs: 4500 * random() });
    return {
      name: `Retry-After ${how}`,
      truth: `${limit} in 4.50 s, Retry-After too short`,
      decide: (atMs) => ({ waitMs: limiter.ask(atMs) }),
      retryAfter,
      error: ({ longRunPerSecond }) => longRunPerSecond && (longRunPerSecond * 4.5) / limit - 1,
      right: ({ retryAfterHonest }) => retryAfterHonest === false,
    };
  }),
  () => ({
    name: "nginx's limit_req, nodelay",
    truth: '60.0/s, burst 41',
    decide: limitReq(60, 40, true),
    error: ({ burst, ratePerSecond }) =>
      ratePerSecond && largest([burst! / 41 - 1, ratePerSecond / 60 - 1].map(Math.abs)),
    right: ({ kind }) => kind === 'token-bucket',
  }),
  () => ({
    name: "nginx's limit_req",
    truth: '60.0/s, 40 held back',
    decide: limitReq(60, 40, false),
    error: ({ shaper }) =>
      shaper && largest([shaper.heldBack / 40 - 1, shaper.ratePerSecond / 60 - 1].map(Math.abs)),
    right: ({ shaper }) => shaper !== undefined,
  }),
  (random) => {
    const limit = 15 + Math.floor(30 * random());
    const windowMs = 1500 + 1500 * random();
    const times: number[] = [];
    return {
      name: 'rejected requests count',
      truth: `${limit} in ${(windowMs / 1000).toFixed(2)} s, Retry-After long enough`,
      decide: (atMs) => {
        while (times.length > 0 && times[0]! <= atMs - windowMs) times.shift();
        times.push(atMs);
        return { waitMs: times.length > limit ? windowMs : 0 };
      },
      right: ({ retryAfterHonest }) => retryAfterHonest !== false,
    };
  },
  (random) => {
    const limit = 30 + Math.floor(30 * random());
    const shared = createLimiter({ kind: 'fixed-window', limit, windowMs: 2000 });
    let lastMs = 0;
    return {
      name: 'a neighbour on the same quota',
      truth: `${limit} in 2.00 s for both, Retry-After long enough`,
      decide: (atMs) => {
        for (let at = lastMs; lastMs > 0 && at < atMs; at += 100) if (random() < 0.9) shared.ask(at);
        lastMs = atMs;
        return { waitMs: shared.ask(atMs) };
      },
      right: ({ retryAfterHonest }) => retryAfterHonest !== false,
    };
  },
];

export const LIMITER_SERVERS = {
  limiters: (index, random, seed) => {
    const settings = drawLimiter(index, random);
    const rttMs = Math.round(80 * random());
    const network = { rttMs, jitterMs: 0.2 + random() * (0.3 + rttMs / 60) };
    const bucket = settings.kind === 'token-bucket';
    const paced = bucket
      ? `burst ${settings.burst}, ${((settings.limit * 1000) / settings.windowMs).toFixed(1)}/s`
      : `${settings.limit} in ${(settings.windowMs / 1000).toFixed(2)} s`;
    return {
      name: `${settings.kind}, ${rttMs} ms away`,
      truth: paced,
      judge: () => {
        const limiter = createLimiter(settings);
        return judgeLimiter(
          settings,
          identifyLimiter(probeVirtually((atMs) => ({ waitMs: limiter.ask(atMs) }), network, LIMITS, seed)),
        );
      },
    };
  },
  'more-limiters': (index, random, seed) => {
    const {
      name,
      truth,
      decide,
      error: errorOf,
      right,
      retryAfter,
    } = OTHER_LIMITERS[index % OTHER_LIMITERS.length]!(random);
    const rttMs = Math.round(60 * random());
    const network = { rttMs, jitterMs: 0.2 + 0.5 * random(), ...(retryAfter ? { retryAfter } : {}) };
    return {
      name: `${name}, ${rttMs} ms away`,
      truth,
      judge: () => {
        const found = identifyLimiter(probeVirtually(decide, network, LIMITS, seed));
        const error = errorOf?.(found);
        const verdict = verdictOf(found, right(found) && Math.abs(error ?? 0) <= TOLERANCE);
        return { found: describe(found), error, verdict, seconds: found.watchedSeconds };
      },
    };
  },
} satisfies Record<string, Draw>;

function describe({
  kind,
  shaper,
  limit,
  windowSeconds,
  burst,
  ratePerSecond,
  retryAfterHonest,
  retryAfter,
  longRunPerSecond,
  alternatives,
}: LimiterFinding) {
  if (shaper) return `shaper, ${shaper.ratePerSecond}/s`;
  const figures =
    limit === undefined ? `burst ${burst}, ${ratePerSecond}/s` : `${limit} in ${windowSeconds} s`;
  return `${kind}${(limit ?? burst) ? `, ${figures}` : ''}${alternatives.length > 0 ? `, or ${alternatives.join(', ')}` : ''}${retryAfterHonest === false ? `, Retry-After too short (${retryAfter!.longEnough} of ${retryAfter!.waits}, ${retryAfter!.worstShortSeconds} s)` : ''}${longRunPerSecond ? `, ${longRunPerSecond}/s` : ''}`;
}
