/** What every scenario runs with: k6, the prepared target, the settings, and a place to tell progress to. */
import { setTimeout as pause } from 'node:timers/promises';
import { quantile } from '../estimate/queue.ts';
import { failed, WARM_UP, type Slo } from '../estimate/step.ts';
import type { LoadConfig } from '../k6/lib/config.ts';
import type { Finding } from '../k6/lib/judge.ts';
import { mergeHistograms, type Histogram } from '../k6/lib/histogram.ts';
import { readArrivals, runK6, type Arrival, type K6Run } from './k6-run.ts';
import type { Prepared } from './prepare.ts';

/** The run says nothing about the target: exit status 3. */
export class VoidRun extends Error {
  override readonly name = 'VoidRun';
}

export interface LoadSettings {
  readonly slo: Slo;
  readonly pageSize: number;
  readonly seed: number;
  readonly judgeEvery: number;
  readonly timeoutSeconds: number;
  /** Walkers at most; fewer starve the generator. */
  readonly maxVUs: number;
}

export interface ArrivalsRun {
  readonly samples: readonly Arrival[];
  readonly run: K6Run;
  readonly schedulerLagP99Ms: number;
}

/** How often a step whose generator fell behind is tried again before the whole run is void. */
const VOID_RETRIES = 4;
const VOID_PAUSE_MS = 1000;
/** A free VU that wakes later than this was starved. */
const SCHEDULER_LAG_MS = 80;
const STALL_ECHO = 3;
const CPU_SHARE = 0.85;

export class Session {
  readonly k6: string;
  readonly prepared: Prepared;
  readonly settings: LoadSettings;
  readonly tell: (line: string) => void;
  readonly signal: AbortSignal | undefined;
  /** Over all runs of the session. */
  readonly findings: Finding[] = [];
  requests = 0;
  tokenCalls = 0;
  /** The worst of all runs. */
  cpuShare: number | undefined;
  schedulerLagP99Ms = 0;
  thresholds: Record<string, boolean> = {};
  #histograms: Histogram[] = [];
  #seed: number;

  constructor(
    k6: string,
    prepared: Prepared,
    settings: LoadSettings,
    tell: (line: string) => void,
    signal?: AbortSignal,
  ) {
    this.k6 = k6;
    this.prepared = prepared;
    this.settings = settings;
    this.tell = tell;
    this.signal = signal;
    this.#seed = settings.seed;
  }

  get histogram(): Histogram {
    return mergeHistograms(this.#histograms);
  }

  /** The configuration of one script; every run draws other arrivals, and the same again for the same seed. */
  config(scenario: string, over: Partial<LoadConfig>): LoadConfig {
    const { pageSize, judgeEvery, timeoutSeconds } = this.settings;
    this.#seed += 1;
    return {
      ...this.prepared.base,
      scenario,
      pageSize,
      judgeEvery,
      timeoutSeconds,
      seed: this.#seed,
      vus: 1,
      requestsPerSecond: 1,
      seconds: 10,
      thresholds: {},
      records: true,
      ...over,
    };
  }

  /** Runs a script once. Throws VoidRun where k6 itself failed. */
  async run(script: string, config: LoadConfig, args: readonly string[] = []): Promise<K6Run> {
    const run = await runK6(script, {
      k6: this.k6,
      config,
      env: this.prepared.env,
      args,
      signal: this.signal,
    });
    this.findings.push(...run.findings);
    this.requests += run.summary?.counts['pages'] ?? 0;
    this.tokenCalls += run.summary?.counts['token_calls'] ?? 0;
    if (run.cpuShare !== undefined) this.cpuShare = Math.max(this.cpuShare ?? 0, run.cpuShare);
    Object.assign(this.thresholds, run.summary?.thresholds);
    if (run.summary) this.#histograms.push(run.summary.histogram);
    // 99: a threshold broke; that is for the caller to judge.
    if ((run.status !== 0 && run.status !== 99) || !run.summary) {
      throw new VoidRun(`k6 ended with status ${run.status}: ${run.complaint || 'no summary'}`);
    }
    return run;
  }

  /** Open arrivals at a rate. Throws VoidRun when the generator fell behind again and again. */
  async arrivals(
    requestsPerSecond: number,
    seconds: number,
    over: Partial<LoadConfig> = {},
  ): Promise<ArrivalsRun> {
    const { slo, maxVUs } = this.settings;
    const needed = Math.ceil((requestsPerSecond * 2 * slo.p99Ms) / 1000) + 20;
    let why = '';
    for (let attempt = 0; attempt <= VOID_RETRIES; attempt += 1) {
      const config = this.config('arrivals', {
        requestsPerSecond,
        seconds,
        vus: Math.max(1, Math.min(needed, maxVUs)),
        ...over,
      });
      const run = await this.run('arrivals', config);
      const samples = readArrivals(run.lines);
      const lags = samples.map((one) => one.schedulerLagMs).sort((a, b) => a - b);
      const schedulerLagP99Ms = lags.length === 0 ? 0 : quantile(lags, 0.99);
      this.schedulerLagP99Ms = Math.max(this.schedulerLagP99Ms, schedulerLagP99Ms);
      const found = starved(run, samples, schedulerLagP99Ms, slo);
      if (!found) return { samples, run, schedulerLagP99Ms };
      why = found.reason;
      if (!found.passing) break;
      this.tell(`  void, again: ${why}`);
      await pause(VOID_PAUSE_MS);
    }
    throw new VoidRun(why);
  }
}

export interface Starvation {
  readonly reason: string;
  /** Whether trying again may help: a machine that was busy for a moment. */
  readonly passing: boolean;
}

const passing = (reason: string): Starvation => ({ reason, passing: true });
const lasting = (reason: string): Starvation => ({ reason, passing: false });

/** Why the generator, and not the target, shaped a run; undefined where it did not. */
export function starved(
  run: Pick<K6Run, 'cpuShare' | 'summary'>,
  samples: readonly Arrival[],
  schedulerLagP99Ms: number,
  slo: Slo,
): Starvation | undefined {
  const made = run.summary?.counts['pages'] ?? 0;
  if (samples.length === 0) return lasting('the generator sent nothing');
  if (samples.length < made * 0.98)
    return lasting(`the generator lost ${made - samples.length} of ${made} records`);
  if (run.cpuShare !== undefined && run.cpuShare > CPU_SHARE) {
    return passing(`the generator used ${(run.cpuShare * 100).toFixed(0)} % of this machine's processors`);
  }
  const p99 = (values: number[]): number =>
    quantile(
      values.sort((a, b) => a - b),
      0.99,
    );
  const answered = samples.filter((one) => !failed(one.status));
  const latency = p99(answered.map((one) => one.latencyMs));
  // A machine that stalls delays its target too, and the backlog lasts some times the stall: a broken SLO by
  // so little is no evidence. Far beyond it, or with half of the answers late, the target is slow in any case.
  const startMs = WARM_UP * samples.reduce((last, one) => Math.max(last, one.dueMs), 0);
  const stallMs = samples.reduce(
    (most, one) => Math.max(most, one.dueMs < startMs ? 0 : one.schedulerLagMs),
    0,
  );
  const sorted = answered.map((one) => one.latencyMs).sort((a, b) => a - b);
  const decisive =
    latency >= slo.p99Ms && latency < slo.p99Ms + STALL_ECHO * stallMs && quantile(sorted, 0.5) < slo.p99Ms;
  if ((stallMs > SCHEDULER_LAG_MS && decisive) || schedulerLagP99Ms > slo.p99Ms / 2) {
    return passing(`free VUs started up to ${stallMs.toFixed(0)} ms late: the generator fell behind`);
  }
  // Little's law: requests waited for VUs although the target answered in time, so there were too few VUs.
  // A saturated target would hold every VU for longer than the SLO.
  const waited = p99(answered.map((one) => one.latencyMs - one.serviceMs));
  const service = quantile(
    answered.map((one) => one.serviceMs).sort((a, b) => a - b),
    0.9,
  );
  if (latency >= slo.p99Ms && waited >= slo.p99Ms / 2 && service < slo.p99Ms) {
    return lasting(
      `requests waited up to ${waited.toFixed(0)} ms for a free VU while the target answered within ${service.toFixed(0)} ms (p90)`,
    );
  }
  return undefined;
}
