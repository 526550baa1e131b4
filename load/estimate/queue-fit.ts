/**
 * The queue behind the steps. A step of seconds ends before a queue near its limit has settled, so bisection alone
 * promises some percent too much. Fitted here: workers and service times, from the overloaded and the quiet steps;
 * the fit counts only if runs of the same length, simulated on it, look like every step that was measured.
 */
import { randomSource } from '../k6/lib/random.ts';
import { latencies, quantile, sustainedRate, type Workers } from './queue.ts';
import { saturation, WARM_UP, type Sample, type Slo } from './step.ts';

export interface MeasuredStep {
  readonly offered: number;
  readonly seconds: number;
  readonly samples: readonly Sample[];
}

export interface QueueFit extends Workers {
  readonly requestsPerSecond: number;
  readonly interval: readonly [number, number];
  readonly serviceMs: number;
  readonly saturation: number;
  /** Whether every step below saturation lies within what the queue may do in a run of that length. */
  readonly explains: boolean;
}

const SIMULATED = 60_000;
/** Half the interval in standard errors; the model's own error is in it. */
const WIDTH = 2.8;
/** Simulated repetitions of a step. */
const REPETITIONS = 40;

/**
 * Fits a queue to the steps, with workers that take requests in turn and with workers that all share: the one that is
 * less at odds with them. Undefined where no step was overloaded or none was quiet.
 */
export function fitQueue(steps: readonly MeasuredStep[], slo: Slo, seed: number): QueueFit | undefined {
  const ceilings = steps.flatMap((step) => saturation(step.samples, step.seconds) ?? []);
  const answers = ceilings.reduce((sum, one) => sum + one.answers, 0);
  if (answers === 0) return undefined;
  const perSecond = answers / ceilings.reduce((sum, one) => sum + one.answers / one.perSecond, 0);
  const quiet = steps
    .filter((step) => step.offered < perSecond * 0.45)
    .flatMap((step) => step.samples.filter((one) => one.status === 200).map((one) => one.serviceMs));
  if (quiet.length < 50) return undefined;

  const measuredMs = quiet.reduce((sum, one) => sum + one, 0) / quiet.length;
  const workers = Math.max(1, Math.round((perSecond * measuredMs) / 1000));
  const serviceMs = (workers * 1000) / perSecond;
  const times = quiet.map((one) => (one * serviceMs) / measuredMs);
  // Batches say how well the ceiling is known; never trust it to better than one percent.
  const error = Math.max(
    0.012,
    Math.sqrt(ceilings.reduce((sum, one) => sum + (one.error * one.answers) ** 2, 0)) / answers,
  );
  const random = randomSource(seed);
  const draw = (): number => times[Math.floor(random() * times.length)]!;
  const tried = DISCIPLINES.map((discipline) => {
    const queue = { workers, discipline };
    const odds = steps.map((step) => oddness(step, queue, draw, perSecond, error, random));
    return { queue, odd: odds.filter((one) => one > 1).length, sum: odds.reduce((all, one) => all + one, 0) };
  });
  const { queue, odd } = tried.sort((a, b) => a.odd - b.odd || a.sum - b.sum)[0]!;
  const rate = sustainedRate(queue, draw, perSecond, slo.p99Ms, SIMULATED, random);
  return {
    requestsPerSecond: rate,
    interval: [rate - perSecond * WIDTH * error, rate + perSecond * WIDTH * error],
    ...queue,
    serviceMs,
    saturation: perSecond,
    // One step may be out of line: machines stall now and then.
    explains: rate > 0 && odd <= Math.max(1, Math.floor(steps.length / 6)),
  };
}

const DISCIPLINES = ['in-turn', 'shared'] as const;

/**
 * How far a step's p99 lies from what such a queue shows in runs of this length, against how far it may, the ceiling's
 * error allowed for: beyond 1 it does not explain the step.
 */
function oddness(
  step: MeasuredStep,
  queue: Workers,
  draw: () => number,
  perSecond: number,
  error: number,
  random: () => number,
): number {
  const requests = Math.round(step.offered * step.seconds);
  if (requests < 100 || step.offered > perSecond * (1 + 2 * error)) return 0;
  const p99 = (values: ArrayLike<number>): number =>
    quantile(
      Array.from(values)
        .slice(Math.floor(values.length * WARM_UP))
        .sort((a, b) => a - b),
      0.99,
    );
  const measured = p99(step.samples.map((one) => one.latencyMs));
  const spread = (rate: number): number[] =>
    Array.from({ length: REPETITIONS }, () => p99(latencies(queue, draw, rate, requests, random))).sort(
      (a, b) => a - b,
    );
  const [slow, fast] = [spread(step.offered * (1 - 2 * error)), spread(step.offered * (1 + 2 * error))];
  const least = quantile(slow, 0.02) * 0.85 - 5;
  const most = quantile(fast, 0.98) * 1.15 + 25;
  const middle = (quantile(slow, 0.5) + quantile(fast, 0.5)) / 2;
  return measured < middle ? (middle - measured) / (middle - least) : (measured - middle) / (most - middle);
}
