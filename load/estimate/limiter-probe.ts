/**
 * The plan of questions that tells rate limiters apart in few requests. A generator: it yields what to send when, and
 * is given back what came; so k6 runs it against a target, and tests run it against a simulated limiter.
 */

/** One request's outcome. Times in milliseconds since the probe began. */
export interface Observation {
  /** About when the target decided, give or take slackMs. */
  readonly atMs: number;
  readonly slackMs: number;
  readonly ok: boolean;
  /** Of a 429, where it said. */
  readonly retryAfterSeconds?: number | undefined;
}

/** Send count requests at once, not before notBeforeMs. */
export interface Ask {
  readonly notBeforeMs: number;
  readonly count: number;
}

export interface ProbeLimits {
  readonly maxRequests: number;
  readonly maxSeconds: number;
}

type Plan<Result = void> = Generator<Ask, Result, readonly Observation[]>;

/** Polls grow apart by this ratio while nothing is known of the wait, and are this close where it is. */
const GROWTH = 1.13;
const FIRST_GAP_MS = 8;
const FINE_SHARE = 0.02;
/** After so long without any 429 one request at a time is too slow a burst. */
const IMPATIENT_MS = 1500;
const BATCHES = [1, 5, 20, 50];
/** How often a patient burst asks again. */
const PATIENT_POLLS = 12;

/** What a probe saw, and the limit that ended it early. */
export interface Probed {
  readonly seen: readonly Observation[];
  readonly cutBy?: keyof ProbeLimits;
}

class Exhausted extends Error {
  constructor(readonly limit: keyof ProbeLimits) {
    super(limit);
  }
}

interface Release {
  /** The moment of the first request let through again, and of the last one refused. */
  readonly atMs: number;
  readonly refusedMs: number;
}

/**
 * burst, wait, half a burst, the rest later, wait, burst, wait: each kind of limiter answers the second wait and
 * the third burst in its own way. What paces its releases evenly gets a second burst at another phase instead.
 */
export function* probeLimiter(limits: ProbeLimits): Plan<Probed> {
  const seen: Observation[] = [];
  try {
    yield* plan(limits, seen);
  } catch (error) {
    if (!(error instanceof Exhausted)) throw error;
    return { seen, cutBy: error.limit };
  }
  return { seen };
}

function* plan(limits: ProbeLimits, seen: Observation[]): Plan {
  const now = (): number => seen.at(-1)?.atMs ?? 0;
  function* send(count = 1, notBeforeMs = 0): Plan<readonly Observation[]> {
    if (seen.length + count > limits.maxRequests) throw new Exhausted('maxRequests');
    if (Math.max(now(), notBeforeMs) > limits.maxSeconds * 1000) throw new Exhausted('maxSeconds');
    const got = yield { notBeforeMs, count };
    // Of requests sent at once the order is unknown: those let through count as the earlier ones.
    seen.push(...[...got].sort((a, b) => a.atMs - b.atMs || Number(b.ok) - Number(a.ok)));
    return got;
  }

  /** Sends until so many were let through, or one is refused after that moment; how many were let through. */
  function* burst(most = Infinity, patientUntilMs = 0): Plan<number> {
    const startedMs = now();
    let [passed, level] = [0, 0];
    const pollMs = (patientUntilMs - startedMs) / PATIENT_POLLS;
    let notBeforeMs = 0;
    while (passed < most) {
      if (most === Infinity && now() - startedMs > IMPATIENT_MS * (level + 1)) {
        level = Math.min(level + 1, BATCHES.length - 1);
      }
      const got = yield* send(Math.min(BATCHES[level]!, most - passed), notBeforeMs);
      passed += got.filter(({ ok }) => ok).length;
      if (got.every(({ ok }) => ok)) continue;
      if (now() >= patientUntilMs) break;
      notBeforeMs = now() + pollMs;
    }
    return passed;
  }

  /** Polls until let through: ever further apart, or closely around the moment that is expected. */
  function* release(expectedMs?: number, span = 0): Plan<Release> {
    const refusedAt = now();
    let lastMs = refusedAt;
    let gap = FIRST_GAP_MS;
    for (;;) {
      let next = lastMs + gap;
      if (expectedMs !== undefined && lastMs < expectedMs + 0.2 * span) {
        const fine = Math.max(4, FINE_SHARE * span);
        next = Math.max(lastMs + fine, expectedMs - 0.16 * span);
      } else gap = Math.max(FIRST_GAP_MS, (lastMs - refusedAt) * (GROWTH - 1));
      const [got] = yield* send(1, next);
      if (got!.ok) return { atMs: got!.atMs, refusedMs: lastMs };
      lastMs = got!.atMs;
    }
  }

  const startMs = now();
  const first = yield* burst();
  if (first === 0) return;
  const burstMs = now() - startMs;
  const one = yield* release();
  const half = Math.max(Math.min(first, 2), Math.floor(first / 2));
  // A log lets through again one by one, as they came: no faster than the first burst was. Nothing else follows at
  // once in a bucket of few.
  const patienceMs = Math.max(burstMs * 0.6, (one.atMs - startMs - burstMs) * (first < 10 ? 0.3 : 0));
  const second = 1 + (yield* burst(half - 1, now() + patienceMs));
  if (first > 1 && second < Math.max(2, half * 0.6)) {
    yield* evenly(first);
    return;
  }

  // All or much came back at once: a fixed window, or a log of moments. Half now, half later tells them apart.
  const guess = Math.max(one.atMs - startMs, 50);
  yield* send(1, one.atMs + 0.45 * guess);
  yield* burst();
  const two = yield* release();
  yield* burst(Math.ceil(first * 1.1));
  const spanMs = two.atMs - one.atMs;
  if (seen.at(-1)?.ok === false) yield* release(two.atMs + 0.5 * spanMs, spanMs * 0.5);
  yield* burst(Math.ceil(first * 0.75));
  if (seen.at(-1)?.ok === false) yield* release(two.atMs + spanMs, spanMs);

  /** Waits for so many releases that come one by one; the milliseconds from one to the next. */
  function* pace(wanted: number): Plan<number> {
    const fromMs = now();
    let [passed, gap] = [0, 3];
    while (passed < wanted) {
      const [got] = yield* send(1, now() + gap);
      if (!got!.ok) gap *= 1.25;
      else {
        passed += 1;
        gap = Math.max(1, (now() - fromMs) / passed / 3);
      }
    }
    return (now() - fromMs) / passed;
  }

  /** Releases come one by one: measure their pace, then burst again when another part of a window would be due. */
  function* evenly(allowance: number): Plan {
    const emptiedMs = seen.find(({ ok }) => !ok)!.atMs;
    const enough = Math.max(10, Math.ceil(allowance / 5));
    const paceMs = yield* pace(enough);
    const windowMs = paceMs * allowance;
    for (const shift of [0.4, 0.7]) {
      // Idle until any limiter has forgotten everything, and on until the phase differs.
      const earliest = now() + 2.02 * windowMs;
      const phase = (((earliest - emptiedMs) / windowMs) % 1) - shift;
      yield* send(1, earliest + ((1 - phase) % 1) * windowMs);
      yield* burst();
      const again = now();
      const { atMs } = yield* release(again + paceMs, paceMs * 2);
      // A bucket drips on at once, at any phase; windows make one wait, and let through at a pace of their own then:
      // the first pace was another where the first burst lay across an edge.
      const waited = atMs - again > 4 * paceMs;
      yield* pace(waited ? Math.max(enough, Math.ceil(allowance / 3)) : 4);
      if (waited) return;
    }
  }
}
