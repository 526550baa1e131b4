/** Simulated servers with known capacities that behave like real ones under load, and the judgement of the search. */
import { Search } from '../estimate/capacity.ts';
import { type Found, SEARCH_DEFAULTS, type SearchSettings } from '../estimate/figures.ts';
import {
  createLimiter,
  type Limiter,
  LIMITER_KINDS,
  type LimiterSettings,
} from '../estimate/limiter-models.ts';
import { linesOf, percent, rounded } from '../estimate/numbers.ts';
import { randomSource } from '../estimate/random.ts';
import { LATE_SHARE } from '../estimate/step.ts';
import { SLO } from '../k6/lib/presets.ts';
import * as zoo from './targets.ts';

interface Simulated {
  /** In addition to its data. */
  readonly name?: string;
  readonly behaviour: zoo.Behaviour | ((seed: number) => zoo.VirtualRuns);
  /** Requests per second, 0 if no rate holds; a range if chance or time decides. Default: simulated to saturation. */
  readonly truth?: number | readonly [low: number, high: number] | { readonly upTo: number } | undefined;
  /** The truth is a quota; with 429 as an error, the SLO holds up to a lower rate. */
  readonly isQuota?: boolean;
  /** A search that finds this ban is right if its interval contains the truth. */
  readonly banSeconds?: number;
  /** The truth of a search that ends before the server changes. */
  readonly before?: { readonly untilSeconds: number; readonly truth: number };
  /** A search that ends earlier cannot observe the truth, so that a wrong result counts as undecided. */
  readonly truthFromSeconds?: number;
  readonly settings?: Partial<SearchSettings>;
}

type DrawCapacity = zoo.Draw<Simulated>;

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
export const exponentialService = (perSecond: number, workers: number): zoo.ServiceSettings => ({
  workers,
  serviceMs: (workers * 1000) / perSecond,
  distribution: 'exponential',
});
/** The data of a behaviour, if it has any; what its functions do is in the name. */
function described(behaviour: zoo.Behaviour): string | undefined {
  const data = JSON.stringify(behaviour, (_, value: unknown) =>
    typeof value === 'number' ? rounded(value) : Array.isArray(value) ? undefined : value,
  );
  return data === '{}' ? undefined : data.replaceAll('"', '');
}

const capacityOf = (service: zoo.ServiceSettings): number =>
  zoo.simulatedCapacity((seed) => zoo.server({ service }, seed), saturationOf(service));

const withQuota = (limiter: LimiterSettings, more: zoo.Behaviour = {}): Simulated => ({
  name: `${limiter.kind}, ${limiter.limit.toFixed(1)} in ${limiter.windowMs / 1000} s${limiter.burst ? `, burst ${limiter.burst}` : ''}`,
  behaviour: { ...zoo.limited(limiter), ...more },
  truth: (limiter.limit * 1000) / limiter.windowMs,
  isQuota: true,
});

/** A share of the answers fails or is slow at any rate; the SLO allows `most`. */
const atAnyRate =
  (shares: readonly number[], most: number, behaviour: (share: number) => zoo.Behaviour): DrawCapacity =>
  (random, index) => {
    const share = shares[index % shares.length]!;
    const service = exponentialService(100 + 200 * random(), 4);
    return { behaviour: { service, ...behaviour(share) }, truth: share > most ? 0 : undefined };
  };

const CLASSES = {
  queues: (random) => ({ behaviour: { service: drawService(random) } }),
  /** Approximates processors that all requests in flight share, as threads do, by the number in flight at arrival. */
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
      zoo.simulatedCapacity((seed) => zoo.server({ service, work }, seed), saturation, 60, share),
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
    const declared = windowSeconds > 300 ? { policy: { limit, windowSeconds } } : {};
    return withQuota({ kind, limit, windowMs, phaseMs: random() * windowMs }, declared);
  },
  /** Servers that answer 429 or 503 without a quota per window, and quotas of token buckets. */
  refusals: zoo.inTurn<Simulated>([
    (random) => {
      const workers = 10 + Math.floor(30 * random());
      const service = exponentialService((workers * 1000) / (20 + 80 * random()), workers);
      return { behaviour: { service, concurrency: { limit: workers, status: 429 } } };
    },
    (random) => ({ behaviour: { failing: { share: 0.01 + 0.14 * random(), status: 429 } }, truth: 0 }),
    (random) => {
      const [limit, burst] = [10 + 50 * random(), 1 + Math.floor(4 * random())];
      return withQuota({ kind: 'token-bucket', limit, windowMs: 1000, burst });
    },
    (random) => {
      const saturation = 80 + 200 * random();
      const limit = Math.round(saturation * (0.6 + 0.8 * random()));
      const service = exponentialService(saturation, 2);
      return {
        name: `a quota of ${limit}/s`,
        behaviour: { ...zoo.limited({ kind: 'token-bucket', limit, windowMs: 1000 }), service },
        truth: Math.min(limit, capacityOf(service)),
      };
    },
    (random) => {
      const saturation = 80 + 200 * random();
      const service = exponentialService(saturation, 1 + Math.floor(6 * random()));
      const limit = service.workers + 10 + Math.floor(40 * random());
      return { behaviour: { service, concurrency: { limit, status: 503 } } };
    },
  ]),
  errors: atAnyRate([0.004, 0.0003, 0.01, 0.0005, 0.006, 0.0002], SLO.errorRate, (share) => ({
    failing: { share, status: 500 },
  })),
  tails: atAnyRate([0.015, 0.005, 0.03, 0.002, 0.02, 0.012], LATE_SHARE, (share) => ({
    slow: { share, byMs: 900 },
  })),
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
      name: `from ${fromSeconds.toFixed(0)} to ${untilSeconds.toFixed(0)} s up to ${after.toFixed(0)}/s`,
      behaviour: { service: exponentialService(before, 2), work },
      truth: capacityOf(exponentialService(after, 2)),
      before: { untilSeconds: fromSeconds, truth: capacityOf(exponentialService(before, 2)) },
      truthFromSeconds: untilSeconds,
    };
  },
  /** Limits that a short step at the highest rate does not show. */
  ceilings: zoo.inTurn<Simulated>([
    (random) => {
      const saturation = 70 + 30 * random();
      const maxRate = saturation * (1.08 + 0.3 * random());
      return {
        name: `asked for at most ${maxRate.toFixed(0)}/s`,
        behaviour: { service: exponentialService(saturation, 2) },
        settings: { maxRate, startRate: maxRate },
      };
    },
    (random, index) => {
      const limit = [9000, 36_000, 24_000][index % 3]!;
      const windowMs = 60_000;
      const limiter = { kind: 'fixed-window', limit, windowMs, phaseMs: windowMs * random() } as const;
      return { ...withQuota(limiter), settings: { startRate: 100 } };
    },
    (random) => {
      const limiter = { kind: 'fixed-window', limit: 300 + 300 * random(), windowMs: 60_000 } as const;
      return withQuota(limiter, { policy: { limit: 5000, windowSeconds: 3600 } });
    },
  ]),
  /** Servers that restart during the search and refuse connections meanwhile. */
  restarts: (random) => {
    const service = exponentialService(100 + 200 * random(), 3);
    const down = { fromSeconds: 10 + 60 * random(), forSeconds: 3 };
    return { behaviour: { service, down }, truth: capacityOf(service) };
  },
  /** Polls of several pages, token requests and back-fills share the workers; the capacity is in polls per second. */
  tenants: (random, index) => {
    const service = exponentialService(150 + 200 * random(), 2 + Math.floor(4 * random()));
    const [pages, tokensPerPoll, backfills] = [1 + 1.5 * random(), 0.02 + 0.1 * random(), index % 3];
    const settings = { pages, tokensPerPoll, tokenPrice: 1, backfills, backfillWork: 1 + 3 * random() };
    return {
      name: `${described({ service })}, ${pages.toFixed(2)} pages a poll, ${backfills} back-fills`,
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
      return { behaviour: { service, concurrency: { limit: 4 * service.workers, status: 429, slowMs } } };
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
  surroundings: zoo.inTurn<Simulated>([
    (random) => ({
      behaviour: {
        service: exponentialService(150 + 150 * random(), 3),
        stops: { everyMs: 8000, forMs: 100 + 100 * random() },
      },
    }),
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
        isQuota: true,
      };
    },
    // Some answers miss a cache, and are slow within the SLO.
    (random) => {
      const service = exponentialService(100 + 200 * random(), 4);
      return { behaviour: { service, slow: { share: 0.01 + 0.03 * random(), byMs: 250 } } };
    },
    (random) => {
      const service = exponentialService(100 + 200 * random(), 3);
      const [busy, seed] = [1.2 + 0.6 * random(), Math.floor(1e6 * random())];
      const isBusy = (atMs: number): boolean => randomSource(seed + Math.floor(atMs / 4000))() < 0.12;
      return {
        name: `a neighbour takes ${percent(1 - 1 / busy)} for 4 s, twice a minute at random`,
        behaviour: { service, work: (atMs) => (isBusy(atMs) ? busy : 1) },
      };
    },
    (random) => {
      const [before, after] = [20 + 40 * random(), 40 + 100 * random()];
      const fromMs = 30_000 + 200_000 * random();
      const [lower, higher] = [before, before + after].map((perSecond) =>
        createLimiter({ kind: 'fixed-window', limit: 10 * perSecond, windowMs: 10_000 }),
      ) as [Limiter, Limiter];
      return {
        name: `${before.toFixed(0)}/s, from ${(fromMs / 1000).toFixed(0)} s on ${after.toFixed(0)}/s more`,
        behaviour: { limits: [() => (atMs) => (atMs < fromMs ? lower : higher)(atMs)] },
        truth: before + after,
        before: { untilSeconds: fromMs / 1000, truth: before },
        isQuota: true,
        truthFromSeconds: fromMs / 1000,
      };
    },
  ]),
} satisfies Record<string, DrawCapacity>;

const QUOTAS = [[600, 60], [3000, 60], [100, 10], [60, 1], [300, 30], [20, 1], [1800, 3600]] as const; // prettier-ignore
/** Limit, window and length of the ban in seconds. */
const BANS = [[100, 10, 30], [200, 10, 30], [60, 5, 20], [100, 10, 10]] as const; // prettier-ignore

const capacityServer = (drawn: Simulated, index: number, seed: number): zoo.ZooServer => {
  const { name, behaviour, settings } = drawn;
  const data = typeof behaviour === 'function' ? {} : behaviour;
  const create = (of: number) =>
    typeof behaviour === 'function' ? behaviour(of) : zoo.server(behaviour, of);
  const { truth = { upTo: saturationOf(data.service!) } } = drawn;
  const range =
    typeof truth === 'object' && 'upTo' in truth
      ? [zoo.simulatedCapacity(create, truth.upTo)]
      : [truth].flat();
  const search = { ...SEARCH_DEFAULTS, slo: SLO, ...settings };
  const rateWithinSlo = () => zoo.simulatedCapacity(create, range[0]!);
  return {
    name: linesOf(name, described(data)).join(', '),
    truth: `${range.map((end) => end.toFixed(1)).join(' to ')}/s`,
    judge: async () => {
      let endedMs = 0;
      const runStep = zoo.stepsAgainst(create(index), seed, (atMs) => void (endedMs = atMs));
      const found = await new Search(runStep, search).find();
      return judged(found, range, drawn, rateWithinSlo, endedMs / 1000);
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
  later: readonly number[],
  { before, truthFromSeconds = 0, isQuota = false, banSeconds = NaN }: Simulated,
  rateWithinSlo: () => number,
  endedSeconds: number,
) {
  const isBefore = before !== undefined && endedSeconds < before.untilSeconds;
  const range = isBefore ? [before.truth] : later;
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
  const undecided = !confirmed || (!isBefore && endedSeconds < truthFromSeconds);
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
