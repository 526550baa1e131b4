/** Tenants that can't show everything, and one that holds more than a run may ask for. */
import { expect } from '@playwright/test';
import type { Screening } from '../engine/data/screening.ts';
import { openDatabase } from '../reference-server/store/database.ts';
import { targetFor } from './proof/faults.ts';
import { defaultProvisioning, loadProvisioning, TENANTS } from '../reference-server/run/provisioning.ts';
import { byTurns, FULL } from '../fixtures/own-tests/tiers.ts';
import { startServer, type ReferenceServer } from '../reference-server/run/start.ts';
import { test as base } from '../reference-server/testing.ts';
import { certify } from './certify.ts';
import type { Report } from './report.ts';

const test = base.extend<{ startWith: (count: number) => Promise<ReferenceServer> }>({
  startWith: async ({ database: { url } }, use) => {
    const started: AsyncDisposable[] = [];
    const keep = <T extends AsyncDisposable>(part: T): T => (started.push(part), part);
    await use(async (count) => {
      const database = keep(await openDatabase({ url }));
      const set = defaultProvisioning({ count, secondCount: 0 });
      const provisioned = keep(await loadProvisioning(database, set));
      return keep(await startServer(database, provisioned));
    });
    for (const part of started.reverse()) await part[Symbol.asyncDispose]();
  },
});

const bare = async (server: ReferenceServer): Promise<Report> =>
  certify(await targetFor(server, 'bare'), { seed: 1, runs: 4 });

const faults = ({ requirements }: Report): string[] =>
  requirements
    .filter(({ status }) => status === 'fail' || status === 'error')
    .map(({ id, reason, failures }) => `${id}: ${reason ?? failures[0]?.message}`);

/** Every five minutes, no two at once. */
const untied = (count: number, first = '2026-03-01T08:00:00Z'): Screening[] =>
  Array.from({ length: count }, (_, index) => {
    const id = BigInt(1000 - 7 * index);
    const tenantId = TENANTS.primary;
    const testTime = new Date(Date.parse(first) + index * 300_000).toISOString();
    return { id, tenantId, testTime, json: JSON.stringify({ id: Number(id), tenantId, testTime }) };
  });

test('thirty screenings and no ties: incomplete, and told what to load', async ({ startWith }) => {
  const server = await startWith(0);
  await server.ingest(untied(30));
  const report = await bare(server);
  expect(faults(report)).toEqual([]);
  expect(report.verdict).toBe('incomplete');
  const order = report.requirements.find(({ id }) => id === '4.2-r5-exactly-once');
  expect(order?.status).toBe('untested');
  expect(order?.reason).toMatch(/load .*screenings/);
});

for (const [row, first] of [
  '1999-12-31T23:00:00Z',
  '2099-12-31T23:00:00Z',
  '9999-12-30T23:00:00Z',
].entries()) {
  test(`screenings from ${first} on`, byTurns('far screenings', 3, row), async ({ startWith }) => {
    const server = await startWith(0);
    await server.ingest(untied(30, first));
    expect(faults(await bare(server))).toEqual([]);
  });
}

test('one screening', byTurns('few screenings', 2, 0), async ({ startWith }) => {
  const server = await startWith(0);
  await server.ingest(untied(1));
  const report = await bare(server);
  expect(faults(report)).toEqual([]);
  expect(report.verdict).toBe('incomplete');
});

test(
  'no screenings: incomplete, and told to load some',
  byTurns('few screenings', 2, 1),
  async ({ startWith }) => {
    const report = await bare(await startWith(0));
    expect(faults(report)).toEqual([]);
    expect(report.verdict).toBe('incomplete');
    expect(report.summary).toMatch(/load/);
  },
);

test(
  '200,000 screenings and no window: a window is found, in bounded requests',
  FULL,
  async ({ startWith }) => {
    const report = await bare(await startWith(200_000));
    expect(faults(report)).toEqual([]);
    expect(report.requests).toBeLessThan(4_000);
    expect(report.evidence.seen['sampleItems']).toBeLessThan(10_000);
    expect(report.verdict).toBe('conformant');
  },
);
