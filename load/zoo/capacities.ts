/** Simulated servers with known capacities that behave like real ones under load, and the judgement of the search. */
import { Search } from '../estimate/capacity.ts';
import { type Found, SEARCH_DEFAULTS, type SearchSettings } from '../estimate/figures.ts';
import { LIMITER_KINDS, type LimiterSettings } from '../estimate/limiter-models.ts';
import { linesOf, percent } from '../estimate/numbers.ts';
import { LATE_SHARE } from '../estimate/step.ts';
import * as zoo from './targets.ts';

interface Simulated {
  /** In addition to its service. */
  readonly name?: string;
  readonly behaviour: zoo.Behaviour | ((seed: number) => zoo.VirtualRuns);
  /**
   * Requests per second; 0 if the SLO holds at no rate. A range if it depends on chance or time. By default simulated, up
   * to the saturation of the service.
   */
  readonly truth?: number | readonly [low: number, high: number] | { readonly upTo: number };
  /** The truth is a quota; with 429 as an error, the SLO holds up to a lower rate. */
  readonly isQuota?: boolean;
  /** A search that finds this ban is right if its interval contains the truth. */
  readonly banSeconds?: number;
  /** A shorter search cannot observe the truth, so that a wrong result counts as undecided. */
  readonly truthFromSeconds?: number;
  readonly settings?: Partial<SearchSettings>;
}

type DrawCapacity = zoo.Draw<Simulated>;

export const SLO = { p99Ms: 500, errorRate: 0.001 };
const TOLERANCE = 0.12;
/** More than are ever busy while the SLO holds. */
const THREADS = 200;

/** 1 to 8 workers, 120 to 400 requests a second, two thirds with random service. */
function drawService(random: () => number): zoo.ServiceSettings {
  const saturation = 120 * (400 / 120) ** random();
  const workers = 1 + Math.floor(random() * 8);
  const distribution = random() < 1 / 3 ? 'deterministic' : 'exponential';
  return { workers, serviceMs: (workers * 1000) / saturation, distribution };
}

const saturationOf = ({ workers, serviceMs }: zoo.ServiceSettings): number => (workers * 1000) / serviceMs;
const exponentialService = (perSecond: number, workers: number): zoo.ServiceSettings => ({
  workers,
  serviceMs: (workers * 1000) / perSecond,
  distribution: 'exponential',
});
const described = ({ workers, serviceMs, distribution }: zoo.ServiceSettings): string =>
  `${workers} × ${serviceMs.toFixed(1)} ms ${distribution}`;

const capacityOf = (service: zoo.ServiceSettings): number =>
  zoo.simulatedCapacity((seed) => zoo.server({ service }, seed), saturationOf(service), SLO);

const withQuota = (name: string, limiter: LimiterSettings, more: zoo.Behaviour = {}): Simulated => ({
  name,
  behaviour: { ...zoo.limited(limiter), ...more },
  truth: (limiter.limit * 1000) / limiter.windowMs,
  isQuota: true,
});

const rejecting = (service: zoo.ServiceSettings, limit: number, status: 429 | 503): Simulated => ({
  name: `${status} beyond ${limit} at the same time`,
  behaviour: { service, concurrency: { limit, status } },
});

const CLASSES = {
  queues: (random) => ({ behaviour: { service: drawService(random) } }),
  /** Processors that all requests in flight share, as threads and event loops do. */
  sharing: (random) => {
    const { workers, ...alone } = drawService(random);
    const work = (_: number, open: number): number => Math.max(1, (open + 1) / workers);
    return {
      name: `${workers} processors shared`,
      behaviour: { service: { ...alone, workers: THREADS }, work },
      truth: { upTo: saturationOf({ ...alone, workers }) },
    };
  },
  overload: (random) => {
    const saturation = 60 + 340 * random();
    const service = exponentialService(saturation, 1 + Math.floor(8 * random()));
    const growth = 0.002 + 0.048 * random();
    const work = (_: number, open: number): number => 1 + growth * Math.max(0, open - service.workers);
    // Whether a run collapses is chance: from the rate that nearly all runs keep to the one that half of them keep.
    const [low, high] = [0.9, 0.5].map((share) =>
      zoo.simulatedCapacity((seed) => zoo.server({ service, work }, seed), saturation, SLO, 60, share),
    );
    return {
      name: `${percent(growth)} more work for each in the queue`,
      behaviour: { service, work },
      truth: [low!, high!],
    };
  },
  quotas: (random, index) => {
    const [limit, windowSeconds] = QUOTAS[index % QUOTAS.length]!;
    const kind = index < QUOTAS.length ? 'fixed-window' : LIMITER_KINDS[index % LIMITER_KINDS.length]!;
    const windowMs = windowSeconds * 1000;
    const isDeclared = windowSeconds > 300;
    const name = `${kind}, ${limit} in ${windowSeconds} s${isDeclared ? ', declared' : ''}`;
    const declared = isDeclared ? { policy: { limit, windowSeconds } } : {};
    return withQuota(name, { kind, limit, windowMs, phaseMs: random() * windowMs }, declared);
  },
  /** Servers that answer 429 or 503 without a quota per window, and quotas of token buckets. */
  refusals: (random, index) => zoo.inTurn(REFUSALS)(random, index),
  errors: (random, index) => {
    const share = FAILING_SHARES[index % FAILING_SHARES.length]!;
    const service = exponentialService(100 + 200 * random(), 4);
    return {
      name: `500 to ${percent(share, 2)} at any rate`,
      behaviour: { service, failing: { share, status: 500 } },
      truth: share > SLO.errorRate ? 0 : capacityOf(service),
    };
  },
  tails: (random, index) => {
    const share = SLOW_SHARES[index % SLOW_SHARES.length]!;
    const service = exponentialService(100 + 300 * random(), 4);
    return {
      name: `${percent(share, 2)} slow at any rate`,
      behaviour: { service, slow: { share, byMs: 900 } },
      truth: share > LATE_SHARE ? 0 : undefined,
    };
  },
  warming: (random, index) => {
    const before = 60 + 90 * random();
    const after = before * (2 + 2 * random());
    const fromSeconds = 20 + 180 * random();
    const untilSeconds = fromSeconds + (index % 2) * 100 * random();
    const work = (atMs: number): number => {
      const lasts = Math.max(1e-9, untilSeconds - fromSeconds);
      const progress = Math.min(1, Math.max(0, (atMs / 1000 - fromSeconds) / lasts));
      return 1 / (1 - progress + (progress * after) / before);
    };
    return {
      name: `${before.toFixed(0)}/s, from ${fromSeconds.toFixed(0)} to ${untilSeconds.toFixed(0)} s up to ${after.toFixed(0)}/s`,
      behaviour: { service: exponentialService(before, 2), work },
      truth: capacityOf(exponentialService(after, 2)),
      truthFromSeconds: untilSeconds,
    };
  },
  /** Limits that a short step at the highest rate does not show. */
  ceilings: zoo.inTurn<Simulated>([
    (random) => {
      const saturation = 70 + 30 * random();
      const service = exponentialService(saturation, 2);
      const maxRate = saturation * (1.08 + 0.3 * random());
      return {
        name: `${saturation.toFixed(0)}/s, asked for at most ${maxRate.toFixed(0)}/s`,
        behaviour: { service },
        truth: capacityOf(service),
        settings: { maxRate, startRate: maxRate },
      };
    },
    (random, index) => {
      const limit = [9000, 36_000, 24_000][index % 3]!;
      const windowMs = 60_000;
      const limiter = { kind: 'fixed-window', limit, windowMs, phaseMs: windowMs * random() } as const;
      return { ...withQuota(`${limit} in 60 s`, limiter), settings: { startRate: 100 } };
    },
  ]),
  /** Servers that restart during the search and refuse connections meanwhile. */
  restarts: (random) => {
    const service = exponentialService(100 + 200 * random(), 3);
    const fromSeconds = 10 + 60 * random();
    return {
      name: `down for 3 s from ${fromSeconds.toFixed(0)} s on`,
      behaviour: { service, down: { fromSeconds, forSeconds: 3 } },
      truth: capacityOf(service),
    };
  },
  /** Polls of several pages, token requests and back-fills share the workers; the capacity is in polls per second. */
  tenants: (random, index) => {
    const service = exponentialService(150 + 200 * random(), 2 + Math.floor(4 * random()));
    const [pages, tokensPerPoll, backfills] = [1 + 1.5 * random(), 0.02 + 0.1 * random(), index % 3];
    const settings = { pages, tokensPerPoll, tokenPrice: 1, backfills, backfillWork: 1 + 3 * random() };
    return {
      name: `${described(service)}, ${pages.toFixed(2)} pages a poll, ${backfills} back-fills`,
      behaviour: (seed) => zoo.polled(service, settings, seed),
      truth: { upTo: saturationOf(service) / (pages + tokensPerPoll) },
    };
  },
  /** 429 without a quota: an adaptive concurrency limit, and a ban after a rejection. */
  feedback: zoo.inTurn<Simulated>([
    (random) => {
      const saturation = 80 + 160 * random();
      const service = exponentialService(saturation, 2 + Math.floor(6 * random()));
      const slowMs = 100 + 150 * random();
      return {
        name: `adaptive concurrency that backs off from ${slowMs.toFixed(0)} ms`,
        behaviour: { service, concurrency: { limit: 4 * service.workers, status: 429, slowMs } },
      };
    },
    (_, index) => {
      const [limit, windowSeconds, banSeconds] = BANS[index % BANS.length]!;
      return {
        name: `${limit} in ${windowSeconds} s, then out for ${banSeconds} s`,
        behaviour: { limits: [zoo.banning(limit, windowSeconds * 1000, banSeconds * 1000)] },
        truth: { upTo: limit / windowSeconds },
        banSeconds,
      };
    },
  ]),
  /** Servers whose speed or limit varies over time. */
  surroundings: (random, index) => zoo.inTurn(SURROUNDINGS)(random, index),
} satisfies Record<string, DrawCapacity>;

const SURROUNDINGS: readonly DrawCapacity[] = [
  (random) => {
    const service = exponentialService(150 + 150 * random(), 3);
    const stops = { everyMs: 8000, forMs: 100 + 100 * random() };
    return {
      name: `stops for ${stops.forMs.toFixed(0)} ms every 8 s`,
      behaviour: { service, stops },
    };
  },
  (random) => {
    const service = exponentialService(100 + 150 * random(), 3);
    const busy = 1.2 + 0.4 * random();
    return {
      name: `a neighbour takes ${percent(1 - 1 / busy)} for 10 of 40 s`,
      behaviour: { service, work: (atMs) => (atMs % 40_000 < 10_000 ? busy : 1) },
    };
  },
  (random) => {
    const service = exponentialService(60 + 60 * random(), 3);
    const grows = 0.3 + 0.5 * random();
    const truth = capacityOf(service);
    return {
      name: `${percent(grows)} slower after 5 min`,
      behaviour: { service, work: (atMs) => 1 + (grows * atMs) / 300_000 },
      truth: [truth / (1 + grows), truth / (1 + 0.3 * grows)],
    };
  },
  (random) => {
    const service = exponentialService(60 + 60 * random(), 2);
    const everyMs = 20_000 + 20_000 * random();
    return {
      name: `scales out every ${(everyMs / 1000).toFixed(0)} s to four times as much`,
      behaviour: { service, work: (atMs) => 1 / Math.min(4, 1 + Math.floor(atMs / everyMs)) },
      truth: capacityOf({ ...service, workers: 8 }),
      truthFromSeconds: (3 * everyMs) / 1000,
    };
  },
  (random) => {
    const perSecond = 40 + 60 * random();
    return {
      name: `a leaky bucket of ${perSecond.toFixed(0)}/s that delays`,
      behaviour: { limits: [zoo.leakyBucket(perSecond, 100, true)] },
      truth: { upTo: perSecond },
    };
  },
  (random) => {
    const limits = [1200, 600].map((limit) => ({ kind: 'fixed-window', limit, windowMs: 60_000 }) as const);
    const fast = { kind: 'token-bucket', limit: 30 + 20 * random(), windowMs: 1000, burst: 40 } as const;
    const name = `${fast.limit.toFixed(0)}/s, 1,200 and 600 a minute`;
    return { name, truth: 10, behaviour: zoo.limited(fast, ...limits) };
  },
  (random) => {
    const limit = 300 + 300 * random();
    const taken = 0.2 + 0.3 * random();
    const limiter = { kind: 'fixed-window', limit, windowMs: 10_000 } as const;
    return {
      name: `${limit.toFixed(0)} in 10 s, of which others take ${percent(taken)}`,
      behaviour: { limits: [zoo.sharedWith((limit * taken) / 10, limiter)] },
      // A higher rate wins a larger share: from what the others leave, to what is admitted at twice that rate.
      truth: [(limit * (1 - taken)) / 10, (limit * 2 * (1 - taken)) / (2 - taken) / 10],
    };
  },
  (random) => {
    const service = exponentialService(100 + 200 * random(), 4);
    const share = 0.01 + 0.03 * random();
    return {
      name: `${percent(share, 2)} miss the cache`,
      behaviour: { service, slow: { share, byMs: 250 } },
    };
  },
];

const REFUSALS: readonly DrawCapacity[] = [
  (random) => {
    const workers = 10 + Math.floor(30 * random());
    return rejecting(exponentialService((workers * 1000) / (20 + 80 * random()), workers), workers, 429);
  },
  (random) => {
    const share = 0.01 + 0.14 * random();
    const behaviour = { failing: { share, status: 429 } };
    return { name: `429 to ${percent(share, 2)} at any rate`, behaviour, truth: 0 };
  },
  (random) => {
    const [limit, burst] = [10 + 50 * random(), 1 + Math.floor(4 * random())];
    const limiter = { kind: 'token-bucket', limit, windowMs: 1000, burst } as const;
    return withQuota(`${limit.toFixed(1)}/s, burst ${burst}`, limiter);
  },
  (random) => {
    const saturation = 80 + 200 * random();
    const limit = Math.round(saturation * (0.6 + 0.8 * random()));
    const service = exponentialService(saturation, 2);
    return {
      name: `a quota of ${limit}/s for a queue of ${saturation.toFixed(0)}/s`,
      behaviour: { ...zoo.limited({ kind: 'token-bucket', limit, windowMs: 1000 }), service },
      truth: Math.min(limit, capacityOf(service)),
    };
  },
  (random) => {
    const saturation = 80 + 200 * random();
    const service = exponentialService(saturation, 1 + Math.floor(6 * random()));
    return rejecting(service, service.workers + 10 + Math.floor(40 * random()), 503);
  },
];

const FAILING_SHARES = [0.004, 0.0003, 0.01, 0.0005, 0.006, 0.0002];
const SLOW_SHARES = [0.015, 0.005, 0.03, 0.002, 0.02, 0.012];
const QUOTAS = [[600, 60], [3000, 60], [100, 10], [60, 1], [300, 30], [20, 1], [1800, 3600]] as const; // prettier-ignore
/** Limit, window and length of the ban in seconds. */
const BANS = [[100, 10, 30], [200, 10, 30], [60, 5, 20]] as const; // prettier-ignore

const capacityServer = (drawn: Simulated, index: number, seed: number): zoo.ZooServer => {
  const { name, behaviour, settings } = drawn;
  const service = typeof behaviour === 'function' ? undefined : behaviour.service;
  const create = (of: number): zoo.Target =>
    typeof behaviour === 'function' ? behaviour(of) : zoo.server(behaviour, of);
  const { truth = { upTo: saturationOf(service!) } } = drawn;
  const range =
    typeof truth === 'object' && 'upTo' in truth
      ? [zoo.simulatedCapacity(create, truth.upTo, SLO)]
      : [truth].flat();
  const search = { ...SEARCH_DEFAULTS, slo: SLO, ...settings };
  const rateWithinSlo = () => zoo.simulatedCapacity(create, range[0]!, SLO);
  return {
    name: linesOf(name, service && described(service)).join(', '),
    truth: `${range.map((end) => end.toFixed(1)).join(' to ')}/s`,
    judge: async () => {
      const found = await new Search(zoo.stepsAgainst(create(index), seed), search).find();
      return judged(found, range, drawn, rateWithinSlo);
    },
  };
};

export const CAPACITY_SERVERS = Object.fromEntries(
  Object.entries<DrawCapacity>(CLASSES).map(([family, draw]): [string, zoo.DrawServer] => [
    family,
    (random, index, seed) => capacityServer(draw(random, index), index, seed),
  ]),
) as Record<keyof typeof CLASSES, zoo.DrawServer>;

function judged(
  found: Found,
  range: readonly number[],
  { truthFromSeconds = 0, isQuota = false, banSeconds = NaN }: Simulated,
  rateWithinSlo: () => number,
) {
  const { requestsPerSecond: rate, interval, confirmed, unconfirmed, watchedSeconds } = found;
  // For a figure that does not claim a quota, 429 is an error.
  const isNoQuota = isQuota && confirmed && found.basis !== 'quota';
  const [low, high] = isNoQuota ? [rateWithinSlo(), rateWithinSlo()] : [range[0]!, range.at(-1)!];
  const nearest = Math.min(high, Math.max(low, rate));
  const error = nearest === 0 ? undefined : rate / nearest - 1;
  const isBan =
    Math.abs((found.banSeconds ?? NaN) / banSeconds - 1) <= TOLERANCE &&
    interval[0] <= range[0]! &&
    interval[1] >= range[0]!;
  const near = isBan || (error === undefined ? rate === 0 : Math.abs(error) <= TOLERANCE);
  const undecided = !confirmed || watchedSeconds < truthFromSeconds;
  const noticed = [
    ...[found.limitedBy, found.collapse && 'collapse', found.gotFaster && 'got faster'],
    found.banSeconds !== undefined && `ban of ${found.banSeconds.toFixed(0)} s`,
    confirmed ? 'confirmed' : unconfirmed,
  ];
  return {
    found: `${rate.toFixed(1)}/s (${interval.map((end) => end.toFixed(1)).join('…')}), ${noticed.filter(Boolean).join(', ')}`,
    error,
    seconds: watchedSeconds,
    verdict: near ? ('right' as const) : undecided ? ('undecided' as const) : ('wrong' as const),
  };
}
