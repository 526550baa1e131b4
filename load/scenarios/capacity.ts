/** capacity: the highest arrival rate at which the SLO holds and answers stay right. */
import { searchCapacity, type Found } from '../estimate/capacity.ts';
import { fitUsl } from '../estimate/usl.ts';
import type { LoadConfig } from '../k6/lib/config.ts';
import type { CapacityFigure, LoadResult } from '../result.ts';
import type { Session } from '../run/session.ts';
import { perSecond, quantiles } from './words.ts';

export interface CapacityOptions {
  readonly startRate: number;
  readonly maxRate: number;
  /** Scales the length of every step; 1 is about two minutes in all. */
  readonly thoroughness: number;
}

export async function capacity(session: Session, options: CapacityOptions): Promise<Partial<LoadResult>> {
  const all = session.prepared.base.clients;
  const alone = await search(session, options, all.slice(0, 1));
  const figure =
    alone.limitedBy === 'quota' && all.length > 1
      ? { ...alone, perServer: await search(session, options, all) }
      : alone;
  return {
    capacity: figure,
    held: figure.limitedBy === 'none-found' || figure.confirmed,
    summary: words(figure),
  };
}

async function search(
  session: Session,
  { startRate, maxRate, thoroughness }: CapacityOptions,
  clients: LoadConfig['clients'],
): Promise<CapacityFigure> {
  const { slo, seed } = session.settings;
  const found = await searchCapacity(
    async (rate, seconds) => {
      const { samples } = await session.arrivals(rate, seconds, { clients });
      const late = quantiles(samples.map((one) => one.latencyMs));
      session.tell(`  ${perSecond(rate)} for ${seconds.toFixed(0)} s: ${late}`);
      return samples;
    },
    {
      slo,
      seed,
      startRate,
      maxRate,
      bracketSeconds: 4 * thoroughness,
      overloadSeconds: 15 * thoroughness,
      stepSeconds: 12 * thoroughness,
      confirmSeconds: 30 * thoroughness,
    },
  );
  // Little's law gives the concurrency of each step.
  const usl = fitUsl(
    found.steps.map((step) => ({
      concurrency: (step.achieved * step.meanMs) / 1000,
      throughput: step.achieved,
    })),
  );
  return { ...found, clients: clients.length, slo, usl };
}

const LIMIT_WORDS: Readonly<Record<Found['limitedBy'], string>> = {
  quota: 'its quota (it answers 429)',
  saturation: 'its hardware (answers become slow)',
  'none-found': 'nothing up to the highest rate tried',
};

function words(figure: CapacityFigure): string[] {
  const { requestsPerSecond, interval, limitedBy, slo, usl, perServer, clients } = figure;
  const upTo = Number.isFinite(interval[1]) ? interval[1].toFixed(1) : 'unknown';
  const who = clients === 1 ? 'one client' : `${clients} clients`;
  return [
    `${who}: ${perSecond(requestsPerSecond)}, between ${interval[0].toFixed(1)} and ${upTo}, at p99 < ${slo.p99Ms} ms and errors ≤ ${slo.errorRate * 100} %`,
    `stopped first by ${LIMIT_WORDS[limitedBy]}`,
    ...(figure.confirmed ? [] : ['a long run at the lower end did not hold: take the figure with care']),
    ...(usl?.fits
      ? [
          `scalability law: λ ${usl.lambda.toFixed(1)}, contention ${usl.sigma.toFixed(4)}, crosstalk ${usl.kappa.toExponential(1)} (R² ${usl.r2.toFixed(3)})`,
        ]
      : usl
        ? [`scalability law: does not fit, ${usl.reason}`]
        : []),
    ...(perServer ? words(perServer) : []),
  ];
}
