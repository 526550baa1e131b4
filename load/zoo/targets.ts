/**
 * Targets in virtual time that behave like real servers under load. A target answers requests in the order of their
 * arrival, and keeps its state from one step to the next.
 */
import type { RunStep } from '../estimate/figures.ts';
import { createLimiter, type LimiterSettings } from '../estimate/limiter-models.ts';
import { quantile } from '../estimate/numbers.ts';
import { failed, type Sample, type Slo } from '../estimate/step.ts';
import { insertDescending, WorkQueue } from '../plan/simulate.ts';
import { exponential, poissonArrivals, randomSource } from '../k6/lib/random.ts';

export interface ServiceSettings {
  readonly workers: number;
  readonly serviceMs: number;
  /** deterministic: always serviceMs; exponential: with mean serviceMs. */
  readonly distribution: 'deterministic' | 'exponential';
}

/** Returns a function that draws service times. */
export const serviceTimes = (
  { distribution, serviceMs }: ServiceSettings,
  random: () => number,
): (() => number) =>
  distribution === 'deterministic' ? () => serviceMs : () => exponential(random, serviceMs);

type Answer = Pick<Sample, 'latencyMs' | 'status' | 'retryAfterSeconds' | 'policy'>;

/** Answers a request that arrives at `atMs`, in milliseconds since the target's start. */
type VirtualTarget = (atMs: number) => Answer;

/** Answers all requests of a run in one call, for targets in which later requests delay earlier ones. */
export type VirtualRuns = (atMs: readonly number[]) => readonly Answer[];

const SETTLE_MS = 1500;

export const inOrder =
  (target: VirtualTarget): VirtualRuns =>
  (moments) =>
    moments.map((atMs) => target(atMs));

/** Runs consecutive steps on the target's virtual clock, each followed by the pause that starting a generator takes. */
export function stepsAgainst(target: VirtualRuns, seed: number): RunStep {
  let nowMs = 0;
  let step = seed * 1000;
  return async (requestsPerSecond, seconds, { pauseSeconds = 0 } = {}) => {
    const startMs = nowMs + pauseSeconds * 1000;
    let endMs = startMs + seconds * 1000;
    const due = poissonArrivals((step += 1), requestsPerSecond, seconds);
    const answers = target(due.map((dueMs) => startMs + dueMs));
    const samples = due.map((dueMs, index): Sample => {
      const answer = answers[index]!;
      endMs = Math.max(endMs, startMs + dueMs + answer.latencyMs);
      return { dueMs, serviceMs: answer.latencyMs, ...answer };
    });
    nowMs = endMs + SETTLE_MS;
    return { samples };
  };
}

/** Serves in the order of arrival; `factor`: multiplies the work of a request. */
export function queueing(
  service: ServiceSettings,
  seed: number,
  factor: (atMs: number) => number = () => 1,
): VirtualTarget {
  const queue = new WorkQueue(service.workers);
  const draw = serviceTimes(service, randomSource(seed));
  return (atMs) => ({ latencyMs: queue.finishAt(atMs, draw() * factor(atMs)) - atMs, status: 200 });
}

/**
 * Processors that all requests in flight share equally, as threads and event loops do. Each receives the same service in
 * the same time, so a request ends when the service per request reaches its value at arrival plus its own need.
 */
export function sharing(service: ServiceSettings, seed: number): VirtualRuns {
  const draw = serviceTimes(service, randomSource(seed));
  return (moments) => {
    const latenciesMs = moments.map(() => 0);
    // atMs: the cumulative service per request at which this one ends.
    const open: { readonly index: number; readonly atMs: number }[] = [];
    let [nowMs, done] = [0, 0];
    const workUntil = (atMs: number): void => {
      for (let first = open.at(-1); first; first = open.at(-1)) {
        const each = Math.min(1, service.workers / open.length);
        const endMs = nowMs + (first.atMs - done) / each;
        if (endMs > atMs) {
          done += (atMs - nowMs) * each;
          break;
        }
        open.pop();
        latenciesMs[first.index] = endMs - moments[first.index]!;
        [nowMs, done] = [endMs, first.atMs];
      }
      nowMs = atMs;
    };
    for (const [index, atMs] of moments.entries()) {
      workUntil(atMs);
      insertDescending(open, { index, atMs: done + draw() });
    }
    workUntil(Infinity);
    return latenciesMs.map((latencyMs) => ({ latencyMs, status: 200 }));
  };
}

/** The requests in flight that `rest` admitted; `admits` decides on the next one by their number. */
function whileOpen(
  rest: VirtualTarget,
  status: 429 | 503,
  admits: (open: number) => boolean,
  ended: (answer: Answer) => void = () => {},
): VirtualTarget {
  let open: (Answer & { doneMs: number })[] = [];
  return (atMs) => {
    for (const one of open) if (one.doneMs <= atMs) ended(one);
    open = open.filter(({ doneMs }) => doneMs > atMs);
    if (!admits(open.length)) return { latencyMs: 1, status, retryAfterSeconds: 1 };
    const answer = rest(atMs);
    open.push({ ...answer, doneMs: atMs + answer.latencyMs });
    return answer;
  };
}

/** Rejects requests beyond a concurrency limit, which includes queued requests. */
export const limitingConcurrency = (
  service: ServiceSettings,
  limit: number,
  status: 429 | 503,
  seed: number,
): VirtualTarget => whileOpen(queueing(service, seed), status, (open) => open < limit);

/** Adaptive concurrency limit (AIMD): grows by 1 / limit after a fast answer, and by a factor of 0.9 after a slow one. */
export function adaptive(service: ServiceSettings, slowMs: number, seed: number): VirtualTarget {
  let limit = service.workers * 4;
  return whileOpen(
    queueing(service, seed),
    429,
    (open) => open < Math.floor(limit),
    ({ latencyMs }) => {
      limit = latencyMs > slowMs ? Math.max(service.workers, limit * 0.9) : Math.min(200, limit + 1 / limit);
    },
  );
}

/** Answers a random share of the requests by `other`. */
function randomly(share: number, other: VirtualTarget, rest: VirtualTarget, seed: number): VirtualTarget {
  const random = randomSource(seed);
  return (atMs) => (random() < share ? other(atMs) : rest(atMs));
}

/** Answers a random share of the requests with this status. */
export const failingRandomly = (
  share: number,
  status: number,
  rest: VirtualTarget,
  seed: number,
): VirtualTarget => randomly(share, () => ({ latencyMs: 1, status }), rest, seed ^ 0xfa11);

/** Answers a random share of the requests `slowMs` later. */
export function slowRandomly(
  share: number,
  slowMs: number,
  service: ServiceSettings,
  seed: number,
): VirtualTarget {
  const rest = queueing(service, seed);
  const slow: VirtualTarget = (atMs) => {
    const answer = rest(atMs);
    return { ...answer, latencyMs: answer.latencyMs + slowMs };
  };
  return randomly(share, slow, rest, seed ^ 0x7a11);
}

/** Work per request grows by this share per waiting request, so that throughput falls beyond saturation. */
export function collapsing(service: ServiceSettings, growth: number, seed: number): VirtualTarget {
  // Completion times of the open requests, in descending order.
  const open: { readonly atMs: number }[] = [];
  const rest = queueing(service, seed, (atMs) => {
    while (open.length > 0 && open.at(-1)!.atMs <= atMs) open.pop();
    return 1 + growth * Math.max(0, open.length - service.workers);
  });
  return (atMs) => {
    const answer = rest(atMs);
    insertDescending(open, { atMs: atMs + answer.latencyMs });
    return answer;
  };
}

/** Becomes faster, up to `factor`, between two moments, like servers that scale out or warm their caches. */
export function warming(
  before: ServiceSettings,
  factor: number,
  [fromSeconds, untilSeconds]: readonly [number, number],
  seed: number,
): VirtualTarget {
  const lasts = Math.max(1e-9, untilSeconds - fromSeconds);
  return queueing(before, seed, (atMs) => {
    const progress = Math.min(1, Math.max(0, (atMs / 1000 - fromSeconds) / lasts));
    return 1 / (1 - progress + progress * factor);
  });
}

/** Refuses connections for some seconds. */
export const refusingConnections =
  (fromSeconds: number, forSeconds: number, rest: VirtualTarget): VirtualTarget =>
  (atMs) =>
    atMs >= fromSeconds * 1000 && atMs < (fromSeconds + forSeconds) * 1000
      ? { latencyMs: 1, status: 0 }
      : rest(atMs);

const ADMITS: VirtualTarget = () => ({ latencyMs: 5, status: 200 });

/** After a rejection, rejects all requests for `outMs`. */
export function banning(limit: number, windowMs: number, outMs: number): VirtualTarget {
  const limiter = createLimiter({ kind: 'sliding-log', limit, windowMs });
  let untilMs = -Infinity;
  return (atMs) => {
    if (atMs >= untilMs && limiter.ask(atMs) === 0) return ADMITS(atMs);
    if (atMs >= untilMs) untilMs = atMs + outMs;
    return { latencyMs: 1, status: 429, retryAfterSeconds: Math.ceil((untilMs - atMs) / 1000) };
  };
}

/** `policy`: whether RateLimit headers declare the limit; `rest`: answers the admitted requests. */
export function limited(settings: LimiterSettings, policy = false, rest = ADMITS): VirtualTarget {
  const limiter = createLimiter(settings);
  const { limit, windowMs } = settings;
  const declared = policy ? { policy: { limit, windowSeconds: windowMs / 1000 } } : {};
  return (atMs) => {
    const waitMs = limiter.ask(atMs);
    if (waitMs === 0) return rest(atMs);
    return { latencyMs: 1, status: 429, retryAfterSeconds: Math.ceil(waitMs / 1000), ...declared };
  };
}

interface TenantsSettings {
  /** Mean number of pages per poll, requested one after another. */
  readonly pages: number;
  readonly tokensPerPoll: number;
  /** Number of clients that request pages continuously, and the cost of such a page in pages of a poll. */
  readonly backfills: number;
  readonly backfillWork: number;
}

/** Polls of several pages; token requests and back-fills use the same workers. */
export function polled(service: ServiceSettings, settings: TenantsSettings, seed: number): VirtualRuns {
  const random = randomSource(seed);
  const queue = new WorkQueue(service.workers);
  const draw = serviceTimes(service, random);
  return (moments) => {
    const done = new Float64Array(moments.length);
    const [startMs, endMs] = [moments[0] ?? 0, moments.at(-1) ?? 0];
    const begin = moments.flatMap((atMs, poll) => [
      { atMs, poll, left: Math.floor(settings.pages) + (random() < settings.pages % 1 ? 1 : 0) },
      ...(random() < settings.tokensPerPoll ? [{ atMs, poll: -1, left: 1 }] : []),
    ]);
    const backfills = Array.from({ length: settings.backfills }, () => ({
      atMs: startMs,
      poll: -2,
      left: 1,
    }));
    // In descending order of time: pop() returns the next one.
    const open = [...backfills, ...begin].sort((a, b) => b.atMs - a.atMs);
    for (let one = open.pop(); one; one = open.pop()) {
      const { poll, left } = one;
      const doneMs = queue.finishAt(one.atMs, draw() * (poll === -2 ? settings.backfillWork : 1));
      if (poll >= 0 && left === 1) done[poll] = doneMs;
      if (poll === -2 ? doneMs > endMs : left === 1) continue;
      insertDescending(open, { atMs: doneMs, poll, left: poll === -2 ? 1 : left - 1 });
    }
    return moments.map((atMs, poll) => ({ latencyMs: done[poll]! - atMs, status: 200 }));
  };
}

/** Minimum number of requests for a meaningful p99. */
const MIN_REQUESTS = 300;
const RUNS = 9;

/** Capacity by simulation: the highest rate at which most runs of `seconds`, each from an idle start, keep the SLO. */
export function simulatedCapacity(
  create: (seed: number) => VirtualRuns,
  maxRate: number,
  slo: Slo,
  seconds = 60,
  runs = RUNS,
): number {
  const keepsSlo = (rate: number, run: number): boolean => {
    const answers = create(run + 1)(poissonArrivals(run * 31 + 7, rate, seconds));
    const failures = answers.filter(({ status }) => failed(status)).length;
    const sorted = answers
      .map(({ status, latencyMs }) => (failed(status) ? Infinity : latencyMs))
      .sort((a, b) => a - b);
    return failures <= slo.errorRate * answers.length && quantile(sorted, 0.99) < slo.p99Ms;
  };
  let [low, high] = [0, maxRate];
  for (let round = 0; round < 9; round += 1) {
    const rate = (low + high) / 2;
    let [held, run] = [0, 0];
    while (held * 2 <= runs && (run - held) * 2 < runs) if (keepsSlo(rate, run++)) held += 1;
    if (held * 2 > runs) low = rate;
    else high = rate;
  }
  // A rate with too few requests for a p99 does not count: the SLO is below the latency of an idle server.
  return low * seconds < MIN_REQUESTS ? 0 : (low + high) / 2;
}

export interface Judged {
  /** The estimate as text. */
  readonly found: string;
  /** Relative error of the figure; absent if the truth is not a figure. */
  readonly error?: number | undefined;
  /** An estimate that is open or not confirmed is undecided, never wrong. */
  readonly verdict: 'right' | 'undecided' | 'wrong';
  /** Seconds on the simulated clock. */
  readonly seconds?: number;
}

export interface ZooServer {
  readonly name: string;
  readonly truth: string;
  readonly judge: () => Judged | Promise<Judged>;
}

/** Draws the server of an index; deterministic for a seed. */
export type Draw = (index: number, random: () => number, seed: number) => ZooServer;
