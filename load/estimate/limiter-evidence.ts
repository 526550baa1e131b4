/**
 * Would this limiter have answered so? Each kind's definition, read with the uncertainty of every answer's moment: as
 * a count of answers at odds with it, and as a distance that a search can descend along.
 */
import type { LimiterKind } from './limiter-models.ts';
import type { Observation } from './limiter-probe.ts';

/** Settings of one kind, all in milliseconds. */
export interface Candidate {
  readonly kind: LimiterKind;
  readonly limit: number;
  readonly windowMs: number;
  /** Where windows begin; `anchored` windows begin with the first request after the one before is over. */
  readonly phaseMs?: number;
  readonly anchored?: boolean;
}

/** Beyond what each answer's own uncertainty is: clocks and queues of the target. */
export const SLACK_MS = 3;
/** The answers, and the moments of those let through, side by side: as they are placed, and as they may have been. */
export interface Evidence {
  readonly seen: readonly Observation[];
  readonly passed: Float64Array;
  readonly earliest: Float64Array;
  readonly latest: Float64Array;
}

export function evidenceOf(seen: readonly Observation[]): Evidence {
  const through = seen.filter(({ ok }) => ok);
  const moments = (give: number): Float64Array =>
    Float64Array.from(through.map(({ atMs, slackMs }) => atMs + give * slackMs)).sort();
  return { seen, passed: moments(0), earliest: moments(-1), latest: moments(1) };
}

/** How many answers the settings contradict: let through where they would refuse, or the other way round. */
export function countMisses(evidence: Evidence, settings: Candidate, stopAt: number): number {
  const admits = admission(settings);
  let misses = 0;
  let before = 0;
  for (const { atMs, slackMs, ok } of evidence.seen) {
    const slack = slackMs + SLACK_MS;
    // The decision is taken as the target took it, so that one miss does not breed others.
    if (ok ? !admits(evidence, before, atMs, slack) : admits(evidence, before, atMs, -slack)) {
      misses += 1;
      if (misses > stopAt) return misses;
    }
    if (ok) before += 1;
  }
  return misses;
}

/**
 * Whether a request would be let through after the first `before` of those passed, in the kindest reading of the
 * moments (slack > 0) or the strictest (slack < 0).
 */
type Admits = (evidence: Evidence, before: number, atMs: number, slack: number) => boolean;

function admission(settings: Candidate): Admits {
  switch (settings.kind) {
    case 'fixed-window':
      return settings.anchored ? anchoredWindow(settings) : fixedWindow(settings);
    case 'sliding-log':
      // What it counts from is as uncertain as what it decides on.
      return ({ earliest, latest }, before, atMs, slack) =>
        before < settings.limit ||
        (slack > 0 ? earliest : latest)[before - settings.limit]! <= atMs + slack - settings.windowMs;
    case 'sliding-counter':
      return slidingCounter(settings);
    case 'token-bucket':
      return tokenBucket(settings);
  }
}

/** How many of the first `before` lie before the moment. */
function earlier(passed: Float64Array, before: number, atMs: number): number {
  let [low, high] = [0, before];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (passed[middle]! < atMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

function fixedWindow({ limit, windowMs, phaseMs = 0 }: Candidate): Admits {
  const startOf = (atMs: number): number => Math.floor((atMs - phaseMs) / windowMs) * windowMs + phaseMs;
  return ({ passed }, before, atMs, slack) => {
    // Near an edge either window may be meant, for the request and for those before it.
    const width = Math.abs(slack);
    const room = (start: number): boolean => before - earlier(passed, before, start + slack) < limit;
    const [early, late] = [startOf(atMs - width), startOf(atMs + width)];
    if (early === late) return room(early);
    return slack > 0 ? room(early) || room(late) : room(early) && room(late);
  };
}

function anchoredWindow({ limit, windowMs }: Candidate): Admits {
  let [done, startMs, count] = [0, -Infinity, 0];
  return ({ passed }, before, atMs, slack) => {
    for (; done < before; done += 1) {
      const each = passed[done]!;
      if (each >= startMs + windowMs || (count >= limit && each >= startMs + windowMs - Math.abs(slack))) {
        [startMs, count] = [each, 0];
      }
      count += 1;
    }
    return atMs + slack >= startMs + windowMs || count < limit;
  };
}

/** How many requests more two weighted counters would let through: the kindest and the strictest reading of the moment. */
function counterRoom({ limit, windowMs, phaseMs = 0 }: Candidate) {
  const room = (passed: Float64Array, before: number, atMs: number): number => {
    const start = Math.floor((atMs - phaseMs) / windowMs) * windowMs + phaseMs;
    const current = earlier(passed, before, start);
    const last = current - earlier(passed, current, start - windowMs);
    return limit - (last * (1 - (atMs - start) / windowMs) + (before - current) + 1);
  };
  return (passed: Float64Array, before: number, atMs: number, slack: number): number => {
    const [one, other] = [room(passed, before, atMs + slack), room(passed, before, atMs)];
    return slack > 0 ? Math.max(one, other) : Math.min(one, other);
  };
}

function slidingCounter(settings: Candidate): Admits {
  const room = counterRoom(settings);
  // Half a request of room either way: where a count stood near an edge its window is uncertain.
  return ({ passed }, before, atMs, slack) =>
    slack > 0 ? room(passed, before, atMs, slack) >= -0.5 : room(passed, before, atMs, slack) >= 0.5;
}

/** By how many requests the answers and the settings are at odds, in all: what a search can descend along. */
export function counterDistance({ seen, passed }: Evidence, settings: Candidate, stopAt: number): number {
  const room = counterRoom(settings);
  let [distance, before] = [0, 0];
  for (const { atMs, slackMs, ok } of seen) {
    const slack = slackMs + SLACK_MS;
    const off = ok ? -room(passed, before, atMs, slack) : room(passed, before, atMs, -slack);
    // One answer at odds with everything must not outweigh the others.
    if (off > 0) distance += Math.min(off, 5);
    if (distance > stopAt) return distance;
    if (ok) before += 1;
  }
  return distance;
}

/** How many tokens a bucket holds at a moment. State is kept from call to call: the list only grows. */
function bucketTokens({ limit, windowMs }: Candidate) {
  const msPerToken = windowMs / limit;
  let [done, tokens, lastMs] = [0, limit, 0];
  return (passed: Float64Array, before: number, atMs: number): number => {
    for (; done < before; done += 1) {
      // What was let through was let through: the state follows it.
      tokens = Math.max(-0.5, Math.min(limit, tokens + (passed[done]! - lastMs) / msPerToken) - 1);
      lastMs = passed[done]!;
    }
    return Math.min(limit, tokens + (atMs - lastMs) / msPerToken);
  };
}

function tokenBucket(settings: Candidate): Admits {
  const tokens = bucketTokens(settings);
  // In a bucket of one or two, half a token either way would explain anything.
  const either = Math.min(0.4, 0.05 + settings.limit * 0.05);
  // A full bucket refuses nothing.
  const most = Math.min(1 + either, settings.limit - 0.001);
  return ({ passed }, before, atMs, slack) =>
    tokens(passed, before, atMs + slack) >= (slack > 0 ? 1 - either : most);
}

/** By how many tokens the answers and the settings are at odds, in all. */
export function bucketDistance({ seen, passed }: Evidence, settings: Candidate, stopAt: number): number {
  const tokens = bucketTokens(settings);
  let [distance, before] = [0, 0];
  for (const { atMs, slackMs, ok } of seen) {
    const slack = slackMs + SLACK_MS;
    const off = ok ? 1 - tokens(passed, before, atMs + slack) : tokens(passed, before, atMs - slack) - 1;
    if (off > 0) distance += Math.min(off, 5);
    if (distance > stopAt) return distance;
    if (ok) before += 1;
  }
  return distance;
}
