/** The context of every scenario: k6, the prepared target, the options and the progress output; and the Scenario type. */
import { setTimeout } from 'node:timers/promises';
import { ascending, quantile } from '../estimate/numbers.ts';
import { type Defaults, type ScenarioOptions, SLO } from './flags.ts';
import type { Slo } from '../estimate/step.ts';
import type { LoadConfig } from '../k6/lib/config.ts';
import type { Finding } from '../k6/lib/judge.ts';
import { dueMoments, enoughVUs } from '../estimate/random.ts';
import type { Window } from '../k6/lib/window.ts';
import type { LoadResult } from '../result.ts';
import { Judge } from './judging.ts';
import type { ArrivalRecord } from '../k6/lib/record.ts';
import { arrivalsOf, type K6Run, runK6, trackProgress } from './k6-run.ts';
import { Connections, isRefused, overloadOf } from './overload.ts';
import { pressureAtRest } from './machine.ts';
import type { Prepared } from './target.ts';

/** The result must not be interpreted: exit status 3. */
export class VoidRun extends Error {
  override readonly name = 'VoidRun';
}

export interface Scenario {
  readonly about: string;
  readonly flags: Defaults;
  /** Query window; if absent, a window with screenings is searched for, with about thirty requests. */
  readonly window?: Window;
  /** For a run of a single script, which several runners can share: its own configuration. */
  readonly over?: (options: ScenarioOptions) => Partial<LoadConfig>;
  /** Throws VoidRun if the run says nothing about the target. */
  readonly run: (session: Session) => Promise<Partial<LoadResult>>;
}

export interface ArrivalsRun {
  readonly samples: readonly ArrivalRecord[];
  readonly run: K6Run;
  readonly void?: string | undefined;
}

const VOID_PAUSE_SECONDS = 1;
const INITIAL_LATENCY_MS = 100;
/** A higher share of refused connections indicates a connection limit of the target. */
const REFUSED_SHARE = 0.005;
/** For bursts of arrivals, in addition to twice the mean number of busy connections. */
const SPARE_CONNECTIONS = 8;
/** For bursts, where a connection limit of the target does not matter. */
const SPARE_VUS = 20;

/** Each run of k6 draws from the next seed, so different values of --seed must be far apart. */
const SEEDS = 10_000;

/** The number of virtual users for this many requests in flight. */
export const vusFor = (inFlight: number, { maxVus }: Pick<ScenarioOptions, 'maxVus'>): number =>
  Math.min(maxVus, Math.ceil(inFlight) + SPARE_VUS);

/** Values of flags that a scenario does not have. */
const ABSENT: Defaults = { pageSize: 1, ...SLO };

export class Session {
  readonly options: ScenarioOptions;
  readonly slo: Slo;
  readonly findings: Finding[] = [];
  requests = 0;
  tokenCalls = 0;
  cpuShare: number | undefined;
  thresholds: Record<string, boolean> = {};
  #seed: number;
  #latencyMs = INITIAL_LATENCY_MS;
  readonly connections = new Connections();
  readonly judge: Judge;
  /** Waits, unless the run is aborted. */
  pause = (seconds: number): Promise<void> => setTimeout(seconds * 1000, undefined, { signal: this.signal });

  constructor(
    readonly k6: string,
    readonly prepared: Prepared,
    flags: ScenarioOptions,
    readonly tell: (line: string) => void,
    readonly signal: AbortSignal = new AbortController().signal,
  ) {
    this.options = { ...ABSENT, ...flags };
    this.slo = { p99Ms: this.options.sloP99, errorRate: this.options.sloErrors };
    this.#seed = flags.seed * SEEDS;
    this.judge = new Judge(prepared.target);
  }

  /** Returns the configuration of one script. Each run draws other arrivals, reproducibly for a seed. */
  config(scenario: string, over: Partial<LoadConfig>): LoadConfig {
    const { pageSize, timeout: timeoutSeconds } = this.options;
    this.#seed += 1;
    return {
      ...this.prepared.base,
      ...this.slo,
      ...{ scenario, pageSize, timeoutSeconds, seed: this.#seed },
      ...{ vus: 1, requestsPerSecond: 1, seconds: 10 },
      metricsRead: this.options.out !== undefined || Boolean(process.env['K6_OUT']),
      ...over,
    };
  }

  /** Runs a script once; an abort ends it early, and its results so far count. Throws VoidRun if k6 itself fails. */
  async run(scenario: string, over: Partial<LoadConfig>): Promise<K6Run> {
    this.signal.throwIfAborted();
    const config = this.config(scenario, over);
    const run = await runK6({
      k6: this.k6,
      config,
      env: this.prepared.env,
      outputs: this.options.out,
      signal: this.signal,
      ca: this.prepared.target.ca,
      judge: (sample) => this.judge.judge(sample),
      // Steps are short and may overload the target on purpose; outages end by themselves.
      progress: isStep(config) || config.outages ? undefined : trackProgress(config, this.tell),
    });
    this.findings.push(...run.findings);
    this.requests += run.summary?.counts['pages'] ?? 0;
    this.tokenCalls += run.summary?.counts['token_calls'] ?? 0;
    if (run.cpuShare !== undefined) this.cpuShare = Math.max(this.cpuShare ?? 0, run.cpuShare);
    Object.assign(this.thresholds, run.summary?.thresholds);
    // 99: a threshold broke, which the caller judges.
    if (!run.summary || (!run.isHopeless && run.status !== 0 && run.status !== 99))
      throw new VoidRun(`k6 ended with status ${run.status}: ${run.lastMessage || 'no summary'}`);
    return run;
  }

  /** Like tryArrivals, but throws VoidRun if the result is void. */
  async arrivals(...run: Parameters<Session['tryArrivals']>): Promise<ArrivalsRun> {
    const ran = await this.tryArrivals(...run);
    if (ran.void) throw new VoidRun(ran.void);
    return ran;
  }

  /**
   * Runs a script's open arrivals at a rate; the result is void after repeated generator overload. The number of VUs,
   * and so of connections, follows from the latency so far; it rises if requests waited for VUs and falls if
   * connections were refused.
   */
  async tryArrivals(
    script: string,
    requestsPerSecond: number,
    seconds: number,
    over: Partial<LoadConfig>,
    retries: number,
  ): Promise<ArrivalsRun> {
    const { slo, connections } = this;
    const needed = Math.min(this.options.maxVus, enoughVUs(requestsPerSecond, slo.p99Ms));
    const guessed = Math.ceil((requestsPerSecond * 2 * this.#latencyMs) / 1000) + SPARE_CONNECTIONS;
    let vus = over.vus ?? Math.max(1, Math.min(needed, guessed, connections.most));
    for (let attempt = 0; ; attempt += 1) {
      const atRest = await pressureAtRest();
      const run = await this.run(script, { requestsPerSecond, seconds, ...over, vus });
      const samples = withLost(run);
      const done = { samples, run };
      if (run.isHopeless) return done;

      // If the target is made to fail, refused connections do not indicate a limit.
      const refused =
        !over.outages &&
        samples.filter(({ errorCode }) => isRefused(errorCode)).length > REFUSED_SHARE * samples.length;
      const fewer = refused ? connections.refuse(vus) : undefined;
      if (fewer !== undefined) {
        vus = fewer;
        this.tell(`  connections were refused: retrying with ${vus} VUs`);
        continue;
      }
      if (!refused) connections.accept(vus);
      const found = overloadOf(run, samples, slo, atRest);
      if (!found) {
        const answered = samples.filter(({ status }) => status !== 0);
        if (answered.length > 0)
          this.#latencyMs = quantile(ascending(answered.map((one) => one.serviceMs)), 0.95);
        return done;
      }
      if (found.remedy === 'vus') {
        const more = connections.more(vus, needed);
        // The connection limit is the target's, so waiting for a VU counts as the target's latency.
        if (more === 'all') return done;
        if (over.vus !== undefined || more <= vus) return { ...done, void: found.reason };
        vus = more;
        this.tell(`  requests waited for VUs: retrying with ${vus}`);
        continue;
      }
      if (found.remedy === 'none' || attempt >= retries) return { ...done, void: found.reason };
      this.tell(`  void, retrying: ${found.reason}`);
      await this.pause(VOID_PAUSE_SECONDS);
    }
  }
}

const isStep = ({ scenario }: LoadConfig): boolean => ['arrivals', 'tenants'].includes(scenario);

/** Adds due requests without a record as failed, evenly spread over the run, unless it was stopped early. */
function withLost({ records, config, oneIn, isHopeless }: K6Run): ArrivalRecord[] {
  const samples = arrivalsOf(records);
  const { seconds } = config;
  const due = isHopeless || samples.length === 0 ? 0 : Math.floor(dueMoments(config).length / oneIn);
  const count = Math.max(0, due - samples.length);
  const latencyMs = (seconds + config.timeoutSeconds) * 1000;
  const common = { kind: 'arrival', latencyMs, serviceMs: latencyMs, status: 0, schedulerLagMs: 0 } as const;
  const gapMs = (seconds * 1000) / count;
  const lost = Array.from({ length: count }, (_, index) => ({ ...common, dueMs: (index + 0.5) * gapMs }));
  return [...samples, ...lost].sort((a, b) => a.dueMs - b.dueMs);
}
