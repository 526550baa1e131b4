/** `verify capacity`: the search against servers whose capacity is known, beside what a ramp would have said. */
import { lateShare } from '../estimate/erlang.ts';
import { sustainedRate, serviceTimes, type ServiceSettings } from '../estimate/queue.ts';
import { median } from '../estimate/depth.ts';
import { randomSource } from '../k6/lib/random.ts';
import { startSimulatedServer } from '../simulated/start.ts';
import { VoidRun } from '../run/session.ts';
import { capacity } from '../scenarios/capacity.ts';
import { textTable } from '../scenarios/words.ts';
import { openSession, OPTIONS } from './session.ts';

export interface VerifyCapacityOptions {
  readonly servers: number;
  readonly seed: number;
  /** Servers measured at the same time: they sleep most of the time, as their waits are timers. */
  readonly parallel: number;
  readonly thoroughness: number;
  readonly k6: string;
  readonly tell: (line: string) => void;
}

export interface CapacityRow {
  readonly server: string;
  readonly truth: number;
  readonly found: number;
  readonly interval: readonly [number, number];
  readonly error: number;
  readonly holds: boolean;
  readonly basis: string;
  readonly ramp?: number;
  readonly seconds: number;
}

const SLO = { p99Ms: 500, errorRate: 0.001 };

/** Servers drawn by seed: 1 to 8 workers, 120 to 400 requests a second, two thirds with random service. */
export function drawServers(count: number, seed: number): ServiceSettings[] {
  const random = randomSource(seed);
  return Array.from({ length: count }, () => {
    const saturation = 120 * (400 / 120) ** random();
    const workers = 1 + Math.floor(random() * 8);
    const distribution = random() < 1 / 3 ? 'deterministic' : 'exponential';
    return { workers, serviceMs: (workers * 1000) / saturation, distribution };
  });
}

/** The long run's capacity, per second: by Erlang's formula for random service, by a long simulation otherwise. */
export function trueCapacity(service: ServiceSettings, p99Ms: number): number {
  const saturation = (service.workers * 1000) / service.serviceMs;
  if (service.distribution === 'deterministic') {
    const draw = serviceTimes(service, randomSource(1));
    const queue = { workers: service.workers, discipline: 'in-turn' } as const;
    return sustainedRate(queue, draw, saturation, p99Ms, 150_000, randomSource(2));
  }
  let [low, high] = [0, saturation];
  for (let round = 0; round < 50; round += 1) {
    const rate = (low + high) / 2;
    if (lateShare(service.workers, 1000 / service.serviceMs, rate, p99Ms / 1000) < 0.01) low = rate;
    else high = rate;
  }
  return low;
}

export async function verifyCapacity(options: VerifyCapacityOptions): Promise<CapacityRow[]> {
  const queue = drawServers(options.servers, options.seed).map((service, index) => ({ service, index }));
  const rows: CapacityRow[] = [];
  await Promise.all(
    Array.from({ length: options.parallel }, async () => {
      for (let next = queue.shift(); next; next = queue.shift()) {
        // A machine too busy to measure on says so; what it says then is nothing about the search.
        const row = await one(next.service, next.index, options).catch((error: unknown) => {
          if (!(error instanceof VoidRun)) throw error;
          options.tell(`server ${next!.index + 1}: void, once more (${error.message})`);
          return one(next!.service, next!.index, options);
        });
        rows[next.index] = row;
        options.tell(
          `${row.server}: truth ${row.truth.toFixed(1)}, found ${row.found.toFixed(1)} (${percent(row.error)})`,
        );
      }
    }),
  );
  return rows;
}

async function one(
  service: ServiceSettings,
  index: number,
  options: VerifyCapacityOptions,
): Promise<CapacityRow> {
  const startedAt = Date.now();
  const truth = trueCapacity(service, SLO.p99Ms);
  await using server = await startSimulatedServer({ service, seed: options.seed + index });
  const session = await openSession(options.k6, server.target(), {
    slo: SLO,
    pageSize: 10,
    seed: options.seed * 1000 + index * 50,
  });
  const search = { startRate: 20, maxRate: 3000, thoroughness: options.thoroughness };
  const figure = (await capacity.run(session, { ...OPTIONS, ...search })).capacity!;
  const seconds = (Date.now() - startedAt) / 1000;
  const saturation = (service.workers * 1000) / service.serviceMs;
  const ramp = await naiveRamp(session, saturation * 2);
  return {
    server: `${service.workers} × ${service.serviceMs.toFixed(1)} ms ${service.distribution}`,
    truth,
    found: figure.requestsPerSecond,
    interval: figure.interval,
    error: figure.requestsPerSecond / truth - 1,
    holds: figure.interval[0] <= truth && truth <= figure.interval[1],
    basis: figure.basis,
    ...(ramp === undefined ? {} : { ramp }),
    seconds,
  };
}

/** What common practice answers: the rate that a ramp has reached when its p99 threshold aborts it. */
async function naiveRamp(
  session: Awaited<ReturnType<typeof openSession>>,
  topRate: number,
): Promise<number | undefined> {
  const config = session.config('ramp', {
    requestsPerSecond: topRate,
    seconds: 30,
    vus: 600,
    records: false,
    thresholds: { page_ms: [`p(99)<${SLO.p99Ms}`] },
  });
  const run = await session.run('ramp', config).catch(() => undefined);
  const seconds = run?.summary?.seconds;
  return seconds === undefined ? undefined : Math.min(1, seconds / 30) * topRate;
}

const percent = (share: number): string => `${share >= 0 ? '+' : ''}${(share * 100).toFixed(1)} %`;

/** The table, and whether the errors stay within what the kit promises. */
export function capacityTable(rows: readonly CapacityRow[]): { text: string; ok: boolean } {
  const errors = rows.map((row) => Math.abs(row.error));
  const holding = rows.filter((row) => row.holds).length / rows.length;
  const ramps = rows.flatMap((row) => (row.ramp === undefined ? [] : [Math.abs(row.ramp / row.truth - 1)]));
  const ok = median(errors) <= 0.05 && Math.max(...errors) <= 0.1 && holding >= 0.85;
  const table = textTable(
    ['server', 'truth/s', 'found/s', 'error', 'interval', 'holds', 'basis', 'ramp/s', 'ramp error', 's'],
    rows.map((row) => [
      row.server,
      row.truth.toFixed(1),
      row.found.toFixed(1),
      percent(row.error),
      `${row.interval[0].toFixed(1)}…${row.interval[1].toFixed(1)}`,
      row.holds ? 'yes' : 'no',
      row.basis,
      row.ramp?.toFixed(0) ?? '',
      row.ramp === undefined ? '' : percent(row.ramp / row.truth - 1),
      row.seconds.toFixed(0),
    ]),
  );
  const sum = `error: median ${percent(median(errors))}, worst ${percent(Math.max(...errors))}; the interval holds the truth in ${(holding * 100).toFixed(0)} %; a ramp's error: median ${percent(median(ramps))}, worst ${percent(Math.max(...ramps, 0))}`;
  return { text: `${table}\n\n${sum}`, ok };
}
