/**
 * Targets in virtual time that behave like real servers under load. A target answers requests in the order of their
 * arrival, and keeps its state from one step to the next.
 */
import type { RunStep } from '../estimate/figures.ts';
import { bisect } from '../estimate/numbers.ts';
import { createLimiter, type LimiterSettings } from '../estimate/limiter-models.ts';
import { failed, LATE_SHARE, type Sample, type Slo } from '../estimate/step.ts';
import { insertDescending, servePolls, WorkQueue } from '../plan/simulate.ts';
import { exponential, poissonArrivals, randomSource } from '../estimate/random.ts';

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
export type VirtualTarget = (atMs: number) => Answer;

/** Answers all requests of a run in one call, for targets in which later requests delay earlier ones. */
export interface VirtualRuns {
  readonly answersTo: (momentsMs: readonly number[]) => readonly Answer[];
}

const answersOf = (target: VirtualTarget | VirtualRuns, momentsMs: readonly number[]): readonly Answer[] =>
  typeof target === 'function' ? momentsMs.map(target) : target.answersTo(momentsMs);

export const ADMITS: VirtualTarget = () => ({ latencyMs: 5, status: 200 });
export const rejection = (retryAfterSeconds: number): Answer => ({
  latencyMs: 1,
  status: 429,
  retryAfterSeconds,
});

const SETTLE_MS = 1500;

/** Runs consecutive steps on the target's virtual clock, each followed by the pause that starting a generator takes. */
export function stepsAgainst(target: VirtualTarget | VirtualRuns, seed: number): RunStep {
  let nowMs = 0;
  let step = seed * 1000;
  return async (requestsPerSecond, seconds, { pauseSeconds = 0 } = {}) => {
    const startMs = nowMs + pauseSeconds * 1000;
    let endMs = startMs + seconds * 1000;
    const due = poissonArrivals((step += 1), requestsPerSecond, seconds);
    const moments = due.map((dueMs) => startMs + dueMs);
    const answers = answersOf(target, moments);
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
  const answersTo = (moments: readonly number[]): Answer[] => {
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
  return { answersTo };
}

/** Answers while `admits` allows it, given the number of open requests, and otherwise with this status. */
function whileOpen(
  rest: (atMs: number, open: number) => Answer,
  status: 429 | 503,
  admits: (open: number) => boolean,
  ended: (answer: Answer) => void = () => {},
): VirtualTarget {
  const open: { readonly atMs: number; readonly answer: Answer }[] = [];
  return (atMs) => {
    while (open.length > 0 && open.at(-1)!.atMs <= atMs) ended(open.pop()!.answer);
    if (!admits(open.length)) return { latencyMs: 1, status, retryAfterSeconds: 1 };
    const answer = rest(atMs, open.length);
    insertDescending(open, { atMs: atMs + answer.latencyMs, answer });
    return answer;
  };
}

/** Rejects requests beyond a concurrency limit, which includes queued requests. */
export const limitingConcurrency = (rest: VirtualTarget, limit: number, status: 429 | 503): VirtualTarget =>
  whileOpen(rest, status, (open) => open < limit);

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
  const slow: VirtualTarget = (atMs) => ({ status: 200, latencyMs: rest(atMs).latencyMs + slowMs });
  return randomly(share, slow, rest, seed ^ 0x7a11);
}

/** Work per request grows by this share per waiting request, so that throughput falls beyond saturation. */
export function collapsing(service: ServiceSettings, growth: number, seed: number): VirtualTarget {
  let waiting = 0;
  const rest = queueing(service, seed, () => 1 + growth * waiting);
  const answer = (atMs: number, open: number): Answer => {
    waiting = Math.max(0, open - service.workers);
    return rest(atMs);
  };
  return whileOpen(answer, 503, () => true);
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

/** After a rejection, rejects all requests for `outMs`. */
export function banning(limit: number, windowMs: number, outMs: number): VirtualTarget {
  const limiter = createLimiter({ kind: 'sliding-log', limit, windowMs });
  let untilMs = -Infinity;
  return (atMs) => {
    if (atMs >= untilMs && limiter.ask(atMs) === 0) return ADMITS(atMs);
    if (atMs >= untilMs) untilMs = atMs + outMs;
    return rejection(Math.ceil((untilMs - atMs) / 1000));
  };
}

interface LimitedBy {
  /** Answers the admitted requests. */
  readonly rest?: VirtualTarget;
  /** Whether RateLimit headers declare the limit. */
  readonly declares?: boolean;
  /** The Retry-After header for a wait, both in seconds. */
  readonly retryAfter?: (seconds: number) => number;
}

/** Admits a request that all of these limiters admit; later ones do not count what an earlier one rejects. */
export function limited(
  settings: LimiterSettings | readonly LimiterSettings[],
  { rest = ADMITS, declares = false, retryAfter = Math.ceil }: LimitedBy = {},
): VirtualTarget {
  const all = [settings].flat();
  const limiters = all.map(createLimiter);
  const { limit, windowMs } = all[0]!;
  const declared = declares ? { policy: { limit, windowSeconds: windowMs / 1000 } } : {};
  return (atMs) => {
    const waitMs = limiters.reduce((wait, one) => wait || one.ask(atMs), 0);
    if (waitMs === 0) return rest(atMs);
    return { ...rejection(Math.max(0, retryAfter(waitMs / 1000))), ...declared };
  };
}

/**
 * A leaky bucket as nginx's limit_req in its source: excess in thousandths of requests, whole milliseconds, rejected
 * requests do not count. With `delays`, requests beyond the rate wait for their turn.
 */
export function leakyBucket(perSecond: number, burst: number, delays: boolean, rest = ADMITS): VirtualTarget {
  let [excess, lastMs] = [0, -Infinity];
  return (atMs) => {
    const nowMs = Math.floor(atMs);
    const left = lastMs === -Infinity ? 0 : Math.max(0, excess - perSecond * (nowMs - lastMs) + 1000);
    if (left > burst * 1000) return rejection(Math.ceil((left / 1000 - burst) / perSecond));
    [excess, lastMs] = [left, nowMs];
    return delayed(delays ? left / perSecond : 0, rest, atMs);
  };
}

/** Stops the world for `forMs` at the beginning of every interval, as garbage collectors do. */
export const pausing =
  (everyMs: number, forMs: number, rest: VirtualTarget): VirtualTarget =>
  (atMs) =>
    delayed(Math.max(0, forMs - (atMs % everyMs)), rest, atMs);

function delayed(byMs: number, rest: VirtualTarget, atMs: number): Answer {
  const answer = rest(atMs + byMs);
  return { ...answer, latencyMs: answer.latencyMs + byMs };
}

/** Polls of several pages on average; token requests and back-fills use the same workers. */
export function polled(
  { workers, serviceMs }: ServiceSettings,
  { pages, ...beside }: { readonly pages: number } & Parameters<typeof servePolls>[3],
  seed: number,
): VirtualRuns {
  const random = randomSource(seed);
  const pagesOf = (): number => Math.floor(pages) + (random() < pages % 1 ? 1 : 0);
  return {
    answersTo(moments) {
      const polls = moments.map((atMs) => ({ atMs, pages: pagesOf() }));
      const { pollMs } = servePolls(workers, serviceMs, polls, beside, random);
      return moments.map((_, poll) => ({ latencyMs: pollMs[poll]!, status: 200 }));
    },
  };
}

/** Minimum number of requests for a meaningful p99. */
const MIN_REQUESTS = 300;
const RUNS = 9;

/**
 * Capacity by simulation: the highest rate at which at least a share of the runs of `seconds`, each from an idle start,
 * keep the SLO.
 */
export function simulatedCapacity(
  create: (seed: number) => VirtualTarget | VirtualRuns,
  maxRate: number,
  slo: Slo,
  seconds = 60,
  share = 0.5,
): number {
  const keepsSlo = (rate: number, run: number): boolean => {
    const answers = answersOf(create(run + 1), poissonArrivals(run * 31 + 7, rate, seconds));
    let [failures, late] = [0, 0];
    for (const { status, latencyMs } of answers)
      if (failed(status)) failures += 1;
      else if (latencyMs >= slo.p99Ms) late += 1;
    return failures <= slo.errorRate * answers.length && failures + late <= LATE_SHARE * answers.length;
  };
  const runs = seconds < 300 ? RUNS : 3;
  const [low, high] = bisect(maxRate, 9, (rate) => {
    let [held, run] = [0, 0];
    while (held < share * runs && run - held <= (1 - share) * runs) if (keepsSlo(rate, run++)) held += 1;
    return held >= share * runs;
  });
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
