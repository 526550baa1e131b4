/** Simulated servers with a limiter of known kind and figures, probed in virtual time. */
import { identifyLimiter, type LimiterFinding } from '../estimate/limiter-fit.ts';
import { LIMITER_KINDS, type LimiterSettings } from '../estimate/limiter-models.ts';
import { type Probed, probeLimiter, type ProbeLimits, type Reply } from '../estimate/limiter-probe.ts';
import { largest } from '../estimate/numbers.ts';
import { exponential, randomSource } from '../k6/lib/random.ts';
import {
  ADMITS,
  banning,
  type Draw,
  failingRandomly,
  type Judged,
  leakyBucket,
  limited,
  limitingConcurrency,
  queueing,
  rejection,
  type VirtualTarget,
} from './targets.ts';

const DISTRIBUTIONS = ['deterministic', 'exponential'] as const;

interface Network {
  /** Round-trip time, and mean jitter of each direction. */
  readonly rttMs: number;
  readonly jitterMs: number;
}

/** Runs the limiter's probe in virtual time, without waiting. */
export function probeVirtually(
  target: VirtualTarget,
  network: Network,
  limits: ProbeLimits,
  seed: number,
): Probed {
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
        const { latencyMs, status, retryAfterSeconds } = target(arrivesMs);
        const rttMs = arrivesMs - sentMs + latencyMs + network.rttMs / 2 + jitter();
        nowMs = Math.max(nowMs, sentMs + rttMs);
        return { sentMs: Math.floor(sentMs - originMs), rttMs, ok: status === 200, retryAfterSeconds };
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

interface Drawn {
  readonly name: string;
  readonly truth: string;
  readonly target: VirtualTarget;
  /** The relative errors of the figures; undefined without a figure. */
  readonly errors?: (found: LimiterFinding) => readonly (number | undefined)[];
  readonly right: (found: LimiterFinding) => boolean;
}

const within = (limit: number, windowMs: number): string => `${limit} in ${(windowMs / 1000).toFixed(2)} s`;
const HOUR = { kind: 'fixed-window', windowMs: 3_600_000, limit: 1000 } as const;
const isHonest = ({ retryAfterHonest }: LimiterFinding): boolean => retryAfterHonest !== false;
const ratio = (found: number | undefined, truth: number): number | undefined => found && found / truth - 1;

/** Compares kind, figures and their interval with the truth. */
function plain(settings: LimiterSettings): Drawn {
  const { kind, limit, windowMs, burst } = settings;
  const bucket = kind === 'token-bucket';
  const paced = bucket ? (limit * 1000) / windowMs : windowMs / 1000;
  return {
    name: kind,
    truth: bucket ? `burst ${burst}, ${paced.toFixed(1)}/s` : within(limit, windowMs),
    target: limited(settings),
    errors: (found) => [
      (found.limit ?? found.burst ?? NaN) / (bucket ? burst! : limit) - 1,
      ((bucket ? found.ratePerSecond : found.windowSeconds) ?? NaN) / paced - 1,
    ],
    right: (found) => {
      const [low, high] = found.interval ?? [0, 0];
      return found.kind === kind && paced > low * 0.99 && paced < high * 1.01 && isHonest(found);
    },
  };
}

const SHORT_RETRY_AFTER: Readonly<Record<string, (seconds: number) => number>> = {
  'rounded down': Math.floor,
  '3 s short': (seconds) => Math.ceil(seconds) - 3,
};
const isNamed = ({ kind }: LimiterFinding): boolean => kind !== 'cannot-tell' && kind !== 'none-found';

const OTHER_LIMITERS: readonly ((random: () => number) => Drawn)[] = [
  (random) => {
    const limit = 20 + Math.floor(40 * random());
    const windowMs = 2000 + Math.round(3000 * random());
    return {
      name: 'stacked: a fast one, and 1,000 an hour',
      truth: within(limit, windowMs),
      target: limited([{ kind: 'fixed-window', limit, windowMs, phaseMs: windowMs * random() }, HOUR]),
      errors: (found) => [ratio(found.limit, limit)],
      right: ({ kind }) => kind === 'fixed-window',
    };
  },
  (random) => {
    const perSecond = 8 + 20 * random();
    const burst = 10 + Math.floor(30 * random());
    return {
      name: 'stacked: a bucket, and 1,000 an hour',
      truth: `${perSecond.toFixed(1)}/s, burst ${burst}`,
      target: limited([{ kind: 'token-bucket', limit: perSecond, windowMs: 1000, burst }, HOUR]),
      errors: (found) => [ratio(found.ratePerSecond, perSecond)],
      right: ({ kind }) => kind === 'token-bucket',
    };
  },
  (random) => {
    const perSecond = 10 + 60 * random();
    return {
      name: 'a shaper that delays',
      truth: `${perSecond.toFixed(1)}/s`,
      target: leakyBucket(perSecond, Infinity, true),
      errors: ({ shaper }) => [ratio(shaper?.ratePerSecond, perSecond)],
      right: ({ shaper }) => shaper !== undefined,
    };
  },
  ...Object.entries(SHORT_RETRY_AFTER).map(([how, retryAfter]) => (random: () => number): Drawn => {
    const limit = 20 + Math.floor(40 * random());
    const settings = { kind: 'fixed-window', limit, windowMs: 4500, phaseMs: 4500 * random() } as const;
    return {
      name: `Retry-After ${how}`,
      truth: `${within(limit, 4500)}, Retry-After too short`,
      target: limited(settings, { retryAfter }),
      errors: ({ longRunPerSecond }) => [ratio(longRunPerSecond, limit / 4.5)],
      right: (found) => !isHonest(found),
    };
  }),
  () => ({
    name: "nginx's limit_req, nodelay",
    truth: '60.0/s, burst 41',
    target: leakyBucket(60, 40, false),
    errors: ({ burst, ratePerSecond }) => [ratio(burst, 41), ratio(ratePerSecond, 60)],
    right: ({ kind }) => kind === 'token-bucket',
  }),
  () => ({
    name: "nginx's limit_req",
    truth: '60.0/s, 40 held back',
    target: leakyBucket(60, 40, true),
    errors: ({ shaper }) => [ratio(shaper?.heldBack, 40), ratio(shaper?.ratePerSecond, 60)],
    right: ({ shaper }) => shaper !== undefined,
  }),
  (random) => {
    const limit = 15 + Math.floor(30 * random());
    const windowMs = 1500 + 1500 * random();
    const times: number[] = [];
    return {
      name: 'rejected requests count',
      truth: `${within(limit, windowMs)}, Retry-After long enough`,
      target: (atMs) => {
        while (times.length > 0 && times[0]! <= atMs - windowMs) times.shift();
        times.push(atMs);
        return times.length > limit ? rejection(windowMs / 1000) : ADMITS(atMs);
      },
      right: isHonest,
    };
  },
  (random) => {
    const limit = 30 + Math.floor(30 * random());
    const shared = limited({ kind: 'fixed-window', limit, windowMs: 2000 });
    let lastMs = 0;
    return {
      name: 'a neighbour on the same quota',
      truth: `${limit} in 2.00 s for both, Retry-After long enough`,
      target: (atMs) => {
        for (let at = lastMs; lastMs > 0 && at < atMs; at += 100) if (random() < 0.9) shared(at);
        lastMs = atMs;
        return shared(atMs);
      },
      right: isHonest,
    };
  },
  (random) => {
    const limit = 20 + Math.floor(60 * random());
    const windowMs = 1500 + Math.round(3000 * random());
    return {
      name: 'a window that begins with its first request',
      truth: within(limit, windowMs),
      target: limited({ kind: 'fixed-window', limit, windowMs, anchored: true }),
      errors: (found) => [ratio(found.limit, limit), ratio(found.windowSeconds, windowMs / 1000)],
      right: ({ kind }) => kind === 'fixed-window',
    };
  },
  (random) => {
    const limit = 30 + Math.floor(30 * random());
    return {
      name: 'a minute of the wall clock',
      truth: within(limit, 60_000),
      target: limited({ kind: 'fixed-window', limit, windowMs: 60_000, phaseMs: 60_000 * random() }),
      errors: (found) => [ratio(found.limit, limit), ratio(found.windowSeconds, 60)],
      right: ({ kind }) => kind === 'fixed-window',
    };
  },
  (random) => {
    const limit = 20 + Math.floor(40 * random());
    return {
      name: 'a ban after a rejection',
      truth: `${limit} in 2.00 s, then out for 5 s`,
      target: banning(limit, 2000, 5000),
      right: (found) => !isNamed(found),
    };
  },
];

/** No limiter of requests, and what looks like one. */
const NO_LIMITERS: readonly ((random: () => number, seed: number) => Drawn)[] = [
  () => ({ name: 'no limiter', truth: 'none', target: ADMITS, right: ({ kind }) => kind === 'none-found' }),
  (random, seed) => {
    const workers = 1 + Math.floor(6 * random());
    return {
      name: `a slow server with ${workers} workers`,
      truth: 'none',
      target: queueing(
        { workers, serviceMs: 10 + 40 * random(), distribution: DISTRIBUTIONS[workers % 2]! },
        seed,
      ),
      right: ({ kind }) => kind === 'none-found',
    };
  },
  (random, seed) => {
    const limit = 5 + Math.floor(40 * random());
    const rest = queueing({ workers: 1000, serviceMs: 80, distribution: DISTRIBUTIONS[limit % 2]! }, seed);
    return {
      name: 'a concurrency limit per address',
      truth: `${limit} at the same time`,
      target: limitingConcurrency(rest, limit, 429),
      errors: ({ atOnce }) => [atOnce && Math.max(0, Math.abs(atOnce - limit) - 1) / limit],
      right: ({ atOnce }) => atOnce !== undefined,
    };
  },
  (random, seed) => ({
    name: '429 at random',
    truth: 'no quota',
    target: failingRandomly(0.1 + 0.5 * random(), 429, ADMITS, seed),
    right: (found) => !isNamed(found),
  }),
  (random, seed) => {
    const limit = 20 + Math.floor(20 * random());
    const service = { workers: 1, serviceMs: 10, distribution: 'deterministic' } as const;
    return {
      name: 'a window in front of a single worker',
      truth: within(limit, 3000),
      target: limited({ kind: 'fixed-window', limit, windowMs: 3000 }, { rest: queueing(service, seed) }),
      right: ({ kind, alternatives }) => [kind, ...alternatives].includes('fixed-window'),
    };
  },
];

const judged = ({ name, truth, target, errors, right }: Drawn, net: Network, seed: number) => ({
  name: `${name}, ${net.rttMs} ms away`,
  truth,
  judge: (): Judged => {
    const found = identifyLimiter(probeVirtually(target, net, LIMITS, seed));
    const known = (errors?.(found) ?? []).flatMap((one) => (one === undefined ? [] : [one]));
    const worst = largest(known.map(Math.abs), 0);
    const error = known.find((one) => Math.abs(one) === worst);
    const isRight = right(found) && known.every((one) => Math.abs(one) <= TOLERANCE);
    const isOpen = found.kind === 'cannot-tell' && !found.shaper;
    const verdict = isRight ? 'right' : isOpen ? 'undecided' : 'wrong';
    return { found: describe(found), error, verdict, seconds: found.watchedSeconds };
  },
});

export const LIMITER_SERVERS = {
  limiters: (index, random, seed) => {
    const drawn = plain(drawLimiter(index, random));
    const rttMs = Math.round(80 * random());
    return judged(drawn, { rttMs, jitterMs: 0.2 + random() * (0.3 + rttMs / 60) }, seed);
  },
  'more-limiters': (index, random, seed) => {
    const drawn = OTHER_LIMITERS[index % OTHER_LIMITERS.length]!(random);
    const rttMs = Math.round(60 * random());
    return judged(drawn, { rttMs, jitterMs: 0.2 + 0.5 * random() }, seed);
  },
  'no-limiters': (index, random, seed) => {
    const drawn = NO_LIMITERS[index % NO_LIMITERS.length]!(random, seed);
    return judged(drawn, { rttMs: Math.round(60 * random()), jitterMs: 0.3 }, seed);
  },
} satisfies Record<string, Draw>;

function describe({ requests: _, watchedSeconds: __, explained: ___, ...found }: LimiterFinding): string {
  return JSON.stringify(found).replaceAll('"', '');
}
