/**
 * The plan of a probe that identifies a rate limiter with few requests. It decides what to send and when; a function
 * sends it, so that k6 can run the probe against a target and tests against a simulated limiter.
 */
import { ascending, largest, quantile, smallest, sum } from './numbers.ts';

export const PROBE = {
  /** Growth factor of the gaps between polls, and the gap as a share of the wait where that is known. */
  growth: 1.13,
  fineShare: 0.02,
  /** Maximum number of concurrent requests in a burst. */
  largestBatch: 50,
  /** Delay over the quickest answer, and the number of successive batches with it, that show a shaper. */
  shapedMs: 240,
  shapedBatches: 3,
  /** Number of Retry-After waits that are waited out without a request in between. */
  waits: 5,
  /** Constant overload, relative to the admitted rate, and its least duration. */
  overload: 2,
  overloadSeconds: 5,
};

/** An answer as the client saw it. Times in milliseconds since the start of the probe. */
export interface Reply {
  readonly sentMs: number;
  readonly rttMs: number;
  readonly ok: boolean;
  readonly retryAfterSeconds?: number | undefined;
}

export interface Observation extends Reply {
  /** Estimated time of the target's decision, ± slackMs, with an error of up to half a round trip common to all. */
  readonly atMs: number;
  readonly slackMs: number;
}

/** Send `count` requests, spacingMs apart, not before notBeforeMs. */
export type Ask = Readonly<Record<'notBeforeMs' | 'count' | 'spacingMs', number>>;

/** More frequent polls would load the target. */
const LEAST_GAP_MS = 4;
/** The quantile of a batch that is compared with the quickest answer. */
const SHAPED_SHARE = 0.8;
/** The first requests, of few at a time, and single ones at the end that are compared with them. */
const [FIRST, SINGLE] = [7, 2];
/** Half the resolution of a clock that counts whole milliseconds. */
const CLOCK_MS = 0.5;

/**
 * Estimates when the target decided each request. The shortest round trip, for admitted and rejected requests each, is
 * taken as constant; only the excess over it is uncertain. So a constant 80 ms is as precise as a constant 1 ms.
 */
function placeReplies(replies: readonly Reply[]): Observation[] {
  const least = (ok: boolean): number =>
    smallest(replies.filter((one) => one.ok === ok).map(({ rttMs }) => rttMs));
  const bases = { ok: least(true), refused: least(false) };
  const transitMs = Math.min(bases.ok, bases.refused) / 2;
  const placed = replies.map((reply): Observation => {
    const slackMs = (reply.rttMs - (reply.ok ? bases.ok : bases.refused)) / 2 + CLOCK_MS;
    return { ...reply, atMs: reply.sentMs + transitMs + slackMs, slackMs };
  });
  placed.sort((a, b) => a.sentMs - b.sentMs);
  const observations: Observation[] = [];
  for (let [from, to] = [0, 1]; from < placed.length; to += 1) {
    if (to < placed.length && placed[to]!.sentMs - placed[to - 1]!.sentMs <= SIMULTANEOUS_MS) continue;
    observations.push(...mergeSimultaneous(placed.slice(from, to)));
    from = to;
  }
  return observations.sort((a, b) => a.atMs - b.atMs);
}

/** Requests in a series of gaps of at most one unit of the clock may arrive in any order. */
const SIMULTANEOUS_MS = 1;

/** Gives simultaneous requests, whose order is unknown, one common time; admitted ones come first. */
function mergeSimultaneous(group: readonly Observation[]): Observation[] {
  if (group.length === 1) return [...group];
  const first = smallest(group.map((one) => one.atMs - one.slackMs));
  const last = largest(group.map((one) => one.atMs + one.slackMs));
  const atMs = sum(group.map((one) => one.atMs)) / group.length;
  const slackMs = Math.max(1, (last - first) / 2);
  return [...group].sort((a, b) => Number(b.ok) - Number(a.ok)).map((one) => ({ ...one, atMs, slackMs }));
}

export type ProbeLimits = Readonly<Record<'maxRequests' | 'maxSeconds', number>>;

/** Limits, so that a probe ends soon: total length of Retry-After waits, and length of the overload. */
const LONGEST_WAITS_S = 60;
const LONGEST_OVERLOAD_S = 30;

/** Observations of a probe by phase, and the limit that ended it early. */
export interface Probed {
  readonly seen: readonly Observation[];
  /** While Retry-After was waited out; no evidence of the kind. */
  readonly waited?: readonly Observation[] | undefined;
  /** Under constant overload, from the first rejection on: gives the long-run rate of any kind. */
  readonly pressed?: readonly Observation[] | undefined;
  readonly cutBy?: keyof ProbeLimits | undefined;
  /** Whether, without a rejection, single requests at the end were late: a busy server is idle by then. */
  readonly isLate?: boolean;
}

class Exhausted extends Error {
  constructor(readonly limit: keyof ProbeLimits) {
    super(limit);
  }
}

/** An expected time, and the length of the interval that ends there. */
type Moment = readonly [atMs: number, span: number];

/**
 * Burst, wait, half a burst, the rest later, wait, burst, wait: the second wait and the third burst differ between the
 * kinds of limiter. A limiter that refills at an even pace gets a second burst at another phase instead.
 */
export async function probeLimiter(
  limits: ProbeLimits,
  ask: (what: Ask) => Promise<readonly Reply[]>,
): Promise<Probed> {
  const replies: Reply[] = [];
  let [waitedFrom, pressedFrom, quickestMs] = [Infinity, Infinity, Infinity];
  /** The last rejected reply of the latest batch. */
  let refused: Reply | undefined;
  const at = (one: Reply): number => one.sentMs + quickestMs / 2;
  const now = (): number => (replies.length === 0 ? 0 : at(replies.at(-1)!));
  /** The number of requests that are in flight for this many round trips. */
  const inFlight = (gap: number, roundTrips: number): number =>
    Math.max(1, Math.min(PROBE.largestBatch, Math.ceil((roundTrips * quickestMs) / gap)));

  let cutBy: keyof ProbeLimits | undefined;
  try {
    await distinguish();
  } catch (error) {
    if (!(error instanceof Exhausted)) throw error;
    // Everything that distinguishes the kinds was sent before this phase.
    if (waitedFrom === Infinity) cutBy = error.limit;
  }
  const alone = async (): Promise<readonly Reply[]> => ask({ notBeforeMs: 0, count: 1, spacingMs: 0 });
  const single = replies.every(({ ok }) => ok) ? [...(await alone()), ...(await alone())] : [];
  const lateMs = largest(replies.slice(0, FIRST).map(({ rttMs }) => rttMs)) + PROBE.shapedMs;
  return {
    isLate: single.length > 0 && single.every(({ ok, rttMs }) => ok && rttMs > lateMs),
    seen: placeReplies(replies.slice(0, waitedFrom)),
    waited: placeReplies(replies.slice(waitedFrom, pressedFrom)),
    pressed: placeReplies(replies.slice(pressedFrom)),
    cutBy,
  };

  async function distinguish(): Promise<void> {
    const startMs = now();
    const first = await burst();
    if (first === 0 || !refused) return;
    const burstMs = now() - startMs;
    const one = await release();
    const half = Math.max(Math.min(first, 2), Math.floor(first / 2));
    // A sliding log admits again one by one, at the pace of the first burst. A small bucket refills slowly.
    const pollingMs = Math.max(burstMs * 1.1, (one.atMs - startMs - burstMs) * (first < 10 ? 0.3 : 0));
    const mark = replies.length;
    const second = one.passed + (await burst(half - one.passed, now() + pollingMs));
    const isRefusedBetween = replies.slice(mark).some(({ ok }) => !ok);
    if (first > 1 && second < Math.max(2, half * 0.6)) {
      const paceMs = await evenly(first);
      await waitOut();
      await overload(1000 / paceMs, PROBE.overloadSeconds);
      return;
    }

    // Most capacity returned together: a fixed window or a sliding log. Half now, half later distinguishes them.
    const guess = Math.max(one.atMs - startMs, 50);
    await send(1, one.atMs + 0.45 * guess);
    await burst();
    const two = await release();
    await burst(Math.ceil(first * 1.1));
    const spanMs = two.atMs - one.atMs;
    const again: Moment = [two.atMs + spanMs, spanMs];
    if (refused) await release([two.atMs + 0.5 * spanMs, spanMs * 0.5], again);
    await burst(Math.ceil(first * 0.75));
    if (refused) await release(again);
    // Over a long round trip, a fast bucket refills as much as a sliding log does.
    if (isRefusedBetween) {
      await burst();
      await evenly(first);
    }
    await waitOut();
    await overload((first * 1000) / spanMs, Math.max(PROBE.overloadSeconds, (2.2 * spanMs) / 1000));
  }

  async function send(count = 1, notBeforeMs = 0, spacingMs = 0): Promise<readonly Reply[]> {
    if (replies.length + count > limits.maxRequests - SINGLE) throw new Exhausted('maxRequests');
    if (Math.max(now(), notBeforeMs) > limits.maxSeconds * 1000) throw new Exhausted('maxSeconds');
    // Rounds to 0.01 ms, which keeps the record of the probe short.
    const got = (await ask({ notBeforeMs, count, spacingMs })).map((one) => ({
      ...one,
      rttMs: Math.round(one.rttMs * 100) / 100,
    }));
    // The order of simultaneous requests is unknown: admitted ones count as earlier.
    got.sort((a, b) => a.sentMs - b.sentMs || Number(b.ok) - Number(a.ok));
    replies.push(...got);
    refused = got.findLast(({ ok }) => !ok);
    for (const { rttMs } of got) quickestMs = Math.min(quickestMs, rttMs);
    return got;
  }

  /** Sends growing batches until `most` are admitted, or one is rejected after retryUntilMs. Returns the admitted. */
  async function burst(most = Infinity, retryUntilMs = 0): Promise<number> {
    const startedMs = now();
    const pollMs = (retryUntilMs - startedMs) / 12;
    let [passed, batch, notBeforeMs, shaped] = [0, 1, 0, 0];
    while (passed < most) {
      const left = Math.max(1, limits.maxRequests - SINGLE - replies.length);
      const got = await send(Math.min(batch, most - passed, left), notBeforeMs);
      const admitted = got.filter(({ ok }) => ok).length;
      passed += admitted;
      if (admitted === got.length) {
        batch = Math.min(PROBE.largestBatch, batch * 2);
        // Not the slowest: answers that take unequally long are no queue.
        const late = quantile(ascending(got.map(({ rttMs }) => rttMs)), SHAPED_SHARE);
        shaped = late > quickestMs + PROBE.shapedMs ? shaped + 1 : 0;
        if (shaped >= PROBE.shapedBatches) return passed;
        continue;
      }
      if (now() >= retryUntilMs) break;
      batch = Math.max(1, admitted);
      notBeforeMs = now() + pollMs;
    }
    return passed;
  }

  /** Polls until requests are admitted, with growing gaps, and densely around the expected times. */
  async function release(...expected: readonly Moment[]): Promise<{ atMs: number; passed: number }> {
    const refusedAt = now();
    let lastMs = refusedAt;
    for (;;) {
      let gap = Math.max(LEAST_GAP_MS, (lastMs - refusedAt) * (PROBE.growth - 1));
      let next = lastMs + gap;
      const [atMs, span] = expected.find(([moment, width]) => lastMs < moment + 0.2 * width) ?? [];
      if (atMs !== undefined && span !== undefined) {
        const soonMs = atMs - 0.16 * span;
        // Nothing is admitted before the first expected time.
        if (atMs === expected[0]![0] || next > soonMs) {
          gap = Math.max(LEAST_GAP_MS, PROBE.fineShare * span);
          next = Math.max(lastMs + gap, soonMs);
        }
      }
      // Keeps several polls in flight if a round trip is longer than the gap.
      const got = await send(inFlight(gap, 1), next - quickestMs / 2, gap);
      const passed = got.filter(({ ok }) => ok);
      if (passed[0]) return { atMs: at(passed[0]), passed: passed.length };
      lastMs = now();
    }
  }

  /** Waits out Retry-After without a request in between; measures waits that are too short. */
  async function waitOut(): Promise<void> {
    waitedFrom = replies.length;
    let waitedSeconds = 0;
    for (let waits = 0; waits < PROBE.waits; waits += 1) {
      if (!refused) await burst();
      const { retryAfterSeconds } = refused ?? {};
      if (!refused) return;
      if (retryAfterSeconds === undefined) {
        // Answers that the fit has to predict.
        await release();
        await burst();
        return;
      }
      const readyMs = refused.sentMs + refused.rttMs + retryAfterSeconds * 1000;
      waitedSeconds += retryAfterSeconds;
      if (readyMs > limits.maxSeconds * 1000 || waitedSeconds > LONGEST_WAITS_S) return;
      const [got] = await send(1, readyMs + 2);
      if (!got!.ok) await release();
    }
  }

  /** Offers a constant overload for `seconds`, whatever the replies. */
  async function overload(perSecond: number, seconds: number): Promise<void> {
    if (!(perSecond > 0) || seconds > LONGEST_OVERLOAD_S) return;
    await burst();
    pressedFrom = replies.length;
    const gap = 1000 / (PROBE.overload * perSecond);
    const untilMs = now() + seconds * 1000;
    while (now() < untilMs) await send(Math.max(8, Math.ceil((6 * quickestMs) / gap)), now() + gap, gap);
  }

  /** Polls until `wanted` requests were admitted one by one; returns the mean interval in milliseconds. */
  async function pace(wanted: number): Promise<number> {
    const fromMs = now();
    let [passed, gap] = [0, 3];
    while (passed < wanted) {
      const ahead = inFlight(gap, 1.5);
      const got = await send(ahead, now() + gap, gap);
      const admitted = got.filter(({ ok }) => ok).length;
      passed += admitted;
      if (admitted === 0) gap *= 1.25;
      else
        gap = Math.max(0.5, admitted === got.length && ahead > 1 ? gap / 2 : (now() - fromMs) / passed / 3);
    }
    return (now() - fromMs) / passed;
  }

  /** For refills one by one: measures their pace, then bursts at another phase. Returns the pace in ms. */
  async function evenly(allowance: number): Promise<number> {
    const emptiedMs = at(replies.find(({ ok }) => !ok)!);
    const enough = Math.max(10, Math.ceil(allowance / 5));
    const paceMs = await pace(enough);
    const windowMs = paceMs * allowance;
    for (const shift of [0.4, 0.7]) {
      // Idle until every kind of limiter has reset, then until the phase differs.
      const earliest = now() + 2.02 * windowMs;
      const phase = (((earliest - emptiedMs) / windowMs) % 1) - shift;
      await send(1, earliest + ((1 - phase) % 1) * windowMs);
      await burst();
      const again = now();
      const { atMs } = await release([again + paceMs, paceMs * 2]);
      // A bucket refills immediately at any phase. A window causes a wait; its pace is then measured again, as the
      // first burst may have spanned a window edge.
      const waited = atMs - again > 4 * paceMs;
      await pace(waited ? Math.max(enough, Math.ceil(allowance / 3)) : 4);
      if (waited) return paceMs;
    }
    return paceMs;
  }
}
