/**
 * The settings of each kind of limiter that are least at odds with the answers. What was admitted is replayed through a
 * limiter of the kind; no answer's moment is certain, so that one replay is the kindest reading of all, one the strictest.
 */
import { limiterModel, type LimiterSettings } from './limiter-models.ts';
import type { Observation } from './limiter-probe.ts';
import { median } from './numbers.ts';
import { type Release, releasesOf } from './quota.ts';

/** Beyond what each answer's own uncertainty is: clocks and queues of the target. */
export const SLACK_MS = 3;
/** A shorter window can't be told from none at this precision. */
const LEAST_WINDOW_MS = 50;
/** One answer at odds with everything must not outweigh the others. */
const MOST_OFF = 5;

interface Fit {
  readonly best: LimiterSettings;
  /** The shortest and the longest window, for a bucket the time that its burst takes, that the answers leave possible. */
  readonly windowMs: readonly [low: number, high: number];
  readonly misses: number;
}

interface AtOdds {
  readonly settings: LimiterSettings;
  /** By how many requests the answers and the settings are at odds in all: a search can descend along it. */
  readonly distance: number;
  /** How many answers contradict the settings. */
  readonly misses: number;
}

function atOdds(seen: readonly Observation[], settings: LimiterSettings, stopAt = Infinity): AtOdds {
  const [kind, strict] = [limiterModel(settings), limiterModel(settings)];
  const { limit } = settings;
  const isBucket = settings.kind === 'token-bucket';
  // In a bucket of one or two, half a token either way would explain anything; a full one refuses nothing.
  const either = isBucket ? Math.min(0.4, 0.05 + limit * 0.05) : 0.49;
  const least = isBucket ? Math.min(either, limit - 1.001) : either;
  // What fades evenly forgives a moment's uncertainty by itself; where a window ends, it may be another window.
  const give = isBucket || settings.kind === 'sliding-counter' ? 0 : 1;
  let [distance, misses] = [0, 0];
  for (const { atMs, slackMs, ok } of seen) {
    const slack = slackMs + SLACK_MS;
    const off = ok ? -kind.spare(atMs + slack) : strict.spare(atMs - slack);
    if (off > 0) distance += Math.min(off, MOST_OFF);
    if (off > (ok ? either : least)) misses += 1;
    if (distance > stopAt) break;
    if (!ok) continue;
    kind.count(atMs - give * slackMs);
    strict.count(atMs + give * slackMs);
  }
  return { settings, distance, misses };
}

const spread = (low: number, high: number, steps: number): number[] =>
  Array.from({ length: steps }, (_, i) => low + ((high - low) * (i + 0.5)) / steps);

const geometric = (low: number, high: number, steps: number): number[] =>
  spread(Math.log(low), Math.log(high), steps).map(Math.exp);

/** What the answers say at once: enough to know where to search. */
interface Hints {
  readonly seen: readonly Observation[];
  readonly releases: readonly Release[];
  /** Admitted before the first refusal, and since when. */
  readonly first: number;
  readonly startMs: number;
  /** From one release to the next, in the middle; undefined where there are few. */
  readonly paceMs: number | undefined;
}

/** Settings worth a look; the best of them are the places from which the search descends. */
const STARTS: readonly ((hints: Hints) => LimiterSettings[])[] = [
  ({ seen, releases, first }) => {
    // Within one window passes a whole limit, spread over runs: sums between releases that follow each other.
    const passed = (fromMs: number, toMs: number): number =>
      seen.filter(({ ok, atMs }) => ok && atMs >= fromMs && atMs < toMs).length;
    const totals = releases.flatMap(({ passedMs }, from) =>
      [1, 2, 3].map((to) => passed(passedMs, releases[from + to]?.passedMs ?? Infinity)),
    );
    // A first run may lie across an edge and hold two limits, never more.
    const limits = [...new Set([first, ...totals])].filter((limit) => limit > 0 && limit >= first / 2 - 1);
    const windows = releases.flatMap((one, from) =>
      releases.slice(from + 1, from + 4).flatMap((other) =>
        [1, 2].flatMap((times) => {
          const low = (other.refusedMs - one.passedMs) / times;
          return low > LEAST_WINDOW_MS
            ? [{ low, high: (other.passedMs - one.refusedMs) / times, other }]
            : [];
        }),
      ),
    );
    return windows
      .slice(0, 12)
      .flatMap(({ low, high, other }) =>
        spread(low, high, 3).flatMap((windowMs) =>
          limits.flatMap((limit): LimiterSettings[] => [
            { kind: 'fixed-window', limit, windowMs, anchored: true },
            ...spread(other.refusedMs, other.passedMs, 2).map(
              (phaseMs) => ({ kind: 'fixed-window', limit, windowMs, phaseMs }) as const,
            ),
          ]),
        ),
      );
  },
  ({ releases: [release], first, startMs }) =>
    [first - 1, first, first + 1].flatMap((limit) =>
      spread(release!.refusedMs - startMs, release!.passedMs - startMs, 20).map(
        (windowMs): LimiterSettings => ({ kind: 'sliding-log', limit, windowMs }),
      ),
    ),
  ({ seen, releases, first, startMs, paceMs }) => {
    const burstMs = seen[first]!.atMs - startMs;
    const pace = paceMs ?? releases[0]!.passedMs - seen[first]!.atMs;
    return geometric(pace / 3, pace * 3, 36).flatMap((msPerToken) =>
      [-4, -3, -2, -1, 0, 1, 2, 3, 4].map((more): LimiterSettings => {
        const limit = first - Math.floor(burstMs / msPerToken) + more;
        return { kind: 'token-bucket', limit, windowMs: msPerToken * limit };
      }),
    );
  },
  ({ releases, first, startMs, paceMs }) => {
    // The first burst lay across an edge, or did not: it held the limit, or a little more. Where it did, the pace says
    // little about the window.
    const expected = paceMs === undefined ? releases[0]!.passedMs - startMs : paceMs * first;
    const edges = [...releases].sort((a, b) => b.waitedMs - a.waitedMs).slice(0, 2);
    return geometric(expected * 0.15, expected * 1.6, 240).flatMap((windowMs) =>
      edges.flatMap(({ refusedMs, passedMs }) =>
        // After an edge it takes a while until the count before has faded by one.
        spread(refusedMs - 0.04 * windowMs, passedMs, 6).flatMap((edgeMs) =>
          [first, first - 1, first - 2].map((limit): LimiterSettings => ({
            kind: 'sliding-counter',
            limit,
            windowMs,
            phaseMs: edgeMs % windowMs,
          })),
        ),
      ),
    );
  },
];

/** From how many places a search descends, and the share of the window that its first step is. */
const PLACES = 8;
const FIRST_STEP = 0.03;

/** Those least at odds. */
function bestStarts(seen: readonly Observation[], starts: readonly LimiterSettings[]): AtOdds[] {
  let best: AtOdds[] = [];
  for (const settings of starts) {
    if (settings.limit < 1) continue;
    const most = best.length < PLACES ? Infinity : best.at(-1)!.distance;
    const found = atOdds(seen, settings, most);
    if (found.distance < most)
      best = [...best, found].sort((a, b) => a.distance - b.distance).slice(0, PLACES);
  }
  return best;
}

/** Moves the first and the last edge of the windows, in ever smaller steps, while that brings the answers closer. */
function descend(seen: readonly Observation[], start: AtOdds): AtOdds {
  const { phaseMs, windowMs } = start.settings;
  const beginMs = phaseMs ?? seen[0]!.atMs;
  const windows = Math.max(1, Math.round(seen.at(-1)!.atMs / windowMs));
  const directions = DIRECTIONS.filter(([first]) => phaseMs !== undefined || first === 0);
  let [found, edges] = [start, [beginMs, beginMs + windows * windowMs] as [number, number]];
  for (let step = windowMs * FIRST_STEP; step > FINEST_MS && found.distance > 0; step /= 2) {
    for (let moved = true; moved;) {
      moved = false;
      for (const [first, last] of directions) {
        const next: [number, number] = [edges[0] + first * step, edges[1] + last * step];
        const settings = {
          ...start.settings,
          windowMs: (next[1] - next[0]) / windows,
          ...(phaseMs === undefined ? {} : { phaseMs: next[0] }),
        };
        const there = atOdds(seen, settings, found.distance);
        if (there.distance < found.distance) [found, edges, moved] = [there, next, true];
      }
    }
  }
  return found;
}

const DIRECTIONS = [-1, 0, 1].flatMap((first) => [-1, 0, 1].map((last) => [first, last] as const));
const FINEST_MS = 0.5;

/** One answer more at odds is no contradiction. */
const AS_WELL = 1;
const STEP = 1.001;
const WIDEST = 1.25;

/** The windows that explain the answers with so few misses; the edge in the middle stays. */
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
    const explains = (): boolean =>
      atOdds(seen, {
        ...settings,
        windowMs: ms * step,
        ...(edgeMs === false ? {} : { phaseMs: edgeMs % (ms * step) }),
      }).misses <= misses;
    while (Math.abs(Math.log(ms / windowMs)) < Math.log(WIDEST) && explains()) ms *= step;
    return ms * step;
  };
  return [furthest(1 / STEP), furthest(STEP)];
}

function fit(seen: readonly Observation[], starts: readonly LimiterSettings[]): Fit | undefined {
  const found = bestStarts(seen, starts).map((start) => descend(seen, start));
  const least = Math.min(...found.map(({ distance }) => distance));
  const equal = found
    .filter(({ distance }) => distance === least)
    .sort((a, b) => a.settings.limit - b.settings.limit);
  // Of many that explain all alike, the one in their middle.
  const middle = equal[equal.length >> 1];
  if (!middle) return undefined;
  const [shortest, longest] = windowsBetween(seen, middle.settings, middle.misses);
  const best = { ...middle.settings, windowMs: (shortest + longest) / 2 };
  return {
    best,
    windowMs: windowsBetween(seen, middle.settings, middle.misses + AS_WELL),
    misses: middle.misses,
  };
}

/** A fit of each kind that the answers leave possible at all. */
export function fitAll(seen: readonly Observation[]): Fit[] {
  const releases = releasesOf(seen);
  if (!releases[0]) return [];
  const gaps = releases.slice(1).map((one, index) => one.passedMs - releases[index]!.passedMs);
  const hints = {
    seen,
    releases,
    first: seen.findIndex(({ ok }) => !ok),
    startMs: seen[0]!.atMs,
    paceMs: gaps.length < 3 ? undefined : median(gaps),
  };
  return STARTS.flatMap((startsOf) => fit(seen, startsOf(hints)) ?? []);
}
