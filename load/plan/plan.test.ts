/** The arithmetic of a plan; its simulation of tenants is compared with queueing theory. */
import { readFile, writeFile } from 'node:fs/promises';
import { expect, test } from '@playwright/test';
import { run } from '../command-line.ts';
import { measuredBy, measuredByTenants, objections, pricesBy } from '../commands/plan.ts';
import type { CapacityFigure, LoadResult } from '../result.ts';
import { type Assumptions, workOf } from './demand.ts';
import { plan, type Measured } from './plan.ts';
import { extremesOf } from '../estimate/figures.ts';
import type { Step } from '../estimate/step.ts';
import { poissonArrivals, randomSource } from '../estimate/random.ts';
import { SLO } from '../k6/lib/presets.ts';
import type { K6Run } from '../run/k6-run.ts';
import type { Session } from '../run/session.ts';
import { carried, summaryLines } from '../scenarios/tenants.ts';
import { OPTIONS } from '../zoo/setting.ts';
import { servePolls, simulatePolls } from './simulate.ts';

const MEASURED: Measured = {
  limitedBy: 'saturation',
  server: 'capacity',
  of: 'pages',
  ...{ perSecond: 95, saturation: 100, workers: 1, pageSize: 100, p99Ms: 500, replicas: 1 },
};
const ASSUMED: Assumptions = {
  ...{ tenants: 200, poll: 60, pollSpread: 60, screeningsPerDay: 5000, pageSize: 100 },
  ...{ tokenLifetime: 3600, tokenPrice: 0, emptyPrice: 1, itemPrice: 0, peakFactor: 1, retries: 0 },
  ...{ history: 5, itemBytes: 250, rowBytes: 300 },
  ...{ utilisation: 0.7, spare: 1, outage: 3600, growth: 0 },
};
const planned = (assumed: Partial<Assumptions> = {}, measured: Partial<Measured> = {}) =>
  plan({ ...MEASURED, ...measured }, { ...ASSUMED, ...assumed });

test('simulates the waiting times of queueing theory for polls and back-fills', () => {
  const polls = {
    ...{ tenants: 4800, poll: 60, pollSpread: 60, screenings: 0, pageSize: 100, of: 'pages' as const },
    ...{ tokensPerPoll: 0, tokenPrice: 0 },
  };
  const server = { perSecond: 100, workers: 1 };
  // M/M/1 with 80 of 100 requests per second: exponential waiting time with mean 1 / 20 s.
  const waits = simulatePolls(server, polls);
  expect(waits.quantile(0.5)).toBeCloseTo(Math.log(2) / 20, 2);
  expect(Math.abs(waits.quantile(0.99) / (Math.log(100) / 20) - 1)).toBeLessThan(0.25);
  expect(simulatePolls({ perSecond: 79, workers: 1 }, polls).quantile(0.5)).toBe(Infinity);
  // Simultaneous polls: one in a hundred waits for nearly all others.
  const together = simulatePolls(server, { ...polls, tenants: 200, pollSpread: 0.01 });
  expect(Math.abs(together.quantile(0.99) / 1.98 - 1)).toBeLessThan(0.25);
  // A back-fill uses the remaining capacity, and polls wait for its pages.
  const beside = simulatePolls(server, { ...polls, tenants: 600, backfills: 1, backfillWork: 10 });
  expect(beside.backfilled).toBeGreaterThan(5);
  expect(beside.backfilled).toBeLessThan(10);
  expect(beside.quantile(0.99)).toBeGreaterThan(0.1);
});

test('computes data, egress, costs and levers', () => {
  const found = planned({ tenants: 100, costPerReplica: 300, growth: 0.5 });
  expect(found.years.map(({ rows }) => rows)[0]).toBe(100 * 5000 * 1825);
  expect(found.years.at(-1)!.databaseGb).toBeCloseTo((338 * 5000 * 2920 * 300) / 1e9, 0);
  expect(found.egressGbPerMonth).toBeCloseTo((30 * 100 * (5000 * 250 + 1440 * 400)) / 1e9, 3);
  expect(found.levers['polls every 120 s']).toBeLessThan(0.55);
  expect(found.steps.join()).toMatch(
    /cost per month: 2 replicas × 300 = 600, 40 per million screenings, 6 per tenant/,
  );
  expect(found.backfillSeconds!).toBeGreaterThan(500);
});

test('reports simultaneous polls that break the SLO at low utilisation, and the spread that avoids it', () => {
  const together = planned({ pollSpread: 1 });
  expect(together.utilisation).toBeLessThan(0.04);
  expect(together.carried).toBe(false);
  expect(together.warnings.join()).toContain('spread over');
  expect(together.limitedFirstBy).toContain('simultaneous polls');
  const needed = together.spreadNeededSeconds!;
  expect(planned({ pollSpread: needed }).carried).toBe(true);
  expect(planned({ pollSpread: needed * 0.9 }).carried).toBe(false);
  expect(planned({ spare: 2 }).replicas).toBe(3);
});

test('multiplies screenings, but not polls, at the peak', () => {
  expect(planned({ peakFactor: 5 }).peakRequestsPerSecond).toBeCloseTo(200 / 60, 3);
  const heavy = planned({ peakFactor: 5, screeningsPerDay: 144_000 });
  expect(heavy.peakRequestsPerSecond / heavy.requestsPerSecond).toBeGreaterThan(2);
});

test('computes pages per poll as the mean over a Poisson number', () => {
  // With 100 screenings per poll on average, nearly half of the polls find more.
  const { pagesPerPoll } = planned({ screeningsPerDay: 144_000 });
  expect(pagesPerPoll).toBeGreaterThan(1.4);
  expect(pagesPerPoll).toBeLessThan(1.6);
});

test('compares the SLO of polls with whole polls', () => {
  // 400 screenings on five pages, each 10 ms.
  const of = (of: Measured['of']) => planned({ tenants: 10, screeningsPerDay: 576_000 }, { of, p99Ms: 80 });
  expect([of('pages'), of('polls')]).toMatchObject([{ carried: true }, { carried: false }]);
  expect(of('polls').limitedFirstBy).toContain('more replicas do not shorten');
});

test('counts the cost of screenings on a page, and is open if it was not measured', () => {
  const prices = pricesBy({ pagesPerPoll: 1 }, 5, 100);
  expect(workOf(1, 1000, prices)).toBeCloseTo(5);
  // By Poisson, 2.3 pages per poll have 193 screenings, so that the measured pages were nearly full.
  const dense = pricesBy({ pagesPerPoll: 2.3 }, 5, 100);
  expect(workOf(2.3, 193, dense)).toBeCloseTo(2.3, 1);
  const heavy = { tenants: 3000, screeningsPerDay: 144_000 };
  expect(planned(heavy).carried).toBe(true);
  const { requestsPerSecond } = planned(heavy);
  expect(planned({ ...heavy, ...prices }).requestsPerSecond).toBeCloseTo(requestsPerSecond + 20);
  expect(planned({ ...heavy, ...prices }).carried).toBe(false);
  expect(planned(heavy, { arePricesUnknown: true }).carried).toBeUndefined();
});

test("a back-fill is not faster than the client's quota", () => {
  const clientQuota = { perSecond: 2 };
  const atLeast = (5000 * 1825) / 1000 / 2;
  expect(planned().backfillSeconds!).toBeLessThan(0.5 * atLeast);
  expect(planned({}, { clientQuota }).backfillSeconds! / atLeast).toBeCloseTo(1, 1);
  expect(planned({}, { clientQuota, server: 'at-least' }).backfillSeconds).toBeCloseTo(atLeast);
  expect(planned({}, { server: 'at-least' }).backfillSeconds).toBeUndefined();
});

test("compares a client's quota with one tenant, a shared quota with all", () => {
  const client = {
    limitedBy: 'quota',
    server: 'at-least',
    perSecond: 10,
    clientQuota: { perSecond: 10, limit: 600, windowSeconds: 60 },
  } as const;
  const alone = planned({}, client);
  expect(alone.clientUtilisation).toBeCloseTo(1 / 600);
  expect(alone).toMatchObject({ carried: true });
  expect(alone.replicas).toBeUndefined();
  expect(alone.limitedFirstBy).toContain('the quota of one client');
  const open = planned({}, { limitedBy: 'none-found', server: 'at-least' });
  expect(open).toMatchObject({
    carried: true,
    limitedFirstBy: expect.stringMatching(/none found.*a lower bound$/),
  });
  // Beyond what was measured: neither yes nor no.
  const beyond = planned({ tenants: 9000 }, { limitedBy: 'none-found', server: 'at-least' });
  expect(beyond.carried).toBeUndefined();
  expect(beyond.warnings.join()).toContain('150/s were not measured, only 95/s');
  expect(planned({ pollSpread: 1 }, client).carried).toBeUndefined();
  // Where one tenant exceeds its quota, or prices are unknown, no number of tenants follows.
  const small = { ...client, clientQuota: { perSecond: 0.01 } };
  const unknown = [planned({}, small), planned({}, { ...client, arePricesUnknown: true })];
  for (const { steps, tenantsCarried } of unknown) {
    expect(tenantsCarried).toBeUndefined();
    expect(steps.join()).not.toContain('such tenants');
  }
  const shared = planned({ tenants: 900 }, { limitedBy: 'quota', server: 'quota', perSecond: 10 });
  expect(shared).toMatchObject({ carried: false });
  expect(shared.utilisation).toBeCloseTo(1.5);
});

test('judges all measured replicas, warns about more, and reports growth and cost per year', () => {
  const two = { replicas: 2, perSecond: 190, saturation: 200, workers: 2 };
  // 6,600 tenants send 110 requests per second.
  expect(planned({ tenants: 6600 }).carried).toBe(false);
  expect(planned({ tenants: 6600 }, two).carried).toBe(true);
  expect(planned({ tenants: 6600 }, two).utilisation).toBeCloseTo(110 / 190);
  expect(planned({ tenants: 20_000 }).warnings.join()).toContain('--measured-replicas');
  expect(planned({ tenants: 20_000 }, two).warnings).toEqual([]);
  const { years } = planned({ tenants: 4000, growth: 0.5, costPerReplica: 100 });
  expect(years.map(({ tenants }) => tenants)).toEqual([4000, 6000, 9000, 13_500]);
  expect(years.map(({ cost, replicas }) => cost! / replicas!)).toEqual([100, 100, 100, 100]);
  expect(years.at(-1)!.replicas).toBeGreaterThan(years[0]!.replicas!);
});

test('computes the time to catch up after an outage', () => {
  const { catchUpSeconds, peakRequestsPerSecond } = planned({ screeningsPerDay: 6000, tokenPrice: 1 });
  // 250 screenings each: three pages and a token.
  expect(catchUpSeconds!).toBeCloseTo((200 * 4) / (95 - peakRequestsPerSecond), 0);
  // Beyond a lower bound, nothing is known.
  const beyond = (server: Measured['server']) => planned({ tenants: 9000 }, { server }).catchUpSeconds;
  expect([beyond('at-least'), beyond('capacity')]).toEqual([undefined, Infinity]);
});

/** A capacity as load-capacity.json has it. */
const figure = (more: Partial<CapacityFigure>): CapacityFigure => ({
  ...{ requestsPerSecond: 100, interval: [95, 105], limitedBy: 'saturation', basis: 'bisection' },
  ...{ confirmed: true, gotFaster: false, watchedSeconds: 300, samples: 9000, steps: [], clients: 1 },
  slo: SLO,
  ...more,
});
const QUOTA = { perSecond: 100, error: 0.05, settled: true, releases: 3 };
const CARRIED = {
  ...{ tenants: 600, interval: [580, 620], limitedBy: 'saturation', confirmed: true },
  ...{ pollMs: 10, pagesPerPoll: 1, saturatedAt: 11 },
};
const TENANTS = { pollSeconds: 60, backfills: 1, clients: 1, slo: SLO };
const result = { conformant: true, findings: [], pageSize: 100 } as unknown as LoadResult;

test('takes a figure for what it is: a capacity, a quota or a lower bound', () => {
  const of = (more: Partial<CapacityFigure>) => measuredBy(figure(more));
  expect(of({}).server).toBe('capacity');
  expect(of({ limitedBy: 'none-found', basis: 'highest-tried' }).server).toBe('at-least');
  expect(of({ limitedBy: 'quota', basis: 'quota', quota: QUOTA }).clientQuota!.perSecond).toBe(95);
  // A number of concurrent requests, or a rate that met no ban, is no quota of a client.
  const noQuota = { server: 'at-least', clientQuota: undefined };
  for (const other of [{ concurrencyLimit: 20 }, { banSeconds: 30 }])
    expect(of({ limitedBy: 'quota', ...other })).toMatchObject(noQuota);
  const all = figure({ confirmed: false, unconfirmed: 'too few answers' });
  const figures = { 'capacity for one client': figure({}), 'capacity for all clients': all };
  expect(objections(result, figures)).toEqual([
    'the capacity for all clients is not confirmed (too few answers), so the plan is unreliable',
  ]);
  const rejected = planned({}, { limitedBy: 'quota', server: 'at-least' });
  expect(rejected.limitedFirstBy).toContain('429');
  expect(rejected.steps.join()).toContain('at least 5699 such tenants');
});

test('writes a plan, but takes no cost from failed requests, and no other cost of a poll than that of the tenants', async ({}, info) => {
  const files = {
    capacity: {
      ...{ ...result, void: false },
      capacity: figure({ interval: [2400, 2600], steps: [{ offered: 20, p50Ms: 10 }] as Step[] }),
    },
    tenants: { ...result, void: false, tenants: { ...TENANTS, alone: CARRIED } },
    poll: {
      latency: { requests: 200, p50Ms: 1, p99Ms: 9 },
      tables: { time: [{ requests: 200, failed: 110 }] },
    },
  };
  for (const [scenario, content] of Object.entries(files))
    await writeFile(info.outputPath(scenario), JSON.stringify({ ...content, scenario }));
  const load = ['--tenants', '200', '--poll', '60s', '--screenings-per-day', '5000'];
  const html = info.outputPath('plan.html');
  const io = { tell: () => {}, signal: new AbortController().signal };
  const planBy = (scenario: string, ...more: string[]) =>
    run(['plan', '--from', info.outputPath(scenario), ...load, '--html', html, ...more], io);
  const byPoll = ['--poll-from', info.outputPath('poll')];
  await expect(planBy('capacity', ...byPoll)).rejects.toThrow(/poll: 55.0 % of the requests failed/);
  await expect(planBy('tenants', ...byPoll)).rejects.toThrow(/--poll-from is for a load-capacity.json/);
  await expect(planBy('capacity', '--html', 'package.json/x.html')).rejects.toThrow(
    /can't be written.*--html/,
  );
  expect(await planBy('capacity')).toBe(0);
  expect(await readFile(html, 'utf8')).toContain('>2400/s<');
});

test('takes the latency of a page from steps that are not void, at rates at which it waits for little', () => {
  const stalled = { offered: 10, p50Ms: 400, void: 'the machine stalled' };
  const others = [20, 40, 80].map((offered) => ({ offered, p50Ms: offered < 60 ? 10 : 90 }));
  expect(extremesOf(figure({ steps: [stalled, ...others] as Step[] })).quietMs).toBe(10);
});

/** The tenants that such a server carries, each page of a back-fill costing five others: alone, and beside one. */
async function carriedTenants({ workers = 1, pageMs = 10, pages = 1 } = {}) {
  let runs = 0;
  const tryArrivals: Session['tryArrivals'] = async (_script, rate, seconds, { tenants }) => {
    const moments = poissonArrivals((runs += 1), rate, seconds);
    const polls = moments.map((atMs) => ({ atMs, pages }));
    const beside = { tokensPerPoll: 0, tokenPrice: 1, backfills: tenants!.backfills, backfillWork: 5 };
    const { pollMs, backfillMs } = servePolls(workers, pageMs, polls, beside, randomSource(runs));
    const answered = { kind: 'arrival', status: 200, schedulerLagMs: 0, pages } as const;
    const samples = moments.map((dueMs, index) => {
      const latencyMs = pollMs[index]!;
      return { ...answered, dueMs, latencyMs, serviceMs: latencyMs };
    });
    const page = { kind: 'page', walk: 0, depth: 0, items: 1000, status: 200 } as const;
    return { samples, run: { records: backfillMs.map((ms) => ({ ...page, ms })) } as unknown as K6Run };
  };
  const options = { ...OPTIONS, startRate: 10, thoroughness: 1 };
  const session = { options, slo: SLO, tell: () => {}, tryArrivals, pause: async () => {} };
  return { alone: await carried(session, 0), beside: await carried(session, 1) };
}

test('the price of a screening follows from pages that waited for little else', async () => {
  const { alone, beside } = await carriedTenants();
  const measured = measuredByTenants({ ...TENANTS, alone, beside });
  const work = workOf(1, 1000, pricesBy(alone, measured.backfillWork, 100));
  expect(Math.abs(work / 5 - 1)).toBeLessThan(0.25);
});

test('carries the tenants that were measured, also if the pages of a poll take most of the SLO', async () => {
  const { alone, beside } = await carriedTenants({ workers: 4, pageMs: 17, pages: 12 });
  const measured = measuredByTenants({ ...TENANTS, alone, beside });
  const tenants = Math.floor(0.8 * alone.tenants);
  // 1,150 screenings per poll.
  const asked = { tenants, screeningsPerDay: 1150 * 1440, ...pricesBy(alone, measured.backfillWork, 100) };
  expect(planned(asked, measured)).toMatchObject({ carried: true });
});

test('takes the quota of a single client for one, and reports an undecided number of tenants', async () => {
  const { alone, beside } = await carriedTenants();
  const limited = { ...alone, limitedBy: 'quota', quota: QUOTA } as const;
  const of = (clients: number) => measuredByTenants({ ...TENANTS, clients, alone: limited });
  expect(of(1).clientQuota!.perSecond).toBeCloseTo(limited.interval[0] / 60);
  expect(of(2).clientQuota).toBeUndefined();
  const open = { ...beside, tenants: 0, confirmed: false, unconfirmed: 'no page of a back-fill was served' };
  expect(summaryLines({ ...TENANTS, alone, beside: open })[0]).toMatch(/; an undecided number while one/);
});
