/** Tests the estimators against simulated targets with known parameters, in virtual time. */
import { expect, test } from '@playwright/test';
import { SEED } from '../../fixtures/own-tests/seeded.ts';
import { mergeParts } from '../commands/merge.ts';
import { exponential, randomSource } from '../k6/lib/random.ts';
import { WorkQueue } from '../plan/simulate.ts';
import { SLO } from '../zoo/capacities.ts';
import { type Decide, limitedBy, probeVirtually } from '../zoo/limiters.ts';
import { inOrder, limited, queueing, stepsAgainst, type VirtualRuns, warming } from '../zoo/targets.ts';
import { searchCapacity } from './capacity.ts';
import { SEARCH_DEFAULTS, type RunStep } from './figures.ts';
import { identifyLimiter } from './limiter-fit.ts';
import { LIMITER_KINDS } from './limiter-models.ts';
import { concurrencyLimitOf } from './other-limits.ts';
import { judgeStep, saturation, shareVerdict } from './step.ts';

const exponentialService = (workers: number, serviceMs: number) =>
  ({ workers, serviceMs, distribution: 'exponential' }) as const;

test('measures saturation only under a backlog', async () => {
  const samplesAt = async (rate: number) =>
    (await stepsAgainst(inOrder(queueing(exponentialService(2, 10), 3)), 3)(rate, 10)).samples;
  const [quiet, busy] = [await samplesAt(120), await samplesAt(400)];
  expect(saturation(quiet, 10)).toBeUndefined();
  expect(Math.abs(saturation(busy, 10)! / 200 - 1)).toBeLessThan(0.06);
  expect(judgeStep(400, 10, busy, SLO).held).toBe(false);
  expect(judgeStep(120, 10, quiet, SLO).held).toBe(true);
});

const NEAR = { rttMs: 1, jitterMs: 0.3 };
const probe = (decide: Decide, maxSeconds = 60, network = NEAR) =>
  identifyLimiter(probeVirtually(decide, network, { maxRequests: 2000, maxSeconds }, 1));

test('limiter: reports cannot-tell if timing is less certain than the interval between tokens', () => {
  const bucket = limitedBy({ kind: 'token-bucket', limit: 200, windowMs: 1000, burst: 100 });
  expect(probe(bucket, 120, { rttMs: 40, jitterMs: 15 }).kind).toBe('cannot-tell');
});

test('limiter: distinguishes a concurrency limit from a rate limit at any round-trip time', () => {
  for (const [atOnce, rttMs] of [
    [7, 50],
    [16, 10],
    [40, 30],
  ] as const)
    // prettier-ignore
    for (const spread of [false, true]) {
      const random = randomSource(atOnce);
      let doneMs: number[] = [];
      const decide = (atMs: number) => {
        doneMs = doneMs.filter((ms) => ms > atMs);
        if (doneMs.length >= atOnce) return { waitMs: 1000 };
        const delayMs = spread ? exponential(random, 80) : 80;
        doneMs.push(atMs + delayMs);
        return { waitMs: 0, delayMs };
      };
      const found = probe(decide, 60, { rttMs, jitterMs: 0.4 });
      expect(found).toMatchObject({ kind: 'cannot-tell', atOnce: expect.closeTo(atOnce, -0.5) });
    }
});

test('limiter: does not take a slow server for a shaper', () => {
  for (const workers of [1, 4]) {
    const queue = new WorkQueue(workers);
    const decide = (atMs: number) => ({ waitMs: 0, delayMs: queue.finishAt(atMs, 20) - atMs });
    expect(probe(decide).kind).toBe('none-found');
  }
});

test('limiter: recognises the limit of a server with a single worker', () => {
  const queue = new WorkQueue(1);
  const limiter = limitedBy({ kind: 'fixed-window', limit: 25, windowMs: 3000 });
  const found = probe((atMs) => {
    const { waitMs } = limiter(atMs);
    return { waitMs, delayMs: waitMs > 0 ? 0 : queue.finishAt(atMs, 10) - atMs };
  });
  expect([found.kind, ...found.alternatives]).toContain('fixed-window');
});

test('limiter: reports none-found without a limiter, and cannot-tell for random rejections', () => {
  expect(probe(() => ({ waitMs: 0 }))).toMatchObject({ kind: 'none-found', requests: 2000 });
  const random = randomSource(5);
  const seen = Array.from({ length: 200 }, (_, i) => ({ atMs: i * 20, slackMs: 0.5, ok: random() < 0.5 }));
  expect(identifyLimiter({ seen }).kind).toBe('cannot-tell');
});

for (const kind of LIMITER_KINDS)
  test(`limiter: does not name a ${kind} after a probe shorter than its window`, () => {
    for (const phaseMs of [0, 4_000, 16_000])
      expect(probe(limitedBy({ kind, limit: 60, windowMs: 20_000, phaseMs }), 8).kind).toBe('cannot-tell');
  });

test('merge: counts unsent requests as failed, and judges the SLO by the number of late requests', () => {
  const run = { runId: 'a', scenario: 'smoke', parts: 1, segment: '0:1', seconds: 10 };
  const of = (requests: number, late = 0) => {
    const shared = { ...run, due: 100, p99Ms: 500, errorRate: 0.001 };
    const latency = { requests, p50Ms: 20, p99Ms: 498 };
    return mergeParts([{ seconds: 10, latency, counts: { pages: requests, late }, shared }]);
  };
  expect(of(100)).toMatchObject({ held: true, errorRate: 0, requestsPerSecond: 10 });
  expect(of(1)).toMatchObject({ held: false, errorRate: 0.99 });
  expect(of(100, 2).held).toBe(false);
  const alone = (p99Ms: number) => ({ seconds: 10, latency: { requests: 50, p50Ms: 20, p99Ms }, counts: {} });
  expect(mergeParts([alone(90), alone(70)])).toMatchObject({ requests: 100, p50Ms: 20, p99Ms: 90 });
});

const search = (steps: RunStep, more: object = {}) =>
  searchCapacity(steps, { ...SEARCH_DEFAULTS, slo: SLO, startRate: 20, ...more });
const searchOf = (target: VirtualRuns, more?: object) => search(stepsAgainst(target, 1), more);

test('capacity: does not confirm a quota whose window is longer than the search', async () => {
  const hourly = limited({ kind: 'fixed-window', limit: 400, windowMs: 3_600_000 });
  const found = await searchOf(inOrder(hourly));
  expect(found).toMatchObject({ limitedBy: 'quota', confirmed: false });
  expect(found.unconfirmed).toContain('window');
});

test('capacity: distinguishes a rate limit from a concurrency limit, however slow the answers', async () => {
  for (const kind of LIMITER_KINDS)
    for (const [workers, serviceMs] of [
      [60, 100],
      [1, 20],
      [1, 26],
    ] as const) {
      // prettier-ignore
      const rest = queueing(exponentialService(workers, serviceMs), 1);
      const target = limited({ kind, limit: 40, windowMs: 1000 }, false, rest);
      const { samples } = await stepsAgainst(inOrder(target), SEED)(90, 20);
      expect(concurrencyLimitOf(samples), `${kind} in front of ${workers} × ${serviceMs} ms`).toBeUndefined();
    }
});

test('capacity: reports none-found if the highest rate holds', async () => {
  const fast = queueing({ workers: 100, serviceMs: 1, distribution: 'deterministic' }, 1);
  const found = await searchOf(inOrder(fast), { maxRate: 100 });
  expect(found).toMatchObject({ limitedBy: 'none-found', requestsPerSecond: 100, confirmed: true });
});

test('capacity: ends without confirmation if the target keeps getting faster', async () => {
  const found = await searchOf(inOrder(warming(exponentialService(1, 20), 400, [0, 4000], 1)));
  expect(found.confirmed && !found.gotFaster).toBe(false);
  expect(found.watchedSeconds).toBeLessThan(1000);
});

test('capacity: one void step does not affect the others', async () => {
  const right = stepsAgainst(inOrder(queueing(exponentialService(3, 20), 2)), 2);
  let steps = 0;
  const found = await search(async (rate, seconds) => {
    steps += 1;
    const run = await right(rate, seconds);
    return steps === 7 ? { ...run, void: 'the machine stalled' } : run;
  });
  expect(found.confirmed).toBe(true);
  expect(Math.abs(found.requestsPerSecond / 145 - 1)).toBeLessThan(0.1);
});

test('capacity: confirms no figure if every step is void', async () => {
  const right = stepsAgainst(inOrder(queueing(exponentialService(1, 400), 2)), 2);
  const found = await search(async (rate, seconds) => ({
    ...(await right(rate, seconds)),
    void: 'the machine is busy',
  }));
  expect(found).toMatchObject({ confirmed: false, unconfirmed: 'the machine is busy' });
  // Void steps must not drive the rate up to the maximum.
  expect(Math.max(...found.steps.map(({ offered }) => offered))).toBeLessThan(SEARCH_DEFAULTS.maxRate / 2);
});

test('judges a share by significance instead of a quantile of few samples', () => {
  expect(shareVerdict(0, 32, 0.01)).toBe('undecided');
  expect(shareVerdict(0, 300, 0.01)).toBe('holds');
  expect(shareVerdict(4, 300, 0.01)).toBe('undecided');
  expect(shareVerdict(10, 300, 0.01)).toBe('breaks');
  expect(shareVerdict(2, 32, 0.001)).toBe('breaks');
});
