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
export function serviceTimes(settings: ServiceSettings, random: () => number): () => number {
  return settings.distribution === 'deterministic'
    ? () => settings.serviceMs
    : () => exponential(random, settings.serviceMs);
}

interface Answer {
  readonly latencyMs: number;
  readonly status: number;
  readonly retryAfterSeconds?: number;
  readonly policy?: Sample['policy'];
}

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

export function queueing(service: ServiceSettings, seed: number): VirtualTarget {
  const queue = new WorkQueue(service.workers);
  const draw = serviceTimes(service, randomSource(seed));
  return (atMs) => ({ latencyMs: queue.finishAt(atMs, draw()) - atMs, status: 200 });
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

interface ConcurrencySettings {
  /** Includes queued requests. */
  readonly concurrencyLimit: number;
  readonly status: 429 | 503;
}

/** Rejects requests beyond a concurrency limit. */
export function limitingConcurrency(
  service: ServiceSettings,
  { concurrencyLimit, status }: ConcurrencySettings,
  seed: number,
): VirtualTarget {
  const rest = queueing(service, seed);
  let doneMs: number[] = [];
  return (atMs) => {
    doneMs = doneMs.filter((ms) => ms > atMs);
    if (doneMs.length >= concurrencyLimit) return { latencyMs: 1, status, retryAfterSeconds: 1 };
    const answer = rest(atMs);
    doneMs.push(atMs + answer.latencyMs);
    return answer;
  };
}

/** Answers a random share of the requests by `other`. */
function randomly(share: number, other: VirtualTarget, rest: VirtualTarget, seed: number): VirtualTarget {
  const random = randomSource(seed);
  return (atMs) => (random() < share ? other(atMs) : rest(atMs));
}

/** Answers a random share of the requests with this status. */
export function failingRandomly(
  share: number,
  status: number,
  rest: VirtualTarget,
  seed: number,
): VirtualTarget {
  return randomly(share, () => ({ latencyMs: 1, status }), rest, seed ^ 0xfa11);
}

interface OverloadSettings extends ServiceSettings {
  /** Additional work per waiting request, as a share such as 0.01. */
  readonly growth: number;
}

/** Work per request grows with the queue, so that throughput falls beyond saturation. */
export function collapsing(settings: OverloadSettings, seed: number): VirtualTarget {
  const queue = new WorkQueue(settings.workers);
  const draw = serviceTimes(settings, randomSource(seed));
  // Completion times of the open requests, in descending order.
  const open: { readonly atMs: number }[] = [];
  return (atMs) => {
    while (open.length > 0 && open.at(-1)!.atMs <= atMs) open.pop();
    const waiting = Math.max(0, open.length - settings.workers);
    const doneMs = queue.finishAt(atMs, draw() * (1 + settings.growth * waiting));
    insertDescending(open, { atMs: doneMs });
    return { latencyMs: doneMs - atMs, status: 200 };
  };
}

/** Refuses connections for some seconds. */
export function refusingConnections(
  { fromSeconds, forSeconds }: { readonly fromSeconds: number; readonly forSeconds: number },
  rest: VirtualTarget,
): VirtualTarget {
  return (atMs) =>
    atMs >= fromSeconds * 1000 && atMs < (fromSeconds + forSeconds) * 1000
      ? { latencyMs: 1, status: 0 }
      : rest(atMs);
}

/** Adaptive concurrency limit (AIMD): grows by 1 / limit after a fast answer, and by a factor of 0.9 after a slow one. */
export function adaptive(
  service: ServiceSettings,
  { slowMs }: { readonly slowMs: number },
  seed: number,
): VirtualTarget {
  const rest = queueing(service, seed);
  let limit = service.workers * 4;
  let open: { doneMs: number; latencyMs: number }[] = [];
  return (atMs) => {
    for (const { doneMs, latencyMs } of open)
      if (doneMs <= atMs)
        limit =
          latencyMs > slowMs ? Math.max(service.workers, limit * 0.9) : Math.min(200, limit + 1 / limit);
    open = open.filter(({ doneMs }) => doneMs > atMs);
    if (open.length >= Math.floor(limit)) return { latencyMs: 1, status: 429, retryAfterSeconds: 1 };
    const { latencyMs } = rest(atMs);
    open.push({ doneMs: atMs + latencyMs, latencyMs });
    return { latencyMs, status: 200 };
  };
}

/** After a rejection, rejects all requests for `outMs`. */
export function banning(settings: {
  readonly limit: number;
  readonly windowMs: number;
  readonly outMs: number;
}): VirtualTarget {
  const limiter = createLimiter({ kind: 'sliding-log', ...settings });
  let untilMs = -Infinity;
  return (atMs) => {
    if (atMs >= untilMs && limiter.ask(atMs) === 0) return { latencyMs: 5, status: 200 };
    if (atMs >= untilMs) untilMs = atMs + settings.outMs;
    return { latencyMs: 1, status: 429, retryAfterSeconds: Math.ceil((untilMs - atMs) / 1000) };
  };
}

/** `policy`: whether RateLimit headers declare the limit; `rest`: answers the admitted requests. */
export function limited(
  limiter: LimiterSettings,
  policy = false,
  rest: VirtualTarget = () => ({ latencyMs: 5, status: 200 }),
): VirtualTarget {
  const ask = createLimiter(limiter);
  return (atMs) => {
    const waitMs = ask.ask(atMs);
    if (waitMs === 0) return rest(atMs);
    const { limit, windowMs } = limiter;
    return {
      latencyMs: 1,
      status: 429,
      retryAfterSeconds: Math.ceil(waitMs / 1000),
      ...(policy ? { policy: { limit, windowSeconds: windowMs / 1000 } } : {}),
    };
  };
}

interface TailSettings {
  /** Share of slow answers at any rate, and their additional latency. */
  readonly share: number;
  readonly slowMs: number;
}

/** A share of the answers is slow at any rate. */
export function slowRandomly(tail: TailSettings, service: ServiceSettings, seed: number): VirtualTarget {
  const rest = queueing(service, seed);
  const slow: VirtualTarget = (atMs) => {
    const answer = rest(atMs);
    return { ...answer, latencyMs: answer.latencyMs + tail.slowMs };
  };
  return randomly(tail.share, slow, rest, seed ^ 0x7a11);
}

interface WarmingSettings {
  readonly before: ServiceSettings;
  readonly after: ServiceSettings;
  /** Start and end of the acceleration, in seconds since the start. */
  readonly fromSeconds: number;
  readonly untilSeconds: number;
}

/** Becomes faster between two moments, like servers that scale out or warm their caches. */
export function warming(settings: WarmingSettings, seed: number): VirtualTarget {
  const { before, after, fromSeconds, untilSeconds } = settings;
  const queue = new WorkQueue(before.workers);
  const random = randomSource(seed);
  return (atMs) => {
    const progress = Math.min(
      1,
      Math.max(0, (atMs / 1000 - fromSeconds) / Math.max(1e-9, untilSeconds - fromSeconds)),
    );
    const rate = (1 - progress) / before.serviceMs + progress / after.serviceMs;
    const draw = before.distribution === 'deterministic' ? 1 / rate : exponential(random, 1 / rate);
    return { latencyMs: queue.finishAt(atMs, draw) - atMs, status: 200 };
  };
}

/** Minimum number of requests for a meaningful p99. */
const MIN_REQUESTS = 300;

/**
 * Capacity by simulation: the highest rate at which most runs of `seconds`, each from an idle start, keep the SLO.
 */
export function simulatedCapacity(
  create: (seed: number) => VirtualRuns,
  maxRate: number,
  slo: Slo,
  seconds = 60,
  runs = 9,
): number {
  const holds = (rate: number): boolean => {
    const good = Array.from({ length: runs }, (_, run) => {
      const answers = create(run + 1)(poissonArrivals(run * 31 + 7, rate, seconds));
      const failures = answers.filter(({ status }) => failed(status)).length;
      const sorted = answers
        .map(({ status, latencyMs }) => (failed(status) ? Infinity : latencyMs))
        .sort((a, b) => a - b);
      return failures <= slo.errorRate * answers.length && quantile(sorted, 0.99) < slo.p99Ms;
    }).filter(Boolean).length;
    return good * 2 > runs;
  };
  let [low, high] = [0, maxRate];
  for (let round = 0; round < 9; round += 1) {
    const rate = (low + high) / 2;
    if (holds(rate)) low = rate;
    else high = rate;
  }
  // A rate with too few requests for a p99 does not count: the SLO is below the latency of an idle server.
  return low * seconds < MIN_REQUESTS ? 0 : (low + high) / 2;
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
