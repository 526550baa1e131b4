/**
 * Which limiter would have answered as the target did: for each kind, the settings that contradict the fewest
 * answers; kinds that contradict none (almost) remain. The moments of the answers are known give or take a little.
 * A probe that was cut short did not ask all that tells the kinds apart: none is named then.
 */
import { smallest } from './numbers.ts';
import { mostAtOnce, type Shaper, shaperOf } from './other-limits.ts';
import { fitAll, SLACK_MS } from './limiter-candidates.ts';
import { LIMITER_KINDS, type LimiterKind } from './limiter-models.ts';
import type { Observation, Probed } from './limiter-probe.ts';
import { quotaOf } from './quota.ts';
import type { Sample } from './step.ts';

export interface LimiterFinding {
  readonly kind: LimiterKind | 'none-found' | 'cannot-tell';
  readonly limit?: number;
  readonly windowSeconds?: number;
  readonly burst?: number;
  readonly ratePerSecond?: number;
  /** Of windowSeconds, or of ratePerSecond where it is a bucket: what the answers leave possible. */
  readonly interval?: readonly [low: number, high: number];
  /** Whether the waits that 429 named were enough; absent where none was named or none waited out. */
  readonly retryAfterHonest?: boolean;
  readonly retryAfter?: RetryAfter;
  /** Without any model: admitted from rest before the first 429, within how many seconds; admitted in the long run. */
  readonly fromRest?: { readonly admitted: number; readonly seconds: number };
  readonly longRunPerSecond?: number;
  /** What RateLimit headers say. */
  readonly declared?: NonNullable<Sample['policy']>;
  /** It holds requests back to an even pace: it delays them, before it refuses any, if it ever does. */
  readonly shaper?: Shaper;
  /** It counts no requests in time: a number of concurrent ones is admitted, and the next one is refused. */
  readonly atOnce?: number;
  /** Whose requests it counts: each client's, or all of them from here; absent where there was one client only. */
  readonly scope?: 'client' | 'shared';
  readonly requests: number;
  /** How long it was watched. */
  readonly watchedSeconds: number;
  /** Other kinds that fit as well. */
  readonly alternatives: readonly LimiterKind[];
  /** Share of the answers that the kind explains, by kind. */
  readonly explained: Readonly<Partial<Record<LimiterKind, number>>>;
}

/** Waits that were sat out. */
interface RetryAfter {
  readonly waits: number;
  readonly longEnough: number;
  /** How much longer the next admission took at worst. */
  readonly worstShortSeconds: number;
}

/** Answers more at odds with a kind than this share rule it out. */
const TOLERATED = 0.012;

/** What counts requests in time refuses the polls after a burst too, with none under way: few refusals tell. */
const LEAST_REFUSED = 4;

export function identifyLimiter({ seen, cutBy, waited = [], pressed = [] }: Probed): LimiterFinding {
  const requests = seen.length;
  const all = [...seen, ...waited];
  const waits = satOut(all);
  const first = seen.findIndex(({ ok }) => !ok);
  const last = pressed.at(-1) ?? waited.at(-1) ?? seen.at(-1);
  const watchedSeconds = Math.round(((last?.atMs ?? 0) - (seen[0]?.atMs ?? 0)) / 1000);
  const common = {
    requests: requests + waited.length + pressed.length,
    watchedSeconds,
    ...waits,
    ...(first > 0
      ? { fromRest: { admitted: first, seconds: round((seen[first]!.atMs - seen[0]!.atMs) / 1000) } }
      : {}),
    ...longRun(pressed),
  };
  const none = { alternatives: [], explained: {}, ...common };
  const shaper = shaperOf(seen);
  if (shaper && shaper.orOneWorker !== 'rather') return { kind: 'cannot-tell', shaper, ...none };
  if (seen.every(({ ok }) => ok)) return { kind: 'none-found', ...(shaper ? { shaper } : {}), ...none };

  const atOnce = mostAtOnce(
    all.flatMap(({ sentMs, rttMs, ok }) =>
      sentMs === undefined || rttMs === undefined ? [] : [{ sentMs, rttMs, ok }],
    ),
    LEAST_REFUSED,
  );
  if (atOnce !== undefined) return { kind: 'cannot-tell', atOnce, ...none };

  const fits = fitAll(seen);
  const explained = Object.fromEntries(fits.map((fit) => [fit.best.kind, 1 - fit.misses / requests]));
  const least = smallest(fits.map((fit) => fit.misses));
  // Within a few answers of the best: noise can make one kind miss an answer that it did give.
  const remaining = fits
    .filter((fit) => fit.misses <= TOLERATED * requests + 1 && fit.misses <= least + 2)
    .sort((a, b) => a.misses - b.misses);
  const winner = remaining[0];
  if (!winner) return { kind: 'cannot-tell', ...none, explained };
  const alternatives = remaining.slice(1).map((fit) => fit.best.kind);
  // Nothing was asked yet that would have told them apart.
  const unasked = cutBy ? LIMITER_KINDS.filter((kind) => !fits.some((fit) => fit.best.kind === kind)) : [];
  const { kind, limit, windowMs } = winner.best;
  // Fits of different kinds that one answer tells apart, which may have been held up, are equally good.
  const tied = remaining.length > 1 && remaining[1]!.misses <= winner.misses + 1;
  // Moments known no better than requests let through lie apart tell no kind from one that paces otherwise.
  const blurred = typicalSlackMs(seen) > windowMs / limit;
  const likewise = blurred ? LIMITER_KINDS.filter((other) => (explained[other] ?? 0) > 0.9) : [];
  const [lowMs, highMs] = winner.windowMs;
  const perSecond = (ms: number): number => round((limit * 1000) / ms);
  const figures =
    kind === 'token-bucket'
      ? {
          burst: limit,
          ratePerSecond: perSecond(windowMs),
          interval: [perSecond(highMs), perSecond(lowMs)] as const,
        }
      : {
          limit,
          windowSeconds: round(windowMs / 1000),
          interval: [round(lowMs / 1000), round(highMs / 1000)] as const,
        };
  return tied || cutBy || blurred
    ? {
        kind: 'cannot-tell',
        ...figures,
        alternatives: [...new Set([kind, ...alternatives, ...likewise, ...unasked])],
        explained,
        ...common,
      }
    : { kind, ...figures, alternatives, explained, ...common };
}

function typicalSlackMs(seen: readonly Observation[]): number {
  const slacks = seen.map(({ slackMs }) => slackMs).sort((a, b) => a - b);
  return slacks[slacks.length >> 1] ?? 0;
}

const round = (value: number): number => Number(value.toPrecision(4));

/** Fewer admissions tell no rate. */
const LEAST_ADMITTED = 20;

/** From the first refusal to the last: what is admitted in between is what was given anew. */
function longRun(pressed: readonly Observation[]): Pick<LimiterFinding, 'longRunPerSecond'> {
  const samples = pressed.map(({ atMs, ok }) => ({
    dueMs: atMs - pressed[0]!.atMs,
    latencyMs: 0,
    serviceMs: 0,
    status: ok ? 200 : 429,
  }));
  const admitted = pressed.filter(({ ok }) => ok).length;
  if (admitted < LEAST_ADMITTED || admitted === pressed.length) return {};
  const { perSecond, settled } = quotaOf(samples, samples.at(-1)!.dueMs / 1000);
  return settled ? { longRunPerSecond: round(perSecond) } : {};
}

/** So many waits have to be too short, before that is no neighbour's doing who shares the quota. */
const LIES = 3;

/**
 * Whether requests after the named wait were admitted, as far as no other of ours came in between: rejected requests
 * may count. A neighbour on the same quota may take what was given anew, but then the next wait is a whole one again.
 */
function satOut(seen: readonly Observation[]): Pick<LimiterFinding, 'retryAfter' | 'retryAfterHonest'> {
  let [longEnough, short, same, worstShortSeconds] = [0, 0, 0, 0];
  // One wait until each admission: polls after a short one are none.
  let isShort = false;
  for (const [index, refused] of seen.entries()) {
    isShort &&= !refused.ok;
    if (isShort) continue;
    const next = seen[index + 1];
    const named = refused.retryAfterSeconds;
    if (refused.ok || named === undefined || !next) continue;
    const waitedMs = next.atMs - next.slackMs - refused.atMs - refused.slackMs;
    if (waitedMs < named * 1000 - SLACK_MS) continue;
    if (next.ok) {
      longEnough += 1;
      continue;
    }
    if (next.retryAfterSeconds === undefined) continue;
    isShort = true;
    if (next.retryAfterSeconds < named || next.retryAfterSeconds === 0) short += 1;
    else same += 1;
    const admitted = seen.find(({ ok, atMs }) => ok && atMs > next.atMs);
    if (admitted)
      worstShortSeconds = Math.max(worstShortSeconds, (admitted.atMs - refused.atMs) / 1000 - named);
  }
  const waits = longEnough + short + same;
  const lies = (short >= LIES && short > longEnough) || (same > LIES && longEnough === 0);
  if (waits === 0 || (longEnough === 0 && !lies)) return {};
  return {
    retryAfter: { waits, longEnough, worstShortSeconds: round(worstShortSeconds) },
    retryAfterHonest: !lies,
  };
}
