/** rate-limit: identifies the target's limiter with few requests. */
import { SOME_WINDOW } from '../../engine/client/page.ts';
import { declaredBy } from '../estimate/quota.ts';
import { compareFullPages, type FullPages, MOST_PAGES, type PagesRead } from '../estimate/other-limits.ts';
import { identifyLimiter, isMet, type LimiterFinding } from '../estimate/limiter-fit.ts';
import { LIMITER_KINDS, type LimiterKind } from '../estimate/limiter-models.ts';
import { linesOf, percent } from '../estimate/numbers.ts';
import { type Observation, type Probed, type ProbeLimits } from '../estimate/limiter-probe.ts';
import type { LoadConfig } from '../k6/lib/config.ts';
import type { LoadResult } from '../result.ts';
import { PROBE } from '../run/flags.ts';
import { type Scenario, type Session, VoidRun } from '../run/session.ts';
import { number } from '../../certify/render/results.ts';

export const rateLimit: Scenario = {
  about: 'the kind of rate limiter, its limit, window and burst',
  flags: { maxRequests: undefined, maxSeconds: undefined },
  // A fixed window: the limiter would count the requests of a search for one.
  window: SOME_WINDOW,
  run: probe,
};

async function probe(session: Session): Promise<Partial<LoadResult>> {
  const given = { ...PROBE, ...session.prepared.target.rateLimit, ...session.options };
  // Without a limit, the probe sends as many requests as it may.
  const reserved = given.maxRequests >= 2 * MOST_PAGES ? MOST_PAGES : 0;
  const limits = { maxRequests: given.maxRequests - reserved, maxSeconds: given.maxSeconds };
  let probed = await runProbe(session, limits);
  let limiter = identifyLimiter(probed);
  const { declared } = probed;
  const left = (): number => limits.maxRequests - session.requests;
  const { shaper, concurrencyLimit, isDelaying } = limiter;
  const open = limiter.kind === 'cannot-tell' && !shaper && !isDelaying && concurrencyLimit === undefined;
  if (open && !probed.cutBy && left() > probed.seen.length) {
    session.tell('  these answers do not decide the kind: probing again');
    await session.pause(settleSeconds(limiter, probed.seen));
    const again = await runProbe(session, { ...limits, maxRequests: left() });
    const second = identifyLimiter(again);
    if (second.kind !== 'cannot-tell') [limiter, probed] = [second, again];
  }
  if (limiter.retryAfterHonest === false) {
    const message = 'a request sent after Retry-After had passed was rejected again';
    session.findings.push({ id: '7.2-retry-after-honest', message });
  }
  if (!limiter.shaper && limiter.concurrencyLimit === undefined) {
    const read = readingFromRest(session, settleSeconds(limiter, probed.seen));
    limiter = { ...limiter, scope: await scopeOf(session, read, probed, left) };
    // Only a limiter that was identified, or is absent, rejects the same number of pages each time.
    if (limiter.kind !== 'cannot-tell' && left() + reserved >= MOST_PAGES)
      limiter = { ...limiter, fullPages: await readFullPages(session, read, limiter) };
  }
  limiter = { ...limiter, declared, requests: session.requests };
  const startedAt = probed.seen[0]!.atMs;
  const secondsAt = (atMs: number): number => Math.round(atMs - startedAt) / 1000;
  const reason = limiter.kind === 'cannot-tell' ? voidReason(limiter, probed, given) : undefined;
  return {
    limiter,
    ...(reason ? { void: reason } : {}),
    held: true,
    summary: summaryLines(limiter, reason),
    tables: { answers: probed.seen.map(({ atMs, ok }) => ({ seconds: secondsAt(atMs), ok: Number(ok) })) },
  };
}

/** Why the run is void. Several kinds that fit are a result; too few answers, or no kind that fits, are not. */
function voidReason(limiter: LimiterFinding, { cutBy }: Probed, limits: ProbeLimits): string | undefined {
  if (limiter.shaper || limiter.concurrencyLimit !== undefined) return undefined;
  if (limiter.isDelaying)
    return 'nothing was rejected, but beyond some number answers are delayed, as no busy server does: maybe by a limit';
  if (cutBy === 'maxSeconds')
    return `${limits.maxSeconds} s were too short to identify the limiter: raise --max-seconds`;
  if (limiter.fromRest === undefined)
    return 'the first request was rejected already: repeat it once the limit has reset';
  if (cutBy) return `${limits.maxRequests} requests were too few to identify it: raise --max-requests`;
  return limiter.alternatives.length > 0 ? undefined : 'no known kind of limiter explains the answers';
}

/** Requests of the first client once another one is rejected; fewer than it is admitted from rest. */
const PROOF = 20;
const SHARE_OF_FIRST = 0.6;
/** Requests of the other client, in multiples of those that the first one was admitted: enough to use up a shared limit. */
const TO_REJECTION = 1.5;
const CONCURRENCY = 50;
const SCOPE_TRIES = 3;
/** Shares of the first client's requests that are admitted: fewer than LITTLE with a shared limit, more than MOST with its own. */
const [LITTLE, MOST] = [0.4, 0.7];

/**
 * Whether another client's requests use up the first one's limit; undefined with a single client. The other client may
 * have a smaller limit of its own, so only what the first one is admitted counts.
 */
async function scopeOf(
  session: Session,
  readFromRest: ReadFromRest,
  { seen }: Probed,
  left: () => number,
): Promise<LimiterFinding['scope']> {
  const first = seen.findIndex(({ ok }) => !ok);
  const count = Math.min(PROOF, Math.floor(SHARE_OF_FIRST * first));
  if (session.prepared.base.clients.length < 2 || first < 0) return undefined;
  if (count < 3) return 'cannot-tell';
  session.tell('  is the limit per client? The first client sends requests once another one is rejected');
  const common = { isFull: false, concurrency: CONCURRENCY };
  const read = (client: number, count: number) => ({ ...common, client, count });
  const most = Math.ceil(TO_REJECTION * first);
  for (let tries = 1; tries <= SCOPE_TRIES && most + 3 * count <= left(); tries += 1) {
    const [other, own, again] = await readFromRest([read(1, most), read(0, count), read(1, count)]);
    if (!other?.isRejected) continue;
    if (own!.admitted < LITTLE * count) {
      // Without the other client's requests, the first one must be admitted again.
      const [alone] = await readFromRest([read(0, count)]);
      if (alone && alone.admitted > MOST * count) return 'shared';
    }
    // If the other client was admitted again, the limit was reset, maybe before the first one's requests.
    else if (own!.admitted > MOST * count && again!.admitted < LITTLE * count) return 'client';
  }
  return 'cannot-tell';
}

/** Compares full pages with empty ones; each time the limiter is at rest first. */
async function readFullPages(
  session: Session,
  readFromRest: ReadFromRest,
  { fromRest }: LimiterFinding,
): Promise<FullPages | undefined> {
  session.tell('  does the limit count items or bytes? Full pages are read in succession');
  return compareFullPages(async (isFull, count, afterSeconds) => {
    const [read] = await readFromRest([{ client: 0, isFull, count, concurrency: 1 }], afterSeconds);
    return read;
  }, fromRest?.admitted);
}

type Reads = NonNullable<NonNullable<LoadConfig['probe']>['reads']>;

/** Reads pages once the limiter has reset, and Retry-After has passed; empty if an answer is neither 200 nor 429. */
type ReadFromRest = (reads: Reads, afterSeconds?: number) => Promise<readonly PagesRead[]>;

const readingFromRest =
  (session: Session, restSeconds: number): ReadFromRest =>
  async (reads, afterSeconds = 0) => {
    const pauseSeconds = Math.max(restSeconds, Math.min(LONGEST_SETTLE_S, SETTLED * afterSeconds));
    await session.pause(pauseSeconds);
    const probe = { maxRequests: 0, maxSeconds: 60, reads };
    const { records } = await session.run('rate-limit', { probe, seconds: 60 });
    return records.find((one) => one.kind === 'pages')?.reads ?? [];
  };

async function runProbe(session: Session, probe: ProbeLimits) {
  const { records } = await session.run('rate-limit', { probe, seconds: 0 });
  const { probed, policies = [], status } = records.find((one) => one.kind === 'probe') ?? {};
  if (!probed)
    throw new VoidRun(`the probe was stopped${status === undefined ? '' : ` by status ${status}`}`);
  return { ...probed, declared: declaredBy(policies) };
}

const LONGEST_SETTLE_S = 60;
/** Windows after which a limiter is at rest: a sliding counter also counts the previous one. */
const SETTLED = 2.1;

/** Seconds until the limiter has reset: about two windows, at most a minute. */
function settleSeconds(limiter: LimiterFinding, seen: readonly Observation[]): number {
  const refused = seen.findIndex(({ ok }) => !ok);
  const released = seen.find(({ ok }, index) => ok && index > refused) ?? seen.at(-1)!;
  const { windowSeconds, burst = 0, ratePerSecond = 1 } = limiter;
  const window = Math.max(windowSeconds ?? 0, burst / ratePerSecond, (released.atMs - seen[0]!.atMs) / 1000);
  return Math.min(LONGEST_SETTLE_S, SETTLED * window);
}

const NAMES = {
  'fixed-window': 'fixed window',
  'sliding-log': 'sliding window (log of requests)',
  'sliding-counter': 'sliding window (two weighted counters)',
  'token-bucket': 'token bucket',
} as const;

/** How much better the kind explains the answers than the next best one. */
function certainty({ explained }: LimiterFinding, kind: LimiterKind): string {
  const share = (other: LimiterKind): string => percent(explained[other] ?? 0);
  const others = LIMITER_KINDS.filter((other) => other !== kind);
  const next = others.sort((one, other) => (explained[other] ?? 0) - (explained[one] ?? 0))[0]!;
  return `it explains ${share(kind)} of the answers; the next best kind, ${NAMES[next]}, ${share(next)}`;
}

function summaryLines(limiter: LimiterFinding, reason: string | undefined): string[] {
  const { kind, requests, alternatives, watchedSeconds, shaper, concurrencyLimit, scope } = limiter;
  const { retryAfter, fromRest, longRunPerSecond, declared, interval, limit, burst, prediction } = limiter;
  const cost = `${requests} requests in ${watchedSeconds} s; larger or slower limits${limiter.fullPages ? '' : ', and limits of items or bytes,'} are not excluded`;
  if (shaper) {
    const what = shaper.orOneWorker ? 'a server with a single worker, or a shaper' : 'a shaper';
    return [
      `${what}: delays requests beyond ${shaper.ratePerSecond}/s instead of rejecting them; queue of up to ${shaper.heldBack} requests`,
      cost,
    ];
  }
  const ofPages = limiter.fullPages ? [sayFullPages(limiter.fullPages)] : [];
  if (kind === 'none-found') {
    const isOfRequests = limiter.fullPages?.unit !== undefined;
    return [isOfRequests ? 'no limit of empty pages was found' : 'no limit was found', ...ofPages, cost];
  }
  if (concurrencyLimit !== undefined)
    return [
      `no rate limit, but a concurrency limit: ${concurrencyLimit} requests; the next one gets 429`,
      cost,
    ];
  const range = `between ${interval?.join(' and ')}`;
  const figures =
    limit !== undefined
      ? `${limit} requests in ${limiter.windowSeconds} s (${range})`
      : burst !== undefined && `burst of ${burst}, then ${limiter.ratePerSecond}/s (${range})`;
  const others = alternatives.map((other) => NAMES[other]).join(', ');
  const ofLater = prediction && `${prediction.asPredicted} of ${prediction.requests} later answers`;
  const isSurprised = prediction !== undefined && !isMet(prediction);
  return linesOf(
    fromRest && `from rest: ${fromRest.admitted} requests admitted within ${fromRest.seconds} s`,
    declared &&
      `RateLimit headers declare ${declared.limit} requests${declared.atLeast ? `, with a reset after ${declared.windowSeconds} s or more` : ` in ${declared.windowSeconds} s`}`,
    longRunPerSecond !== undefined && `under constant overload: ${longRunPerSecond}/s admitted`,
    ...(kind !== 'cannot-tell'
      ? [`${NAMES[kind]}: ${figures}`, certainty(limiter, kind), ofLater && `it predicts ${ofLater}`]
      : [
          others !== '' &&
            (isSurprised
              ? `at first like ${others}, which predicts only ${ofLater}: maybe a second limit, other clients, or a penalty for rejected requests`
              : reason
                ? `${others} are still possible`
                : alternatives.length > 1
                  ? `${others} fit equally well`
                  : `at first like ${others}, but the latency varies so much that other kinds explain the answers too`),
          figures !== false && `if the first: ${figures}`,
        ]),
    retryAfter === undefined
      ? 'Retry-After: absent, or no wait was tested'
      : `Retry-After: ${retryAfter.longEnough} of ${retryAfter.waits} waits were long enough${retryAfter.longEnough < retryAfter.waits ? `, worst ${retryAfter.worstShortSeconds} s short` : ''}`,
    scope === 'client' && 'each client has its own limit',
    scope === 'shared' && 'the clients share one limit: per address or for the whole server',
    scope === 'cannot-tell' && 'whether each client has its own limit was not decided',
    ...ofPages,
    cost,
  );
}

function sayFullPages({ admitted, unit, items, bytes, emptyAdmitted }: FullPages): string {
  const pages = `${admitted} full pages in succession (${number(admitted * items)} items, ${((admitted * bytes) / 1e6).toFixed(1)} MB)`;
  if (unit === undefined) return `${pages} were admitted: no limit of items or bytes was met`;
  const meanings = {
    requests: 'and empty pages are rejected as early: the limit counts requests',
    'items-or-bytes': 'although more empty pages are admitted: the limit counts items or bytes',
    'cannot-tell': `and after ${emptyAdmitted} empty pages one, too: the limit counts items, bytes or requests`,
  };
  return `after ${pages} one is rejected, ${meanings[unit]}`;
}
