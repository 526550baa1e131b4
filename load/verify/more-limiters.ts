/** `verify more-limiters`: two stacked, shapers, limits that count refused requests, neighbours; in virtual time. */
import { identifyLimiter, type LimiterFinding } from '../estimate/limiter-fit.ts';
import { createLimiter, type LimiterSettings } from '../estimate/limiter-models.ts';
import { randomSource } from '../k6/lib/random.ts';
import { probeVirtually, type Decide } from '../simulated/probe.ts';
import type { TruthRow } from './truth-table.ts';

const LIMITS = { maxRequests: 5000, maxSeconds: 360 };
const NEAR = 0.05;

interface Drawn {
  readonly server: string;
  readonly truth: string;
  readonly decide: Decide;
  /** The error of the figure; undefined where none is told. */
  readonly error: (found: LimiterFinding) => number | undefined;
  readonly right: (found: LimiterFinding) => boolean;
}

const DRAW: readonly ((random: () => number) => Drawn)[] = [
  (random) => {
    const limit = 20 + Math.floor(40 * random());
    const windowMs = 2000 + Math.round(3000 * random());
    const settings: LimiterSettings = { kind: 'fixed-window', limit, windowMs, phaseMs: windowMs * random() };
    const [fast, slow] = [createLimiter(settings), createLimiter({ ...HOUR, limit: 1000 })];
    return {
      server: 'stacked: a fast one, and 1,000 an hour',
      truth: `${limit} in ${(windowMs / 1000).toFixed(2)} s`,
      decide: (atMs) => ({ waitMs: fast.ask(atMs) || slow.ask(atMs) }),
      error: (found) => found.limit && found.limit / limit - 1,
      right: ({ kind }) => kind === 'fixed-window',
    };
  },
  (random) => {
    const perSecond = 8 + 20 * random();
    const burst = 10 + Math.floor(30 * random());
    const bucket: LimiterSettings = { kind: 'token-bucket', limit: perSecond, windowMs: 1000, burst };
    const [fast, slow] = [createLimiter(bucket), createLimiter({ ...HOUR, limit: 1000 })];
    return {
      server: 'stacked: a bucket, and 1,000 an hour',
      truth: `${perSecond.toFixed(1)}/s, burst ${burst}`,
      decide: (atMs) => ({ waitMs: fast.ask(atMs) || slow.ask(atMs) }),
      error: (found) => found.ratePerSecond && found.ratePerSecond / perSecond - 1,
      right: ({ kind }) => kind === 'token-bucket',
    };
  },
  (random) => {
    const perSecond = 10 + 60 * random();
    let freeAtMs = 0;
    return {
      server: 'a shaper that delays',
      truth: `${perSecond.toFixed(1)}/s`,
      decide: (atMs) => {
        freeAtMs = Math.max(freeAtMs, atMs) + 1000 / perSecond;
        return { waitMs: 0, delayMs: freeAtMs - 1000 / perSecond - atMs };
      },
      error: ({ shaper }) => shaper && shaper.ratePerSecond / perSecond - 1,
      right: ({ shaper }) => shaper !== undefined,
    };
  },
  (random) => {
    const limit = 15 + Math.floor(30 * random());
    const windowMs = 1500 + 1500 * random();
    const times: number[] = [];
    return {
      server: 'refused requests count',
      truth: `${limit} in ${(windowMs / 1000).toFixed(2)} s, Retry-After honest`,
      decide: (atMs) => {
        while (times.length > 0 && times[0]! <= atMs - windowMs) times.shift();
        times.push(atMs);
        return { waitMs: times.length > limit ? windowMs : 0 };
      },
      error: () => undefined,
      right: ({ retryAfterHonest }) => retryAfterHonest !== false,
    };
  },
  (random) => {
    const limit = 30 + Math.floor(30 * random());
    const shared = createLimiter({ kind: 'fixed-window', limit, windowMs: 2000 });
    let lastMs = 0;
    return {
      server: 'a neighbour on the same quota',
      truth: `${limit} in 2.00 s for both, Retry-After honest`,
      decide: (atMs) => {
        for (let at = lastMs; lastMs > 0 && at < atMs; at += 100) if (random() < 0.9) shared.ask(at);
        lastMs = atMs;
        return { waitMs: shared.ask(atMs) };
      },
      error: () => undefined,
      right: ({ retryAfterHonest }) => retryAfterHonest !== false,
    };
  },
];

const HOUR = { kind: 'fixed-window', windowMs: 3_600_000 } as const;

export function verifyMoreLimiters(servers: number, seed: number): TruthRow[] {
  const random = randomSource(seed * 613);
  return Array.from({ length: servers }, (_, index) => {
    const { server, truth, decide, error: errorOf, right } = DRAW[index % DRAW.length]!(random);
    const rttMs = Math.round(60 * random());
    const way = { rttMs, jitterMs: 0.2 + 0.5 * random() };
    const found = identifyLimiter(probeVirtually(decide, way, LIMITS, seed + index));
    const error = errorOf(found);
    const open = found.kind === 'cannot-tell' && !found.shaper;
    const verdict = right(found) && Math.abs(error ?? 0) <= NEAR ? 'right' : open ? 'undecided' : 'wrong';
    return {
      server: `${server}, ${rttMs} ms away`,
      truth,
      found: said(found),
      ...(error === undefined ? {} : { error }),
      verdict,
    };
  });
}

function said({
  kind,
  shaper,
  limit,
  windowSeconds,
  burst,
  ratePerSecond,
  retryAfterHonest,
}: LimiterFinding) {
  const figures =
    limit === undefined ? `burst ${burst}, ${ratePerSecond}/s` : `${limit} in ${windowSeconds} s`;
  if (shaper) return `shaper, ${shaper.ratePerSecond}/s`;
  return `${kind}${(limit ?? burst) ? `, ${figures}` : ''}${retryAfterHonest === false ? ', Retry-After lies' : ''}`;
}
