/** One step of a capacity search: the statistics of its samples, and the verdict on the SLO. */
import { ascending, quantile } from './numbers.ts';

export const STEP = {
  /** Initial share of a step that its statistics exclude, as the queue is still filling. */
  warmUp: 0.2,
  /** Increase of the median latency from the first to the last third, as a share of the SLO, that shows a growing queue. */
  growing: 0.1,
  /** Minimum number of answers to judge a share of 1 %. */
  leastSamples: 300,
  /** Significance levels of the two verdicts. */
  holdsByChance: 0.05,
  breaksByChance: 0.02,
};

/** A limit declared by RateLimit headers. */
export interface RatePolicy {
  readonly limit: number;
  readonly windowSeconds: number;
  /** Only the time to the reset was declared: the window is at least that long. */
  readonly atLeast?: true;
}

/** Outcome of one request. dueMs: scheduled time since the start of the step. */
export interface Sample {
  readonly dueMs: number;
  /** From dueMs to the last byte, including the wait for a VU. */
  readonly latencyMs: number;
  /** From sending to the last byte, including connecting, fetching a token and a retry. */
  readonly serviceMs: number;
  /** HTTP status; 0 without an answer. */
  readonly status: number;
  readonly retryAfterSeconds?: number | undefined;
  readonly policy?: RatePolicy | undefined;
}

export const sentMsOf = ({ dueMs, latencyMs, serviceMs }: Sample): number => dueMs + latencyMs - serviceMs;

/** Share of answers that may exceed a p99. */
export const LATE_SHARE = 0.01;

export type Slo = Readonly<Record<'p99Ms' | 'errorRate', number>>;

export interface Step {
  /** Scheduled and answered requests per second. */
  readonly offered: number;
  readonly achieved: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Shares of the requests: failed in any way, and answered with 429. */
  readonly errorRate: number;
  readonly limitedRate: number;
  /** Whether the measured shares meet the SLO; the verdict also considers significance. */
  readonly held: boolean;
  readonly verdict: Verdict;
  /** Answers after the warm-up; of these, late or failed; of these, failed. */
  readonly counted: number;
  readonly late: number;
  readonly failures: number;
  /** Whether latency kept growing during the step. */
  readonly growing: boolean;
  /** Why the generator or its machine, not the target, may have caused the result. */
  readonly void?: string | undefined;
  /** Answers per second with a growing queue; absent if the target kept up. */
  readonly saturatedAt?: number | undefined;
  /** Answers per second other than 429. */
  readonly accepted: number;
}

/** Also a redirect, such as to the login page of a gateway: a page is answered with 200 (section 4.2). */
export const failed = (status: number): boolean => status !== 200;

/** Answers that count as late: failed ones too, unless the SLO allows more of them than may be late. */
const lateOf = (lateOrFailed: number, failures: number, { errorRate }: Slo): number =>
  errorRate > LATE_SHARE ? lateOrFailed - failures : lateOrFailed;

/** Whether the measured shares of late or failed answers, and of failed ones, meet the SLO. */
export const meetsSlo = (lateOrFailed: number, failures: number, counted: number, slo: Slo): boolean =>
  lateOf(lateOrFailed, failures, slo) <= LATE_SHARE * counted && failures <= slo.errorRate * counted;

/** Tests late or failed answers against LATE_SHARE, and failed ones against the error rate of the SLO. */
export function verdictOf(late: number, failures: number, counted: number, slo: Slo): Verdict {
  if (shareVerdict(failures, counted, slo.errorRate) === 'breaks') return 'breaks';
  const verdict = shareVerdict(lateOf(late, failures, slo), counted, LATE_SHARE);
  return verdict === 'holds' && failures > Math.max(1, slo.errorRate * counted) ? 'undecided' : verdict;
}

function isGrowing(counted: readonly Sample[], slo: Slo): boolean {
  const third = Math.floor(counted.length / 3);
  const middle = (some: readonly Sample[]): number => quantile(latenciesOf(some), 0.5);
  return middle(counted.slice(-third)) - middle(counted.slice(0, third)) > STEP.growing * slo.p99Ms;
}

/** A safety limit: how long the queue fills, and caches warm up, does not depend on the length of the run. */
const LONGEST_WARM_UP_MS = 12_000;
export const warmUpMs = (seconds: number): number =>
  Math.min(STEP.warmUp * seconds * 1000, LONGEST_WARM_UP_MS);

const latenciesOf = (samples: readonly Sample[]): number[] => ascending(samples.map((one) => one.latencyMs));

/** Computes the statistics of a step and judges it against the SLO. */
export function judgeStep(offered: number, seconds: number, samples: readonly Sample[], slo: Slo): Step {
  const counted = samples.filter((one) => one.dueMs >= warmUpMs(seconds));
  const sorted = latenciesOf(counted);
  const lastMs = samples.reduce((last, one) => Math.max(last, one.dueMs + one.latencyMs), seconds * 1000);
  const p99Ms = quantile(sorted, 0.99);
  const late = counted.filter((one) => failed(one.status) || one.latencyMs >= slo.p99Ms).length;
  const failures = counted.filter((one) => failed(one.status)).length;
  const errorRate = counted.length === 0 ? 1 : failures / counted.length;
  const growing = isGrowing(counted, slo);
  const verdict = verdictOf(late, failures, counted.length, slo);
  return {
    offered,
    achieved: (samples.length * 1000) / lastMs,
    seconds,
    p50Ms: quantile(sorted, 0.5),
    p99Ms,
    errorRate,
    limitedRate: counted.filter((one) => one.status === 429).length / Math.max(1, counted.length),
    held: counted.length > 0 && meetsSlo(late, failures, counted.length, slo),
    // With a growing queue, a longer step would have broken the SLO.
    verdict: verdict === 'holds' && growing ? 'undecided' : verdict,
    growing,
    counted: counted.length,
    late,
    failures,
    saturatedAt: saturation(samples, seconds),
    accepted: (samples.filter((one) => one.status !== 429 && one.status !== 0).length * 1000) / lastMs,
  };
}

/** Answers per second with a growing queue; undefined unless answers continued well after the last request was due. */
export function saturation(samples: readonly Sample[], seconds: number): number | undefined {
  const answered = samples.filter(({ status }) => !failed(status));
  const ends = ascending(answered.map((one) => one.dueMs + one.latencyMs));
  // Excludes the slowest 2 %: a few slow answers are no queue.
  const lastMs = ends[Math.floor(ends.length * 0.98)] ?? 0;
  if (ends.length < 100 || lastMs < seconds * 1120 || samples.some((one) => one.status === 429))
    return undefined;
  const first = Math.floor(ends.length * 0.15);
  const count = Math.floor((Math.floor(ends.length * 0.96) - first) / 20) * 20;
  return (count * 1000) / (ends[first + count]! - ends[first]!);
}

/** The rate at which a queue was served for a while, and the length of that queue. */
export type Pace = ReturnType<typeof pacesOf>[number];

/** Answers of one pace, so that it varies little by chance. */
const PACED = 500;
/** Requests in flight that make a queue, in addition to twice the usual number. */
const LEAST_QUEUE = 20;

/** The paces of a step while requests arrived and waited, if few failed; idleMs: the latency of requests that do not wait. */
export function pacesOf(samples: readonly Sample[], offered: number, idleMs: number) {
  const answered = samples.filter(({ status }) => !failed(status));
  const dueMs = ascending(answered.map((one) => one.dueMs));
  const endsMs = ascending(answered.map((one) => one.dueMs + one.latencyMs));
  const least = LEAST_QUEUE + (2 * offered * idleMs) / 1000;
  if (answered.length < (1 - LATE_SHARE) * samples.length) return [];
  let due = 0;
  const halves = endsMs.flatMap((atMs, ended) => {
    while (dueMs[due]! <= atMs) due += 1;
    return ended % (PACED / 2) === 0 ? [{ atMs, queue: due - ended - 1 }] : [];
  });
  return halves.slice(2).flatMap((end, index) => {
    const [begin, middle] = [halves[index]!, halves[index + 1]!];
    const queue = Math.min(begin.queue, middle.queue, end.queue);
    return queue < least || end.atMs > dueMs.at(-1)!
      ? []
      : [{ perSecond: (PACED * 1000) / (end.atMs - begin.atMs), queue }];
  });
}

/** holds: significantly below the share; breaks: significantly above it; undecided: more answers are needed. */
export type Verdict = 'holds' | 'breaks' | 'undecided';

/** Binomial distribution function: the probability of at most k bad answers among n, each with probability p. */
export function binomialAtMost(k: number, n: number, p: number): number {
  if (k < 0) return 0;
  if (k >= n || p <= 0) return 1;
  if (p >= 1) return 0;
  let logTerm = n * Math.log1p(-p);
  let total = Math.exp(logTerm);
  for (let i = 1; i <= k; i += 1) {
    logTerm += Math.log((n - i + 1) / i) + Math.log(p) - Math.log1p(-p);
    total += Math.exp(logTerm);
  }
  return Math.min(1, total);
}

/** Binomial tests of the number of bad answers against the allowed share. */
export function shareVerdict(bad: number, samples: number, share: number): Verdict {
  if (1 - binomialAtMost(bad - 1, samples, share) <= STEP.breaksByChance) return 'breaks';
  if (samples >= STEP.leastSamples && binomialAtMost(bad, samples, share) <= STEP.holdsByChance)
    return 'holds';
  return 'undecided';
}

/** The error rate that an answer to "does it hold" has to exclude, in multiples of the SLO's, and the significance. */
const [EXCLUDED, EXCLUDED_BY_CHANCE] = [4, 0.1];

/** Whether failed answers do not exceed the SLO's share, and are enough to exclude a few times that share. */
export function excludesErrors(failures: number, counted: number, { errorRate }: Slo): boolean {
  if (failures > errorRate * counted) return false;
  return binomialAtMost(failures, counted, EXCLUDED * errorRate) <= EXCLUDED_BY_CHANCE;
}
