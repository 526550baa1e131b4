/** The estimators against simulated targets, whose truth is known and whose time costs nothing. */
import { expect, test } from '@playwright/test';
import { countOf, bucketOf, histogramOf, mergeHistograms, quantileBucket } from '../k6/lib/histogram.ts';
import { poissonArrivals, randomSource } from '../k6/lib/random.ts';
import { drawServers, trueCapacity } from '../verify/capacity.ts';
import { drawLimiters } from '../verify/rate-limit.ts';
import { searchCapacity } from './capacity.ts';
import { depthShape, median, type PageSample } from './depth.ts';
import { identifyLimiter } from './limiter-fit.ts';
import { createLimiter, LIMITER_KINDS, type LimiterSettings } from './limiter-models.ts';
import { probeLimiter, type Observation, type Probed } from './limiter-probe.ts';
import { mergeParts } from './merge.ts';
import { plan } from './plan.ts';
import { simulate } from './queue.ts';
import { judgeStep, saturation } from './step.ts';
import { fitUsl } from './usl.ts';

const SLO = { p99Ms: 500, errorRate: 0.001 };
const SETTINGS = {
  slo: SLO,
  startRate: 20,
  maxRate: 3000,
  bracketSeconds: 4,
  overloadSeconds: 15,
  stepSeconds: 12,
  confirmSeconds: 30,
};

test('capacity: the figure is near the truth, and the interval holds it', async () => {
  const servers = drawServers(10, 42);
  const errors: number[] = [];
  let held = 0;
  for (const [index, service] of servers.entries()) {
    const truth = trueCapacity(service, SLO.p99Ms);
    let step = 0;
    const found = await searchCapacity(
      async (rate, seconds) =>
        simulate(service, rate, seconds, index * 1000 + (step += 1)).map(({ dueMs, latencyMs }) => ({
          dueMs,
          latencyMs,
          serviceMs: latencyMs,
          status: 200,
        })),
      { ...SETTINGS, seed: index },
    );
    expect(found.limitedBy).toBe('saturation');
    errors.push(Math.abs(found.requestsPerSecond / truth - 1));
    if (found.interval[0] <= truth && truth <= found.interval[1]) held += 1;
  }
  expect(median(errors)).toBeLessThan(0.05);
  expect(Math.max(...errors)).toBeLessThan(0.1);
  expect(held).toBeGreaterThanOrEqual(9);
});

test('capacity: a target that breaks without a queue is found by bisection', async () => {
  // Above 130/s every tenth answer is an error, at once: no queue explains that.
  const found = await searchCapacity(
    async (rate, seconds) =>
      poissonArrivals(rate, rate, seconds).map((dueMs, index) => ({
        dueMs,
        latencyMs: 5,
        serviceMs: 5,
        status: rate > 130 && index % 10 === 0 ? 503 : 200,
      })),
    { ...SETTINGS, seed: 1 },
  );
  expect(found.basis).toBe('bisection');
  expect(found.interval[0]).toBeLessThanOrEqual(130);
  expect(found.interval[1]).toBeGreaterThanOrEqual(130);
});

test('capacity: a quota is told from saturation', async () => {
  const limiter = { kind: 'token-bucket', limit: 100, windowMs: 1000, burst: 50 } as const;
  let started = 0;
  const found = await searchCapacity(
    async (rate, seconds) => {
      const one = createLimiter(limiter);
      return poissonArrivals((started += 1), rate, seconds).map((dueMs) => ({
        dueMs,
        latencyMs: 2,
        serviceMs: 2,
        status: one.ask(dueMs) > 0 ? 429 : 200,
      }));
    },
    { ...SETTINGS, seed: 1 },
  );
  expect(found.limitedBy).toBe('quota');
  expect(Math.abs(found.requestsPerSecond / 100 - 1)).toBeLessThan(0.1);
});

test('capacity: nothing found up to the highest rate', async () => {
  const fast = { workers: 100, serviceMs: 1, distribution: 'deterministic' } as const;
  const found = await searchCapacity(
    async (rate, seconds) =>
      simulate(fast, rate, seconds, 1).map((one) => ({ ...one, serviceMs: one.latencyMs, status: 200 })),
    { ...SETTINGS, maxRate: 100, seed: 1 },
  );
  expect(found).toMatchObject({ limitedBy: 'none-found', requestsPerSecond: 100 });
});

test('a step knows its saturation only from a backlog', () => {
  const service = { workers: 2, serviceMs: 10, distribution: 'exponential' } as const;
  const samples = (rate: number) =>
    simulate(service, rate, 10, 3).map((one) => ({ ...one, serviceMs: one.latencyMs, status: 200 }));
  expect(saturation(samples(120), 10)).toBeUndefined();
  const known = saturation(samples(400), 10)!;
  expect(Math.abs(known.perSecond / 200 - 1)).toBeLessThan(0.06);
  expect(judgeStep(400, 10, samples(400), SLO).held).toBe(false);
  expect(judgeStep(120, 10, samples(120), SLO).held).toBe(true);
});

/** Runs the probe against a limiter in simulated time: a request takes about a millisecond. */
function probe(settings: LimiterSettings, seed: number, lieSeconds = 0, maxSeconds = 120): Probed {
  const random = randomSource(seed);
  const limiter = createLimiter(settings);
  const questions = probeLimiter({ maxRequests: 3000, maxSeconds });
  const originMs = 1_000_000;
  let nowMs = originMs;
  let step = questions.next();
  while (!step.done) {
    nowMs = Math.max(nowMs, originMs + step.value.notBeforeMs);
    const got = Array.from({ length: step.value.count }, (): Observation => {
      const tookMs = 0.6 + random() * 1.2;
      const waitMs = limiter.ask(nowMs + tookMs * (0.3 + 0.4 * random()));
      const atMs = nowMs + tookMs / 2 - originMs;
      nowMs += tookMs + 0.05;
      const retryAfterSeconds = Math.max(0, Math.ceil(waitMs / 1000) + lieSeconds);
      return { atMs, slackMs: tookMs / 2, ok: waitMs === 0, ...(waitMs > 0 ? { retryAfterSeconds } : {}) };
    });
    step = questions.next(got);
  }
  return step.value;
}

for (const kind of LIMITER_KINDS) {
  test(`limiter: a ${kind} is named, with its figures`, () => {
    for (const [index, settings] of drawLimiters(12, 7).entries()) {
      if (settings.kind !== kind) continue;
      const found = identifyLimiter(probe(settings, index));
      expect(found.kind).toBe(kind);
      const limit = kind === 'token-bucket' ? settings.burst! : settings.limit;
      expect(Math.abs((found.limit ?? found.burst)! / limit - 1)).toBeLessThan(0.05);
      const rate = (settings.limit * 1000) / settings.windowMs;
      const windowError =
        kind === 'token-bucket'
          ? found.ratePerSecond! / rate - 1
          : (found.windowSeconds! * 1000) / settings.windowMs - 1;
      expect(Math.abs(windowError)).toBeLessThan(0.05);
      expect(found.requests).toBeLessThan(8 * limit + 60);
      expect(found.retryAfterHonest).toBe(true);
    }
  });
}

test('limiter: none is found where none is', () => {
  const probed = probe({ kind: 'fixed-window', limit: 1_000_000, windowMs: 1000 }, 1);
  expect(identifyLimiter(probed)).toMatchObject({ kind: 'none-found', requests: probed.seen.length });
});

test('limiter: answers by chance are no kind', () => {
  const random = randomSource(5);
  const seen = Array.from({ length: 200 }, (_, i) => ({ atMs: i * 20, slackMs: 0.5, ok: random() < 0.5 }));
  expect(identifyLimiter({ seen }).kind).toBe('cannot-tell');
});

for (const kind of LIMITER_KINDS) {
  test(`limiter: a ${kind} is not named before its time`, () => {
    for (const phaseMs of [0, 4_000, 16_000]) {
      const probed = probe({ kind, limit: 60, windowMs: 20_000, phaseMs }, 1, 0, 8);
      expect(identifyLimiter(probed).kind).toBe('cannot-tell');
    }
  });
}

test('limiter: a Retry-After that is too short is a lie', () => {
  const settings = { kind: 'fixed-window', limit: 40, windowMs: 2500 } as const;
  expect(identifyLimiter(probe(settings, 3, -2)).retryAfterHonest).toBe(false);
  expect(identifyLimiter(probe(settings, 3)).retryAfterHonest).toBe(true);
});

/** A walk of 200 pages, short windows, and the walk's start again; each cost in milliseconds. */
function pages(cost: (place: number, label: string) => number): PageSample[] {
  const random = randomSource(9);
  const walkPages = 200;
  const sample = (label: string, depth: number): PageSample => ({
    label,
    depth,
    walkPages,
    pageSize: 500,
    ms: cost(depth / walkPages, label) * (0.8 + 0.4 * random()),
  });
  const row = (label: string, count: number) =>
    Array.from({ length: count }, (_, depth) => sample(label, depth));
  return [...row('fresh', walkPages), ...row('short', 40), ...row('warm', 16)];
}

const SHAPES = {
  flat: () => 2,
  'grows-with-depth': (place: number, label: string) => 2 + (label === 'short' ? 0 : 100 * place),
  'slow-first-page': (place: number, label: string) => 2 + (label === 'short' ? 0 : 100 * (1 - place)),
  'slow-on-long-windows': (_: number, label: string) => 2 + (label === 'warm' ? 100 : 0),
} as const;

for (const [shape, cost] of Object.entries(SHAPES)) {
  test(`depth: ${shape}`, () => {
    expect(depthShape(pages(cost))).toMatchObject({ shape, flat: shape === 'flat' });
  });
}

test('the scalability law is fitted where it holds, and refused where it does not', () => {
  const law = (n: number): number => (100 * n) / (1 + 0.05 * (n - 1) + 0.001 * n * (n - 1));
  const points = [1, 2, 4, 8, 16, 32, 64].map((concurrency) => ({
    concurrency,
    throughput: law(concurrency),
  }));
  const fit = fitUsl(points);
  expect(fit.fits).toBe(true);
  expect(fit.sigma).toBeCloseTo(0.05, 4);
  expect(fit.kappa).toBeCloseTo(0.001, 5);
  const random = randomSource(1);
  const noise = points.map(({ concurrency }) => ({ concurrency, throughput: 50 + 900 * random() }));
  expect(fitUsl(noise).fits).toBe(false);
  expect(fitUsl(points.slice(0, 3)).reason).toContain('too few');
});

test('histograms add up', () => {
  const random = randomSource(2);
  const values = Array.from({ length: 3000 }, () => 5 + 50 * random());
  const parts = [0, 1, 2].map((part) => histogramOf(values.filter((_, index) => index % 3 === part)));
  const merged = mergeHistograms(parts);
  expect(merged).toEqual(histogramOf(values));
  expect(countOf(merged)).toBe(3000);
  const sorted = values.sort((a, b) => a - b);
  expect(quantileBucket(merged, 0.99)).toBe(bucketOf(sorted[Math.ceil(0.99 * 3000) - 1]!));
  const sum = mergeParts(parts.map((histogram) => ({ seconds: 10, histogram, counts: { pages: 1000 } })));
  expect(sum).toMatchObject({ requests: 3000, requestsPerSecond: 300, counts: { pages: 3000 } });
});

const HABITS = {
  capacity: 100,
  capacityLow: 95,
  limitedBy: 'saturation',
  measuredPageSize: 100,
  tenants: 200,
  pollSeconds: 60,
  screeningsPerDay: 5000,
  pageSize: 100,
  tokenLifetimeSeconds: 3600,
  targetUtilisation: 0.7,
  peakFactor: 1,
} as const;

test('plan: the arithmetic', () => {
  const planned = plan(HABITS);
  expect(planned.pollsPerSecond).toBeCloseTo(200 / 60);
  expect(planned.pagesPerPoll).toBe(1);
  expect(planned.tokensPerSecond).toBeCloseTo(200 / 3540);
  expect(planned.requestsPerSecond).toBeCloseTo(200 / 60 + 200 / 3540);
  expect(planned.utilisation).toBeCloseTo(planned.requestsPerSecond / 95);
  expect(planned.replicas).toBe(1);
  expect(plan({ ...HABITS, tenants: 20_000 }).replicas).toBe(6);
  // 5000 a day, polled every six hours: 1250 screenings, 13 pages.
  expect(plan({ ...HABITS, pollSeconds: 21_600 }).pagesPerPoll).toBe(13);
  expect(plan({ ...HABITS, limitedBy: 'quota' })).not.toHaveProperty('replicas');
  expect(() => plan({ ...HABITS, tenants: 0 })).toThrow(RangeError);
});
