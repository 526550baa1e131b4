/**
 * The search for a capacity: independent steps of Poisson arrivals, a bracket, a bisection, a long
 * confirmation. Knows nothing of k6: a step is a function, so that the search is tried on simulated servers.
 */
import { failed, judgeStep, type Sample, type Slo, type Step } from './step.ts';
import { fitQueue, type QueueFit } from './queue-fit.ts';

/** Runs one step at a rate for some seconds; throws VoidStep where the generator could not keep up. */
export type RunStep = (requestsPerSecond: number, seconds: number) => Promise<readonly Sample[]>;

export interface SearchSettings {
  readonly slo: Slo;
  readonly startRate: number;
  readonly maxRate: number;
  /** Length of the doubling steps, of the overload that measures saturation, of the bisection's steps, of the confirmation. */
  readonly bracketSeconds: number;
  readonly overloadSeconds: number;
  readonly stepSeconds: number;
  readonly confirmSeconds: number;
  readonly seed: number;
}

export interface Found {
  /** The highest rate that is held, by the evidence of all steps. */
  readonly requestsPerSecond: number;
  readonly interval: readonly [low: number, high: number];
  readonly limitedBy: 'quota' | 'saturation' | 'none-found';
  /** How the figure came about: a queue that explains every step, or the bisection alone. */
  readonly basis: 'queue-model' | 'bisection' | 'quota' | 'highest-tried';
  readonly confirmed: boolean;
  readonly model?: { readonly workers: number; readonly serviceMs: number; readonly saturation: number };
  readonly steps: readonly Step[];
}

const OVERLOAD = 1.5;
/** Steps end before a queue near its limit has settled, so what held may hold by some percent too much. */
const UNSETTLED = 0.94;

/** The part of a long step that a burst allowance may have eaten into. */
const BURST_SHARE = 0.4;

/** Finds the capacity of whatever runStep runs against. */
export async function searchCapacity(runStep: RunStep, settings: SearchSettings): Promise<Found> {
  const { slo } = settings;
  const steps: Step[] = [];
  const runs: { offered: number; seconds: number; samples: readonly Sample[] }[] = [];
  const run = async (offered: number, seconds: number): Promise<Step> => {
    const samples = await runStep(offered, seconds);
    const step = judgeStep(offered, seconds, samples, slo);
    steps.push(step);
    runs.push({ offered, seconds, samples });
    return step;
  };

  let held = 0;
  let overload: Step | undefined;
  for (let rate = settings.startRate; !overload;) {
    const step = await run(rate, Math.max(settings.bracketSeconds, Math.min(10, 40 / rate)));
    if (!step.held && step.limitedRate > slo.errorRate) return quota(step, held);
    if (!step.held) {
      // Far beyond: there has to be a backlog throughout, or the rate of answers is not yet the target's limit.
      const beyond = await run((step.saturatedAt ?? step.offered) * OVERLOAD, settings.overloadSeconds);
      if (beyond.held) held = beyond.offered;
      else overload = beyond;
      rate = beyond.offered;
    } else {
      held = rate;
      if (rate >= settings.maxRate) return highest(rate);
      rate *= 2;
    }
    rate = Math.min(rate, settings.maxRate);
  }
  const ceiling = Math.min(overload.offered, (overload.saturatedAt ?? overload.offered) * 1.02);
  await run(ceiling * 0.25, Math.min(settings.stepSeconds, 12));

  const model = fitQueue(runs, slo, settings.seed);
  const guess = model?.requestsPerSecond ?? (held + ceiling) / 2;
  let [low, high] = [held, ceiling];
  for (const rate of [guess * 0.93, guess * 1.03]) {
    if (rate <= low || rate >= high) continue;
    const step = await run(rate, settings.stepSeconds);
    if (step.held) low = rate;
    else high = rate;
  }
  const refined = model && fitQueue(runs, slo, settings.seed);
  if (refined?.explains) {
    // A long run is chance too: where it does not hold, one a little below has to.
    let confirmed = false;
    let lowest = refined.interval[0];
    for (const rate of [lowest, lowest * 0.95]) {
      if (confirmed) break;
      lowest = rate;
      confirmed = (await run(rate, settings.confirmSeconds)).held;
    }
    const final = fitQueue(runs, slo, settings.seed) ?? refined;
    const interval = [Math.min(lowest, final.interval[0]), final.interval[1]] as const;
    if (final.explains) return byModel({ ...final, interval }, confirmed);
  }
  while (high / Math.max(low, 1e-9) > 1.04) {
    const rate = low < high / 4 ? high / 2 : (low + high) / 2;
    const step = await run(rate, settings.stepSeconds);
    if (step.held) low = rate;
    else high = rate;
  }
  let confirmation = await run(low, settings.confirmSeconds);
  for (let retry = 0; !confirmation.held && retry < 3; retry += 1) {
    high = Math.min(high, low);
    low *= 0.93;
    confirmation = await run(low, settings.confirmSeconds);
  }
  return {
    requestsPerSecond: confirmation.held ? (low + high) / 2 : low,
    interval: [low * UNSETTLED, high * 1.03],
    limitedBy: 'saturation',
    basis: 'bisection',
    confirmed: confirmation.held,
    steps,
  };

  function highest(rate: number): Found {
    return {
      requestsPerSecond: rate,
      interval: [rate, Infinity],
      limitedBy: 'none-found',
      basis: 'highest-tried',
      confirmed: true,
      steps,
    };
  }

  function byModel(fit: QueueFit, confirmed: boolean): Found {
    const { workers, serviceMs, saturation } = fit;
    return {
      requestsPerSecond: fit.requestsPerSecond,
      interval: fit.interval,
      limitedBy: 'saturation',
      basis: 'queue-model',
      confirmed,
      model: { workers, serviceMs, saturation },
      steps,
    };
  }

  /** A quota needs no queue: what it lets through in the long run is the figure. */
  async function quota(first: Step, low: number): Promise<Found> {
    const long = await run(Math.max(first.offered, low * 1.5), settings.confirmSeconds);
    const { samples, seconds } = runs.at(-1)!;
    // Behind the burst: what is let through for as long as one likes.
    const late = samples.filter((one) => one.dueMs >= seconds * 1000 * BURST_SHARE && !failed(one.status));
    const sustained = late.length / (seconds * (1 - BURST_SHARE));
    let [from, to] = [low, Math.min(first.offered, long.accepted * 1.1)];
    while (to / Math.max(from, 1e-9) > 1.04) {
      const rate = (from + to) / 2;
      const step = await run(rate, settings.stepSeconds);
      if (step.held) from = rate;
      else to = rate;
    }
    // Short steps live on the burst, so they may promise more than lasts.
    const figure = Math.min((from + to) / 2, sustained);
    return {
      requestsPerSecond: figure,
      interval: [figure * 0.94, Math.max(to, sustained) * 1.03],
      limitedBy: 'quota',
      basis: 'quota',
      confirmed: true,
      steps,
    };
  }
}
