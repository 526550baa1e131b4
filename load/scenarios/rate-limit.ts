/** rate-limit: which limiter the target has, in few requests. */
import { setTimeout } from 'node:timers/promises';
import { identifyLimiter, type LimiterFinding } from '../estimate/limiter-fit.ts';
import { LIMITER_KINDS, type LimiterKind } from '../estimate/limiter-models.ts';
import type { Observation } from '../estimate/limiter-probe.ts';
import type { LoadResult } from '../result.ts';
import { VoidRun, type Session } from '../run/session.ts';

export interface RateLimitOptions {
  readonly maxRequests: number;
  readonly maxSeconds: number;
}

export async function rateLimit(session: Session, probe: RateLimitOptions): Promise<Partial<LoadResult>> {
  let seen = await ask(session, probe);
  let limiter = identifyLimiter(seen);
  const left = probe.maxRequests - seen.length;
  const released = seen.some(({ ok }, index) => ok && seen[index - 1]?.ok === false);
  if (limiter.kind === 'cannot-tell' && released && left > seen.length) {
    session.tell('  these answers leave the kind open: asking once more');
    await setTimeout(settleSeconds(limiter, seen) * 1000);
    const again = await ask(session, { ...probe, maxRequests: left });
    const second = identifyLimiter(again);
    if (second.kind !== 'cannot-tell') [limiter, seen] = [second, again];
    limiter = { ...limiter, requests: probe.maxRequests - left + again.length };
  }
  if (limiter.retryAfterHonest === false) {
    session.findings.push({
      id: '7.2-retry-after-honest',
      message: 'a request sent after the wait that Retry-After named was refused again',
    });
  }
  const startedAt = seen[0]!.atMs;
  return {
    limiter,
    held: limiter.kind !== 'cannot-tell',
    summary:
      released || limiter.kind === 'none-found'
        ? words(limiter, probe)
        : [
            `refused from request ${seen.findIndex(({ ok }) => !ok) + 1} on, and nothing was let through again`,
            `the window may be longer than ${probe.maxSeconds} s: allow more with --max-seconds`,
          ],
    tables: {
      answers: seen.map(({ atMs, ok }) => ({ seconds: Math.round(atMs - startedAt) / 1000, ok: ok ? 1 : 0 })),
    },
  };
}

async function ask(session: Session, probe: RateLimitOptions): Promise<Observation[]> {
  const config = session.config('rate-limit', { probe, judgeEvery: 1, seconds: 0, pageSize: 1 });
  const run = await session.run('rate-limit', config);
  const stopped = run.lines.find((line) => line.startsWith('stopped '));
  if (stopped) throw new VoidRun(`the probe was ${stopped}`);
  const seen = readObservations(run.lines);
  if (seen.length === 0) throw new VoidRun('the probe sent nothing');
  return seen;
}

/** So long until a limiter that answered so has forgotten what was asked: two windows, a minute at most. */
function settleSeconds(limiter: LimiterFinding, seen: readonly Observation[]): number {
  const refused = seen.findIndex(({ ok }) => !ok);
  const released = seen.find(({ ok }, index) => ok && index > refused) ?? seen.at(-1)!;
  const { windowSeconds, burst = 0, ratePerSecond = 1 } = limiter;
  const window = Math.max(windowSeconds ?? 0, burst / ratePerSecond, (released.atMs - seen[0]!.atMs) / 1000);
  return Math.min(60, 2.1 * window);
}

/** Reads the lines `o at slack ok retryAfter`. */
export function readObservations(lines: readonly string[]): Observation[] {
  return lines
    .filter((line) => line.startsWith('o '))
    .map((line) => {
      const [at, slack, ok, retryAfter] = line.slice(2).split(' ');
      return {
        atMs: Number(at),
        slackMs: Number(slack),
        ok: ok === '1',
        ...(retryAfter ? { retryAfterSeconds: Number(retryAfter) } : {}),
      };
    });
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

function words(limiter: LimiterFinding, { maxRequests, maxSeconds }: RateLimitOptions): string[] {
  const { kind, requests, alternatives } = limiter;
  const cost = `${requests} requests were needed`;
  if (kind === 'none-found')
    return [`no limit was met within ${maxRequests} requests or ${maxSeconds} s`, cost];
  const figures = [
    limiter.limit === undefined ? '' : `${limiter.limit} requests in ${limiter.windowSeconds} s`,
    limiter.burst === undefined ? '' : `a burst of ${limiter.burst}, then ${limiter.ratePerSecond}/s`,
  ].filter(Boolean);
  const others = alternatives.map((other) => NAMES[other]).join(', ');
  return [
    kind === 'cannot-tell'
      ? `the kind can't be told${others ? `: ${others} fit equally well` : ': no known kind explains the answers'}`
      : `${NAMES[kind]}: ${figures.join(', ')}`,
    ...(kind === 'cannot-tell' && figures.length > 0 ? [figures.join(', ')] : []),
    ...(kind === 'cannot-tell' ? [] : [certainty(limiter, kind)]),
    limiter.retryAfterHonest === undefined
      ? 'Retry-After: not seen, or no wait was sat out'
      : `Retry-After: ${limiter.retryAfterHonest ? 'long enough wherever it was waited for' : 'too short'}`,
    cost,
  ];
}
