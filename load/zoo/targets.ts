/** Servers in virtual time that behave like real ones under load, and keep their state from one step to the next. */
import type { RunStep } from '../estimate/figures.ts';
import { bisect, sum } from '../estimate/numbers.ts';
import { createLimiter, type Limiter, type LimiterSettings } from '../estimate/limiter-models.ts';
import { failed, meetsSlo, type RatePolicy, type Sample } from '../estimate/step.ts';
import { SLO } from '../k6/lib/presets.ts';
import { insertDescending, servePolls, WorkQueue } from '../plan/simulate.ts';
import { exponential, poissonArrivals, randomSource } from '../estimate/random.ts';

export interface ServiceSettings {
  readonly workers: number;
  readonly serviceMs: number;
  /** deterministic: always serviceMs; exponential: with mean serviceMs. */
  readonly distribution: 'deterministic' | 'exponential';
}

type Answer = Pick<Sample, 'latencyMs' | 'status' | 'retryAfterSeconds' | 'policy'>;

/** Answers a request that arrives at `atMs`, in milliseconds since the target's start. */
export type VirtualTarget = (atMs: number) => Answer;

/** Answers all requests of a run in one call, for targets in which later requests delay earlier ones. */
export interface VirtualRuns {
  readonly answersTo: (momentsMs: readonly number[]) => readonly Answer[];
}

export type Target = VirtualTarget | VirtualRuns;

const answersOf = (target: Target, momentsMs: readonly number[]): readonly Answer[] =>
  typeof target === 'function' ? momentsMs.map(target) : target.answersTo(momentsMs);

const SETTLE_MS = 1500;

/** Runs consecutive steps on the target's virtual clock, each followed by the pause that starting a generator takes. */
export function stepsAgainst(
  target: Target,
  seed: number,
  sent: (lastMs: number) => void = () => {},
): RunStep {
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
    sent(moments.at(-1) ?? startMs);
    nowMs = endMs + SETTLE_MS;
    return { samples };
  };
}

/** What a server does with a request, in this order; absent parts do nothing. */
export interface Behaviour {
  readonly down?: Readonly<Record<'fromSeconds' | 'forSeconds', number>>;
  readonly failing?: { readonly share: number; readonly status: number };
  /** Admits a request that all of these admit; later ones do not count what an earlier one rejects. */
  readonly limits?: readonly CreateLimiter[];
  /** The RateLimit headers of a rejection, and Retry-After for a wait, both in seconds. */
  readonly policy?: RatePolicy;
  readonly retryAfter?: (seconds: number) => number;
  /**
   * Rejects requests beyond a number of open requests, which includes queued ones. With `slowMs` the limit adapts (AIMD):
   * from a quarter of it up to 200, it grows by 1 / limit after a fast answer, and by a factor of 0.9 after a slow one.
   */
  readonly concurrency?: { readonly limit: number; readonly status: 429 | 503; readonly slowMs?: number };
  /** Stops the world for `forMs` at the beginning of every interval, as garbage collectors do. */
  readonly stops?: Readonly<Record<'everyMs' | 'forMs', number>>;
  /** Serves in the order of arrival. Default: 5 ms for each request, however many there are. */
  readonly service?: ServiceSettings;
  /** Factor on the work of a request, given the number of open ones. */
  readonly work?: (atMs: number, open: number) => number;
  readonly slow?: { readonly share: number; readonly byMs: number };
}

/** Creates a limiter at rest; delayMs: how long it holds back the request that it just admitted. */
type CreateLimiter = () => Limiter & { readonly delayMs?: () => number };

const ADMITTED_MS = 5;

export function server(behaviour: Behaviour, seed = 0): VirtualTarget {
  const { down, failing, policy, retryAfter = Math.ceil, concurrency } = behaviour;
  const { stops, service, work, slow } = behaviour;
  const limits = (behaviour.limits ?? []).map((create) => create());
  const queue = service && new WorkQueue(service.workers);
  const random = randomSource(seed);
  const [fails, slows] = [randomSource(seed ^ 0xfa11), randomSource(seed ^ 0x7a11)];
  const open: { readonly atMs: number; readonly latencyMs: number }[] = [];
  let mostOpen = concurrency?.limit ?? Infinity;

  /** The service time of the next request. */
  function draw({ distribution, serviceMs }: ServiceSettings): number {
    return distribution === 'deterministic' ? serviceMs : exponential(random, serviceMs);
  }

  function serve(atMs: number): Answer {
    const stoppedMs = stops ? Math.max(0, stops.forMs - (atMs % stops.everyMs)) : 0;
    const delayMs = stoppedMs + sum(limits.map((limit) => limit.delayMs?.() ?? 0));
    const startMs = atMs + delayMs;
    const endMs = queue?.finishAt(startMs, draw(service!) * (work?.(startMs, open.length) ?? 1));
    const slowMs = slow && slows() < slow.share ? slow.byMs : 0;
    return { latencyMs: (endMs ?? startMs + ADMITTED_MS) - atMs + slowMs, status: 200 };
  }

  return (atMs) => {
    const downMs = down ? atMs - down.fromSeconds * 1000 : -1;
    if (downMs >= 0 && downMs < down!.forSeconds * 1000) return { latencyMs: 1, status: 0 };
    if (failing && fails() < failing.share) return { latencyMs: 1, status: failing.status };
    const waitMs = limits.reduce((wait, limit) => wait || limit(atMs), 0);
    const retryAfterSeconds = Math.max(0, retryAfter(waitMs / 1000));
    if (waitMs > 0) return { latencyMs: 1, status: 429, retryAfterSeconds, ...(policy ? { policy } : {}) };
    if (!concurrency && !work) return serve(atMs);
    for (; open.length > 0 && open.at(-1)!.atMs <= atMs; open.pop()) {
      if (concurrency?.slowMs === undefined) continue;
      const isSlow = open.at(-1)!.latencyMs > concurrency.slowMs;
      mostOpen = isSlow
        ? Math.max(concurrency.limit / 4, mostOpen * 0.9)
        : Math.min(200, mostOpen + 1 / mostOpen);
    }
    if (concurrency && open.length >= Math.floor(mostOpen))
      return { latencyMs: 1, status: concurrency.status, retryAfterSeconds: 1 };
    const answer = serve(atMs);
    insertDescending(open, { atMs: atMs + answer.latencyMs, latencyMs: answer.latencyMs });
    return answer;
  };
}

export const limited = (...settings: readonly LimiterSettings[]): Behaviour => ({
  limits: settings.map((one) => () => createLimiter(one)),
});

/** After a rejection, rejects all requests for `outMs`. */
export const banning =
  (limit: number, windowMs: number, outMs: number): CreateLimiter =>
  () => {
    const limiter = createLimiter({ kind: 'sliding-log', limit, windowMs });
    let untilMs = -Infinity;
    return (atMs) => {
      if (atMs >= untilMs && limiter(atMs) === 0) return 0;
      if (atMs >= untilMs) untilMs = atMs + outMs;
      return untilMs - atMs;
    };
  };

/**
 * A leaky bucket as nginx's limit_req in its source: excess in thousandths of requests, whole milliseconds, rejected
 * requests do not count. With `delays`, requests beyond the rate wait for their turn.
 */
export const leakyBucket =
  (perSecond: number, burst: number, delays: boolean): CreateLimiter =>
  () => {
    let [excess, lastMs] = [0, -Infinity];
    const ask = (atMs: number): number => {
      const nowMs = Math.floor(atMs);
      const left = lastMs === -Infinity ? 0 : Math.max(0, excess - perSecond * (nowMs - lastMs) + 1000);
      if (left > burst * 1000) return (left - burst * 1000) / perSecond;
      [excess, lastMs] = [left, nowMs];
      return 0;
    };
    return Object.assign(ask, { delayMs: () => (delays ? excess / perSecond : 0) });
  };

/** Counts every request; returns the number of those in the last `windowMs`. */
function countWithin(windowMs: number): (atMs: number) => number {
  const times: number[] = [];
  return (atMs) => {
    while (times[0]! <= atMs - windowMs) times.shift();
    return times.push(atMs);
  };
}

/** A sliding log that also counts the requests that it rejects. */
export const countingRejected =
  (limit: number, windowMs: number): CreateLimiter =>
  () => {
    const countOf = countWithin(windowMs);
    return (atMs) => (countOf(atMs) > limit ? windowMs : 0);
  };

/** Delays by `slowMs` what the limiter does not admit. */
export const tarpit =
  (settings: LimiterSettings, slowMs: number): CreateLimiter =>
  () => {
    const limiter = createLimiter(settings);
    let delayMs = 0;
    const ask = (atMs: number): number => ((delayMs = limiter(atMs) > 0 ? slowMs : 0), 0);
    return Object.assign(ask, { delayMs: () => delayMs });
  };

/** Delays by `eachMs` for each request in the last `windowMs`. */
export const growingDelay =
  (windowMs: number, eachMs: number): CreateLimiter =>
  () => {
    const countOf = countWithin(windowMs);
    let delayMs = 0;
    return Object.assign((atMs: number) => ((delayMs = countOf(atMs) * eachMs), 0), {
      delayMs: () => delayMs,
    });
  };

/** Doubles the delay, from `firstMs` to 8 s, for each request beyond the limit, until it is not exceeded for a second. */
export const doublingDelay =
  (settings: LimiterSettings, firstMs: number): CreateLimiter =>
  () => {
    const limiter = createLimiter(settings);
    let [delayMs, lastMs] = [0, -Infinity];
    const ask = (atMs: number): number => {
      if (limiter(atMs) > 0) [delayMs, lastMs] = [Math.min(8000, delayMs * 2 || firstMs), atMs];
      else if (atMs > lastMs + 1000) delayMs = 0;
      return 0;
    };
    return Object.assign(ask, { delayMs: () => delayMs });
  };

/** Others, at random times, use the same limit. */
export const sharedWith =
  (othersPerSecond: number, settings: LimiterSettings): CreateLimiter =>
  () => {
    const limiter = createLimiter(settings);
    const random = randomSource(7);
    let othersMs = 0;
    return (atMs) => {
      for (; othersMs < atMs; othersMs += exponential(random, 1000 / othersPerSecond)) limiter(othersMs);
      return limiter(atMs);
    };
  };

/** Requests that an even flow of `perSecond` with this burst does not admit cost as much as admitted ones. */
export const punishing =
  (perSecond: number, burst: number): CreateLimiter =>
  () => {
    const spacingMs = 1000 / perSecond;
    let fullAtMs = 0;
    return (atMs) => {
      const nextMs = Math.max(fullAtMs, atMs) + spacingMs;
      fullAtMs = Math.min(nextMs, atMs + 2 * burst * spacingMs);
      return Math.max(0, nextMs - atMs - burst * spacingMs);
    };
  };

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

/** Capacity by simulation: the highest rate at which a share of the runs, each from an idle start, keeps the SLO. */
export function simulatedCapacity(
  create: (seed: number) => Target,
  maxRate: number,
  seconds = 120,
  share = 0.5,
): number {
  const keepsSlo = (rate: number, run: number): boolean => {
    const answers = answersOf(create(run + 1), poissonArrivals(run * 31 + 7, rate, seconds));
    const failures = answers.filter(({ status }) => failed(status)).length;
    const wrong = answers.filter(({ status, latencyMs }) => failed(status) || latencyMs >= SLO.p99Ms).length;
    return meetsSlo(wrong, failures, answers.length, SLO);
  };
  const [low, high] = bisect(maxRate, 9, (rate) => {
    let [held, run] = [0, 0];
    while (held < share * RUNS && run - held <= (1 - share) * RUNS) if (keepsSlo(rate, run++)) held += 1;
    return held >= share * RUNS;
  });
  // A rate with too few requests for a p99 does not count: the SLO is below the latency of an idle server.
  return low * seconds < MIN_REQUESTS ? 0 : (low + high) / 2;
}

export interface Judged {
  readonly found: string;
  /** Relative error of the figure; absent if the truth is not a figure. */
  readonly error?: number | undefined;
  /** An estimate that is open or not confirmed is undecided, never wrong. */
  readonly verdict: 'right' | 'undecided' | 'wrong';
  readonly seconds?: number;
}

export interface ZooServer {
  readonly name: string;
  readonly truth: string;
  readonly judge: () => Judged | Promise<Judged>;
}

/** Draws the server of an index; the same for the same random numbers. */
export type DrawServer = (random: () => number, index: number, seed: number) => ZooServer;
export type Draw<Drawn> = (random: () => number, index: number) => Drawn;

export const inTurn =
  <Drawn>(rows: readonly Draw<Drawn>[]): Draw<Drawn> =>
  (random, index) =>
    rows[index % rows.length]!(random, Math.floor(index / rows.length));
