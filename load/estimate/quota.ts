/**
 * Estimates the rate that a quota admits in the long run, from one run that offers more. If it has windows, only whole
 * ones count, from one reset to another, so that the phase does not matter.
 */
import { largest } from './numbers.ts';
import type { Observation } from './limiter-probe.ts';
import type { Sample } from './step.ts';

export interface Quota {
  readonly perSecond: number;
  /** Half the relative width of the interval. */
  readonly error: number;
  /** Whether the run was long enough: it contained two resets, or there are no windows. */
  readonly settled: boolean;
  /** Resets observed; requests admitted from one to the next, and the time between them. */
  readonly releases: number;
  readonly limit?: number;
  readonly windowSeconds?: number;
  /** Requests admitted from rest in addition to the long-run rate. */
  readonly burst?: number;
  /** Share of Poisson arrivals rejected at a rate just below the quota. */
  readonly refusedBelow?: number;
  /** Taken from the headers, as the window is too long to measure. */
  readonly declared?: true;
}

/** A refill or reset, which lies between the last rejection and the next admission. */
export interface Release {
  readonly refusedMs: number;
  readonly passedMs: number;
  /** Time since the first of the rejections before it. */
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

/** A series of rejections of this share of the longest ends with a reset. */
const LONG = 0.5;
/** If every series of rejections is shorter than this share of the run, there are no windows: admission is even. */
const EVEN = 0.06;
/** Initial share of a run that a burst allowance may distort. */
const BURST_SHARE = 0.4;
const LEAST_PASSED = 30;

export function quotaOf(samples: readonly Sample[], seconds: number): Quota {
  const sent = samples
    .filter(({ status }) => status !== 0)
    .map((one) => ({ atMs: one.dueMs + one.latencyMs - one.serviceMs, ok: one.status !== 429 }))
    .sort((a, b) => a.atMs - b.atMs);
  const waits = releasesOf(sent);
  const firstRefusedMs = sent.find(({ ok }) => !ok)?.atMs ?? seconds * 1000;
  // A series of rejections cut short by the end of the run also counts.
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
    // No whole window was seen: this is only the rate of this run.
    const perSecond = (passed(0, endMs) * 1000) / endMs;
    return { perSecond, error: 1, settled: false, releases: releases.length };
  }
  const spans = releases.slice(1).map((atMs, index) => ({
    count: passed(releases[index]!, atMs),
    ms: atMs - releases[index]!,
  }));
  const count = passed(first, last);
  const perSecond = (count * 1000) / (last - first);
  // Each reset is seen up to one interval between arrivals too late.
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
