/**
 * `verify queues`, `sharing`, `overload`, `quotas`, `refusals`, `errors`, `tails`, `warming`: the search for a capacity
 * against targets that behave as real ones do, in virtual time. Truth, figure and error; right is also what says that
 * it does not know.
 */
import { searchCapacity } from '../estimate/capacity.ts';
import type { Found } from '../estimate/search.ts';
import { LIMITER_KINDS } from '../estimate/limiter-models.ts';
import { randomSource } from '../k6/lib/random.ts';
import { textTable } from '../scenarios/words.ts';
import {
  collapsing,
  failingAtTimes,
  inOrder,
  limited,
  queueing,
  refusing,
  sharing,
  simulatedCapacity,
  slowAtTimes,
  stepsAgainst,
  warming,
  type VirtualRuns,
} from '../simulated/targets.ts';
import { drawServers, trueCapacity } from './capacity.ts';

export const CAPACITY_CLASSES = [
  'queues',
  'sharing',
  'overload',
  'quotas',
  'refusals',
  'errors',
  'tails',
  'warming',
] as const;
export type CapacityClass = (typeof CAPACITY_CLASSES)[number];

export interface SimulationRow {
  readonly server: string;
  readonly truth: number;
  readonly found: Found;
  /** Of the figure; absent where the truth is that the SLO holds at no rate. */
  readonly error?: number;
  readonly verdict: 'right' | 'undecided' | 'wrong';
}

interface Simulated {
  readonly name: string;
  readonly truth: number;
  readonly target: VirtualRuns;
  /** A target whose truth shows only after so long may be seen as it was until then. */
  readonly truthFromSeconds?: number;
}

const SLO = { p99Ms: 500, errorRate: 0.001 };
const SEARCH = {
  slo: SLO,
  startRate: 10,
  maxRate: 3000,
  bracketSeconds: 4,
  overloadSeconds: 15,
  stepSeconds: 12,
  confirmSeconds: 30,
  maxSeconds: 900,
};
/** A figure so far from the truth is wrong. */
const NEAR = 0.12;

const DRAW: Readonly<Record<CapacityClass, (index: number, random: () => number) => Simulated>> = {
  queues: (index, random) => {
    const [service] = drawServers(1, Math.floor(random() * 1e6));
    const name = `${service!.workers} × ${service!.serviceMs.toFixed(1)} ms ${service!.distribution}`;
    return { name, truth: trueCapacity(service!, SLO.p99Ms), target: inOrder(queueing(service!, index)) };
  },
  sharing: (index, random) => {
    const [service] = drawServers(1, Math.floor(random() * 1e6));
    const name = `${service!.workers} × ${service!.serviceMs.toFixed(1)} ms ${service!.distribution}, shared`;
    const create = (seed: number) => sharing(service!, seed);
    const saturation = (service!.workers * 1000) / service!.serviceMs;
    return { name, truth: simulatedCapacity(create, saturation, SLO), target: create(index) };
  },
  overload: (index, random) => {
    const saturation = 60 + 340 * random();
    const workers = 1 + Math.floor(8 * random());
    const growth = 0.002 + 0.048 * random();
    const service = {
      workers,
      serviceMs: (workers * 1000) / saturation,
      distribution: 'exponential',
    } as const;
    const create = (seed: number) => inOrder(collapsing({ ...service, growth }, seed));
    const name = `${workers} × ${service.serviceMs.toFixed(1)} ms, ${(growth * 100).toFixed(1)} % more work for each in the queue`;
    return { name, truth: simulatedCapacity(create, saturation, SLO), target: create(index) };
  },
  quotas: (index, random) => {
    const [limit, windowSeconds] = QUOTAS[index % QUOTAS.length]!;
    const kind = index < QUOTAS.length ? 'fixed-window' : LIMITER_KINDS[index % LIMITER_KINDS.length]!;
    const windowMs = windowSeconds * 1000;
    const declares = windowSeconds > 300;
    const target = limited({ kind, limit, windowMs, phaseMs: random() * windowMs }, declares);
    return {
      name: `${kind}, ${limit} in ${windowSeconds} s${declares ? ', declared' : ''}`,
      truth: limit / windowSeconds,
      target: inOrder(target),
    };
  },
  refusals: (index, random) => REFUSALS[index % REFUSALS.length]!(index, random),
  errors: (index, random) => {
    const share = FAILING_SHARES[index % FAILING_SHARES.length]!;
    const saturation = 100 + 200 * random();
    const service = { workers: 4, serviceMs: 4000 / saturation, distribution: 'exponential' } as const;
    const create = (seed: number) => inOrder(failingAtTimes(share, 500, queueing(service, seed), seed));
    const truth = share > SLO.errorRate ? 0 : trueCapacity(service, SLO.p99Ms);
    return { name: `500 to ${(share * 100).toFixed(2)} % at any rate`, truth, target: create(index) };
  },
  tails: (index, random) => {
    const share = SLOW_SHARES[index % SLOW_SHARES.length]!;
    const saturation = 100 + 300 * random();
    const service = { workers: 4, serviceMs: 4000 / saturation, distribution: 'exponential' } as const;
    const create = (seed: number) => inOrder(slowAtTimes({ share, slowMs: 900 }, service, seed));
    const truth = share > 0.01 ? 0 : simulatedCapacity(create, saturation, SLO);
    return { name: `${(share * 100).toFixed(1)} % slow at any rate`, truth, target: create(index) };
  },
  warming: (index, random) => {
    const before = 60 + 90 * random();
    const after = before * (2 + 2 * random());
    const fromSeconds = 20 + 180 * random();
    const untilSeconds = fromSeconds + (index % 2) * 100 * random();
    const service = (rate: number) =>
      ({ workers: 2, serviceMs: 2000 / rate, distribution: 'exponential' }) as const;
    return {
      name: `${before.toFixed(0)}/s, from ${fromSeconds.toFixed(0)} to ${untilSeconds.toFixed(0)} s up to ${after.toFixed(0)}/s`,
      truth: trueCapacity(service(after), SLO.p99Ms),
      target: inOrder(
        warming({ before: service(before), after: service(after), fromSeconds, untilSeconds }, index),
      ),
      truthFromSeconds: untilSeconds,
    };
  },
};

/** What answers 429 or 503, and has no quota of the kind that has a window. */
const REFUSALS: readonly ((index: number, random: () => number) => Simulated)[] = [
  (index, random) => {
    const atOnce = 10 + Math.floor(30 * random());
    const service = { workers: atOnce, serviceMs: 20 + 80 * random(), distribution: 'exponential' } as const;
    const create = (seed: number) => inOrder(refusing(service, { atOnce, status: 429 }, seed));
    const truth = simulatedCapacity(create, (atOnce * 1000) / service.serviceMs, SLO, 120);
    return {
      name: `429 beyond ${atOnce} at once, ${service.serviceMs.toFixed(0)} ms`,
      truth,
      target: create(index),
    };
  },
  (index, random) => {
    const share = 0.01 + 0.14 * random();
    const target = failingAtTimes(share, 429, () => ({ latencyMs: 5, status: 200 }), index);
    return { name: `429 to ${(share * 100).toFixed(1)} % at any rate`, truth: 0, target: inOrder(target) };
  },
  (_, random) => {
    const [limit, burst] = [10 + 50 * random(), 1 + Math.floor(4 * random())];
    const target = limited({ kind: 'token-bucket', limit, windowMs: 1000, burst });
    return { name: `${limit.toFixed(1)}/s, burst ${burst}`, truth: limit, target: inOrder(target) };
  },
  (index, random) => {
    const saturation = 80 + 200 * random();
    const limit = Math.round(saturation * (0.6 + 0.8 * random()));
    const service = { workers: 2, serviceMs: 2000 / saturation, distribution: 'exponential' } as const;
    const bucket = { kind: 'token-bucket', limit, windowMs: 1000 } as const;
    return {
      name: `a quota of ${limit}/s for a queue of ${saturation.toFixed(0)}/s`,
      truth: Math.min(limit, trueCapacity(service, SLO.p99Ms)),
      target: inOrder(limited(bucket, false, queueing(service, index))),
    };
  },
  (index, random) => {
    const saturation = 80 + 200 * random();
    const workers = 1 + Math.floor(6 * random());
    const atOnce = workers + 10 + Math.floor(40 * random());
    const service = {
      workers,
      serviceMs: (workers * 1000) / saturation,
      distribution: 'exponential',
    } as const;
    const create = (seed: number) => inOrder(refusing(service, { atOnce, status: 503 }, seed));
    return {
      name: `503 beyond ${atOnce} at once, ${saturation.toFixed(0)}/s`,
      truth: simulatedCapacity(create, saturation, SLO, 120),
      target: create(index),
    };
  },
];

const FAILING_SHARES = [0.004, 0.0003, 0.01, 0.0005, 0.006, 0.0002];
const QUOTAS = [
  [600, 60],
  [3000, 60],
  [100, 10],
  [60, 1],
  [300, 30],
  [20, 1],
  [1800, 3600],
] as const;
const SLOW_SHARES = [0.015, 0.005, 0.03, 0.002, 0.02, 0.012];

export async function verifySimulations(
  which: CapacityClass,
  servers: number,
  seed: number,
): Promise<SimulationRow[]> {
  const random = randomSource(seed * 7919);
  const rows: SimulationRow[] = [];
  for (let index = 0; index < servers; index += 1) {
    const { name, truth, target, truthFromSeconds = 0 } = DRAW[which](index, random);
    const found = await searchCapacity(stepsAgainst(target, seed * 100 + index), { ...SEARCH, seed: index });
    const error = truth === 0 ? undefined : found.requestsPerSecond / truth - 1;
    const near = error === undefined ? found.requestsPerSecond === 0 : Math.abs(error) <= NEAR;
    const before = found.watchedSeconds < truthFromSeconds;
    const verdict = near ? 'right' : !found.confirmed || before ? 'undecided' : 'wrong';
    rows.push({ server: name, truth, found, verdict, ...(error === undefined ? {} : { error }) });
  }
  return rows;
}

export function simulationsTable(rows: readonly SimulationRow[]): { text: string; ok: boolean } {
  const rate = (value: number): string => (Number.isFinite(value) ? value.toFixed(1) : '∞');
  const table = textTable(
    ['server', 'truth/s', 'found/s', 'error', 'interval', 'confirmed', 'noticed', 'answers', 's', 'verdict'],
    rows.map(({ server, truth, found, error, verdict }) => [
      server,
      rate(truth),
      rate(found.requestsPerSecond),
      error === undefined ? '' : `${(error * 100).toFixed(1)} %`,
      found.interval.map(rate).join('…'),
      found.confirmed ? 'yes' : 'no',
      [found.limitedBy, found.collapse ? 'collapse' : '', found.gotFaster ? 'got faster' : '']
        .filter(Boolean)
        .join(', '),
      found.samples,
      found.watchedSeconds,
      verdict,
    ]),
  );
  const count = (verdict: SimulationRow['verdict']) => rows.filter((row) => row.verdict === verdict).length;
  return {
    text: `${table}\n\n${count('right')} right, ${count('undecided')} undecided or not watched long enough, ${count('wrong')} wrong`,
    ok: count('wrong') === 0 && count('right') * 2 > rows.length,
  };
}
