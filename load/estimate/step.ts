/** One step of a capacity search: what its requests say about the target, and whether the generator was up to it. */
import { quantile } from './numbers.ts';

/** What became of one request that was due at dueMs after the step's start. */
export interface Sample {
  readonly dueMs: number;
  /** From the moment it was due to its last byte: waiting for a VU, connecting, minting and a second try count. */
  readonly latencyMs: number;
  /** From the moment it was sent to its last byte. */
  readonly serviceMs: number;
  /** HTTP status; 0 where no answer came. */
  readonly status: number;
  /** Of a 429, where it said so. */
  readonly retryAfterSeconds?: number | undefined;
  /** What RateLimit headers declare. */
  readonly policy?:
    { readonly limit: number; readonly windowSeconds: number; readonly atLeast?: true } | undefined;
  /** Where no answer came because no connection was had, or it was cut. */
  readonly refusedConnection?: boolean | undefined;
}

/** The share of answers that a p99 leaves late. */
export const LATE_SHARE = 0.01;

export interface Slo {
  readonly p99Ms: number;
  /** Share of requests that may fail, such as 0.001. */
  readonly errorRate: number;
}

export interface Step {
  /** Requests a second that were due, and that were answered. */
  readonly offered: number;
  readonly achieved: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Shares of the requests: failed in any way, and answered with 429. */
  readonly errorRate: number;
  readonly limitedRate: number;
  /** Whether the quantiles measured are within the SLO; whether that is more than chance, says the verdict. */
  readonly held: boolean;
  readonly verdict: Verdict;
  /** Answers counted behind the warm-up, and those of them that were late or failed, and that failed. */
  readonly counted: number;
  readonly late: number;
  readonly failures: number;
  /** Whether latency grew on and on while it lasted. */
  readonly growing: boolean;
  /** Why the generator or its machine, and not the target, may have made it so. */
  readonly void?: string;
  /** Answers a second while there was always more to do; absent where the target kept up. */
  readonly saturatedAt?: number;
  /** Answers a second that were not 429. */
  readonly accepted: number;
}

/** The share of a step's start that is left out of its quantiles: the queue is still filling up. */
export const WARM_UP = 0.2;

export const failed = (status: number): boolean => status === 0 || status >= 400;

/** Late or failed answers against one in a hundred, failed ones against the SLO's share. */
export function verdictOf(late: number, failures: number, counted: number, slo: Slo): Verdict {
  if (shareVerdict(failures, counted, slo.errorRate) === 'breaks') return 'breaks';
  const verdict = shareVerdict(late, counted, LATE_SHARE);
  return verdict === 'holds' && moreThanChance(failures, counted, slo.errorRate) ? 'undecided' : verdict;
}

/** Latency that grew by this share of the SLO from a step's first third to its last is a backlog that grows. */
const GROWING = 0.1;

function growing(counted: readonly Sample[], slo: Slo): boolean {
  const third = Math.floor(counted.length / 3);
  const middle = (some: readonly Sample[]): number =>
    quantile(
      some.map((one) => one.latencyMs).sort((a, b) => a - b),
      0.5,
    );
  return middle(counted.slice(-third)) - middle(counted.slice(0, third)) > GROWING * slo.p99Ms;
}

/** Sums a step up and holds it against the SLO. */
export function judgeStep(offered: number, seconds: number, samples: readonly Sample[], slo: Slo): Step {
  const counted = samples.filter((one) => one.dueMs >= seconds * 1000 * WARM_UP);
  const sorted = counted.map((one) => one.latencyMs).sort((a, b) => a - b);
  const share = (test: (one: Sample) => boolean): number => counted.filter(test).length / counted.length;
  const lastMs = samples.reduce((last, one) => Math.max(last, one.dueMs + one.latencyMs), seconds * 1000);
  const p99Ms = quantile(sorted, 0.99);
  const errorRate = counted.length === 0 ? 1 : share((one) => failed(one.status));
  const saturatedAt = saturation(samples, seconds);
  const late = counted.filter((one) => failed(one.status) || one.latencyMs >= slo.p99Ms).length;
  const failures = counted.filter((one) => failed(one.status)).length;
  const verdict = verdictOf(late, failures, counted.length, slo);
  return {
    offered,
    achieved: (samples.length * 1000) / lastMs,
    seconds,
    p50Ms: quantile(sorted, 0.5),
    p99Ms,
    errorRate,
    limitedRate: counted.length === 0 ? 0 : share((one) => one.status === 429),
    held: counted.length > 0 && p99Ms < slo.p99Ms && errorRate <= slo.errorRate,
    // What held only because the step was over before the backlog was too long did not hold.
    verdict: verdict === 'holds' && growing(counted, slo) ? 'undecided' : verdict,
    growing: growing(counted, slo),
    counted: counted.length,
    late,
    failures,
    ...(saturatedAt === undefined ? {} : { saturatedAt }),
    accepted: (samples.filter((one) => one.status !== 429 && one.status !== 0).length * 1000) / lastMs,
  };
}

/** Answers per second while a backlog lasted: known when answers went on well after the last request was due. */
export function saturation(samples: readonly Sample[], seconds: number): number | undefined {
  const answered = samples.filter(({ status }) => !failed(status));
  const ends = answered.map((one) => one.dueMs + one.latencyMs).sort((a, b) => a - b);
  // A few that were slow by themselves are no backlog.
  const lastMs = ends[Math.floor(ends.length * 0.98)] ?? 0;
  if (ends.length < 100 || lastMs < seconds * 1120 || samples.some((one) => one.status === 429))
    return undefined;
  const first = Math.floor(ends.length * 0.15);
  // Over a multiple of 20 answers.
  const count = Math.floor((Math.floor(ends.length * 0.96) - first) / 20) * 20;
  return (count * 1000) / (ends[first + count]! - ends[first]!);
}

/** holds: surely below the share; breaks: surely above it; undecided: more answers are needed. */
export type Verdict = 'holds' | 'breaks' | 'undecided';

/** Fewer answers than these say nothing about one in a hundred. */
export const LEAST_SAMPLES = 300;

/** How often chance alone may look like a share below, or above. */
const HOLDS_BY_CHANCE = 0.05;
const BREAKS_BY_CHANCE = 0.02;

/** The probability of at most k bad ones among n, each bad with probability p. */
function binomialAtMost(k: number, n: number, p: number): number {
  if (k < 0) return 0;
  if (k >= n || p <= 0) return 1;
  if (p >= 1) return 0;
  let logTerm = n * Math.log1p(-p);
  let sum = Math.exp(logTerm);
  for (let i = 0; i < k; i += 1) {
    logTerm += Math.log((n - i) / (i + 1)) + Math.log(p) - Math.log1p(-p);
    sum += Math.exp(logTerm);
  }
  return Math.min(1, sum);
}

/** Holds a number of bad answers of a total against the share that may be bad. */
export function shareVerdict(bad: number, samples: number, share: number): Verdict {
  if (1 - binomialAtMost(bad - 1, samples, share) <= BREAKS_BY_CHANCE) return 'breaks';
  if (samples >= LEAST_SAMPLES && binomialAtMost(bad, samples, share) <= HOLDS_BY_CHANCE) return 'holds';
  return 'undecided';
}

/** How likely the share itself shows as many bad ones, where that is to be measured for longer. */
const SUSPECT = 0.2;

/** Whether as many bad ones are more than the share would show; says so where there are too few answers to be sure. */
export function moreThanChance(bad: number, samples: number, share: number): boolean {
  return 1 - binomialAtMost(bad - 1, samples, share) <= SUSPECT;
}
