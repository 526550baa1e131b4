/**
 * The plan of questions that tells rate limiters apart in few requests. A generator: it yields what to send when, and
 * is given back what came; so k6 runs it against a target, and tests run it against a simulated limiter.
 */
import { largest, smallest, sum } from './numbers.ts';

/** One request's outcome. Times in milliseconds since the probe began. */
export interface Observation {
  /** About when the target decided, give or take slackMs; but for half a round trip, the same for all. */
  readonly atMs: number;
  readonly slackMs: number;
  readonly ok: boolean;
  /** When it was sent, and how long its answer took. */
  readonly sentMs?: number | undefined;
  readonly rttMs?: number | undefined;
  /** Of a 429, where it said. */
  readonly retryAfterSeconds?: number | undefined;
}

/** Send count requests, each a number of milliseconds after the one before, not before notBeforeMs. */
interface Ask {
  readonly notBeforeMs: number;
  readonly count: number;
  readonly spacingMs: number;
}

/** An answer as it was seen from here. */
export interface Reply {
  readonly sentMs: number;
  readonly rttMs: number;
  readonly ok: boolean;
  readonly retryAfterSeconds?: number | undefined;
}

/** Clocks count whole milliseconds. */
const CLOCK_MS = 0.5;

/**
 * When each was decided. What every answer takes is the way there and back and says nothing: only what one took beyond
 * the quickest of its kind is uncertain. So a round trip of 80 ms is as good as one of 1 ms, if it is an even one.
 */
export function placeReplies(replies: readonly Reply[]): Observation[] {
  const least = (ok: boolean): number =>
    smallest(replies.filter((one) => one.ok === ok).map(({ rttMs }) => rttMs));
  const bases = { ok: least(true), refused: least(false) };
  const wayMs = Math.min(bases.ok, bases.refused) / 2;
  const placed = replies.map(({ sentMs, rttMs, ok, retryAfterSeconds }) => {
    const extraMs = rttMs - (ok ? bases.ok : bases.refused);
    const atMs = sentMs + wayMs + extraMs / 2 + CLOCK_MS;
    return { sentMs, atMs, slackMs: extraMs / 2 + CLOCK_MS, ok, rttMs, retryAfterSeconds };
  });
  placed.sort((a, b) => a.sentMs - b.sentMs);
  const observations: Observation[] = [];
  for (let from = 0; from < placed.length;) {
    let to = from + 1;
    const isNear = (one: number, ms: number): boolean => placed[to]!.sentMs - placed[one]!.sentMs <= ms;
    while (to < placed.length && (isNear(from, AT_ONCE_MS) || isNear(to - 1, NEXT_MS))) to += 1;
    observations.push(...asOneMoment(placed.slice(from, to)));
    from = to;
  }
  return observations.sort((a, b) => a.atMs - b.atMs);
}

/** Sent so close to one another, requests come in any order; a burst takes longer, one right behind the other. */
const AT_ONCE_MS = 3;
const NEXT_MS = 1;

/** Of requests sent at once the order is unknown: one moment for all, and those let through were the earlier ones. */
function asOneMoment(group: readonly Observation[]): Observation[] {
  if (group.length === 1) return [...group];
  const first = smallest(group.map((one) => one.atMs - one.slackMs));
  const last = largest(group.map((one) => one.atMs + one.slackMs));
  const atMs = sum(group.map((one) => one.atMs)) / group.length;
  const slackMs = Math.max(1, (last - first) / 2);
  return [...group].sort((a, b) => Number(b.ok) - Number(a.ok)).map((one) => ({ ...one, atMs, slackMs }));
}

export interface ProbeLimits {
  readonly maxRequests: number;
  readonly maxSeconds: number;
}

type Plan<Result = void> = Generator<Ask, Result, readonly Reply[]>;

/** Polls grow apart by this ratio while nothing is known of the wait, and are this close where it is. */
const GROWTH = 1.13;
const FIRST_GAP_MS = 8;
const FINE_SHARE = 0.02;
/** As many at once, at most. */
const LARGEST_BATCH = 50;
/** Polls under way at once: what passes among them after a release is spent. */
const POLLS_AHEAD = 10;
/** How often a patient burst asks again. */
const PATIENT_POLLS = 12;
/** Answers delayed this long compared with the quickest, in this many batches: they are paced, and not refused. */
const SHAPED_MS = 300;
const SHAPED_BATCHES = 3;
/** Waits that a 429 names are sat out without a request in between, so often, and so long in all. */
const WAITS = 5;
const LONGEST_WAITS_S = 60;
/** Asked for twice of what it admits, for two windows or this many seconds, in even steps. */
const PRESSED = 2;
const PRESSED_SECONDS = 5;
const LONGEST_PRESSED_SECONDS = 30;

/** What a probe saw, and the limit that ended it early. */
export interface Probed {
  readonly seen: readonly Observation[];
  /** While waits were sat out: no evidence of the kind. */
  readonly waited?: readonly Observation[];
  /** While more was asked than it admits, from the first refusal on: what it admits in the long run, whatever it is. */
  readonly pressed?: readonly Observation[];
  readonly cutBy?: keyof ProbeLimits;
}

class Exhausted extends Error {
  constructor(readonly limit: keyof ProbeLimits) {
    super(limit);
  }
}

/** When something is expected, and how long what it ends lasts. */
type Moment = readonly [atMs: number, span: number];

interface Release {
  /** The moment of the first request let through again, and of the last one refused. */
  readonly atMs: number;
  readonly refusedMs: number;
  /** How many were let through among the polls under way. */
  readonly passed: number;
}

/**
 * burst, wait, half a burst, the rest later, wait, burst, wait: each kind of limiter answers the second wait and
 * the third burst in its own way. What paces its releases evenly gets a second burst at another phase instead.
 */
export function* probeLimiter(limits: ProbeLimits): Plan<Probed> {
  const replies: Reply[] = [];
  const phases = { waitedFrom: Infinity, pressedFrom: Infinity };
  let cutBy: keyof ProbeLimits | undefined;
  try {
    yield* plan(limits, replies, phases);
  } catch (error) {
    if (!(error instanceof Exhausted)) throw error;
    // All that tells the kinds apart was asked before.
    if (phases.waitedFrom === Infinity) cutBy = error.limit;
  }
  const waited = replies.slice(phases.waitedFrom, phases.pressedFrom);
  const pressed = replies.slice(phases.pressedFrom);
  return {
    seen: placeReplies(replies.slice(0, phases.waitedFrom)),
    ...(waited.length > 0 ? { waited: placeReplies(waited) } : {}),
    ...(pressed.length > 0 ? { pressed: placeReplies(pressed) } : {}),
    ...(cutBy ? { cutBy } : {}),
  };
}

/** What a probe saw, from its answers in the order in which they were written down. */
export function replayProbe(replies: readonly Reply[], limits: ProbeLimits): Probed {
  const probe = probeLimiter(limits);
  let step = probe.next();
  for (let from = 0; !step.done;) {
    const to = from + step.value.count;
    if (to > replies.length) return { seen: placeReplies(replies), cutBy: 'maxSeconds' };
    step = probe.next(replies.slice(from, to));
    from = to;
  }
  return step.value;
}

function* plan(
  limits: ProbeLimits,
  replies: Reply[],
  phases: { waitedFrom: number; pressedFrom: number },
): Plan {
  let quickestMs = Infinity;
  const at = (one: Reply): number => one.sentMs + quickestMs / 2;
  const now = (): number => (replies.length === 0 ? 0 : at(replies.at(-1)!));
  /** The last one refused among those sent last. */
  let refused: Reply | undefined;
  function* send(count = 1, notBeforeMs = 0, spacingMs = 0): Plan<readonly Reply[]> {
    if (replies.length + count > limits.maxRequests) throw new Exhausted('maxRequests');
    if (Math.max(now(), notBeforeMs) > limits.maxSeconds * 1000) throw new Exhausted('maxSeconds');
    // As precise as they are written down.
    const got = (yield { notBeforeMs, count, spacingMs }).map((one) => ({
      ...one,
      rttMs: Math.round(one.rttMs * 100) / 100,
    }));
    // Of requests sent at once the order is unknown: those let through count as the earlier ones.
    got.sort((a, b) => a.sentMs - b.sentMs || Number(b.ok) - Number(a.ok));
    replies.push(...got);
    refused = got.findLast(({ ok }) => !ok);
    for (const { rttMs } of got) quickestMs = Math.min(quickestMs, rttMs);
    return got;
  }

  /** Sends growing bursts until `most` were admitted, or one is rejected after that moment; returns how many were. */
  function* burst(most = Infinity, patientUntilMs = 0): Plan<number> {
    const startedMs = now();
    const pollMs = (patientUntilMs - startedMs) / PATIENT_POLLS;
    let [passed, batch, notBeforeMs, shaped] = [0, 1, 0, 0];
    while (passed < most) {
      const left = Math.max(1, limits.maxRequests - replies.length);
      const got = yield* send(Math.min(batch, most - passed, left), notBeforeMs);
      const admitted = got.filter(({ ok }) => ok).length;
      passed += admitted;
      if (admitted === got.length) {
        batch = Math.min(LARGEST_BATCH, batch * 2);
        const slowest = largest(got.map(({ rttMs }) => rttMs));
        shaped = slowest > quickestMs + SHAPED_MS ? shaped + 1 : 0;
        if (shaped >= SHAPED_BATCHES) return passed;
        continue;
      }
      if (now() >= patientUntilMs) break;
      batch = Math.max(1, admitted);
      notBeforeMs = now() + pollMs;
    }
    return passed;
  }

  /** Polls until let through: ever further apart, and closely around the moments that are expected. */
  function* release(...expected: readonly Moment[]): Plan<Release> {
    const refusedAt = now();
    let lastMs = refusedAt;
    for (;;) {
      let gap = Math.max(FIRST_GAP_MS, (lastMs - refusedAt) * (GROWTH - 1));
      let next = lastMs + gap;
      const [atMs, span] = expected.find(([moment, width]) => lastMs < moment + 0.2 * width) ?? [];
      if (atMs !== undefined && span !== undefined) {
        const soonMs = atMs - 0.16 * span;
        // Nothing is let through before the first of them.
        if (atMs === expected[0]![0] || next > soonMs) {
          gap = Math.max(4, FINE_SHARE * span);
          next = Math.max(lastMs + gap, soonMs);
        }
      }
      // Several are under way at once where one round trip is longer than the gap.
      const ahead = Math.max(1, Math.min(POLLS_AHEAD, Math.ceil(quickestMs / gap)));
      const got = yield* send(ahead, next - quickestMs / 2, gap);
      const first = got.findIndex(({ ok }) => ok);
      if (first >= 0) {
        const refusedMs = first > 0 ? at(got[first - 1]!) : lastMs;
        return { atMs: at(got[first]!), refusedMs, passed: got.filter(({ ok }) => ok).length };
      }
      lastMs = now();
    }
  }

  const startMs = now();
  const first = yield* burst();
  if (first === 0 || !refused) return;
  const burstMs = now() - startMs;
  const one = yield* release();
  const half = Math.max(Math.min(first, 2), Math.floor(first / 2));
  // A log lets through again one by one, as they came: no faster than the first burst was. Nothing else follows at
  // once in a bucket of few.
  const pollingMs = Math.max(burstMs * 1.1, (one.atMs - startMs - burstMs) * (first < 10 ? 0.3 : 0));
  const mark = replies.length;
  const second = one.passed + (yield* burst(half - one.passed, now() + pollingMs));
  const isRefusedBetween = replies.slice(mark).some(({ ok }) => !ok);
  if (first > 1 && second < Math.max(2, half * 0.6)) {
    const paceMs = yield* evenly(first);
    yield* sitOut();
    yield* press(1000 / paceMs, PRESSED_SECONDS);
    return;
  }

  // All or much came back at once: a fixed window, or a log of moments. Half now, half later tells them apart.
  const guess = Math.max(one.atMs - startMs, 50);
  yield* send(1, one.atMs + 0.45 * guess);
  yield* burst();
  const two = yield* release();
  yield* burst(Math.ceil(first * 1.1));
  const spanMs = two.atMs - one.atMs;
  const again: Moment = [two.atMs + spanMs, spanMs];
  if (refused) yield* release([two.atMs + 0.5 * spanMs, spanMs * 0.5], again);
  yield* burst(Math.ceil(first * 0.75));
  if (refused) yield* release(again);
  // From afar a fast bucket gives back as much meanwhile as a log does.
  if (isRefusedBetween) {
    yield* burst();
    yield* evenly(first);
  }
  yield* sitOut();
  yield* press((first * 1000) / spanMs, Math.max(PRESSED_SECONDS, (2.2 * spanMs) / 1000));

  /** Sits waits out that a 429 names, with no request of ours in between; too short ones are measured. */
  function* sitOut(): Plan {
    phases.waitedFrom = replies.length;
    let waitedSeconds = 0;
    for (let waits = 0; waits < WAITS; waits += 1) {
      if (!refused) yield* burst();
      const { retryAfterSeconds } = refused ?? {};
      if (!refused || retryAfterSeconds === undefined) return;
      const readyMs = refused.sentMs + refused.rttMs + retryAfterSeconds * 1000;
      waitedSeconds += retryAfterSeconds;
      if (readyMs > limits.maxSeconds * 1000 || waitedSeconds > LONGEST_WAITS_S) return;
      const [got] = yield* send(1, readyMs + 2);
      if (!got!.ok) yield* release();
    }
  }

  /** Asks for more than it admits, whatever comes. */
  function* press(perSecond: number, seconds: number): Plan {
    if (!(perSecond > 0) || seconds > LONGEST_PRESSED_SECONDS) return;
    yield* burst();
    phases.pressedFrom = replies.length;
    const gap = 1000 / (PRESSED * perSecond);
    const untilMs = now() + seconds * 1000;
    while (now() < untilMs) yield* send(Math.max(8, Math.ceil((6 * quickestMs) / gap)), now() + gap, gap);
  }

  /** Waits for a number of releases that come one by one; the milliseconds from one to the next. */
  function* pace(wanted: number): Plan<number> {
    const fromMs = now();
    let [passed, gap] = [0, 3];
    while (passed < wanted) {
      const ahead = Math.max(1, Math.min(2 * POLLS_AHEAD, Math.ceil((1.5 * quickestMs) / gap)));
      const got = yield* send(ahead, now() + gap, gap);
      const admitted = got.filter(({ ok }) => ok).length;
      passed += admitted;
      if (admitted === 0) gap *= 1.25;
      else
        gap = Math.max(0.5, admitted === got.length && ahead > 1 ? gap / 2 : (now() - fromMs) / passed / 3);
    }
    return (now() - fromMs) / passed;
  }

  /** Releases come one by one: measure their pace, then burst again when another part of a window would be due. */
  function* evenly(allowance: number): Plan<number> {
    const emptiedMs = at(replies.find(({ ok }) => !ok)!);
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
      const { atMs } = yield* release([again + paceMs, paceMs * 2]);
      // A bucket drips on at once, at any phase; windows make one wait, and let through at a pace of their own then:
      // the first pace was another where the first burst lay across an edge.
      const waited = atMs - again > 4 * paceMs;
      yield* pace(waited ? Math.max(enough, Math.ceil(allowance / 3)) : 4);
      if (waited) return paceMs;
    }
    return paceMs;
  }
}
