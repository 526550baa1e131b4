/** Tests the estimators against simulated targets with known parameters, in virtual time. */
import { readFile, writeFile } from 'node:fs/promises';
import { expect, test, type TestInfo } from '@playwright/test';
import { mergeCommand, mergeParts } from '../commands/merge.ts';
import { SLO } from '../k6/lib/presets.ts';
import { exponentialService } from '../zoo/capacities.ts';
import { probeVirtually } from '../zoo/limiters.ts';
import * as zoo from '../zoo/targets.ts';
import type { ArrivalRecord } from '../k6/lib/record.ts';
import { PROBE } from '../run/flags.ts';
import type { K6Run } from '../run/k6-run.ts';
import type { Session } from '../run/session.ts';
import { recoveryOf, soak } from '../scenarios/arrivals.ts';
import { OPTIONS } from '../zoo/setting.ts';
import { growthOf } from '../scenarios/chaos.ts';
import { gatherFindings } from '../result.ts';
import { Search } from './capacity.ts';
import { SEARCH_DEFAULTS, type RunStep } from './figures.ts';
import { identifyLimiter, isMet } from './limiter-fit.ts';
import { LIMITER_KINDS } from './limiter-models.ts';
import { compareFullPages } from './other-limits.ts';
import { randomSource } from './random.ts';
import { excludesErrors, judgeStep, saturation, shareVerdict } from './step.ts';

test('measures saturation only while the queue grows', async () => {
  const samplesAt = async (rate: number) =>
    (await zoo.stepsAgainst(zoo.server({ service: exponentialService(200, 2) }, 3), 3)(rate, 10)).samples;
  const [quiet, busy] = [await samplesAt(120), await samplesAt(400)];
  expect(saturation(quiet, 10)).toBeUndefined();
  expect(Math.abs(saturation(busy, 10)! / 200 - 1)).toBeLessThan(0.06);
  expect(judgeStep(400, 10, busy, SLO).held).toBe(false);
  expect(judgeStep(120, 10, quiet, SLO).held).toBe(true);
});

for (const kind of LIMITER_KINDS)
  test(`limiter: does not name a ${kind} after a probe shorter than its window`, async () => {
    const [network, limits] = [
      { rttMs: 1, jitterMs: 0.3 },
      { maxRequests: 2000, maxSeconds: 8 },
    ] as const;
    for (const phaseMs of [0, 4_000, 16_000]) {
      const target = zoo.server(zoo.limited({ kind, limit: 60, windowMs: 20_000, phaseMs }));
      const probed = await probeVirtually(target, network, limits, 1);
      expect(identifyLimiter(probed).kind).toBe('cannot-tell');
    }
  });

test('merge: counts unsent requests as failed, and judges the SLO by the number of late requests', () => {
  const run = { runId: 'a', scenario: 'smoke', parts: 1, segment: '0:1', seconds: 10 };
  const part = (requests: number, late = 0) => {
    const shared = { ...run, due: 100, p99Ms: 500, errorRate: 0.001 };
    const latency = { requests, p50Ms: 20, p99Ms: 498 };
    return { seconds: 10, latency, counts: { pages: requests, late }, shared };
  };
  const of = (requests: number, late?: number) => mergeParts([part(requests, late)]);
  expect(of(100)).toMatchObject({ held: true, errorRate: 0, requestsPerSecond: 10 });
  expect(of(1)).toMatchObject({ held: false, errorRate: 0.99 });
  expect(of(100, 2).held).toBe(false);
  const counts = { pages: 10, iterations: 10, errors: 10 };
  const ended = mergeParts([{ ...part(10), counts, thresholds: { 'http_req_failed rate<0.9': false } }]);
  expect(ended).toMatchObject({ held: false, void: undefined });
  const alone = (p99Ms: number) => ({ seconds: 10, latency: { requests: 50, p50Ms: 20, p99Ms }, counts: {} });
  expect(mergeParts([alone(90), alone(70)])).toMatchObject({ requests: 100, p50Ms: 20, p99Ms: 90 });
  expect(mergeParts([alone(90), { ...alone(70), held: false }]).held).toBe(false);
  const thresholds = { 'unauthenticated count<1': false, 'page_ms p(99)<500': true };
  const broken = ['threshold broken: unauthenticated count<1'];
  expect(mergeParts([alone(90), { ...alone(70), thresholds }])).toMatchObject({ held: false, broken });
});

/** Merges this result file with itself; returns the exit status and the merged result. */
async function mergedTwice(info: TestInfo, more: object) {
  const [file, output] = [info.outputPath('load-smoke.json'), info.outputPath('merged.json')];
  const latency = { requests: 200, p50Ms: 20, p99Ms: 90 };
  const result = { scenario: 'smoke', durationMs: 10_000, held: false, findings: [], requests: 200, latency };
  await writeFile(file, JSON.stringify({ ...result, ...more }));
  const status = await mergeCommand([file, file], output);
  return { ...(JSON.parse(await readFile(output, 'utf8')) as object), status };
}

test('merge: counts the failed requests of results', async ({}, info) => {
  const time = [
    { requests: 60, failed: 0 },
    { requests: 40, failed: 10 },
  ];
  const expected = { status: 1, requests: 400, errorRate: 0.1 };
  expect(await mergedTwice(info, { tables: { time } })).toMatchObject(expected);
});

test('merge: a void result is void, with its reason', async ({}, info) => {
  const isVoid = { latency: undefined, void: 'the machine was busy' };
  expect(await mergedTwice(info, isVoid)).toMatchObject({ status: 3, void: isVoid.void });
});

test('merge: keeps the evidence of findings, and adds their counts', async ({}, info) => {
  const evidence = { request: 'GET http://x/?from=1', response: '200' };
  const some = (count: number) =>
    gatherFindings(Array(count).fill({ id: '4.2-window', message: 'item 1 is before from', ...evidence }));
  const merged = await mergedTwice(info, { findings: some(3) });
  expect(merged).toMatchObject({ status: 1, findings: some(6) });
});

const search = (steps: RunStep, more: object = {}) =>
  new Search(steps, { ...SEARCH_DEFAULTS, slo: SLO, startRate: 20, ...more }).find();
const searchOf = (behaviour: zoo.Behaviour, more?: object) =>
  search(zoo.stepsAgainst(zoo.server(behaviour, 1), 1), more);

test('capacity: reports none-found if the highest rate holds', async () => {
  const service = { workers: 100, serviceMs: 1, distribution: 'deterministic' } as const;
  const found = await searchOf({ service }, { maxRate: 100 });
  expect(found).toMatchObject({ limitedBy: 'none-found', requestsPerSecond: 100, confirmed: true });
});

test('capacity: an SLO that allows 5 % of errors holds at 3 %', async () => {
  const slo = { ...SLO, errorRate: 0.05 };
  const found = await searchOf({ failing: { share: 0.03, status: 500 } }, { maxRate: 40, slo });
  expect(found).toMatchObject({ requestsPerSecond: 40, confirmed: true });
});

/** A search of a target that is late in its first 30 s. */
const coldFrom = (startRate: number) => {
  const rest = zoo.server({ service: exponentialService(200, 4) }, 1);
  const delayMs = (atMs: number): number => (atMs < 30_000 ? 700 : 0);
  const cold = (atMs: number) => ({ status: 200, latencyMs: rest(atMs).latencyMs + delayMs(atMs) });
  return search(zoo.stepsAgainst(cold, 1), { startRate });
};

test('capacity: confirms that no rate holds only if the first one breaks again', async () => {
  const found = await coldFrom(10);
  expect(found.requestsPerSecond).toBeGreaterThan(0);
  expect(found.gotFaster).toBe(true);
  // At a low rate, later answers are few, but they are not late.
  expect(await coldFrom(2)).toMatchObject({ confirmed: false });
});

test('capacity: has no upper bound if nothing broke the SLO since the target became faster', async () => {
  const found = await coldFrom(6);
  expect(found).toMatchObject({ confirmed: false, gotFaster: true, requestsPerSecond: 6 });
  expect(found.interval[1]).toBe(Infinity);
});

test('capacity: has no upper bound if every request is rejected', async () => {
  const found = await searchOf({ failing: { share: 1, status: 429 } });
  expect(found).toMatchObject({ confirmed: false, requestsPerSecond: 0, interval: [0, Infinity] });
});

/** Three nodes at random, with a concurrency limit each. */
function nodes(distribution: zoo.ServiceSettings['distribution']): zoo.VirtualTarget {
  const service = { workers: 9, serviceMs: 60, distribution };
  const all = [1, 2, 3].map((seed) => zoo.server({ service, concurrency: { limit: 11, status: 429 } }, seed));
  const random = randomSource(2);
  return (atMs) => all[Math.floor(3 * random())]!(atMs);
}
/** What looks like a quota for a while. */
const NO_QUOTAS: Readonly<Record<string, () => zoo.VirtualTarget>> = {
  'concurrency limits of several nodes': () => nodes('exponential'),
  'such limits, and answers that take equally long': () => nodes('deterministic'),
  'a ban that is longer than a pause': () => zoo.server({ limits: [zoo.banning(44, 5000, 56_000)] }, 1),
  'a window that counts rejected requests': () => zoo.server({ limits: [zoo.countingRejected(31, 1000)] }),
};

for (const [name, create] of Object.entries(NO_QUOTAS))
  test(`capacity: reports no quota for ${name}`, async () => {
    expect((await search(zoo.stepsAgainst(create(), 1))).basis).not.toBe('quota');
  });

/** Admits a burst of 439, and 152 more every 10 s. */
function refilling(): zoo.VirtualTarget {
  const [tokens, burst, everyMs] = [152, 439, 10_000];
  let [left, refills] = [burst, 0];
  const limiter = (atMs: number): number => {
    const now = Math.floor(atMs / everyMs);
    [left, refills] = [Math.min(burst, left + tokens * (now - refills)), now];
    if (left < 1) return everyMs - (atMs % everyMs);
    left -= 1;
    return 0;
  };
  return zoo.server({ limits: [() => limiter] });
}

/** A burstable processor: at full speed for 10,000 requests and 60 a second, then at 60 a second. */
function withCredits(): zoo.VirtualTarget {
  let [left, lastMs] = [10_000, 0];
  const work = (atMs: number): number => {
    [left, lastMs] = [Math.min(10_000, left + 0.06 * (atMs - lastMs)), atMs];
    left = Math.max(0, left - 1);
    return left > 1 ? 1 : 3.3;
  };
  return zoo.server({ service: exponentialService(200, 4), work }, 1);
}

/** The rest of a daily quota, beyond which it answers 403. */
function usedUp(): zoo.VirtualTarget {
  let left = 600;
  return () => (left-- > 0 ? { status: 200, latencyMs: 5 } : { status: 403, latencyMs: 1 });
}

const UNCONFIRMED: Readonly<Record<string, () => zoo.VirtualTarget>> = {
  'a rate that a burst allowance admitted for a while': refilling,
  'a rate that a processor carries only until its credits are used up': withCredits,
  'that no rate holds, once a daily quota is used up,': usedUp,
};

for (const [what, create] of Object.entries(UNCONFIRMED))
  test(`capacity: ${what} is not confirmed`, async () => {
    expect(await search(zoo.stepsAgainst(create(), 2))).toMatchObject({ confirmed: false });
  });

/** Up to which rates requests at random times keep the SLO, by simulation. */
const WITHIN = [
  [{ kind: 'token-bucket', limit: 10, windowMs: 1000, burst: 20 }, 9.1],
  [{ kind: 'token-bucket', limit: 50, windowMs: 1000, burst: 5 }, 23],
  [{ kind: 'fixed-window', limit: 100, windowMs: 10_000 }, 8.7],
  [{ kind: 'sliding-log', limit: 100, windowMs: 10_000 }, 7.7],
] as const;

for (const [settings, rate] of WITHIN)
  test(`capacity: requests at random times keep the SLO up to ${rate}/s of a ${settings.kind}`, async () => {
    const { quota } = await searchOf(zoo.limited(settings));
    expect(quota!.withinSlo! / rate).toBeLessThan(1.03);
    expect(quota!.withinSlo! / rate).toBeGreaterThan(settings.kind === 'sliding-log' ? 0.5 : 0.75);
  });

test('capacity: reports no ban if rejected requests count', async () => {
  const counting = await searchOf({ limits: [zoo.punishing(10, 20)] });
  expect(counting).toMatchObject({ banSeconds: undefined, confirmed: false });
});

test('limiter: Retry-After is not reported as honest if a second limit made one wait too short', async () => {
  const limits = [
    { kind: 'fixed-window', limit: 15, windowMs: 1000 },
    { kind: 'fixed-window', limit: 45, windowMs: 20_000 },
  ] as const;
  const target = zoo.server({ ...zoo.limited(...limits), retryAfter: () => 1 });
  const found = identifyLimiter(await probeVirtually(target, { rttMs: 40, jitterMs: 0.3 }, PROBE, 1));
  expect(found.retryAfter!.worstShortSeconds).toBeGreaterThan(5);
  expect(found.retryAfterHonest).toBeUndefined();
});

test('limiter: a kind has to predict 98 % of the later answers', () => {
  expect([97, 98].map((asPredicted) => isMet({ asPredicted, requests: 100 }))).toEqual([false, true]);
  expect(isMet({ asPredicted: 0, requests: 0 })).toBe(false);
});

test('capacity: answers that exclude no errors do not suffice for a single rate', async () => {
  const at = (rate: number) =>
    new Search(zoo.stepsAgainst(zoo.server({}), 1), { ...SEARCH_DEFAULTS, slo: SLO }).check(rate);
  expect(await at(6)).toMatchObject({ confirmed: true, requestsPerSecond: 6 });
  expect(await at(3)).toMatchObject({ confirmed: false });
});

test('capacity: one void step does not affect the others', async () => {
  const right = zoo.stepsAgainst(zoo.server({ service: exponentialService(150, 3) }, 2), 2);
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
  const right = zoo.stepsAgainst(zoo.server({ service: exponentialService(2.5, 1) }, 2), 2);
  const found = await search(async (...step) => ({ ...(await right(...step)), void: 'the machine is busy' }));
  expect(found).toMatchObject({ confirmed: false, unconfirmed: 'the machine is busy' });
  // Void steps must not drive the rate up to the maximum.
  expect(Math.max(...found.steps.map(({ offered }) => offered))).toBeLessThan(SEARCH_DEFAULTS.maxRate / 2);
});

test('a run holds if the SLO allows its timeouts, however long they last', () => {
  const sample = (index: number) =>
    index % 40 === 0 ? { status: 0, latencyMs: 10_000 } : { status: 200, latencyMs: 5 };
  const samples = Array.from({ length: 600 }, (_, index) => ({
    dueMs: index * 10,
    serviceMs: 5,
    ...sample(index),
  }));
  const held = (errorRate: number) => judgeStep(100, 6, samples, { ...SLO, errorRate }).held;
  expect([held(0.05), held(0.02)]).toEqual([true, false]);
});

test('soak: only late answers count as a warm-up, and only in the first 12 s', async () => {
  const held = async (fromMs: number, toMs: number, bad: Partial<ArrivalRecord>) => {
    const samples = Array.from({ length: 4000 }, (_, index): ArrivalRecord => {
      const right = { dueMs: index * 50, latencyMs: 5, serviceMs: 5, schedulerLagMs: 0, status: 200 };
      return { kind: 'arrival', ...right, ...(right.dueMs >= fromMs && right.dueMs < toMs ? bad : {}) };
    });
    const run = { status: 0, oneIn: 1 } as K6Run;
    const options = { ...OPTIONS, rate: 20, duration: 200 };
    const session = { options, slo: SLO, findings: [], arrivals: async () => ({ samples, run }) };
    return (await soak.run(session as unknown as Session)).held;
  };
  const late = { latencyMs: 900 };
  expect([await held(0, 11_000, late), await held(13_000, 16_000, late)]).toEqual([true, false]);
  expect(await held(0, 11_000, { status: 500 })).toBe(false);
});

test('counts redirects as failed', () => {
  const sample = { latencyMs: 5, serviceMs: 5, status: 302 };
  const samples = Array.from({ length: 600 }, (_, index) => ({ dueMs: index * 10, ...sample }));
  expect(judgeStep(100, 6, samples, SLO).verdict).toBe('breaks');
});

test('a limit of items a little below that of requests is not reported as one of requests', async () => {
  const unitOf = (fullPages: number, requests: number, fromRest?: number) =>
    compareFullPages(async (isFull, count) => {
      const most = isFull ? Math.min(fullPages, requests) : requests;
      return { admitted: Math.min(count, most), isRejected: count > most, items: 1000, bytes: 250_000 };
    }, fromRest);
  expect(await unitOf(50, 60)).toMatchObject({ unit: 'cannot-tell', emptyAdmitted: 60 });
  expect(await unitOf(30, 60)).toMatchObject({ unit: 'items-or-bytes' });
  expect(await unitOf(70, 60)).toMatchObject({ unit: 'requests' });
  // Pages that are read for longer than a window are admitted in two of them.
  expect(await unitOf(60, 120, 60)).toMatchObject({ unit: 'requests' });
  expect(await unitOf(50, 120, 60)).toMatchObject({ unit: 'cannot-tell', emptyAdmitted: 60 });
});

test('chaos: metrics of the server grow if they exceed the second quarter in the last one of a long run', () => {
  const growth = (length: number, memory: (share: number) => number) =>
    growthOf(Array.from({ length }, (_, index) => [memory(index / length), 8, 30])).flat;
  // A process grows while it warms up.
  expect(growth(120, (share) => (share < 0.25 ? 60 : 100))).toBe(true);
  expect(growth(120, (share) => 100 + 200 * share)).toBe(false);
  expect(growth(119, (share) => 100 + 200 * share)).toBe(true);
});

test('judges a share by significance instead of a quantile of few samples', () => {
  expect(shareVerdict(0, 32, 0.01)).toBe('undecided');
  expect(shareVerdict(0, 300, 0.01)).toBe('holds');
  expect(shareVerdict(4, 300, 0.01)).toBe('undecided');
  expect(shareVerdict(10, 300, 0.01)).toBe('breaks');
  expect(shareVerdict(2, 32, 0.001)).toBe('breaks');
  // Four times the SLO's error rate is excluded with 90 % by 575 answers without an error, and not by 500.
  expect([500, 600].map((answers) => excludesErrors(0, answers, SLO))).toEqual([false, true]);
});

test('spike: a target that rejects everything after the spike has not recovered', () => {
  const after = (status: number, untilMs: number) => {
    const samples = Array.from({ length: 600 }, (_, index) => ({
      ...({ kind: 'arrival', dueMs: index * 100, latencyMs: 5, serviceMs: 5, schedulerLagMs: 0 } as const),
      status: index * 100 >= 30_000 && index * 100 < untilMs ? status : 200,
    }));
    return recoveryOf(samples, 60, SLO);
  };
  const end = { requests: 100, late: 0, failed: 100 };
  expect(after(429, 60_000)).toMatchObject({ isNormal: false, lost: 0, end });
  expect(after(429, 45_000)).toMatchObject({ isNormal: true, recoveredMs: 4905 });
  expect(after(503, 45_000)).toMatchObject({ isNormal: true, lost: 150 });
});
