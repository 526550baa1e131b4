/** The search for a capacity against simulated targets, whose truth is known and whose time costs nothing. */
import { expect, test } from '@playwright/test';
import { SEED } from '../../fixtures/own-tests/seeded.ts';
import { inOrder, limited, queueing, stepsAgainst, warming } from '../zoo/targets.ts';
import { SLO } from '../zoo/capacities.ts';
import { atOnceOf } from './other-limits.ts';
import { searchCapacity } from './capacity.ts';
import { LIMITER_KINDS } from './limiter-models.ts';
import { SEARCH_DEFAULTS, type StepRun } from './search.ts';
import { shareVerdict } from './step.ts';

const SETTINGS = { ...SEARCH_DEFAULTS, slo: SLO, startRate: 20 };

test('capacity: a quota whose window is longer than anyone watches is not confirmed', async () => {
  const hourly = limited({ kind: 'fixed-window', limit: 400, windowMs: 3_600_000 });
  const found = await searchCapacity(stepsAgainst(inOrder(hourly), 1), SETTINGS);
  expect(found).toMatchObject({ limitedBy: 'quota', confirmed: false });
  expect(found.unconfirmed).toContain('window');
});

test('capacity: what counts requests in time is no limit of requests at once, however slow its answers', async () => {
  for (const kind of LIMITER_KINDS) {
    for (const [workers, serviceMs] of [
      [60, 100],
      [1, 20],
      [1, 26],
    ] as const) {
      const rest = queueing({ workers, serviceMs, distribution: 'exponential' }, 1);
      const target = limited({ kind, limit: 40, windowMs: 1000 }, false, rest);
      const { samples } = await stepsAgainst(inOrder(target), SEED)(90, 20);
      expect(atOnceOf(samples), `${kind} in front of ${workers} × ${serviceMs} ms`).toBeUndefined();
    }
  }
});

test('capacity: nothing found up to the highest rate', async () => {
  const fast = queueing({ workers: 100, serviceMs: 1, distribution: 'deterministic' }, 1);
  const found = await searchCapacity(stepsAgainst(inOrder(fast), 1), { ...SETTINGS, maxRate: 100 });
  expect(found).toMatchObject({ limitedBy: 'none-found', requestsPerSecond: 100, confirmed: true });
});

test('capacity: a target that goes on getting faster ends the search, and is not confirmed', async () => {
  const service = (serviceMs: number) => ({ workers: 1, serviceMs, distribution: 'exponential' }) as const;
  const target = warming(
    { before: service(20), after: service(0.05), fromSeconds: 0, untilSeconds: 4000 },
    1,
  );
  const found = await searchCapacity(stepsAgainst(inOrder(target), 1), SETTINGS);
  expect(found.confirmed && !found.gotFaster).toBe(false);
  expect(found.watchedSeconds).toBeLessThan(1000);
});

test('capacity: one void step is undecided, and the others stand', async () => {
  const right = stepsAgainst(
    inOrder(queueing({ workers: 3, serviceMs: 20, distribution: 'exponential' }, 2)),
    2,
  );
  let steps = 0;
  const found = await searchCapacity(async (rate, seconds): Promise<StepRun> => {
    steps += 1;
    const run = await right(rate, seconds);
    return steps === 7 ? { ...run, void: 'the machine stalled' } : run;
  }, SETTINGS);
  expect(found.confirmed).toBe(true);
  expect(Math.abs(found.requestsPerSecond / 145 - 1)).toBeLessThan(0.1);
});

test('capacity: always void is no figure of the target', async () => {
  const right = stepsAgainst(
    inOrder(queueing({ workers: 1, serviceMs: 400, distribution: 'exponential' }, 2)),
    2,
  );
  const found = await searchCapacity(
    async (rate, seconds) => ({ ...(await right(rate, seconds)), void: 'the machine is busy' }),
    SETTINGS,
  );
  expect(found).toMatchObject({ confirmed: false, unconfirmed: 'the machine is busy' });
  // And no reason to ask for as much as may be asked for.
  expect(Math.max(...found.steps.map(({ offered }) => offered))).toBeLessThan(SETTINGS.maxRate / 2);
});

test('a share is judged by chance, not by a quantile of few', () => {
  expect(shareVerdict(0, 32, 0.01)).toBe('undecided');
  expect(shareVerdict(0, 300, 0.01)).toBe('holds');
  expect(shareVerdict(4, 300, 0.01)).toBe('undecided');
  expect(shareVerdict(10, 300, 0.01)).toBe('breaks');
  expect(shareVerdict(2, 32, 0.001)).toBe('breaks');
});
