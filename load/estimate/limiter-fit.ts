/**
 * Identifies the limiter: fits the settings of each kind, and keeps the kinds that contradict almost no answer. A probe
 * that was cut short did not send everything that distinguishes the kinds, so no kind is named then.
 */
import { findConcurrencyLimit, isDelayedByLimit, shaperOf } from './other-limits.ts';
import type { FullPages, Shaper } from './other-limits.ts';
import { fitAll, SLACK_MS } from './limiter-candidates.ts';
import { LIMITER_KINDS, type LimiterKind } from './limiter-models.ts';
import type { Observation, Probed } from './limiter-probe.ts';
import { rounded } from './numbers.ts';
import { quotaOf } from './quota.ts';
import type { Sample } from './step.ts';

/** Share of the answers that a kind is fitted to, which may contradict it. */
const UNEXPLAINED = 0.01;
/** Share of the later answers, which may contradict it. */
const UNPREDICTED = 0.02;

/** Least counts, as fewer answers are chance: rejections in a burst, admissions for a rate, waits that are too short. */
const [LEAST_REFUSED, LEAST_ADMITTED, LEAST_SHORT_WAITS] = [4, 20, 3];

export interface LimiterFinding {
  readonly kind: LimiterKind | 'none-found' | 'cannot-tell';
  readonly limit?: number;
  readonly windowSeconds?: number;
  readonly burst?: number;
  readonly ratePerSecond?: number;
  /** Range compatible with the answers: of windowSeconds, or of ratePerSecond for a bucket. */
  readonly interval?: readonly [low: number, high: number];
  /** Answers that the kind was not fitted to, and how many of them it predicts. */
  readonly prediction?: Readonly<Record<'asPredicted' | 'requests', number>>;
  /** Whether the Retry-After waits were long enough; absent if none was waited out, or only some were not. */
  readonly retryAfterHonest?: boolean;
  /** Retry-After waits of the probe, those that were long enough, and the longest additional time to an admission. */
  readonly retryAfter?: Readonly<Record<'waits' | 'longEnough' | 'worstShortSeconds', number>>;
  /** Independent of a model: requests admitted from rest before the first 429, and in how many seconds. */
  readonly fromRest?: Readonly<Record<'admitted' | 'seconds', number>> | undefined;
  /** Independent of a model: rate admitted under constant overload. */
  readonly longRunPerSecond?: number | undefined;
  readonly declared?: Sample['policy'];
  /** Delays requests to an even pace, before it rejects any. */
  readonly shaper?: Shaper | undefined;
  /** Rejects nothing, but after some number of requests answers are later: by the same time, by pauses, or also single ones. */
  readonly isDelaying?: true;
  /** Concurrency limit, if that and no rate limit explains the 429 answers. */
  readonly concurrencyLimit?: number;
  /** Whether each client has its own limit or all clients share one; absent with one client only. */
  readonly scope?: 'client' | 'shared' | 'cannot-tell' | undefined;
  readonly fullPages?: FullPages | undefined;
  readonly requests: number;
  readonly watchedSeconds: number;
  /** If the kind cannot be told: those that fit, the best one first. */
  readonly alternatives: readonly LimiterKind[];
  readonly explained: Readonly<Partial<Record<LimiterKind, number>>>;
}

/** Whether there were answers that the fit had to predict, and it did. */
export const isMet = ({ asPredicted, requests }: NonNullable<LimiterFinding['prediction']>): boolean =>
  requests > 0 && requests - asPredicted <= UNPREDICTED * requests;

export function identifyLimiter({ seen, cutBy, waited = [], pressed = [], isLate }: Probed): LimiterFinding {
  const requests = seen.length;
  const all = [...seen, ...waited];
  const waits = judgeRetryAfter(all);
  const first = seen.findIndex(({ ok }) => !ok);
  const last = pressed.at(-1) ?? waited.at(-1) ?? seen.at(-1);
  const watchedSeconds = Math.round(((last?.atMs ?? 0) - (seen[0]?.atMs ?? 0)) / 1000);
  const common = {
    requests: requests + waited.length + pressed.length,
    watchedSeconds,
    ...waits,
    fromRest:
      first > 0 ? { admitted: first, seconds: seconds(seen[first]!.atMs - seen[0]!.atMs) } : undefined,
    longRunPerSecond: longRunRate(pressed),
  };
  const noKind = { alternatives: [], explained: {}, ...common };
  const shaper = isLate ? undefined : shaperOf(seen);
  // A single worker that rejects nothing is no limiter.
  if (shaper)
    return { kind: shaper.orOneWorker && first < 0 ? 'none-found' : 'cannot-tell', shaper, ...noKind };
  if (seen.every(({ ok }) => ok))
    return isLate || isDelayedByLimit(seen)
      ? { kind: 'cannot-tell', isDelaying: true, ...noKind }
      : { kind: 'none-found', ...noKind };

  const concurrencyLimit = findConcurrencyLimit(all, LEAST_REFUSED);
  if (concurrencyLimit !== undefined) return { kind: 'cannot-tell', concurrencyLimit, ...noKind };

  const fits = fitAll(seen, [...all, ...pressed]);
  const explained = Object.fromEntries(fits.map((fit) => [fit.best.kind, 1 - fit.misses / requests]));
  // Noise can make the right kind miss an answer.
  const [winner, ...others] = fits
    .filter((fit) => fit.misses <= UNEXPLAINED * requests + 1)
    .sort((a, b) => a.misses - b.misses);
  if (!winner) return { kind: 'cannot-tell', ...noKind, explained };
  const { kind, limit, windowMs } = winner.best;
  // A difference of one answer, which may have been delayed, does not distinguish two kinds.
  const isTied = others[0] !== undefined && others[0].misses <= winner.misses + 1;
  const later = waited.length + pressed.length;
  const prediction = { asPredicted: later - winner.surprises, requests: later };
  const isOpen = isTied || cutBy !== undefined || !isMet(prediction);
  // A probe that was cut did not send what distinguishes the kinds.
  const unseen = LIMITER_KINDS.filter((other) => cutBy && explained[other] === undefined);
  const alternatives = isOpen ? [winner, ...others].map(({ best }) => best.kind).concat(unseen) : [];
  const [lowMs, highMs] = winner.windowMs;
  const rate = (ms: number): number => rounded((limit * 1000) / ms);
  const figures =
    kind === 'token-bucket'
      ? { burst: limit, ratePerSecond: rate(windowMs), interval: [rate(highMs), rate(lowMs)] as const }
      : { limit, windowSeconds: seconds(windowMs), interval: [seconds(lowMs), seconds(highMs)] as const };
  const told = later > 0 ? { ...figures, prediction } : figures;
  return { kind: isOpen ? 'cannot-tell' : kind, ...told, alternatives, explained, ...common };
}

const seconds = (ms: number): number => rounded(ms / 1000);

/** Rate admitted under constant overload, when every admission uses refilled capacity. */
function longRunRate(pressed: readonly Observation[]): number | undefined {
  const admitted = pressed.filter(({ ok }) => ok).length;
  if (admitted < LEAST_ADMITTED || admitted === pressed.length) return undefined;
  const decisions = pressed.map(({ atMs, ok }) => ({ ok, atMs: atMs - pressed[0]!.atMs }));
  const { perSecond, settled } = quotaOf(decisions, decisions.at(-1)!.atMs);
  return settled ? rounded(perSecond) : undefined;
}

/**
 * Whether requests after the Retry-After wait were admitted. Considers only waits without a request of the probe in
 * between, as rejected requests may count. Another client on the same quota may use the refilled capacity, but then the
 * next wait is a full one again.
 */
function judgeRetryAfter(seen: readonly Observation[]) {
  let [longEnough, short, same, worstShortSeconds] = [0, 0, 0, 0];
  // One wait per admission: polls after a wait that was too short do not count as waits.
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
  if (waits === 0) return {};
  const isTooShort =
    (short >= LEAST_SHORT_WAITS && short > longEnough) || same > LEAST_SHORT_WAITS * Math.max(1, longEnough);
  const isDecided = isTooShort || longEnough === waits;
  const retryAfter = { waits, longEnough, worstShortSeconds: rounded(worstShortSeconds) };
  return { retryAfter, ...(isDecided ? { retryAfterHonest: !isTooShort } : {}) };
}
