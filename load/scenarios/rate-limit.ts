/** rate-limit: which limiter the target has, in few requests. */
import { identifyLimiter, type LimiterFinding } from '../estimate/limiter-fit.ts';
import type { Observation } from '../estimate/limiter-probe.ts';
import type { LoadResult } from '../result.ts';
import { VoidRun, type Session } from '../run/session.ts';

export interface RateLimitOptions {
  readonly maxRequests: number;
  readonly maxSeconds: number;
}

export async function rateLimit(session: Session, probe: RateLimitOptions): Promise<Partial<LoadResult>> {
  const config = session.config('rate-limit', { probe, judgeEvery: 1, seconds: 0, pageSize: 1 });
  const run = await session.run('rate-limit', config);
  const stopped = run.lines.find((line) => line.startsWith('stopped '));
  if (stopped) throw new VoidRun(`the probe was ${stopped}`);
  const seen = readObservations(run.lines);
  if (seen.length === 0) throw new VoidRun('the probe sent nothing');
  const limiter = identifyLimiter(seen);
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
    summary: words(limiter, probe),
    tables: {
      answers: seen.map(({ atMs, ok }) => ({ seconds: Math.round(atMs - startedAt) / 1000, ok: ok ? 1 : 0 })),
    },
  };
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
    ...(kind !== 'cannot-tell' && others ? [`almost as good a fit: ${others}`] : []),
    limiter.retryAfterHonest === undefined
      ? 'Retry-After: not seen, or no wait was sat out'
      : `Retry-After: ${limiter.retryAfterHonest ? 'long enough wherever it was waited for' : 'too short'}`,
    cost,
  ];
}
