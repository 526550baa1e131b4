/** The plan against a discrete simulation of the same tenants: utilisation within 10 %, p99 within 25 %. */
import { expect, test } from '@playwright/test';
import { quantile } from '../estimate/numbers.ts';
import { WorkQueue } from '../zoo/queue.ts';
import { exponential, randomSource } from '../k6/lib/random.ts';
import type { Habits } from './demand.ts';
import { plan, type Measured } from './plan.ts';

const MEASURED: Measured = {
  perSecond: 95,
  limitedBy: 'saturation',
  server: 'capacity',
  saturation: 100,
  workers: 1,
  pageSize: 100,
  p99Ms: 500,
  replicas: 1,
};
const HABITS: Habits = {
  tenants: 200,
  pollSeconds: 60,
  spreadSeconds: 60,
  screeningsPerDay: 5000,
  pageSize: 100,
  tokenLifetimeSeconds: 3600,
  tokenPrice: 0,
  peakFactor: 1,
  retries: 0,
};
const POLICY = { utilisation: 0.7, spare: 1, outageSeconds: 3600, growth: 0 };
const planned = (habits: Partial<Habits> = {}, measured: Partial<Measured> = {}, policy = {}) =>
  plan({ ...MEASURED, ...measured }, { ...HABITS, ...habits }, { ...POLICY, ...policy });

/** Each tenant polls once an interval at a moment of its spread, finds what came meanwhile, and asks page after page. */
function simulateTenants(habits: Habits, { workers, saturation }: Measured) {
  const random = randomSource(7);
  const queue = new WorkQueue(workers);
  const intervals = Math.ceil(30_000 / habits.tenants);
  const screenings = (habits.screeningsPerDay * habits.peakFactor * habits.pollSeconds) / 86_400;
  const asked: { atMs: number; pages: number }[] = [];
  for (let interval = 0; interval < intervals; interval += 1) {
    for (let tenant = 0; tenant < habits.tenants; tenant += 1) {
      let found = 0;
      for (let at = exponential(random, 1); at < screenings; at += exponential(random, 1)) found += 1;
      const atMs = (interval * habits.pollSeconds + random() * habits.spreadSeconds) * 1000;
      asked.push({ atMs, pages: Math.max(1, Math.ceil(found / habits.pageSize)) });
    }
  }
  asked.sort((a, b) => b.atMs - a.atMs);
  const latencies: number[] = [];
  let busyMs = 0;
  for (let one = asked.pop(); one; one = asked.pop()) {
    const workMs = exponential(random, (workers * 1000) / saturation);
    const doneMs = queue.finishAt(one.atMs, workMs);
    busyMs += workMs;
    latencies.push(doneMs - one.atMs);
    if (one.pages === 1) continue;
    let place = asked.length;
    while (place > 0 && asked[place - 1]!.atMs < doneMs) place -= 1;
    asked.splice(place, 0, { atMs: doneMs, pages: one.pages - 1 });
  }
  return {
    p99Seconds:
      quantile(
        latencies.sort((a, b) => a - b),
        0.99,
      ) / 1000,
    busy: busyMs / workers / (intervals * habits.pollSeconds * 1000),
  };
}

const CASES: readonly [name: string, habits: Partial<Habits>, measured: Partial<Measured>][] = [
  ['everybody within a second', { spreadSeconds: 1 }, {}],
  ['independent polls', {}, {}],
  ['independent polls, busy', { tenants: 4200 }, {}],
  ['a spread that nearly suffices', { spreadSeconds: 2.5 }, { workers: 4 }],
  ['a quick burst on many workers', { tenants: 2000, spreadSeconds: 10 }, { saturation: 150, workers: 8 }],
  ['two pages a poll', { tenants: 1500, screeningsPerDay: 170_000 }, { workers: 8 }],
  ['a peak that costs pages', { tenants: 1000, screeningsPerDay: 60_000, peakFactor: 4 }, { workers: 4 }],
  [
    'five pages a poll, together',
    { tenants: 300, screeningsPerDay: 640_000, spreadSeconds: 10 },
    { workers: 2 },
  ],
];

for (const [name, habits, measured] of CASES) {
  test(`plan and simulation agree: ${name}`, () => {
    const [all, servers] = [
      { ...HABITS, ...habits },
      { ...MEASURED, ...measured },
    ];
    const found = simulateTenants(all, servers);
    const { utilisation, p99Seconds } = planned(habits, { ...measured, perSecond: servers.saturation });
    expect(Math.abs(utilisation / found.busy - 1)).toBeLessThan(0.1);
    expect(Math.abs(p99Seconds! / found.p99Seconds - 1)).toBeLessThan(0.25);
  });
}

test('polls that come together break what is hardly used, and a spread mends it', () => {
  const together = planned({ spreadSeconds: 1 });
  expect(together.utilisation).toBeLessThan(0.04);
  expect(together.carried).toBe(false);
  expect(together.warnings.join()).toContain('spread over');
  expect(together.limitedFirstBy).toContain('come together');
  const needed = together.spreadNeededSeconds!;
  expect(planned({ spreadSeconds: needed }).carried).toBe(true);
  expect(planned({ spreadSeconds: needed * 0.9 }).carried).toBe(false);
  expect(planned({}, {}, { spare: 2 }).replicas).toBe(3);
});

test('peaks multiply screenings and no polls', () => {
  expect(planned({ peakFactor: 5 }).peakRequestsPerSecond).toBeCloseTo(200 / 60, 3);
  const heavy = planned({ peakFactor: 5, screeningsPerDay: 144_000 });
  expect(heavy.peakRequestsPerSecond / heavy.requestsPerSecond).toBeGreaterThan(2);
});

test('pages a poll are the mean over a Poisson number, not the ceiling of the mean', () => {
  // 100 screenings a poll in the mean: nearly half of the polls find more.
  const { pagesPerPoll } = planned({ screeningsPerDay: 144_000 });
  expect(pagesPerPoll).toBeGreaterThan(1.4);
  expect(pagesPerPoll).toBeLessThan(1.6);
});

test("a client's quota is held against one tenant, a shared one against all", () => {
  const client = {
    limitedBy: 'quota',
    server: 'at-least',
    perSecond: 10,
    clientQuota: { perSecond: 10, limit: 600, windowSeconds: 60 },
  } as const;
  const alone = planned({}, client);
  expect(alone.clientUtilisation).toBeCloseTo(1 / 600);
  expect(alone).toMatchObject({ carried: true });
  expect(alone).not.toHaveProperty('replicas');
  const shared = planned({ tenants: 900 }, { limitedBy: 'quota', server: 'quota', perSecond: 10 });
  expect(shared).toMatchObject({ carried: false });
  expect(shared.utilisation).toBeCloseTo(1.5);
});

test('replicas beyond those measured are a warning, growth and cost are told by the year', () => {
  expect(planned({ tenants: 20_000 }).warnings.join()).toContain('--measured-replicas');
  expect(
    planned({ tenants: 20_000 }, { replicas: 2, perSecond: 190, saturation: 200, workers: 2 }).warnings,
  ).toEqual([]);
  const { years } = planned({ tenants: 4000 }, {}, { growth: 0.5, costPerReplica: 100 });
  expect(years.map(({ tenants }) => tenants)).toEqual([4000, 6000, 9000, 13_500]);
  expect(years.map(({ cost, replicas }) => cost! / replicas!)).toEqual([100, 100, 100, 100]);
  expect(years.at(-1)!.replicas).toBeGreaterThan(years[0]!.replicas!);
  expect(() => planned({ tenants: 0 })).toThrow(RangeError);
});

test('an outage leaves pages that the spare capacity works off', () => {
  const { catchUpSeconds, peakRequestsPerSecond } = planned({ screeningsPerDay: 6000, tokenPrice: 1 });
  // 250 screenings each: three pages, and a token.
  expect(catchUpSeconds!).toBeCloseTo((200 * 4) / (95 - peakRequestsPerSecond), 0);
});
