/**
 * Fits each kind of limiter to the answers, by replaying the admitted requests through a model. The times of decisions
 * are uncertain, so one replay takes the most lenient times and one the strictest.
 */
import { LIMITER_KINDS, limiterModel, type LimiterSettings } from './limiter-models.ts';
import type { Observation } from './limiter-probe.ts';
import { median, smallest } from './numbers.ts';
import { type Release, releasesOf } from './quota.ts';

/** Timing uncertainty of the target's clock and queues, added to that of each answer. */
export const SLACK_MS = 3;
/** Shorter windows cannot be distinguished from none. */
const LEAST_WINDOW_MS = 250;

/** Of the search: candidates that it descends from, its first step as a share of the window, and its last step. */
const [STARTS, FIRST_STEP, LAST_STEP_MS] = [4, 0.03, 0.5];
/** Of the interval: additional misses at its ends, steps, and the most that it may differ from the best window. */
const [EXTRA_MISSES, STEP, WIDEST] = [1, 1.001, 1.25];

interface Fit {
  readonly best: LimiterSettings;
  /** Range of windows compatible with the answers; for a bucket, of the time to refill its burst. */
  readonly windowMs: readonly [low: number, high: number];
  /** Contradicting answers: of those that were fitted, and of the later ones. */
  readonly misses: number;
  readonly surprises: number;
}

interface Evaluation {
  readonly settings: LimiterSettings;
  /** Sum of the contradictions, in requests; continuous, so that a search can descend along it. */
  readonly distance: number;
  readonly misses: number;
}

function evaluate(seen: readonly Observation[], settings: LimiterSettings, stopAt = Infinity): Evaluation {
  const [lenient, strict] = [limiterModel(settings), limiterModel(settings)];
  const { limit } = settings;
  const isBucket = settings.kind === 'token-bucket';
  // For a bucket of one or two tokens, half a token would explain any answer. A full bucket rejects nothing.
  const tolerance = isBucket ? Math.min(0.4, 0.05 + limit * 0.05) : 0.49;
  const rejectionTolerance = isBucket ? Math.min(tolerance, limit - 1.001) : tolerance;
  // Continuous models tolerate uncertain times by themselves; at the edge of a window, it may be the other window.
  const edgeShift = isBucket || settings.kind === 'sliding-counter' ? 0 : 1;
  let [distance, misses] = [0, 0];
  for (const { atMs, slackMs, ok } of seen) {
    const slack = slackMs + SLACK_MS;
    const off = ok ? -lenient.spare(atMs + slack) : strict.spare(atMs - slack);
    if (off > 0) distance += off;
    if (off > (ok ? tolerance : rejectionTolerance)) misses += 1;
    if (distance > stopAt) break;
    if (!ok) continue;
    lenient.count(atMs - edgeShift * slackMs, slack);
    strict.count(atMs + edgeShift * slackMs, slack);
  }
  return { settings, distance, misses };
}

const spread = (low: number, high: number, steps: number): number[] =>
  Array.from({ length: steps }, (_, i) => low + ((high - low) * (i + 0.5)) / steps);

const geometric = (low: number, high: number, steps: number): number[] =>
  spread(Math.log(low), Math.log(high), steps).map(Math.exp);

/** Initial candidates, by figures read directly from the answers; the search descends from the best of each kind. */
function startsOf(seen: readonly Observation[], releases: readonly Release[]): LimiterSettings[] {
  const [{ refusedMs, passedMs }] = releases as [Release];
  const startMs = seen[0]!.atMs;
  // Requests admitted before the first rejection. A burst may span a window edge, and then exceeds the limit.
  const first = seen.findIndex(({ ok }) => !ok);
  const near = [first + 1, first, first - 1, first - 2];
  const burstMs = seen[first]!.atMs - startMs;
  const gaps = releases.slice(1).map((one, index) => one.passedMs - releases[index]!.passedMs);
  const paceMs = gaps.length < 3 ? undefined : median(gaps);
  // Without an even pace, the first wait is the rest of a window.
  const guessMs = paceMs === undefined ? passedMs - startMs : paceMs * first;
  const edges = [...releases].sort((a, b) => b.waitedMs - a.waitedMs).slice(0, 2);
  // After an edge, it takes time until the weighted count of the previous window has dropped by one.
  const counters = geometric(guessMs * 0.15, guessMs * 1.6, 240).flatMap((windowMs) =>
    edges.flatMap((edge) =>
      spread(edge.refusedMs - 0.04 * windowMs, edge.passedMs, 6).flatMap((edgeMs) =>
        near.map((limit): LimiterSettings => ({
          ...{ kind: 'sliding-counter', limit, windowMs, phaseMs: edgeMs % windowMs },
        })),
      ),
    ),
  );
  const admitted = (from: Release, to?: Release): number =>
    seen.filter(({ ok, atMs }) => ok && atMs >= from.passedMs && !(to && atMs >= to.passedMs)).length;
  const totals = releases.map((one, index) => admitted(one, releases[index + 1]));
  const limits = [...new Set([...near, ...totals])].filter((limit) => limit >= first / 2);
  // Two releases are one window apart, or two.
  const windows = releases
    .flatMap((from, index) => releases.slice(index + 1, index + 4).map((to) => ({ from, to })))
    .slice(0, 12)
    .flatMap(({ from, to }) => {
      const phaseMs = (to.refusedMs + to.passedMs) / 2;
      return spread(to.refusedMs - from.passedMs, to.passedMs - from.refusedMs, 3)
        .flatMap((apartMs) => [apartMs, apartMs / 2])
        .flatMap((windowMs) =>
          limits.flatMap((limit): LimiterSettings[] => [
            { kind: 'fixed-window', limit, windowMs, anchored: true },
            { kind: 'fixed-window', limit, windowMs, phaseMs },
          ]),
        );
    });
  const logs = spread(refusedMs - startMs, passedMs - startMs, 20).flatMap((windowMs) =>
    near.map((limit): LimiterSettings => ({ kind: 'sliding-log', limit, windowMs })),
  );
  const tokenMs = paceMs ?? passedMs - seen[first]!.atMs;
  const buckets = geometric(tokenMs / 3, tokenMs * 3, 36).flatMap((msPerToken) =>
    Array.from({ length: 9 }, (_, more): LimiterSettings => {
      const limit = first - Math.floor(burstMs / msPerToken) + more - 4;
      return { kind: 'token-bucket', limit, windowMs: msPerToken * limit };
    }),
  );
  return [...windows, ...counters, ...logs, ...buckets];
}

function bestStarts(seen: readonly Observation[], starts: readonly LimiterSettings[]): Evaluation[] {
  let best: Evaluation[] = [];
  for (const settings of starts) {
    if (settings.limit < 1) continue;
    const most = best.length < STARTS ? Infinity : best.at(-1)!.distance;
    const found = evaluate(seen, settings, most);
    if (found.distance < most)
      best = [...best, found].sort((a, b) => a.distance - b.distance).slice(0, STARTS);
  }
  return best;
}

/** Moves the first and the last window edge, in decreasing steps, while that reduces the distance. */
function descend(seen: readonly Observation[], start: Evaluation): Evaluation {
  const { phaseMs, windowMs } = start.settings;
  const beginMs = phaseMs ?? seen[0]!.atMs;
  const windows = Math.max(1, Math.round(seen.at(-1)!.atMs / windowMs));
  const directions = DIRECTIONS.filter(([first]) => phaseMs !== undefined || first === 0);
  let [found, edges] = [start, [beginMs, beginMs + windows * windowMs] as [number, number]];
  for (let step = windowMs * FIRST_STEP; step > LAST_STEP_MS && found.distance > 0; step /= 2) {
    for (let moved = true; moved;) {
      moved = false;
      for (const [first, last] of directions) {
        const next: [number, number] = [edges[0] + first * step, edges[1] + last * step];
        const longer = { ...start.settings, windowMs: (next[1] - next[0]) / windows };
        const settings = phaseMs === undefined ? longer : { ...longer, phaseMs: next[0] };
        const there = evaluate(seen, settings, found.distance);
        if (there.distance < found.distance) [found, edges, moved] = [there, next, true];
      }
    }
  }
  return found;
}

const DIRECTIONS = [-1, 0, 1]
  .flatMap((first) => [-1, 0, 1].map((last) => [first, last] as const))
  .filter(([first, last]) => first !== 0 || last !== 0);

/** Range of windows with at most `misses` misses; the window edge in the middle of the probe stays fixed. */
function windowsBetween(
  seen: readonly Observation[],
  settings: LimiterSettings,
  misses: number,
): readonly [number, number] {
  const { phaseMs, windowMs } = settings;
  const middleMs = (seen[0]!.atMs + seen.at(-1)!.atMs) / 2;
  const edgeMs = phaseMs !== undefined && phaseMs + Math.round((middleMs - phaseMs) / windowMs) * windowMs;
  const furthest = (step: number): number => {
    let ms = windowMs;
    const explains = (): boolean => {
      const phase = edgeMs === false ? {} : { phaseMs: edgeMs % (ms * step) };
      return evaluate(seen, { ...settings, windowMs: ms * step, ...phase }).misses <= misses;
    };
    while (Math.abs(Math.log(ms / windowMs)) < Math.log(WIDEST) && explains()) ms *= step;
    return ms * step;
  };
  return [furthest(1 / STEP), furthest(STEP)];
}

/** `all` also contains the answers after those that are fitted. */
function fit(
  seen: readonly Observation[],
  all: readonly Observation[],
  starts: readonly LimiterSettings[],
): Fit | undefined {
  const found = bestStarts(seen, starts).map((start) => descend(seen, start));
  const least = smallest(found.map(({ distance }) => distance));
  // Of several equally good candidates, the one that predicts the later answers best.
  const [best] = found
    .filter(({ distance }) => distance === least)
    .map((one) => ({ ...one, later: evaluate(all, one.settings).distance }))
    .sort((a, b) => a.later - b.later);
  if (!best || best.settings.windowMs < LEAST_WINDOW_MS) return undefined;
  const { settings, misses } = best;
  const [shortest, longest] = windowsBetween(seen, settings, misses);
  return {
    best: { ...settings, windowMs: (shortest + longest) / 2 },
    windowMs: windowsBetween(seen, settings, misses + EXTRA_MISSES),
    misses,
    // The window may still be corrected, as its error adds up.
    surprises: Math.max(0, descend(all, evaluate(all, settings)).misses - misses),
  };
}

/** The best fit of each kind to `seen`; empty if no request was admitted after a rejection. */
export function fitAll(seen: readonly Observation[], all: readonly Observation[]): Fit[] {
  const releases = releasesOf(seen);
  if (!releases[0]) return [];
  const starts = startsOf(seen, releases);
  return LIMITER_KINDS.flatMap((kind) => {
    const ofKind = starts.filter((one) => one.kind === kind);
    const apart = [undefined, true].map((anchored) => ofKind.filter((one) => one.anchored === anchored));
    const fits = apart.flatMap((some) => fit(seen, all, some) ?? []);
    return fits.sort((a, b) => a.misses - b.misses || a.surprises - b.surprises).slice(0, 1);
  });
}
