/** Simulated servers with a limiter of known kind and figures, probed in virtual time. */
import { identifyLimiter, type LimiterFinding } from '../estimate/limiter-fit.ts';
import { createLimiter, LIMITER_KINDS, type LimiterSettings } from '../estimate/limiter-models.ts';
import { type Probed, probeLimiter, type ProbeLimits, type Reply } from '../estimate/limiter-probe.ts';
import { largest } from '../estimate/numbers.ts';
import { exponential, randomSource } from '../k6/lib/random.ts';
import type { Draw, Judged } from './targets.ts';

/** Decides on a request that arrives at `atMs`: 0 or the time until it would be admitted, and the delay by a shaper. */
export type Decide = (atMs: number) => { readonly waitMs: number; readonly delayMs?: number };

interface Network {
  /** Round-trip time, and mean jitter of each direction. */
  readonly rttMs: number;
  readonly jitterMs: number;
}

const roundedUp = (seconds: number): number => Math.ceil(seconds);

/** Runs the limiter's probe in virtual time, without waiting. `retryAfter`: the header for a wait, both in seconds. */
export function probeVirtually(
  decide: Decide,
  network: Network,
  limits: ProbeLimits,
  seed: number,
  retryAfter = roundedUp,
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
        const { waitMs, delayMs = 0 } = decide(arrivesMs);
        const rttMs = arrivesMs - sentMs + delayMs + network.rttMs / 2 + jitter();
        nowMs = Math.max(nowMs, sentMs + rttMs);
        const retryAfterSeconds = Math.max(0, retryAfter(waitMs / 1000));
        const reply = { sentMs: Math.floor(sentMs - originMs), rttMs, ok: waitMs === 0 };
        return waitMs > 0 ? { ...reply, retryAfterSeconds } : reply;
      });
    step = plan.next(replies);
  }
  return step.value;
}

/** Admits a request that all of these limiters admit; later ones do not count what an earlier one rejects. */
export function limitedBy(...all: readonly LimiterSettings[]): Decide {
  const limiters = all.map(createLimiter);
  return (atMs) => ({ waitMs: limiters.reduce((waitMs, one) => waitMs || one.ask(atMs), 0) });
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
  readonly decide: Decide;
  readonly retryAfter?: typeof roundedUp;
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
    decide: limitedBy(settings),
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
    return {
      name: 'stacked: a fast one, and 1,000 an hour',
      truth: within(limit, windowMs),
      decide: limitedBy({ kind: 'fixed-window', limit, windowMs, phaseMs: windowMs * random() }, HOUR),
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
      decide: limitedBy({ kind: 'token-bucket', limit: perSecond, windowMs: 1000, burst }, HOUR),
      errors: (found) => [ratio(found.ratePerSecond, perSecond)],
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
      errors: ({ shaper }) => [ratio(shaper?.ratePerSecond, perSecond)],
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
    return {
      name: `Retry-After ${how}`,
      truth: `${within(limit, 4500)}, Retry-After too short`,
      decide: limitedBy({ kind: 'fixed-window', limit, windowMs: 4500, phaseMs: 4500 * random() }),
      retryAfter,
      errors: ({ longRunPerSecond }) => [ratio(longRunPerSecond, limit / 4.5)],
      right: (found) => !isHonest(found),
    };
  }),
  () => ({
    name: "nginx's limit_req, nodelay",
    truth: '60.0/s, burst 41',
    decide: limitReq(60, 40, true),
    errors: ({ burst, ratePerSecond }) => [ratio(burst, 41), ratio(ratePerSecond, 60)],
    right: ({ kind }) => kind === 'token-bucket',
  }),
  () => ({
    name: "nginx's limit_req",
    truth: '60.0/s, 40 held back',
    decide: limitReq(60, 40, false),
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
      decide: (atMs) => {
        while (times.length > 0 && times[0]! <= atMs - windowMs) times.shift();
        times.push(atMs);
        return { waitMs: times.length > limit ? windowMs : 0 };
      },
      right: isHonest,
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
      right: isHonest,
    };
  },
];

const judged = ({ name, truth, decide, retryAfter, errors, right }: Drawn, net: Network, seed: number) => ({
  name: `${name}, ${net.rttMs} ms away`,
  truth,
  judge: (): Judged => {
    const found = identifyLimiter(probeVirtually(decide, net, LIMITS, seed, retryAfter));
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
} satisfies Record<string, Draw>;

function describe(found: LimiterFinding): string {
  const { kind, shaper, limit, burst, retryAfter, longRunPerSecond, alternatives } = found;
  if (shaper) return `shaper, ${shaper.ratePerSecond}/s`;
  return [
    kind,
    limit && `${limit} in ${found.windowSeconds} s`,
    burst && `burst ${burst}, ${found.ratePerSecond}/s`,
    alternatives.length > 0 && `or ${alternatives.join(', ')}`,
    !isHonest(found) &&
      `Retry-After too short (${retryAfter!.longEnough} of ${retryAfter!.waits}, ${retryAfter!.worstShortSeconds} s)`,
    longRunPerSecond && `${longRunPerSecond}/s`,
  ]
    .filter(Boolean)
    .join(', ');
}
