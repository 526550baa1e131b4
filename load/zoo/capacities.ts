/** Simulated servers with known capacities that behave like real ones under load, and the judgement of the search. */
import { Search } from '../estimate/capacity.ts';
import { type Found, SEARCH_DEFAULTS, type SearchSettings } from '../estimate/figures.ts';
import { LIMITER_KINDS, type LimiterKind, type LimiterSettings } from '../estimate/limiter-models.ts';
import { bisect } from '../estimate/numbers.ts';
import { exponential, randomSource } from '../estimate/random.ts';
import {
  ADMITS,
  adaptive,
  banning,
  collapsing,
  type Draw,
  failingRandomly,
  leakyBucket,
  limited,
  limitingConcurrency,
  pausing,
  polled,
  queueing,
  refusingConnections,
  type ServiceSettings,
  sharing,
  simulatedCapacity,
  slowRandomly,
  stepsAgainst,
  type VirtualRuns,
  type VirtualTarget,
  warming,
} from './targets.ts';

interface Simulated {
  readonly name: string;
  /** Requests per second; 0 if the SLO holds at no rate. A range if it depends on chance or time. */
  readonly truth: number | readonly [low: number, high: number];
  /** The highest rate at which the SLO holds if 429 is an error, for a figure that does not claim a quota. */
  readonly withinSlo?: () => number;
  readonly target: Target;
  /** A search that finds this ban is right if its interval contains the truth. */
  readonly banSeconds?: number;
  /** A shorter search cannot observe the truth, so that a wrong result counts as undecided. */
  readonly truthFromSeconds?: number;
  readonly settings?: Partial<SearchSettings>;
}

type Target = VirtualTarget | VirtualRuns;
type DrawCapacity = (index: number, random: () => number) => Simulated;

export const SLO = { p99Ms: 500, errorRate: 0.001 };
/** Tolerated relative error. */
const TOLERANCE = 0.12;

/** 1 to 8 workers, 120 to 400 requests a second, two thirds with random service. */
function drawService(random: () => number): ServiceSettings {
  const saturation = 120 * (400 / 120) ** random();
  const workers = 1 + Math.floor(random() * 8);
  const distribution = random() < 1 / 3 ? 'deterministic' : 'exponential';
  return { workers, serviceMs: (workers * 1000) / saturation, distribution };
}

const saturationOf = ({ workers, serviceMs }: ServiceSettings): number => (workers * 1000) / serviceMs;
const exponentialService = (perSecond: number, workers: number): ServiceSettings => ({
  workers,
  serviceMs: (workers * 1000) / perSecond,
  distribution: 'exponential',
});
const described = ({ workers, serviceMs, distribution }: ServiceSettings): string =>
  `${workers} × ${serviceMs.toFixed(1)} ms ${distribution}`;
const percent = (share: number): string => `${(share * 100).toFixed(2)} %`;

/** Steady-state capacity per second: by the Erlang C formula for exponential service, otherwise by simulation. */
function trueCapacity(service: ServiceSettings): number {
  const saturation = saturationOf(service);
  if (service.distribution === 'deterministic')
    return simulatedCapacity((seed) => queueing(service, seed), saturation, SLO, 300);
  const share = (rate: number): number =>
    shareLaterThan(service.workers, 1000 / service.serviceMs, rate, SLO.p99Ms / 1000);
  return bisect(saturation, 40, (rate) => share(rate) < 0.01)[0];
}

/** M/M/c queue: the share of requests that take longer than `t` seconds; `mu`: service rate of one worker. */
function shareLaterThan(workers: number, mu: number, rate: number, t: number): number {
  const load = rate / mu;
  let blocked = 1;
  for (let k = 1; k <= workers; k += 1) blocked = (load * blocked) / (k + load * blocked);
  const waits = blocked / (1 - (load / workers) * (1 - blocked));
  const spare = (workers - 1) * mu - rate;
  const both = Math.abs(spare) < 1e-9 ? mu * t : (mu / spare) * (1 - Math.exp(-spare * t));
  return Math.exp(-mu * t) * (1 + waits * both);
}

/** A server whose true capacity is computed by simulation, up to `maxRate`, in runs of some seconds. */
const simulated = (
  name: string,
  index: number,
  create: (seed: number) => Target,
  maxRate: number,
  seconds = 120,
): Simulated => ({ name, truth: simulatedCapacity(create, maxRate, SLO, seconds), target: create(index) });

function withQuota(name: string, limiter: LimiterSettings, declares = false): Simulated {
  const truth = (limiter.limit * 1000) / limiter.windowMs;
  const create = () => limited(limiter, { declares });
  return { name, truth, target: create(), withinSlo: () => simulatedCapacity(create, truth, SLO, 120) };
}

const rejecting = (service: ServiceSettings, limit: number, status: 429 | 503, index: number): Simulated =>
  simulated(
    `${status} beyond ${limit} at the same time, ${described(service)}`,
    index,
    (seed) => limitingConcurrency(queueing(service, seed), limit, status),
    saturationOf(service),
  );

const CLASSES = {
  queues: (index, random) => {
    const service = drawService(random);
    return { name: described(service), truth: trueCapacity(service), target: queueing(service, index) };
  },
  sharing: (index, random) => {
    const service = drawService(random);
    const name = `${described(service)}, shared`;
    return simulated(name, index, (seed) => sharing(service, seed), saturationOf(service), 60);
  },
  overload: (index, random) => {
    const saturation = 60 + 340 * random();
    const service = exponentialService(saturation, 1 + Math.floor(8 * random()));
    const growth = 0.002 + 0.048 * random();
    const create = (seed: number) => collapsing(service, growth, seed);
    // Whether a run collapses is chance: from the rate that nearly all runs keep to the one that half of them keep.
    const [low, high] = [0.9, 0.5].map((share) => simulatedCapacity(create, saturation, SLO, 60, share));
    return {
      name: `${described(service)}, ${percent(growth)} more work for each in the queue`,
      truth: [low!, high!],
      target: create(index),
    };
  },
  quotas: (index, random) => {
    const [limit, windowSeconds] = QUOTAS[index % QUOTAS.length]!;
    const kind: LimiterKind =
      index < QUOTAS.length ? 'fixed-window' : LIMITER_KINDS[index % LIMITER_KINDS.length]!;
    const windowMs = windowSeconds * 1000;
    const declares = windowSeconds > 300;
    const name = `${kind}, ${limit} in ${windowSeconds} s${declares ? ', declared' : ''}`;
    return withQuota(name, { kind, limit, windowMs, phaseMs: random() * windowMs }, declares);
  },
  refusals: (index, random) => REFUSALS[index % REFUSALS.length]!(index, random),
  errors: (index, random) => {
    const share = FAILING_SHARES[index % FAILING_SHARES.length]!;
    const service = exponentialService(100 + 200 * random(), 4);
    return {
      name: `500 to ${percent(share)} at any rate`,
      truth: share > SLO.errorRate ? 0 : trueCapacity(service),
      target: failingRandomly(share, 500, queueing(service, index), index),
    };
  },
  tails: (index, random) => {
    const share = SLOW_SHARES[index % SLOW_SHARES.length]!;
    const saturation = 100 + 300 * random();
    const service = exponentialService(saturation, 4);
    const name = `${percent(share)} slow at any rate`;
    const create = (seed: number) => slowRandomly(share, 900, service, seed);
    return share > 0.01
      ? { name, truth: 0, target: create(index) }
      : simulated(name, index, create, saturation, 60);
  },
  warming: (index, random) => {
    const before = 60 + 90 * random();
    const after = before * (2 + 2 * random());
    const fromSeconds = 20 + 180 * random();
    const untilSeconds = fromSeconds + (index % 2) * 100 * random();
    return {
      name: `${before.toFixed(0)}/s, from ${fromSeconds.toFixed(0)} to ${untilSeconds.toFixed(0)} s up to ${after.toFixed(0)}/s`,
      truth: trueCapacity(exponentialService(after, 2)),
      target: warming(exponentialService(before, 2), after / before, [fromSeconds, untilSeconds], index),
      truthFromSeconds: untilSeconds,
    };
  },
  /** Limits that a short step at the highest rate does not show. */
  ceilings: (index, random) => {
    if (index % 2 === 1) {
      const limit = [9000, 36_000, 24_000][(index >> 1) % 3]!;
      const windowMs = 60_000;
      const limiter = { kind: 'fixed-window', limit, windowMs, phaseMs: windowMs * random() } as const;
      return { ...withQuota(`${limit} in 60 s`, limiter), settings: { startRate: 100 } };
    }
    const saturation = 70 + 30 * random();
    const service = exponentialService(saturation, 2);
    const maxRate = saturation * (1.08 + 0.3 * random());
    return {
      name: `${saturation.toFixed(0)}/s, asked for at most ${maxRate.toFixed(0)}/s`,
      truth: trueCapacity(service),
      target: queueing(service, index),
      settings: { maxRate, startRate: maxRate },
    };
  },
  /** Servers that restart during the search and refuse connections meanwhile. */
  restarts: (index, random) => {
    const service = exponentialService(100 + 200 * random(), 3);
    const atSeconds = 10 + 60 * random();
    return {
      name: `${described(service)}, down for 3 s from ${atSeconds.toFixed(0)} s on`,
      truth: trueCapacity(service),
      target: refusingConnections(atSeconds, 3, queueing(service, index)),
    };
  },
  /** Polls of several pages, token requests and back-fills share the workers; the capacity is in polls per second. */
  tenants: (index, random) => {
    const service = exponentialService(150 + 200 * random(), 2 + Math.floor(4 * random()));
    const [pages, tokensPerPoll, backfills] = [1 + 1.5 * random(), 0.02 + 0.1 * random(), index % 3];
    const settings = { pages, tokensPerPoll, tokenPrice: 1, backfills, backfillWork: 1 + 3 * random() };
    const name = `${described(service)}, ${pages.toFixed(2)} pages a poll, ${backfills} back-fills`;
    const maxRate = saturationOf(service) / (pages + tokensPerPoll);
    return simulated(name, index, (seed) => polled(service, settings, seed), maxRate);
  },
  /** 429 without a quota: an adaptive concurrency limit, and a ban after a rejection. */
  feedback: (index, random) => {
    if (index % 2 === 0) {
      const saturation = 80 + 160 * random();
      const service = exponentialService(saturation, 2 + Math.floor(6 * random()));
      const slowMs = 100 + 150 * random();
      const name = `adaptive concurrency, ${described(service)}, backs off from ${slowMs.toFixed(0)} ms`;
      return simulated(name, index, (seed) => adaptive(service, slowMs, seed), saturation);
    }
    const [limit, windowSeconds, outSeconds] = BANS[(index >> 1) % BANS.length]!;
    const create = () => banning(limit, windowSeconds * 1000, outSeconds * 1000);
    const name = `${limit} in ${windowSeconds} s, then out for ${outSeconds} s`;
    return { ...simulated(name, index, create, limit / windowSeconds, 300), banSeconds: outSeconds };
  },
  surroundings: (index, random) => SURROUNDINGS[index % SURROUNDINGS.length]!(index, random),
} satisfies Record<string, DrawCapacity>;

/** Servers whose speed or limit varies over time. */
const SURROUNDINGS: readonly DrawCapacity[] = [
  (index, random) => {
    const service = exponentialService(150 + 150 * random(), 3);
    const [everyMs, forMs] = [8000, 100 + 100 * random()];
    const name = `${described(service)}, stops for ${forMs.toFixed(0)} ms every 8 s`;
    const create = (seed: number) => pausing(everyMs, forMs, queueing(service, seed));
    return simulated(name, index, create, saturationOf(service));
  },
  (index, random) => {
    const service = exponentialService(100 + 150 * random(), 3);
    const busy = 1.2 + 0.4 * random();
    const name = `${described(service)}, a neighbour takes ${percent(1 - 1 / busy)} for 10 of 40 s`;
    const slowdown = (atMs: number): number => (atMs % 40_000 < 10_000 ? busy : 1);
    return simulated(name, index, (seed) => queueing(service, seed, slowdown), saturationOf(service));
  },
  (index, random) => {
    const service = exponentialService(60 + 60 * random(), 3);
    const grows = 0.3 + 0.5 * random();
    const truth = trueCapacity(service);
    return {
      name: `${described(service)}, ${percent(grows)} slower after 5 min`,
      truth: [truth / (1 + grows), truth / (1 + 0.3 * grows)],
      target: queueing(service, index, (atMs) => 1 + (grows * atMs) / 300_000),
    };
  },
  (index, random) => {
    const service = exponentialService(60 + 60 * random(), 2);
    const everyMs = 20_000 + 20_000 * random();
    return {
      name: `${described(service)}, scales out every ${(everyMs / 1000).toFixed(0)} s to four times as much`,
      truth: trueCapacity({ ...service, workers: 8 }),
      target: queueing(service, index, (atMs) => 1 / Math.min(4, 1 + Math.floor(atMs / everyMs))),
      truthFromSeconds: (3 * everyMs) / 1000,
    };
  },
  (index, random) => {
    const perSecond = 40 + 60 * random();
    const name = `a leaky bucket of ${perSecond.toFixed(0)}/s that delays`;
    return simulated(name, index, () => leakyBucket(perSecond, 100, true), perSecond);
  },
  (_, random) => {
    const limits = [1200, 600].map((limit) => ({ kind: 'fixed-window', limit, windowMs: 60_000 }) as const);
    const fast = { kind: 'token-bucket', limit: 30 + 20 * random(), windowMs: 1000, burst: 40 } as const;
    const name = `${fast.limit.toFixed(0)}/s, 1,200 and 600 a minute`;
    return { name, truth: 10, target: limited([fast, ...limits]) };
  },
  (index, random) => {
    const [limit, windowMs] = [300 + 300 * random(), 10_000];
    const taken = 0.2 + 0.3 * random();
    const shared = limited({ kind: 'fixed-window', limit, windowMs });
    const others = randomSource(index);
    let lastMs = 0;
    return {
      name: `${limit.toFixed(0)} in 10 s, of which others take ${percent(taken)}`,
      // A higher rate wins a larger share: from what the others leave, to what is admitted at twice that rate.
      truth: [(limit * (1 - taken)) / 10, (limit * 2 * (1 - taken)) / (2 - taken) / 10],
      target: (atMs) => {
        for (; lastMs < atMs; lastMs += exponential(others, windowMs / (limit * taken))) shared(lastMs);
        return shared(atMs);
      },
    };
  },
  (index, random) => {
    const service = exponentialService(100 + 200 * random(), 4);
    const share = 0.01 + 0.03 * random();
    const create = (seed: number) => slowRandomly(share, 250, service, seed);
    return simulated(`${percent(share)} miss the cache`, index, create, saturationOf(service));
  },
];

/** Servers that answer 429 or 503 without a quota per window, and quotas of token buckets. */
const REFUSALS: readonly DrawCapacity[] = [
  (index, random) => {
    const workers = 10 + Math.floor(30 * random());
    const service = exponentialService((workers * 1000) / (20 + 80 * random()), workers);
    return rejecting(service, workers, 429, index);
  },
  (index, random) => {
    const share = 0.01 + 0.14 * random();
    return {
      name: `429 to ${percent(share)} at any rate`,
      truth: 0,
      target: failingRandomly(share, 429, ADMITS, index),
    };
  },
  (_, random) => {
    const [limit, burst] = [10 + 50 * random(), 1 + Math.floor(4 * random())];
    const limiter = { kind: 'token-bucket', limit, windowMs: 1000, burst } as const;
    return withQuota(`${limit.toFixed(1)}/s, burst ${burst}`, limiter);
  },
  (index, random) => {
    const saturation = 80 + 200 * random();
    const limit = Math.round(saturation * (0.6 + 0.8 * random()));
    const service = exponentialService(saturation, 2);
    return {
      name: `a quota of ${limit}/s for a queue of ${saturation.toFixed(0)}/s`,
      truth: Math.min(limit, trueCapacity(service)),
      target: limited({ kind: 'token-bucket', limit, windowMs: 1000 }, { rest: queueing(service, index) }),
    };
  },
  (index, random) => {
    const saturation = 80 + 200 * random();
    const service = exponentialService(saturation, 1 + Math.floor(6 * random()));
    return rejecting(service, service.workers + 10 + Math.floor(40 * random()), 503, index);
  },
];

const FAILING_SHARES = [0.004, 0.0003, 0.01, 0.0005, 0.006, 0.0002];
const SLOW_SHARES = [0.015, 0.005, 0.03, 0.002, 0.02, 0.012];
/** Limit, and window in seconds. */
const QUOTAS = [[600, 60], [3000, 60], [100, 10], [60, 1], [300, 30], [20, 1], [1800, 3600]] as const; // prettier-ignore
/** Limit, window and length of the ban in seconds. */
const BANS = [[100, 10, 30], [200, 10, 30], [60, 5, 20]] as const; // prettier-ignore

export const CAPACITY_SERVERS = Object.fromEntries(
  Object.entries<DrawCapacity>(CLASSES).map(([family, draw]) => [
    family,
    (index, random, seed) => {
      const { name, truth, target, settings, ...more } = draw(index, random);
      const search = { ...SEARCH_DEFAULTS, slo: SLO, ...settings };
      const range = [truth].flat();
      return {
        name,
        truth: `${range.map((end) => end.toFixed(1)).join(' to ')}/s`,
        judge: async () => judged(await new Search(stepsAgainst(target, seed), search).find(), range, more),
      };
    },
  ]),
) as Record<keyof typeof CLASSES, Draw>;

function judged(
  found: Found,
  range: readonly number[],
  {
    truthFromSeconds = 0,
    withinSlo,
    banSeconds = NaN,
  }: Pick<Simulated, 'truthFromSeconds' | 'withinSlo' | 'banSeconds'>,
) {
  const { requestsPerSecond: rate, interval, confirmed, unconfirmed, watchedSeconds } = found;
  const isQuota = found.basis === 'quota' || !withinSlo || !confirmed;
  const [low, high] = isQuota ? [range[0]!, range.at(-1)!] : [withinSlo(), withinSlo()];
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
