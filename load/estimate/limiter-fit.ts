/**
 * Which limiter would have answered as the target did: for each kind, the settings that contradict the fewest
 * answers; kinds that contradict none (almost) remain. The moments of the answers are known give or take a little.
 */
import type { LimiterKind } from './limiter-models.ts';
import type { Observation } from './limiter-probe.ts';

export interface LimiterFinding {
  readonly kind: LimiterKind | 'none-found' | 'cannot-tell';
  readonly limit?: number;
  readonly windowSeconds?: number;
  readonly burst?: number;
  readonly ratePerSecond?: number;
  /** Whether the wait that 429 named was enough; absent where none was named or none waited out. */
  readonly retryAfterHonest?: boolean;
  readonly requests: number;
  /** Other kinds that fit as well. */
  readonly alternatives: readonly LimiterKind[];
  /** Share of the answers that the kind explains, by kind. */
  readonly explained: Readonly<Partial<Record<LimiterKind, number>>>;
}

/** Settings of one kind, all in milliseconds. */
interface Candidate {
  readonly kind: LimiterKind;
  readonly limit: number;
  readonly windowMs: number;
  /** Where windows begin; `anchored` windows begin with the first request after the one before is over. */
  readonly phaseMs?: number;
  readonly anchored?: boolean;
}

/** Answers more at odds with a kind than this share rule it out. */
const TOLERATED = 0.012;
/** Beyond what each answer's own uncertainty is: clocks and queues of the target. */
const SLACK_MS = 3;
/** A shorter window can't be told from none at this precision. */
const LEAST_WINDOW_MS = 50;

export function identifyLimiter(seen: readonly Observation[]): LimiterFinding {
  const requests = seen.length;
  const honest = honesty(seen);
  const common = { requests, ...(honest === undefined ? {} : { retryAfterHonest: honest }) };
  if (seen.every(({ ok }) => ok)) return { kind: 'none-found', alternatives: [], explained: {}, ...common };

  const fits = [fitFixed(seen), fitLog(seen), fitBucket(seen), fitCounter(seen)].flatMap((fit) => fit ?? []);
  const explained = Object.fromEntries(fits.map((fit) => [fit.best.kind, 1 - fit.misses / requests]));
  const least = Math.min(...fits.map((fit) => fit.misses));
  // Within a few answers of the best: noise can make one kind miss an answer that it did give.
  const remaining = fits
    .filter((fit) => fit.misses <= TOLERATED * requests + 1 && fit.misses <= least + 2)
    .sort((a, b) => a.misses - b.misses);
  const winner = remaining[0];
  if (!winner) return { kind: 'cannot-tell', alternatives: [], explained, ...common };
  const alternatives = remaining.slice(1).map((fit) => fit.best.kind);
  const { kind, limit, windowMs } = winner.best;
  // Equally good fits of different kinds: no answer told them apart.
  const tied = remaining.length > 1 && remaining[1]!.misses === winner.misses;
  const figures =
    kind === 'token-bucket'
      ? { burst: limit, ratePerSecond: round((limit * 1000) / windowMs) }
      : { limit, windowSeconds: round(windowMs / 1000) };
  return tied
    ? { kind: 'cannot-tell', ...figures, alternatives: [kind, ...alternatives], explained, ...common }
    : { kind, ...figures, alternatives, explained, ...common };
}

const round = (value: number): number => Number(value.toPrecision(4));

interface Fit {
  readonly best: Candidate;
  readonly misses: number;
}

/** The answers, and the moments of those let through, side by side. */
interface Evidence {
  readonly seen: readonly Observation[];
  readonly passed: Float64Array;
}

const evidenceOf = (seen: readonly Observation[]): Evidence => ({
  seen,
  passed: Float64Array.from(seen.filter(({ ok }) => ok).map(({ atMs }) => atMs)),
});

/** How many answers the settings contradict: let through where they would refuse, or the other way round. */
function countMisses({ seen, passed }: Evidence, settings: Candidate, stopAt: number): number {
  const admits = admission(settings);
  let misses = 0;
  let before = 0;
  for (const { atMs, slackMs, ok } of seen) {
    const slack = slackMs + SLACK_MS;
    // The decision is taken as the target took it, so that one miss does not breed others.
    if (ok ? !admits(passed, before, atMs, slack) : admits(passed, before, atMs, -slack)) {
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
type Admits = (passed: Float64Array, before: number, atMs: number, slack: number) => boolean;

function admission(settings: Candidate): Admits {
  switch (settings.kind) {
    case 'fixed-window':
      return settings.anchored ? anchoredWindow(settings) : fixedWindow(settings);
    case 'sliding-log':
      return (passed, before, atMs, slack) =>
        before < settings.limit || passed[before - settings.limit]! <= atMs + slack - settings.windowMs;
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
  return (passed, before, atMs, slack) => {
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
  return (passed, before, atMs, slack) => {
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

function slidingCounter({ limit, windowMs, phaseMs = 0 }: Candidate): Admits {
  const room = (passed: Float64Array, before: number, atMs: number): number => {
    const start = Math.floor((atMs - phaseMs) / windowMs) * windowMs + phaseMs;
    const current = earlier(passed, before, start);
    const last = current - earlier(passed, current, start - windowMs);
    return limit - (last * (1 - (atMs - start) / windowMs) + (before - current) + 1);
  };
  // Half a request of room either way: where a count stood near an edge its window is uncertain.
  return (passed, before, atMs, slack) => {
    const [one, other] = [room(passed, before, atMs + slack), room(passed, before, atMs)];
    return slack > 0 ? Math.max(one, other) >= -0.5 : Math.min(one, other) >= 0.5;
  };
}

function tokenBucket({ limit, windowMs }: Candidate): Admits {
  const msPerToken = windowMs / limit;
  // State at the last request let through, kept from call to call: the list only grows.
  let [done, tokens, lastMs] = [0, limit, 0];
  return (passed, before, atMs, slack) => {
    for (; done < before; done += 1) {
      // What was let through was let through: the state follows it.
      tokens = Math.max(-0.5, Math.min(limit, tokens + (passed[done]! - lastMs) / msPerToken) - 1);
      lastMs = passed[done]!;
    }
    const now = Math.min(limit, tokens + (atMs + slack - lastMs) / msPerToken);
    return slack > 0 ? now >= 0.6 : now >= 1.4;
  };
}

/** Runs of requests that were let through between refusals, and the moments of change. */
function shapeOf(seen: readonly Observation[]): {
  runs: number[];
  releases: { refusedMs: number; passedMs: number }[];
} {
  const runs: number[] = [];
  const releases: { refusedMs: number; passedMs: number }[] = [];
  let run = 0;
  for (const [index, { ok, atMs }] of seen.entries()) {
    const before = seen[index - 1];
    if (ok && before && !before.ok) releases.push({ refusedMs: before.atMs, passedMs: atMs });
    if (ok) run += 1;
    else if (run > 0) {
      runs.push(run);
      run = 0;
    }
  }
  if (run > 0) runs.push(run);
  return { runs, releases };
}

/** Tries all candidates; the figure is the middle of those that do equally well. */
function best(seen: readonly Observation[], candidates: Iterable<Candidate>): Fit | undefined {
  const evidence = evidenceOf(seen);
  let misses = Infinity;
  let equal: Candidate[] = [];
  for (const candidate of candidates) {
    const found = countMisses(evidence, candidate, misses);
    if (found > misses) continue;
    if (found < misses) [misses, equal] = [found, []];
    equal.push(candidate);
  }
  if (equal.length === 0) return undefined;
  const middle = (values: number[]): number => {
    const sorted = values.sort((a, b) => a - b);
    return (sorted[0]! + sorted.at(-1)!) / 2;
  };
  const limits = equal.map((one) => one.limit).sort((a, b) => a - b);
  const limit = limits[limits.length >> 1]!;
  const same = equal.filter((one) => one.limit === limit);
  return { best: { ...same[0]!, limit, windowMs: middle(same.map((one) => one.windowMs)) }, misses };
}

const spread = (low: number, high: number, steps: number): number[] =>
  Array.from({ length: steps }, (_, i) => low + ((high - low) * (i + 0.5)) / steps);

/** Limits worth trying: the lengths of the runs and their neighbours. */
function limitsAround(values: readonly number[], width = 2): number[] {
  const set = new Set<number>();
  for (const value of values) for (let d = -width; d <= width; d += 1) if (value + d > 0) set.add(value + d);
  return [...set];
}

function fitFixed(seen: readonly Observation[]): Fit | undefined {
  const { releases } = shapeOf(seen);
  const total: number[] = [];
  // Within one window passes a whole limit, spread over runs: sums between releases that follow each other.
  for (let from = 0; from < releases.length; from += 1) {
    for (let to = from + 1; to <= Math.min(releases.length, from + 3); to += 1) {
      const [start, end] = [releases[from]!.passedMs, releases[to]?.passedMs ?? Infinity];
      total.push(seen.filter(({ ok, atMs }) => ok && atMs >= start && atMs < end).length);
    }
  }
  total.push(seen.findIndex(({ ok }) => !ok));
  // A first run may lie across an edge and hold two limits, never more.
  const least = seen.findIndex(({ ok }) => !ok) / 2 - 1;
  const limits = [...new Set(total)].filter((value) => value > 0 && value >= least);
  const candidates: Candidate[] = [];
  for (const [low, high, edge] of spans(releases)) {
    for (const windowMs of spread(low, high, 12)) {
      for (const limit of limits) {
        candidates.push({ kind: 'fixed-window', limit, windowMs, anchored: true });
        for (const phaseMs of spread(edge.refusedMs, edge.passedMs, 6)) {
          candidates.push({ kind: 'fixed-window', limit, windowMs, phaseMs });
        }
      }
    }
  }
  return best(seen, candidates);
}

type Edge = { refusedMs: number; passedMs: number };

/** Lengths that a window may have: from one release to a later one, both known within a gap. */
function spans(releases: readonly Edge[]): [low: number, high: number, edge: Edge][] {
  const found: [number, number, Edge][] = [];
  for (const [i, one] of releases.entries()) {
    for (const other of releases.slice(i + 1, i + 4)) {
      for (const windows of [1, 2]) {
        const low = (other.refusedMs - one.passedMs) / windows;
        if (low > LEAST_WINDOW_MS) found.push([low, (other.passedMs - one.refusedMs) / windows, other]);
      }
    }
  }
  return found.slice(0, 24);
}

function fitLog(seen: readonly Observation[]): Fit | undefined {
  const firstRefused = seen.findIndex(({ ok }) => !ok);
  const { releases } = shapeOf(seen);
  if (!releases[0]) return undefined;
  const startMs = seen[0]!.atMs;
  const coarse = [...spread(releases[0].refusedMs - startMs, releases[0].passedMs - startMs, 60)];
  const candidates = limitsAround([firstRefused], 1).flatMap((limit) =>
    coarse.map((windowMs): Candidate => ({ kind: 'sliding-log', limit, windowMs })),
  );
  return best(seen, candidates);
}

/** Releases a second over the stretch where they came one by one. */
function paceMs(seen: readonly Observation[]): number | undefined {
  const { releases } = shapeOf(seen);
  if (releases.length < 4) return undefined;
  const gaps = releases.slice(1).map((one, i) => one.passedMs - releases[i]!.passedMs);
  const sorted = [...gaps].sort((a, b) => a - b);
  return sorted[sorted.length >> 1];
}

function fitBucket(seen: readonly Observation[]): Fit | undefined {
  const firstRefused = seen.findIndex(({ ok }) => !ok);
  const burstMs = seen[firstRefused]!.atMs - seen[0]!.atMs;
  const { releases } = shapeOf(seen);
  if (!releases[0]) return undefined;
  const around = paceMs(seen) ?? releases[0].passedMs - seen[firstRefused]!.atMs;
  const candidates = spread(around * 0.6, around * 1.5, 90).flatMap((msPerToken) =>
    limitsAround([firstRefused - Math.floor(burstMs / msPerToken)], 2).map((limit): Candidate => ({
      kind: 'token-bucket',
      limit,
      windowMs: msPerToken * limit,
    })),
  );
  return best(seen, candidates);
}

function fitCounter(seen: readonly Observation[]): Fit | undefined {
  const firstRefused = seen.findIndex(({ ok }) => !ok);
  const { releases } = shapeOf(seen);
  const pace = paceMs(seen) ?? (releases[0] ? releases[0].passedMs - seen[0]!.atMs : undefined);
  if (pace === undefined) return undefined;
  const candidates: Candidate[] = [];
  for (const limit of limitsAround([firstRefused], 1)) {
    const scale = paceMs(seen) === undefined ? 1 : limit;
    for (const windowMs of spread(pace * scale * 0.7, pace * scale * 1.4, 36)) {
      for (const share of spread(0, 1, 40)) {
        candidates.push({ kind: 'sliding-counter', limit, windowMs, phaseMs: share * windowMs });
      }
    }
  }
  const rough = best(seen, candidates);
  if (!rough) return undefined;
  const finer: Candidate[] = [];
  const { windowMs, phaseMs = 0, limit } = rough.best;
  for (const width of spread(windowMs * 0.95, windowMs * 1.05, 25)) {
    for (const phase of spread(phaseMs - 0.04 * windowMs, phaseMs + 0.04 * windowMs, 13)) {
      finer.push({ kind: 'sliding-counter', limit, windowMs: width, phaseMs: phase });
    }
  }
  const fine = best(seen, finer);
  return fine && fine.misses <= rough.misses ? fine : rough;
}

/** Whether a request after the named wait was let through, as far as no other request came in between. */
function honesty(seen: readonly Observation[]): boolean | undefined {
  let waited: boolean | undefined;
  for (const [index, refused] of seen.entries()) {
    if (refused.ok || refused.retryAfterSeconds === undefined) continue;
    const readyMs = refused.atMs + refused.retryAfterSeconds * 1000 + refused.slackMs + SLACK_MS;
    for (const later of seen.slice(index + 1)) {
      if (later.ok) {
        // It was let through no later than it was told to wait.
        if (later.atMs <= readyMs + 1) waited ??= true;
        break;
      }
      if (later.atMs - later.slackMs > readyMs + SLACK_MS) return false;
    }
  }
  return waited;
}
