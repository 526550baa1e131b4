/** How a small budget is spent, and which checks run concurrently. */
import { expect } from '@playwright/test';
import { FAULTS } from '../reference-server/faults/all.ts';
import { startInProcess, test } from '../reference-server/faults/testing.ts';
import { certify } from './certify.ts';
import type { Access, Check } from '../engine/run/check.ts';
import { targetFor } from './proof/faults.ts';
import { concurrentLanes } from './schedule.ts';

test.describe('a budget', () => {
  for (const [budget, least] of [
    [100, 60],
    [300, 90],
  ] as const) {
    test(`of ${budget} requests is not exceeded and exercises at least ${least} requirements`, async ({
      small,
    }) => {
      await using server = await startInProcess(small);
      const report = await certify(await targetFor(server, 'full'), {
        seed: 1,
        budget,
        dispatcher: server.dispatcher,
      });
      expect(report.requests).toBeLessThanOrEqual(budget);
      expect(report.verdict).toBe('incomplete');
      const of = (status: string) => report.requirements.filter((result) => result.status === status);
      expect(of('fail')).toEqual([]);
      expect(of('pass').length).toBeGreaterThanOrEqual(least);
      expect(of('untested').some(({ reason }) => reason?.includes('--budget'))).toBe(true);
    });
  }

  test('of 300 requests finds obvious faults', async ({ small }) => {
    const found: string[] = [];
    for (const name of ['to compared with <=', 'codes in capitals', 'a star stands for the own tenant']) {
      const fault = FAULTS.find((candidate) => candidate.name === name)!;
      await using server = await startInProcess(small, fault.server);
      const { dispatcher } = server;
      const report = await certify(await targetFor(server, 'full'), { seed: 1, budget: 300, dispatcher });
      found.push(report.verdict);
    }
    expect(found).toEqual(['non-conformant', 'non-conformant', 'non-conformant']);
  });
});

test('runs reading checks concurrently and in order, and those that write to the scratch tenant sequentially', () => {
  const check = (title: string, access: Access): Check => ({
    title,
    access,
    ids: [],
    needs: 'page',
    isSupplement: false,
    run: async () => {},
  });
  const groups = concurrentLanes([
    check('a', 'reads'),
    check('b', 'reads'),
    check('c', 'exclusive'),
    check('d', 'reads'),
    check('e', 'scratch'),
    check('f', 'scratch'),
    check('g', 'reads'),
    check('h', 'exclusive'),
  ]);
  const said = groups.map((lanes) =>
    lanes.map((lane) => lane.map(({ title }) => title).join('')).join(' | '),
  );
  expect(said).toEqual(['a | b', 'c', 'ef | d | g', 'h']);
});
