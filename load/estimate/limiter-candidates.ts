/** The settings of each kind of limiter that are least at odds with the answers. */
import {
  bucketDistance,
  counterDistance,
  countMisses,
  evidenceOf,
  type Candidate,
  type Evidence,
} from './limiter-evidence.ts';
import type { Observation } from './limiter-probe.ts';

/** A shorter window can't be told from none at this precision. */
const LEAST_WINDOW_MS = 50;

export interface Fit {
  readonly best: Candidate;
  readonly misses: number;
}

/** From a refusal to the next request let through: both are known, the moment of release lies between them. */
interface Edge {
  readonly refusedMs: number;
  readonly passedMs: number;
}

function releasesOf(seen: readonly Observation[]): Edge[] {
  return seen.flatMap(({ ok, atMs }, index) => {
    const before = seen[index - 1];
    return ok && before && !before.ok ? [{ refusedMs: before.atMs, passedMs: atMs }] : [];
  });
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
  const releases = releasesOf(seen);
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
  const coarse = best(seen, candidates);
  return coarse && refine(seen, coarse);
}

/** Looks closer around settings: windows and edges in steps that grow ever finer. */
function refine(seen: readonly Observation[], coarse: Fit): Fit {
  let found = coarse;
  for (const share of [0.02, 0.006, 0.002]) {
    const { windowMs, phaseMs, ...rest } = found.best;
    const steps = [-4, -3, -2, -1, 0, 1, 2, 3, 4].map((step) => step * share * windowMs);
    const around = steps.flatMap((longer) =>
      (phaseMs === undefined ? [0] : steps).map((later): Candidate => ({
        ...rest,
        windowMs: windowMs + longer,
        ...(phaseMs === undefined ? {} : { phaseMs: phaseMs + later }),
      })),
    );
    const closer = best(seen, around);
    if (closer && closer.misses <= found.misses) found = closer;
  }
  return found;
}

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
  const releases = releasesOf(seen);
  if (!releases[0]) return undefined;
  const startMs = seen[0]!.atMs;
  const coarse = [...spread(releases[0].refusedMs - startMs, releases[0].passedMs - startMs, 60)];
  const candidates = limitsAround([firstRefused], 1).flatMap((limit) =>
    coarse.map((windowMs): Candidate => ({ kind: 'sliding-log', limit, windowMs })),
  );
  return best(seen, candidates);
}

/** Milliseconds from one release to the next, in the middle. */
function paceMs(seen: readonly Observation[]): number | undefined {
  const releases = releasesOf(seen);
  if (releases.length < 4) return undefined;
  const gaps = releases.slice(1).map((one, i) => one.passedMs - releases[i]!.passedMs);
  const sorted = [...gaps].sort((a, b) => a - b);
  return sorted[sorted.length >> 1];
}

/** How many tokens drip in between two refusals is the pace, however they were asked for; idle stretches tell a slower one. */
function betweenRefusals(seen: readonly Observation[]): number[] {
  const paces: number[] = [];
  let [sinceMs, passed] = [NaN, 0];
  for (const { ok, atMs } of seen) {
    if (ok) passed += 1;
    else if (passed === 0 || Number.isNaN(sinceMs)) [sinceMs, passed] = [atMs, 0];
    else if (passed >= LEAST_PACED) {
      paces.push((atMs - sinceMs) / passed);
      [sinceMs, passed] = [atMs, 0];
    }
  }
  const sorted = paces.sort((a, b) => a - b);
  return [sorted[0], sorted[sorted.length >> 2]].filter((pace) => pace !== undefined && pace > 0) as number[];
}

const LEAST_PACED = 8;

function fitBucket(seen: readonly Observation[]): Fit | undefined {
  const firstRefused = seen.findIndex(({ ok }) => !ok);
  const burstMs = seen[firstRefused]!.atMs - seen[0]!.atMs;
  const releases = releasesOf(seen);
  if (!releases[0]) return undefined;
  const around = [
    ...betweenRefusals(seen).map((paceMs) => [paceMs, 1.1] as const),
    [paceMs(seen) ?? releases[0].passedMs - seen[firstRefused]!.atMs, 3] as const,
  ];
  const candidates = around.flatMap(([middle, times]) =>
    spread(Math.log(middle / times), Math.log(middle * times), 40 * times).flatMap((length) => {
      const msPerToken = Math.exp(length);
      const burst = firstRefused - Math.floor(burstMs / msPerToken);
      return (burst > 0 ? limitsAround([burst], 4) : []).map((limit): Candidate => ({
        kind: 'token-bucket',
        limit,
        windowMs: msPerToken * limit,
      }));
    }),
  );
  const evidence = evidenceOf(seen);
  const coarse = middleOf(nearest(evidence, candidates, bucketDistance));
  if (!coarse) return undefined;
  const msPerToken = coarse.windowMs / coarse.limit;
  const closer = spread(0.97, 1.03, 120).flatMap((share) =>
    limitsAround([coarse.limit], 3).map((limit): Candidate => ({
      kind: 'token-bucket',
      limit,
      windowMs: msPerToken * share * limit,
    })),
  );
  const found = middleOf(nearest(evidence, [coarse, ...closer], bucketDistance))!;
  return { best: found, misses: countMisses(evidence, found, Infinity) };
}

/** Of many that explain all alike the one in their middle, by pace and by limit. */
function middleOf(equal: readonly Measured[]): Candidate | undefined {
  const paces = equal.map(({ candidate }) => candidate.windowMs / candidate.limit).sort((a, b) => a - b);
  const limits = equal.map(({ candidate }) => candidate.limit).sort((a, b) => a - b);
  const [pace, limit] = [paces[paces.length >> 1]!, limits[limits.length >> 1]!];
  const off = ({ candidate: one }: Measured): number =>
    Math.abs(Math.log(one.windowMs / one.limit / pace)) + Math.abs(Math.log(one.limit / limit));
  return [...equal].sort((a, b) => off(a) - off(b))[0]?.candidate;
}

function fitCounter(seen: readonly Observation[]): Fit | undefined {
  const firstRefused = seen.findIndex(({ ok }) => !ok);
  const releases = releasesOf(seen);
  const pace = paceMs(seen);
  const expected =
    pace === undefined ? releases[0] && releases[0].passedMs - seen[0]!.atMs : pace * firstRefused;
  if (expected === undefined) return undefined;
  const evidence = evidenceOf(seen);
  const edges = afterWaits(seen).slice(0, 2);
  const starts: Measured[] = [];
  let least = Infinity;
  // The first burst lay across an edge, or did not: it held the limit, or a little more.
  for (const limit of [firstRefused, firstRefused - 1, firstRefused - 2].filter((each) => each > 0)) {
    // Where it did, the pace says little about the window. The best of each stretch of lengths is a start.
    for (const stretch of spread(Math.log(expected * 0.15), Math.log(expected * 1.6), 30)) {
      const candidates = spread(stretch - 0.04, stretch + 0.04, 8).flatMap((length) =>
        edges.flatMap(({ refusedMs, passedMs }) => {
          const windowMs = Math.exp(length);
          // Behind an edge it takes a while until the count before has faded by one.
          return spread(refusedMs - 0.04 * windowMs, passedMs, 6).map((edgeMs): Candidate => ({
            kind: 'sliding-counter',
            limit,
            windowMs,
            phaseMs: edgeMs % windowMs,
          }));
        }),
      );
      starts.push(...nearest(evidence, candidates, counterDistance, 4 * least + 20).slice(0, 1));
      least = Math.min(least, starts.at(-1)?.distance ?? Infinity);
    }
  }
  const found = starts
    .sort((a, b) => a.distance - b.distance)
    .slice(0, COUNTER_STARTS)
    .map(({ candidate }) => descend(evidence, candidate, seen.at(-1)!.atMs))
    .sort((a, b) => a.distance - b.distance)[0];
  return found && { best: found.candidate, misses: countMisses(evidence, found.candidate, Infinity) };
}

interface Measured {
  readonly candidate: Candidate;
  readonly distance: number;
}

type Distance = (evidence: Evidence, settings: Candidate, stopAt: number) => number;

/** Those that are least at odds with the answers, all equally. */
function nearest(
  evidence: Evidence,
  candidates: readonly Candidate[],
  distanceOf: Distance,
  stopAt = Infinity,
): Measured[] {
  let least: Measured[] = [];
  for (const candidate of candidates) {
    const most = least[0]?.distance ?? stopAt;
    const distance = distanceOf(evidence, candidate, most);
    if (distance > most) continue;
    if (least[0] === undefined || distance < least[0].distance) least = [{ candidate, distance }];
    else if (distance === least[0].distance) least.push({ candidate, distance });
  }
  return least;
}

/** The releases, those after the longest waits first. */
function afterWaits(seen: readonly Observation[]): Edge[] {
  const waits: (Edge & { readonly waitedMs: number })[] = [];
  let since: number | undefined;
  for (const [index, { ok, atMs }] of seen.entries()) {
    if (ok && since !== undefined) {
      waits.push({ waitedMs: atMs - since, refusedMs: seen[index - 1]!.atMs, passedMs: atMs });
    }
    since = ok ? undefined : (since ?? atMs);
  }
  return waits.sort((a, b) => b.waitedMs - a.waitedMs);
}

/** From how many places the search for two weighted counters descends. */
const COUNTER_STARTS = 10;

/** Moves the first and the last edge of the windows, in ever smaller steps, while that brings the answers closer. */
function descend(evidence: Evidence, start: Candidate, endMs: number): Measured {
  const windows = Math.max(1, Math.round(endMs / start.windowMs));
  const between = (first: number, last: number): Candidate => ({
    ...start,
    windowMs: (last - first) / windows,
    phaseMs: first,
  });
  let edges: [number, number] = [start.phaseMs!, start.phaseMs! + windows * start.windowMs];
  let distance = counterDistance(evidence, between(...edges), Infinity);
  for (let step = start.windowMs * 0.04; step > 0.5 && distance > 0; step /= 2) {
    for (let moved = true; moved;) {
      moved = false;
      for (const [first, last] of DIRECTIONS) {
        const next: [number, number] = [edges[0] + first * step, edges[1] + last * step];
        const there = counterDistance(evidence, between(...next), distance);
        if (there < distance) [edges, distance, moved] = [next, there, true];
      }
    }
  }
  return { candidate: between(...edges), distance };
}

const DIRECTIONS = [-1, 0, 1].flatMap((first) => [-1, 0, 1].map((last) => [first, last] as const));

/** A fit of each kind that the answers leave possible at all. */
export const fitAll = (seen: readonly Observation[]): Fit[] =>
  [fitFixed(seen), fitLog(seen), fitBucket(seen), fitCounter(seen)].flatMap((fit) => fit ?? []);
