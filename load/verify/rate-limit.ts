/** `verify rate-limit`: the probe against limiters whose kind, limit and window are known. */
import { LIMITER_KINDS, type LimiterSettings } from '../estimate/limiter-models.ts';
import type { LimiterFinding } from '../estimate/limiter-fit.ts';
import { randomSource } from '../k6/lib/random.ts';
import { startSimulatedServer } from '../simulated/start.ts';
import { rateLimit } from '../scenarios/rate-limit.ts';
import { textTable } from '../scenarios/words.ts';
import { openSession, OPTIONS } from './session.ts';

export interface VerifyRateLimitOptions {
  readonly limiters: number;
  readonly seed: number;
  readonly parallel: number;
  readonly k6: string;
  readonly tell: (line: string) => void;
  /** Windows at most so long; default 4 s. */
  readonly longestWindowMs?: number;
}

export interface RateLimitRow {
  readonly truth: LimiterSettings;
  readonly found: LimiterFinding;
  readonly limitError: number;
  /** Of the window; of the rate for a token bucket. */
  readonly windowError: number;
  /** Whether the interval holds it. */
  readonly inside: boolean;
  readonly right: boolean;
  /** It says that it cannot tell. */
  readonly open: boolean;
  /** There and back. */
  readonly rttMs: number;
}

/** Limits of 20 to 150 in 1 to 4 s, a quarter of each kind; a bucket's burst is a third to twice its limit. */
export function drawLimiters(count: number, seed: number, longestWindowMs = 4000): LimiterSettings[] {
  const random = randomSource(seed);
  return Array.from({ length: count }, (_, index) => {
    const kind = LIMITER_KINDS[index % LIMITER_KINDS.length]!;
    const limit = 20 + Math.floor(random() * 130);
    const windowMs = Math.round(1000 + random() * (longestWindowMs - 1000));
    const burst = Math.max(5, Math.floor(limit * (0.33 + random() * 1.6)));
    const phaseMs = Math.floor(random() * windowMs);
    return { kind, limit, windowMs, ...(kind === 'token-bucket' ? { burst } : { phaseMs }) };
  });
}

export async function verifyRateLimit(options: VerifyRateLimitOptions): Promise<RateLimitRow[]> {
  const queue = drawLimiters(options.limiters, options.seed, options.longestWindowMs).map((truth, index) => ({
    truth,
    index,
  }));
  const rows: RateLimitRow[] = [];
  await Promise.all(
    Array.from({ length: options.parallel }, async () => {
      for (let next = queue.shift(); next; next = queue.shift()) {
        const row = await one(next.truth, options);
        rows[next.index] = row;
        options.tell(`${row.truth.kind}: ${row.right ? 'right' : `found ${row.found.kind}`}`);
      }
    }),
  );
  return rows;
}

async function one(truth: LimiterSettings, options: VerifyRateLimitOptions): Promise<RateLimitRow> {
  const rttMs = Math.round(80 * randomSource(options.seed * 31 + truth.limit)());
  await using server = await startSimulatedServer({ limiter: truth, rttMs });
  const session = await openSession(options.k6, server.target(), { seed: options.seed }, rateLimit);
  const found = (await rateLimit.run(session, { ...OPTIONS, maxRequests: 3000, maxSeconds: 90 })).limiter!;
  return { truth, found, rttMs, ...errorsOf(truth, found) };
}

/** How far the figures are from the truth, and whether they and the kind are right, open, or wrong. */
export function errorsOf(truth: LimiterSettings, found: LimiterFinding) {
  const bucket = truth.kind === 'token-bucket';
  const paced = bucket ? (truth.limit * 1000) / truth.windowMs : truth.windowMs / 1000;
  const [low, high] = found.interval ?? [NaN, NaN];
  const limitError = (found.limit ?? found.burst ?? NaN) / (bucket ? truth.burst! : truth.limit) - 1;
  const windowError = ((bucket ? found.ratePerSecond : found.windowSeconds) ?? NaN) / paced - 1;
  const near = Math.abs(limitError) <= 0.05 && Math.abs(windowError) <= 0.05;
  const right = found.kind === truth.kind && near;
  const inside = paced >= low && paced <= high;
  return { limitError, windowError, inside, right, open: found.kind === 'cannot-tell' };
}

export function rateLimitTable(rows: readonly RateLimitRow[]): { text: string; ok: boolean } {
  const percent = (share: number): string => (Number.isNaN(share) ? '' : `${(share * 100).toFixed(1)} %`);
  const right = rows.filter((row) => row.right).length;
  const table = textTable(
    [
      'kind',
      'round trip',
      'limit',
      'window or rate',
      'found',
      'limit error',
      'window error',
      'interval',
      'requests',
      '× limit',
      'also fits',
      'right',
    ],
    rows.map(({ truth, found, limitError, windowError, right: is, open, rttMs }) => {
      const bucket = truth.kind === 'token-bucket';
      const limit = bucket ? truth.burst! : truth.limit;
      return [
        truth.kind,
        `${rttMs} ms`,
        limit,
        bucket
          ? `${((truth.limit * 1000) / truth.windowMs).toFixed(1)}/s`
          : `${(truth.windowMs / 1000).toFixed(2)} s`,
        found.kind,
        percent(limitError),
        percent(windowError),
        found.interval?.join('…') ?? '',
        found.requests,
        (found.requests / limit).toFixed(1),
        found.alternatives.join(' '),
        is ? 'yes' : open ? 'cannot tell' : 'no',
      ];
    }),
  );
  const times = rows
    .map(({ truth, found }) => found.requests / (truth.burst ?? truth.limit))
    .sort((a, b) => a - b);
  // A kind that was not told has no figures.
  const worst = (of: (row: RateLimitRow) => number): number =>
    Math.max(...rows.map((row) => Math.abs(of(row))).filter((error) => !Number.isNaN(error)));
  const open = rows.filter((row) => !row.right && row.open).length;
  const named = rows.filter((row) => row.right);
  const inside = named.filter((row) => row.inside).length;
  const sum = `${right} of ${rows.length} right, ${open} open; worst error of the limit ${percent(worst((row) => row.limitError))}, of the window ${percent(worst((row) => row.windowError))}, inside its interval ${inside} of ${named.length}; requests: median ${times[times.length >> 1]?.toFixed(1)} × the limit`;
  return { text: `${table}\n\n${sum}`, ok: right + open === rows.length && right >= rows.length * 0.7 };
}
