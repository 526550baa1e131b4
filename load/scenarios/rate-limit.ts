/** rate-limit: identifies the target's limiter with few requests. */
import { setTimeout } from 'node:timers/promises';
import { SOME_WINDOW } from '../../engine/client/page.ts';
import { declaredBy } from '../estimate/quota-search.ts';
import { identifyLimiter, type LimiterFinding } from '../estimate/limiter-fit.ts';
import { LIMITER_KINDS, type LimiterKind } from '../estimate/limiter-models.ts';
import {
  type Observation,
  type Probed,
  type ProbeLimits,
  replayProbe,
  type Reply,
} from '../estimate/limiter-probe.ts';
import type { LoadRecord } from '../k6/lib/record.ts';
import type { LoadResult } from '../result.ts';
import { type Session, VoidRun } from '../run/session.ts';
import { FLAGS, type Scenario, type ScenarioOptions } from './flags.ts';

export const rateLimit: Scenario = {
  about: 'which limiter there is, its limit, window and burst',
  flags: [FLAGS.maxRequests(), FLAGS.maxSeconds()],
  // A fixed window: the limiter would count the requests of a search for one.
  window: SOME_WINDOW,
  run: probe,
};

type RateLimitOptions = Pick<ScenarioOptions, 'maxRequests' | 'maxSeconds'>;

async function probe(session: Session, limits: RateLimitOptions): Promise<Partial<LoadResult>> {
  let probed = await runProbe(session, limits);
  let limiter = identifyLimiter(probed);
  const { declared } = probed;
  const left = limits.maxRequests - limiter.requests;
  const open = limiter.kind === 'cannot-tell' && !limiter.shaper && limiter.atOnce === undefined;
  if (open && !probed.cutBy && left > probed.seen.length) {
    session.tell('  these answers leave the kind open: asking once more');
    await setTimeout(settleSeconds(limiter, probed.seen) * 1000);
    const again = await runProbe(session, { ...limits, maxRequests: left });
    const second = identifyLimiter(again);
    if (second.kind !== 'cannot-tell') [limiter, probed] = [second, again];
    limiter = { ...limiter, requests: limits.maxRequests - left + second.requests };
  }
  if (limiter.retryAfterHonest === false) {
    session.findings.push({
      id: '7.2-retry-after-honest',
      message: 'a request sent after the wait that Retry-After named was refused again',
    });
  }
  const spare = limits.maxRequests - limiter.requests;
  const scope =
    limiter.shaper || limiter.atOnce !== undefined
      ? undefined
      : await scopeOf(session, limiter, probed, spare);
  limiter = { ...limiter, ...(scope ? { scope } : {}), ...(declared ? { declared } : {}) };
  const startedAt = probed.seen[0]!.atMs;
  const reason = limiter.kind === 'cannot-tell' ? voidReason(limiter, probed, limits) : undefined;
  return {
    limiter,
    ...(reason ? { void: reason } : {}),
    held: true,
    summary: summaryLines(limiter, limits, reason),
    tables: {
      answers: probed.seen.map(({ atMs, ok }) => ({
        seconds: Math.round(atMs - startedAt) / 1000,
        ok: ok ? 1 : 0,
      })),
    },
  };
}

/** Why the run is void. Several kinds that fit are a result; too few answers, or no kind that fits, are not. */
function voidReason(
  limiter: LimiterFinding,
  { cutBy }: Probed,
  limits: RateLimitOptions,
): string | undefined {
  if (limiter.shaper || limiter.atOnce !== undefined) return undefined;
  if (cutBy === 'maxSeconds')
    return `${limits.maxSeconds} s were too short to tell: allow more with --max-seconds`;
  if (cutBy) return `${limits.maxRequests} requests were too few to tell: allow more with --max-requests`;
  return limiter.alternatives.length > 0 ? undefined : 'no known kind of limiter explains the answers';
}

/** Requests that another client sends once the first client is rejected. */
const OTHERS = 20;
/** The limit is shared if a smaller share than SAME is admitted, and separate above ANOTHER. */
const SAME = 0.4;
const ANOTHER = 0.7;
const SCOPE_TRIES = 3;

/** Whether each client has a limit of its own; undefined with a single client, or if undecided. */
async function scopeOf(
  session: Session,
  limiter: LimiterFinding,
  { seen }: Probed,
  left: number,
): Promise<LimiterFinding['scope']> {
  const { clients } = session.prepared.base;
  const first = seen.findIndex(({ ok }) => !ok);
  // The other client alone must not exhaust the limit.
  const count = Math.min(OTHERS, Math.floor(0.6 * first));
  if (clients.length < 2 || limiter.kind === 'none-found' || count < 3) return undefined;
  session.tell('  whose requests it counts: another client asks when the first one is refused');
  const needed = Math.ceil(1.5 * first) + 2 * count;
  for (let tries = 1; tries <= SCOPE_TRIES && tries * needed <= left; tries += 1) {
    await setTimeout(settleSeconds(limiter, seen) * 1000);
    const scope = await probeScope(session, count, needed);
    if (scope) return scope;
  }
  return undefined;
}

/** Undefined if the limit may have been refilled before the other client's requests. */
async function probeScope(
  session: Session,
  count: number,
  maxRequests: number,
): Promise<LimiterFinding['scope']> {
  const probe = { maxRequests, maxSeconds: 60, other: { client: 1, count } };
  const run = await session.run(
    'rate-limit',
    session.config('rate-limit', { probe, seconds: 60, pageSize: 1 }),
  );
  const answers = run.records.flatMap((one) => (one.kind === 'answer' ? [one] : []));
  const refusedAt = answers.findIndex(({ client, status }) => client === 0 && status === 429);
  if (refusedAt < 0) return undefined;
  const othersAt = answers.findIndex(({ client }, index) => index > refusedAt && client === 1);
  const passed = (from: number, who: number): number =>
    answers.slice(from, from + count).filter(({ client, status }) => client === who && status === 200)
      .length / count;
  if (othersAt < 0) return undefined;
  const others = passed(othersAt, 1);
  if (others < SAME) return 'shared';
  return others > ANOTHER && passed(othersAt + count, 0) < SAME ? 'client' : undefined;
}

async function runProbe(
  session: Session,
  probe: RateLimitOptions,
): Promise<Probed & Pick<LimiterFinding, 'declared'>> {
  const config = session.config('rate-limit', { probe, seconds: 0, pageSize: 1 });
  const run = await session.run('rate-limit', config);
  const end = run.records.find((one) => one.kind === 'end');
  if (end?.status !== undefined) throw new VoidRun(`the probe was stopped by status ${end.status}`);
  const probed = probedOf(run.records, probe);

  if (probed.seen.length === 0) throw new VoidRun('the probe sent nothing');
  const declared = declaredBy(run.records.flatMap((one) => (one.kind === 'answer' ? [one] : [])));
  return { ...probed, ...(declared ? { declared } : {}) };
}

/** Seconds until the limiter has reset: about two windows, at most a minute. */
function settleSeconds(limiter: LimiterFinding, seen: readonly Observation[]): number {
  const refused = seen.findIndex(({ ok }) => !ok);
  const released = seen.find(({ ok }, index) => ok && index > refused) ?? seen.at(-1)!;
  const { windowSeconds, burst = 0, ratePerSecond = 1 } = limiter;
  const window = Math.max(windowSeconds ?? 0, burst / ratePerSecond, (released.atMs - seen[0]!.atMs) / 1000);
  return Math.min(60, 2.1 * window);
}

function probedOf(records: readonly LoadRecord[], limits: ProbeLimits): Probed {
  const replies = records.flatMap((one): Reply[] => {
    if (one.kind !== 'answer' || one.client === 1) return [];
    const { sentMs, rttMs, status, retryAfterSeconds } = one;
    return [{ sentMs, rttMs, ok: status === 200, retryAfterSeconds }];
  });
  return replayProbe(replies, limits);
}

const NAMES = {
  'fixed-window': 'a fixed window',
  'sliding-log': 'a sliding window (a log of requests)',
  'sliding-counter': 'a sliding window (two weighted counters)',
  'token-bucket': 'a token bucket',
} as const;

/** How much better the kind explains the answers than the next best one. */
function certainty({ explained }: LimiterFinding, kind: LimiterKind): string {
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  const next = LIMITER_KINDS.filter((other) => other !== kind)
    .map((other) => [other, explained[other] ?? 0] as const)
    .sort(([, one], [, other]) => other - one)[0]!;
  return `it explains ${percent(explained[kind] ?? 0)} of the answers; the next best, ${NAMES[next[0]]}, ${percent(next[1])}`;
}

function summaryLines(
  limiter: LimiterFinding,
  { maxRequests, maxSeconds }: RateLimitOptions,
  reason?: string,
): string[] {
  const { kind, requests, alternatives, watchedSeconds, shaper, atOnce, scope, retryAfter } = limiter;
  const cost = `${requests} requests were sent in ${watchedSeconds} s; slower limits beyond so many, and limits of items or bytes, are not excluded`;
  if (shaper) {
    const worker = 'a server that works on one request at a time';
    const what = shaper.orOneWorker ? ['a shaper', worker] : ['a shaper'];
    if (shaper.orOneWorker === 'rather') what.reverse();
    return [
      `${what.join(', or ')}: requests beyond ${shaper.ratePerSecond}/s are delayed, not refused; up to ${shaper.heldBack} were held back at once`,
      cost,
    ];
  }
  if (kind === 'none-found') return [`no limit was met`, cost];
  if (atOnce !== undefined)
    return [`no limit of requests in time: ${atOnce} at once are answered, and the next one with 429`, cost];
  const between = `between ${limiter.interval?.join(' and ')}`;
  const figures = [
    limiter.limit === undefined ? '' : `${limiter.limit} requests in ${limiter.windowSeconds} s (${between})`,
    limiter.burst === undefined
      ? ''
      : `a burst of ${limiter.burst}, then ${limiter.ratePerSecond}/s (${between})`,
  ].filter(Boolean);
  const others = alternatives.map((other) => NAMES[other]).join(', ');
  const named =
    kind === 'cannot-tell'
      ? [
          ...(others ? [`${others} ${reason ? 'are still possible' : 'fit equally well'}`] : []),
          ...(figures.length > 0 ? [`if the first: ${figures.join(', ')}`] : []),
        ]
      : [`${NAMES[kind]}: ${figures.join(', ')}`, certainty(limiter, kind)];
  const { fromRest, longRunPerSecond, declared } = limiter;
  return [
    ...(fromRest ? [`from rest ${fromRest.admitted} were admitted within ${fromRest.seconds} s`] : []),
    ...(declared
      ? [
          `its headers declare ${declared.limit} requests ${declared.atLeast ? `, given anew after ${declared.windowSeconds} s at least` : `in ${declared.windowSeconds} s`}`,
        ]
      : []),
    ...(longRunPerSecond ? [`in the long run ${longRunPerSecond}/s are admitted while more is asked`] : []),
    ...named,
    retryAfter === undefined
      ? 'Retry-After: not seen, or no wait was sat out'
      : `Retry-After: ${retryAfter.longEnough} of ${retryAfter.waits} waits were long enough${retryAfter.longEnough < retryAfter.waits ? `, worst ${retryAfter.worstShortSeconds} s short` : ''}`,
    ...(scope === 'client'
      ? ['each client has a limit of its own']
      : scope === 'shared'
        ? ['both clients use up the same limit: it is for this address or for the whole server']
        : []),
    cost,
  ];
}
