/** Simulated servers with a limiter of known kind and figures, probed in virtual time. */
import { identifyLimiter, type LimiterFinding } from '../estimate/limiter-fit.ts';
import { createLimiter, LIMITER_KINDS, type LimiterKind } from '../estimate/limiter-models.ts';
import { type Probed, probeLimiter, type ProbeLimits, type Reply } from '../estimate/limiter-probe.ts';
import { compareFullPages, type PagesRead } from '../estimate/other-limits.ts';
import { exponential, randomSource } from '../estimate/random.ts';
import { PROBE } from '../run/flags.ts';
import * as zoo from './targets.ts';

type Network = Readonly<Record<'rttMs' | 'jitterMs', number>>;

/** Runs the limiter's probe in virtual time, without waiting. */
export async function probeVirtually(
  target: zoo.VirtualTarget,
  network: Network,
  limits: ProbeLimits,
  seed: number,
): Promise<Probed> {
  const random = randomSource(seed);
  const jitter = (): number => 0.2 + exponential(random, network.jitterMs);
  // Later than the longest window, so that the limiters are at rest.
  const originMs = 10_000_000;
  let nowMs = originMs;
  return probeLimiter(limits, async ({ notBeforeMs, count, spacingMs }) => {
    const startMs = Math.max(nowMs, originMs + notBeforeMs);
    const requests = Array.from({ length: count }, (_, i) => {
      // 0.06 ms: the time that sending a request takes.
      const sentMs = startMs + i * Math.max(spacingMs, 0.06);
      return { sentMs, arrivesMs: sentMs + network.rttMs / 2 + jitter() };
    });
    return requests
      .sort((a, b) => a.arrivesMs - b.arrivesMs)
      .map(({ sentMs, arrivesMs }): Reply => {
        const { latencyMs, status, retryAfterSeconds } = target(arrivesMs);
        const rttMs = arrivesMs - sentMs + latencyMs + network.rttMs / 2 + jitter();
        nowMs = Math.max(nowMs, sentMs + rttMs);
        return { sentMs: Math.floor(sentMs - originMs), rttMs, ok: status === 200, retryAfterSeconds };
      });
  });
}

/** Reads pages in succession, each time a minute later. */
function readVirtually(target: zoo.VirtualTarget, full: zoo.VirtualTarget, { rttMs }: Network) {
  let nowMs = 11_000_000;
  return async (isFull: boolean, count: number): Promise<PagesRead> => {
    nowMs += 60_000;
    for (let admitted = 0; ; admitted += 1) {
      const { status, latencyMs } = (isFull ? full : target)(nowMs);
      nowMs += rttMs + latencyMs;
      const isRejected = status === 429;
      if (isRejected || admitted === count) return { admitted, isRejected, items: 1000, bytes: 250_000 };
    }
  };
}

const TOLERANCE = 0.05;

type FigureName = 'limit' | 'windowSeconds' | 'burst' | 'ratePerSecond' | 'longRunPerSecond' | 'heldBack';
type Figures = Readonly<Partial<Record<FigureName, number>>>;

interface Drawn {
  readonly behaviour: zoo.Behaviour;
  /** Mean jitter of its network, instead of the family's. */
  readonly jitterMs?: number;
  /** How it answers full pages; default: as empty ones. */
  readonly full?: zoo.Behaviour;
  /** Figures that the estimate, if it has them, must have within the tolerance. */
  readonly figures?: Figures;
  readonly right: (found: LimiterFinding) => boolean;
}

const whole = (random: () => number, least: number, span: number) => least + Math.floor(span * random());
const fixedWindow = (limit: number, windowMs: number, phaseMs = 0) =>
  ({ kind: 'fixed-window', limit, windowMs, phaseMs }) as const;
const HOUR = fixedWindow(1000, 3_600_000);
const isHonest = ({ retryAfterHonest }: LimiterFinding): boolean => retryAfterHonest !== false;
const isShaper = ({ shaper }: LimiterFinding): boolean => shaper !== undefined;
const isKind =
  (expected: LimiterFinding['kind']) =>
  ({ kind }: LimiterFinding): boolean =>
    kind === expected;
const isUnnamed = ({ kind }: LimiterFinding): boolean => kind === 'cannot-tell' || kind === 'none-found';

type DrawLimiter = (random: () => number) => Drawn;
/** By name, which says what the data of the behaviour do not. */
type Rows = Readonly<Record<string, DrawLimiter>>;

/** Limits of 20 to 150 in 1 to 4 s; a bucket's burst is a third to twice its limit. */
const limiterOf =
  (kind: LimiterKind): DrawLimiter =>
  (random) => {
    const limit = whole(random, 20, 130);
    const windowMs = Math.round(1000 + random() * 3000);
    const burst = Math.max(5, Math.floor(limit * (0.33 + random() * 1.6)));
    const phaseMs = Math.floor(random() * windowMs);
    const isBucket = kind === 'token-bucket';
    const paced = isBucket ? (limit * 1000) / windowMs : windowMs / 1000;
    return {
      behaviour: zoo.limited({ kind, limit, windowMs, ...(isBucket ? { burst } : { phaseMs }) }),
      figures: isBucket ? { burst, ratePerSecond: paced } : { limit, windowSeconds: paced },
      right: (found) => {
        const [low, high] = found.interval ?? [0, 0];
        return found.kind === kind && paced > low * 0.99 && paced < high * 1.01 && isHonest(found);
      },
    };
  };

const LIMITERS: Rows = Object.fromEntries(LIMITER_KINDS.map((kind) => [kind, limiterOf(kind)]));

/** A server with a limit that is drawn first. */
const limitOf =
  (least: number, span: number, create: (limit: number, random: () => number) => Drawn): DrawLimiter =>
  (random) =>
    create(whole(random, least, span), random);

const OTHER_LIMITERS: Rows = {
  'a bucket that rejected requests drain, too': limitOf(15, 15, (burst) => ({
    behaviour: { limits: [zoo.punishing(10, burst)] },
    right: isUnnamed,
  })),
  'a bucket per address, and 100 in 10 s per client': () => ({
    behaviour: { limits: [zoo.leakyBucket(40, 20, false), () => createLimiter(fixedWindow(100, 10_000))] },
    right: isUnnamed,
  }),
  'stacked: a fast window, and 1,000 an hour': limitOf(20, 40, (limit, random) => {
    const windowMs = 2000 + Math.round(3000 * random());
    const behaviour = zoo.limited(fixedWindow(limit, windowMs, windowMs * random()), HOUR);
    return { behaviour, figures: { limit }, right: isKind('fixed-window') };
  }),
  'stacked: a bucket, and 1,000 an hour': (random) => {
    const ratePerSecond = 8 + 20 * random();
    const bucket = { kind: 'token-bucket', limit: ratePerSecond, windowMs: 1000 } as const;
    const behaviour = zoo.limited({ ...bucket, burst: whole(random, 10, 30) }, HOUR);
    return { behaviour, figures: { ratePerSecond }, right: isKind('token-bucket') };
  },
  'a shaper that delays': (random) => {
    const ratePerSecond = 10 + 60 * random();
    const behaviour = { limits: [zoo.leakyBucket(ratePerSecond, Infinity, true)] };
    return { behaviour, figures: { ratePerSecond }, right: isShaper };
  },
  'Retry-After rounded down, 3 s short, or always 1 s': limitOf(20, 40, (limit, random) => {
    const ways = [Math.floor, (seconds: number) => Math.ceil(seconds) - 3, () => 1];
    const retryAfter = ways[whole(random, 0, 3)]!;
    return {
      behaviour: { ...zoo.limited(fixedWindow(limit, 4500, 4500 * random())), retryAfter },
      figures: { longRunPerSecond: limit / 4.5 },
      right: (found) => !isHonest(found),
    };
  }),
  'a limit per node, of three at random': limitOf(10, 30, (limit, random) => {
    const kind = LIMITER_KINDS[whole(random, 0, LIMITER_KINDS.length)]!;
    const nodes = [1, 2, 3].map(() => createLimiter({ kind, limit, windowMs: 1000 }));
    const ask = (atMs: number): number => nodes[whole(random, 0, nodes.length)]!(atMs);
    return { behaviour: { limits: [() => ask] }, right: isUnnamed };
  }),
  "nginx's limit_req, nodelay": () => ({
    behaviour: { limits: [zoo.leakyBucket(60, 40, false)] },
    figures: { burst: 41, ratePerSecond: 60 },
    right: isKind('token-bucket'),
  }),
  "nginx's limit_req": limitOf(5, 40, (heldBack, random) => {
    const ratePerSecond = 10 + 50 * random();
    const behaviour = { limits: [zoo.leakyBucket(ratePerSecond, heldBack, true)] };
    // Without a rejection, the queue is longer than what was held back.
    const right = ({ shaper, fromRest }: LimiterFinding): boolean =>
      shaper !== undefined && (!fromRest || Math.abs(shaper.heldBack - heldBack) <= 1 + TOLERANCE * heldBack);
    return { behaviour, figures: { ratePerSecond }, right };
  }),
  'a window that counts rejected requests, too': limitOf(15, 30, (limit, random) => ({
    behaviour: {
      limits: [zoo.countingRejected(limit, 1500 + 1500 * random())],
      retryAfter: (seconds) => seconds,
    },
    right: isHonest,
  })),
  'a neighbour on the same quota': limitOf(30, 30, (limit) => ({
    behaviour: { limits: [zoo.sharedWith(9, fixedWindow(limit, 2000))] },
    right: isHonest,
  })),
  'a window that begins with its first request': limitOf(20, 60, (limit, random) => {
    const windowMs = 1500 + Math.round(3000 * random());
    return {
      behaviour: zoo.limited({ ...fixedWindow(limit, windowMs), anchored: true }),
      figures: { limit, windowSeconds: windowMs / 1000 },
      right: isKind('fixed-window'),
    };
  }),
  'a minute of the wall clock': limitOf(30, 30, (limit, random) => ({
    behaviour: zoo.limited(fixedWindow(limit, 60_000, 60_000 * random())),
    figures: { limit, windowSeconds: 60 },
    right: isKind('fixed-window'),
  })),
  'a ban of 5 s after a window of 2 s': limitOf(20, 40, (limit) => ({
    behaviour: { limits: [zoo.banning(limit, 2000, 5000)] },
    right: isUnnamed,
  })),
  'a window of requests, and one of items': limitOf(60, 60, (limit, random) => {
    const requests = createLimiter(fixedWindow(limit, 4000));
    const items = () => createLimiter(fixedWindow(whole(random, 5, limit - 10), 8000));
    return {
      behaviour: { limits: [() => requests] },
      full: { limits: [items, () => requests] },
      figures: { limit },
      right: isKind('fixed-window'),
    };
  }),
  'a bucket whose answers take unequally long': limitOf(50, 50, (burst, random) => ({
    behaviour: zoo.limited({ kind: 'token-bucket', limit: 100 + 100 * random(), windowMs: 1000, burst }),
    jitterMs: 15,
    right: isKind('cannot-tell'),
  })),
};

const DISTRIBUTIONS = ['deterministic', 'exponential'] as const;

/** No limiter of requests, and what looks like one; and a limiter that looks like a concurrency limit. */
const NO_LIMITERS: Rows = {
  'no limiter': () => ({ behaviour: {}, right: isKind('none-found') }),
  'a slow server': limitOf(1, 6, (workers, random) => ({
    behaviour: {
      service: { workers, serviceMs: 10 + 40 * random(), distribution: DISTRIBUTIONS[workers % 2]! },
    },
    right: isKind('none-found'),
  })),
  'a concurrency limit per address': limitOf(5, 40, (limit) => ({
    behaviour: {
      service: { workers: 1000, serviceMs: 80, distribution: DISTRIBUTIONS[limit % 2]! },
      concurrency: { limit, status: 429 },
    },
    right: ({ concurrencyLimit = NaN }) => Math.abs(concurrencyLimit - limit) <= 1 + TOLERANCE * limit,
  })),
  'a limit of items': limitOf(5, 40, (limit) => ({
    behaviour: {},
    full: zoo.limited(fixedWindow(limit, 10_000)),
    right: isKind('none-found'),
  })),
  '429 at random': (random) => ({
    behaviour: { failing: { share: 0.1 + 0.5 * random(), status: 429 } },
    right: isUnnamed,
  }),
  'a window in front of a single worker': limitOf(20, 20, (limit) => ({
    behaviour: {
      ...zoo.limited(fixedWindow(limit, 3000)),
      service: { workers: 1, serviceMs: 10, distribution: 'deterministic' },
    },
    right: ({ kind, alternatives }) => [kind, ...alternatives].includes('fixed-window'),
  })),
  'one request in about a round trip': (random) => {
    const windowMs = 20 + 60 * random();
    const right = ({ concurrencyLimit }: LimiterFinding): boolean => concurrencyLimit === undefined;
    return {
      behaviour: zoo.limited(fixedWindow(1, windowMs)),
      figures: { windowSeconds: windowMs / 1000 },
      right,
    };
  },
  'a window that delays instead of rejecting': limitOf(20, 60, (limit, random) => ({
    behaviour: { limits: [zoo.tarpit(fixedWindow(limit, 2000), 300 + 1700 * random())] },
    right: isKind('cannot-tell'),
  })),
  'delays that grow with the requests of the last seconds': (random) => ({
    behaviour: { limits: [zoo.growingDelay(1500 + 3000 * random(), 4 + 6 * random())] },
    right: isKind('cannot-tell'),
  }),
  'delays that double with each request beyond a bucket': limitOf(15, 50, (limit, random) => {
    const bucket = { kind: 'token-bucket', limit, windowMs: 1000, burst: limit } as const;
    return {
      behaviour: { limits: [zoo.doublingDelay(bucket, 5 + 25 * random())] },
      right: isKind('cannot-tell'),
    };
  }),
};

/** Draws a server of the rows in turn, the round-trip time of its network, and the mean jitter of each direction. */
function family(
  rows: Rows,
  mostRttMs: number,
  jitterOf: (rttMs: number, random: () => number) => number,
): zoo.DrawServer {
  const all = Object.entries(rows);
  return (random, index, seed) => {
    const [name, draw] = all[index % all.length]!;
    const drawn = draw(random);
    const rttMs = Math.round(mostRttMs * random());
    const network = { rttMs, jitterMs: drawn.jitterMs ?? jitterOf(rttMs, random) };
    return {
      name: `${name}, ${rttMs} ms away`,
      truth: JSON.stringify(drawn.figures ?? {}).replaceAll('"', ''),
      judge: () => judge(drawn, network, seed),
    };
  };
}

async function judge({ behaviour, full, figures = {}, right }: Drawn, net: Network, seed: number) {
  const target = zoo.server(behaviour, seed);
  const found = identifyLimiter(await probeVirtually(target, net, PROBE, seed));
  const read = readVirtually(target, full ? zoo.server(full) : target, net);
  const fullPages =
    found.kind === 'cannot-tell' ? undefined : await compareFullPages(read, found.fromRest?.admitted);
  // A limit that was not met is not excluded.
  const isUnmet = full !== undefined && fullPages?.isRejected === false;
  const isUnitOpen = isUnmet || fullPages?.unit === 'cannot-tell';
  const isRightUnit = isUnitOpen || (fullPages?.unit === 'items-or-bytes') === (full !== undefined);
  const all: Figures = { ...found, ...found.shaper };
  const errors = Object.entries(figures).flatMap(([figure, truth]) => {
    const estimate = all[figure as keyof Figures];
    return estimate === undefined ? [] : [Math.abs(estimate / truth - 1)];
  });
  const isRight = isRightUnit && right(found) && errors.every((error) => error <= TOLERANCE);
  const { kind, shaper, concurrencyLimit } = found;
  const isOpen = kind === 'cannot-tell' && !shaper && concurrencyLimit === undefined;
  const verdict = isRight ? (isUnitOpen ? 'undecided' : 'right') : isOpen ? 'undecided' : 'wrong';
  const { requests: _, watchedSeconds: seconds, explained: __, ...shown } = { ...found, fullPages };
  return {
    found: JSON.stringify(shown).replaceAll('"', ''),
    error: errors.length > 0 ? Math.max(...errors) : undefined,
    verdict,
    seconds,
  } satisfies zoo.Judged;
}

export const LIMITER_SERVERS = {
  limiters: family(LIMITERS, 80, (rttMs, random) => 0.2 + random() * (0.3 + rttMs / 60)),
  'more-limiters': family(OTHER_LIMITERS, 60, (_, random) => 0.2 + 0.5 * random()),
  'no-limiters': family(NO_LIMITERS, 60, () => 0.3),
};
