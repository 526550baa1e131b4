/** smoke, spike, soak and token: one run each, held against thresholds that k6 keeps and figures read afterwards. */
import { median } from '../estimate/depth.ts';
import { quantile } from '../estimate/queue.ts';
import { failed, judgeStep } from '../estimate/step.ts';
import type { LoadResult } from '../result.ts';
import { readArrivals } from '../run/k6-run.ts';
import { VoidRun, type Session } from '../run/session.ts';
import { starved } from '../run/starvation.ts';
import { perSecond, quantiles } from './words.ts';

export interface SteadyOptions {
  readonly requestsPerSecond: number;
  readonly seconds: number;
  readonly spikeFactor: number;
}

/** What k6 itself holds a run against; its exit status 99 says that one broke. */
export function thresholds(session: Session): Record<string, string[]> {
  const { p99Ms } = session.settings.slo;
  return {
    page_ms: [`p(99)<${p99Ms}`],
    findings: ['count<1'],
    errors: ['count<1'],
    unauthenticated: ['count<1'],
  };
}

/** A little of everything, judged closely: for every night. */
export async function smoke(session: Session, options: SteadyOptions): Promise<Partial<LoadResult>> {
  const { requestsPerSecond, seconds } = options;
  const { samples, run } = await session.arrivals(requestsPerSecond, seconds, {
    judgeEvery: 1,
    thresholds: thresholds(session),
  });
  const step = judgeStep(requestsPerSecond, seconds, samples, session.settings.slo);
  const broken = brokenThresholds(run.summary?.thresholds);
  return {
    held: step.held && run.status === 0,
    seconds,
    summary: [
      `${samples.length} pages at ${perSecond(requestsPerSecond)} over ${seconds} s: ${quantiles(samples.map((one) => one.latencyMs))}, ${(step.errorRate * 100).toFixed(2)} % failed`,
      ...broken,
    ],
    tables: { time: overTime(samples) },
  };
}

/** As many times the rate for a third of the run; the last part has to be as good as the SLO again. */
export async function spike(session: Session, options: SteadyOptions): Promise<Partial<LoadResult>> {
  const { requestsPerSecond, seconds, spikeFactor } = options;
  const peak = requestsPerSecond * spikeFactor;
  const { samples } = await session.arrivals(requestsPerSecond, seconds, {
    spikeFactor,
    vus: Math.min(session.settings.maxVUs, Math.ceil(peak) + 20),
  });
  const { slo } = session.settings;
  const part = (from: number, to: number) =>
    samples.filter((one) => one.dueMs >= from * seconds * 1000 && one.dueMs < to * seconds * 1000);
  const p99 = (some: typeof samples): number =>
    quantile(
      some.map((one) => one.latencyMs).sort((a, b) => a - b),
      0.99,
    );
  const [before, during, after] = [part(0, 1 / 3), part(1 / 3, 2 / 3), part(5 / 6, 1)];
  const lost = samples.filter((one) => failed(one.status) && one.status !== 429).length;
  const late = samples.filter((one) => one.dueMs >= (seconds * 2000) / 3 && one.latencyMs >= slo.p99Ms);
  const recovery = late.reduce(
    (last, one) => Math.max(last, one.dueMs + one.latencyMs),
    (seconds * 2000) / 3,
  );
  return {
    held: p99(after) < slo.p99Ms && lost === 0,
    seconds,
    summary: [
      `before, at ${perSecond(requestsPerSecond)}: p99 ${p99(before).toFixed(0)} ms; during, at ${perSecond(peak)}: ${p99(during).toFixed(0)} ms; at the end: ${p99(after).toFixed(0)} ms`,
      `${samples.filter((one) => one.status === 429).length} were answered 429, ${lost} failed otherwise`,
      `recovered ${((recovery - (seconds * 2000) / 3) / 1000).toFixed(1)} s after the spike`,
    ],
    tables: { time: overTime(samples) },
  };
}

/** How many parts a long run is cut into, to see what drifts. */
const PARTS = 4;

/** Even load for a long time: what drifts, leaks, freezes or expires shows here. Arrivals wait for nobody. */
export async function soak(session: Session, options: SteadyOptions): Promise<Partial<LoadResult>> {
  const { seconds, requestsPerSecond } = options;
  const { slo, maxVUs, timeoutSeconds } = session.settings;
  const { samples, run } = await session.arrivals(requestsPerSecond, seconds, {
    // As many as a target that answers nothing at all would hold.
    vus: Math.min(maxVUs, Math.ceil(requestsPerSecond * timeoutSeconds) + 20),
    thresholds: thresholds(session),
  });
  const medians = Array.from({ length: PARTS }, (_, part) =>
    median(
      samples
        .filter((one) => Math.floor((PARTS * one.dueMs) / (seconds * 1000)) === part)
        .map((one) => one.latencyMs),
    ),
  );
  const [first, last] = [medians[0]!, medians.at(-1)!];
  const drifts = last > 2 * first && last > first + 5;
  const step = judgeStep(requestsPerSecond, seconds, samples, slo);
  const slowest = samples.reduce((most, one) => Math.max(most, one.latencyMs), 0);
  const counts = run.summary?.counts ?? {};
  return {
    held: run.status === 0 && step.held && !drifts,
    seconds,
    summary: [
      `${samples.length} pages at ${perSecond(requestsPerSecond)} over ${seconds} s: ${quantiles(samples.map((one) => one.latencyMs))}, the slowest ${(slowest / 1000).toFixed(2)} s, ${step.late} of ${step.counted} late or failed`,
      `median of the first quarter ${first.toFixed(1)} ms, of the last ${last.toFixed(1)} ms${drifts ? ': it drifts' : ''}`,
      `${counts['token_calls'] ?? 0} token calls, ${counts['unauthenticated'] ?? 0} answers 401`,
      ...brokenThresholds(run.summary?.thresholds),
    ],
    tables: { time: overTime(samples) },
  };
}

/** The token endpoint by itself. */
export async function token(session: Session, options: SteadyOptions): Promise<Partial<LoadResult>> {
  const { requestsPerSecond, seconds } = options;
  const { slo, maxVUs } = session.settings;
  const vus = Math.min(maxVUs, Math.ceil((requestsPerSecond * 2 * slo.p99Ms) / 1000) + 20);
  const run = await session.run('token', session.config('token', { requestsPerSecond, seconds, vus }));
  const samples = readArrivals(run.lines);
  const lags = samples.map((one) => one.schedulerLagMs).sort((a, b) => a - b);
  const starvation = starved({ ...run, summary: undefined }, samples, quantile(lags, 0.99), slo);
  if (starvation) throw new VoidRun(starvation.reason);
  const step = judgeStep(requestsPerSecond, seconds, samples, slo);
  return {
    held: step.held,
    seconds,
    requests: samples.length,
    summary: [
      `${samples.length} tokens at ${perSecond(requestsPerSecond)} over ${seconds} s: ${quantiles(samples.map((one) => one.latencyMs))}, ${(step.errorRate * 100).toFixed(2)} % failed`,
    ],
    tables: { time: overTime(samples) },
  };
}

const brokenThresholds = (all: Readonly<Record<string, boolean>> = {}): string[] =>
  Object.entries(all)
    .filter(([, ok]) => !ok)
    .map(([rule]) => `threshold broken: ${rule}`);

const BINS = 40;

/** Median and p99 over time, for the plots. */
function overTime(samples: readonly { dueMs: number; latencyMs: number; status: number }[]) {
  const endMs = samples.reduce((last, one) => Math.max(last, one.dueMs), 1);
  return Array.from({ length: BINS }, (_, bin) => {
    const some = samples.filter((one) => Math.min(BINS - 1, Math.floor((BINS * one.dueMs) / endMs)) === bin);
    const sorted = some.map((one) => one.latencyMs).sort((a, b) => a - b);
    return {
      seconds: Number((((bin + 0.5) * endMs) / BINS / 1000).toFixed(2)),
      requests: some.length,
      p50Ms: Number((quantile(sorted, 0.5) || 0).toFixed(2)),
      p99Ms: Number((quantile(sorted, 0.99) || 0).toFixed(2)),
      failed: some.filter((one) => failed(one.status)).length,
    };
  }).filter(({ requests }) => requests > 0);
}
