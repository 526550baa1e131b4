/**
 * `verify overload`, `quotas`, `tails`, `warming`, `queues`: the search for a capacity against targets that behave as
 * real ones do, in virtual time. Truth, figure and error; right is also what says that it does not know.
 */
import { searchCapacity } from '../estimate/capacity.ts';
import type { Found } from '../estimate/search.ts';
import { LIMITER_KINDS } from '../estimate/limiter-models.ts';
import { randomSource } from '../k6/lib/random.ts';
import { textTable } from '../scenarios/words.ts';
import {
  collapsing,
  limited,
  queueing,
  simulatedCapacity,
  slowAtTimes,
  stepsAgainst,
  warming,
  type VirtualTarget,
} from '../simulated/targets.ts';
import { drawServers, trueCapacity } from './capacity.ts';

export const CAPACITY_CLASSES = ['queues', 'overload', 'quotas', 'tails', 'warming'] as const;
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
  readonly target: VirtualTarget;
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
    return { name, truth: trueCapacity(service!, SLO.p99Ms), target: queueing(service!, index) };
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
    const create = (seed: number) => collapsing({ ...service, growth }, seed);
    const name = `${workers} × ${service.serviceMs.toFixed(1)} ms, ${(growth * 100).toFixed(1)} % more work for each in the queue`;
    return { name, truth: simulatedCapacity(create, saturation, SLO.p99Ms), target: create(index) };
  },
  quotas: (index, random) => {
    const [limit, windowSeconds] = QUOTAS[index % QUOTAS.length]!;
    const kind = index < QUOTAS.length ? 'fixed-window' : LIMITER_KINDS[index % LIMITER_KINDS.length]!;
    const windowMs = windowSeconds * 1000;
    const declares = windowSeconds > 300;
    const target = limited({ kind, limit, windowMs, phaseMs: random() * windowMs }, 5, declares);
    return {
      name: `${kind}, ${limit} in ${windowSeconds} s${declares ? ', declared' : ''}`,
      truth: limit / windowSeconds,
      target,
    };
  },
  tails: (index, random) => {
    const share = SLOW_SHARES[index % SLOW_SHARES.length]!;
    const saturation = 100 + 300 * random();
    const service = { workers: 4, serviceMs: 4000 / saturation, distribution: 'exponential' } as const;
    const create = (seed: number) => slowAtTimes({ share, slowMs: 900 }, service, seed);
    const truth = share > 0.01 ? 0 : simulatedCapacity(create, saturation, SLO.p99Ms);
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
      target: warming({ before: service(before), after: service(after), fromSeconds, untilSeconds }, index),
      truthFromSeconds: untilSeconds,
    };
  },
};

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
