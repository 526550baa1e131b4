/**
 * What a quota lets through in the long run, read from one run that asks for more than that. Where it lets through in
 * windows, only whole ones count: from one release to another. How the phase lay to the run then doesn't matter.
 */
import { largest } from './numbers.ts';
import type { Observation } from './limiter-probe.ts';
import type { Sample } from './step.ts';

export interface Quota {
  readonly perSecond: number;
  /** Half the width of its interval, as a share. */
  readonly error: number;
  /** Whether it was seen for as long as it takes to know: two releases, or no windows at all. */
  readonly settled: boolean;
  /** Releases after a long refusal; what it lets through from one to the next, and how far they lie apart. */
  readonly releases: number;
  readonly limit?: number;
  readonly windowSeconds?: number;
  /** Admitted from rest at a time, beyond what it admits in the long run. */
  readonly burst?: number;
  /** The share of Poisson arrivals that it refuses at a rate just below it. */
  readonly refusedBelow?: number;
  /** By its headers, as its window is too long to watch. */
  readonly declared?: true;
}

/** From a refusal to the next request let through: both are known, the moment of release lies between them. */
export interface Release {
  readonly refusedMs: number;
  readonly passedMs: number;
  /** Since the first refusal before it. */
  readonly waitedMs: number;
}

export function releasesOf(seen: readonly Pick<Observation, 'ok' | 'atMs'>[]): Release[] {
  const releases: Release[] = [];
  let since: number | undefined;
  for (const [index, { ok, atMs }] of seen.entries()) {
    if (ok && since !== undefined)
      releases.push({ waitedMs: atMs - since, refusedMs: seen[index - 1]!.atMs, passedMs: atMs });
    since = ok ? undefined : (since ?? atMs);
  }
  return releases;
}

/** A refusal this long, against the longest, ends in a release. */
const LONG = 0.5;
/** Refusals that are shorter than this share of the run are no windows: requests are let through evenly. */
const EVEN = 0.06;
/** The part of a run that a burst allowance may have eaten into. */
const BURST_SHARE = 0.4;
const LEAST_PASSED = 30;

export function quotaOf(samples: readonly Sample[], seconds: number): Quota {
  const sent = samples
    .filter(({ status }) => status !== 0)
    .map((one) => ({ atMs: one.dueMs + one.latencyMs - one.serviceMs, ok: one.status !== 429 }))
    .sort((a, b) => a.atMs - b.atMs);
  const waits = releasesOf(sent);
  const firstRefusedMs = sent.find(({ ok }) => !ok)?.atMs ?? seconds * 1000;
  // A refusal that the run's end cut short is a long one too.
  const endMs = seconds * 1000;
  const cut = sent[sent.findLastIndex(({ ok }) => ok) + 1];
  const longest = largest(
    waits.map(({ waitedMs }) => waitedMs),
    cut === undefined ? 0 : endMs - cut.atMs,
  );
  const passed = (fromMs: number, toMs: number): number =>
    sent.filter(({ ok, atMs }) => ok && atMs >= fromMs && atMs < toMs).length;

  if (longest < EVEN * endMs) {
    const fromMs = Math.max(firstRefusedMs, BURST_SHARE * endMs);
    const count = passed(fromMs, endMs);
    const perSecond = (count * 1000) / Math.max(1, endMs - fromMs);
    const settled = count >= LEAST_PASSED && endMs - fromMs >= 0.3 * endMs;
    return {
      perSecond,
      error: 0.03 + 1 / Math.sqrt(Math.max(1, count)) / 4,
      settled,
      burst: Math.max(1, passed(0, firstRefusedMs) - (perSecond * firstRefusedMs) / 1000),
      releases: waits.length,
    };
  }
  const releases = waits.filter(({ waitedMs }) => waitedMs >= LONG * longest).map(({ passedMs }) => passedMs);
  const [first, last] = [releases[0], releases.at(-1)];
  if (first === undefined || last === undefined || last === first) {
    // At least this much passed, for an unknown time.
    const perSecond = (passed(0, endMs) * 1000) / endMs;
    return { perSecond, error: 1, settled: false, releases: releases.length };
  }
  const spans = releases.slice(1).map((atMs, index) => ({
    count: passed(releases[index]!, atMs),
    ms: atMs - releases[index]!,
  }));
  const count = passed(first, last);
  const perSecond = (count * 1000) / (last - first);
  // Arrivals are a pace apart: a release is seen so much late, at either end.
  const paceMs = endMs / Math.max(1, sent.length);
  const unequal = largest(spans.map((one) => Math.abs((one.count * 1000) / one.ms / perSecond - 1)));
  return {
    perSecond,
    error: 0.01 + (2 * paceMs) / (last - first) + unequal / 2,
    settled: unequal < 0.25,
    releases: releases.length,
    limit: Math.round(count / spans.length),
    windowSeconds: Number(((last - first) / spans.length / 1000).toPrecision(3)),
  };
}
