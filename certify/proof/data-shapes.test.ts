/** Tenants with data that cannot test everything, and one with more data than a run may read. */
import { expect } from '@playwright/test';
import type { Screening } from '../../engine/data/dataset.ts';
import { generateScreenings } from '../../fixtures/dataset/generator.ts';
import { byTurns, FULL } from '../../fixtures/own-tests/tiers.ts';
import { eachItem } from '../../reference-server/faults/rows.ts';
import { withoutRecords } from '../../reference-server/variants/live.ts';
import { withoutEvents } from '../../reference-server/variants/variant.ts';
import type { ScreeningStore } from '../../reference-server/parts.ts';
import { test, type World } from '../../reference-server/testing.ts';
import { TENANTS } from '../../reference-server/run/provisioning.ts';
import { createMemoryStore } from '../../reference-server/store/memory.ts';
import { certifyServer, expectIncomplete, failedOf, saidOf } from './faults.ts';
import type { Report } from '../report/report.ts';

function bare(world: World, screenings: readonly Screening[]): Promise<Report> {
  const store = createMemoryStore(new Map([[TENANTS.primary, screenings]]));
  return certifyServer(world, { store }, 'bare', { runs: 4 });
}

/** The store of the world, with other screenings of primary. */
function ofPrimary({ store }: World, screenings: readonly Screening[]): { store: ScreeningStore } {
  const held = createMemoryStore(new Map([[TENANTS.primary, screenings]]));
  const page: ScreeningStore['page'] = (query) =>
    (query.tenantId === TENANTS.primary ? held : store).page(query);
  return { store: { ...store, page } };
}

const untied = (count: number, first = '2026-03-01T08:00:00Z', apartMs = 300_000): Screening[] =>
  Array.from({ length: count }, (_, index) => {
    const id = BigInt(1000 - 7 * index);
    const tenantId = TENANTS.primary;
    const testTime = new Date(Date.parse(first) + index * apartMs).toISOString();
    return { id, tenantId, testTime, json: JSON.stringify({ id: Number(id), tenantId, testTime }) };
  });

const UNTIED = 'reports what to load for thirty screenings without ties';
test(UNTIED, byTurns('shapes', 6, 5), async ({ small }) => {
  const report = await bare(small, untied(30));
  expectIncomplete(report, /./);
  expect(saidOf(report, '4.2-r5-exactly-once')).toMatch(/^untested: .*load .*screenings/);
});

const SHAPES: Readonly<Record<string, readonly Screening[]>> = {
  'no screenings': [],
  'one screening': untied(1),
  'screenings of the year 1999': untied(30, '1999-12-31T23:00:00Z'),
  'screenings of the year 2099': untied(30, '2099-12-31T23:00:00Z'),
  'screenings of the year 9999': untied(30, '9999-12-30T23:00:00Z'),
};

for (const [row, [what, screenings]] of Object.entries(SHAPES).entries())
  test(`reports what to load, and no failure, for ${what}`, byTurns('shapes', 6, row), async ({ small }) =>
    expectIncomplete(await bare(small, screenings), /load/),
  );

test('a serializer that leaves out what is null shows the screenings of the dataset', async ({ small }) => {
  const sparse = eachItem((item) => ({ ...item, json: item.json.replaceAll(/,"\w+":null/g, '') }));
  const report = await certifyServer(small, sparse, 'full', {
    ...{ runs: 1, only: '2.3-object-stable' },
    change: (target) => ({
      ...withoutEvents(target),
      dataset: target.dataset?.map((line) => ({
        ...line,
        json: line.json.replace('"device":{', '"device":{"model":null,'),
      })),
    }),
  });
  expect(saidOf(report, '2.3-object-stable')).toBe('pass');
});

/** More than the sample of a run has. */
const MANY = 6_000;

for (const [count, mode] of [
  [140, 'bare'],
  [MANY, 'bare'],
  [MANY, 'full'],
] as const)
  test(`walks across the only tie, the last two of ${count}, ${mode}`, FULL, async ({ small }) => {
    const all = untied(count);
    const last = { ...all.at(-1)!, testTime: all.at(-2)!.testTime };
    const dataset = [
      ...all.slice(0, -1),
      { ...last, json: last.json.replace(all.at(-1)!.testTime, last.testTime) },
    ];
    const report = await certifyServer(small, ofPrimary(small, dataset), mode, {
      runs: 4,
      change: (target) => ({ ...withoutRecords(target), ...(mode === 'full' ? { dataset } : {}) }),
    });
    expect(report.verdict).toBe('conformant');
  });

test('compares tenants whose screenings are of different years', FULL, async ({ small }) => {
  const dataset = untied(30, '1999-12-31T23:00:00Z');
  const report = await certifyServer(small, ofPrimary(small, dataset), 'full', {
    ...{ runs: 1, only: '4.2-r3-one-tenant' },
    change: (target) => ({ ...withoutRecords(target), dataset }),
  });
  expect(saidOf(report, '4.2-r3-one-tenant')).toBe('pass');
});

/** An import of dates without times. */
const IMPORTED = 5_000;

for (const [row, mode] of (['bare', 'full'] as const).entries()) {
  const title = `certifies a tenant whose ${IMPORTED} screenings are of one instant with as few requests, ${mode}`;
  test(title, byTurns('import', 4, row), async ({ small }) => {
    const dataset = untied(IMPORTED, undefined, 0);
    const report = await certifyServer(small, ofPrimary(small, dataset), mode, {
      runs: 4,
      change: (target) => ({ ...withoutRecords(target), ...(mode === 'full' ? { dataset } : {}) }),
    });
    expect([report.verdict, failedOf(report)]).toEqual(['conformant', []]);
    expect(report.requests).toBeLessThan(2_500);
  });
}

for (const mode of ['bare', 'full'] as const)
  test(`certifies 200,000 screenings in a limited number of requests, ${mode}`, FULL, async ({ small }) => {
    test.slow();
    const dataset = [...generateScreenings({ tenantId: TENANTS.primary, count: 200_000, bigIds: true })];
    const report = await certifyServer(small, ofPrimary(small, dataset), mode, {
      runs: 4,
      change: (target) => ({ ...withoutRecords(target), ...(mode === 'full' ? { dataset } : {}) }),
    });
    expect(failedOf(report)).toEqual([]);
    expect(report.requests).toBeLessThan(4_000);
    expect(report.evidence.seen['sampleItems']).toBeLessThan(10_000);
    expect(report.verdict).toBe('conformant');
  });
