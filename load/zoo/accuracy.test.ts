/**
 * Estimators on a few simulated servers of each family: no confident estimate is wrong; and for each tuned constant a
 * server whose estimate gets worse if the constant is off by a factor of two.
 */
import { expect, test } from '@playwright/test';
import { byTurns } from '../../fixtures/own-tests/tiers.ts';
import { accuracy, FAMILIES, judgeServer } from './accuracy.ts';
import { exponentialService } from './capacities.ts';
import { SEARCH } from '../estimate/capacity.ts';
import { DEPTH } from '../estimate/depth.ts';
import { FIGURES } from '../estimate/figures.ts';
import { FULL } from '../estimate/other-limits.ts';
import { PROBE } from '../estimate/limiter-probe.ts';
import { QUOTA } from '../estimate/quota.ts';
import { bisect } from '../estimate/numbers.ts';
import { LATE_SHARE, STEP } from '../estimate/step.ts';
import { server, simulatedCapacity } from './targets.ts';

/** A fixed seed, because one estimate in fifty may be wrong; `npm run load -- accuracy` draws others. */
const SEED = 1;

/** Servers whose estimates were confident and wrong before. */
const ONCE_WRONG: Partial<Record<(typeof FAMILIES)[number], readonly number[]>> = {
  feedback: [7, 34],
  surroundings: [19, 28],
  'more-limiters': [88, 198],
  depths: [12, 13, 14],
};

for (const family of FAMILIES) {
  test(`accuracy of ${family}: no confident estimate is wrong`, byTurns(family), async () => {
    const first = Array.from({ length: family.endsWith('-limiters') ? 10 : 5 }, (_, index) => index);
    for (const index of [...first, ...(ONCE_WRONG[family] ?? [])]) {
      const { name, truth, found, verdict } = await judgeServer(family, index, SEED);
      expect(verdict, `${name}: truth ${truth}, found ${found}`).not.toBe('wrong');
    }
  });
}

test('an abort ends the benchmark after the server in progress', async () => {
  const aborting = new AbortController();
  const running = accuracy(['depths'], { servers: 20, seed: SEED }, aborting.signal);
  setImmediate(() => aborting.abort());
  await expect(running).rejects.toThrow('aborted');
});

/** M/M/c queue (Erlang C): the share of requests that take longer than `seconds`; `each`: the rate of one worker. */
function shareLaterThan(seconds: number, rate: number, workers: number, each: number): number {
  const load = rate / each;
  let blocked = 1;
  for (let worker = 1; worker <= workers; worker += 1) blocked = (load * blocked) / (worker + load * blocked);
  const waits = blocked / (1 - (load / workers) * (1 - blocked));
  const spare = (workers - 1) * each - rate;
  const both = Math.abs(spare) < 1e-9 ? each * seconds : (each / spare) * (1 - Math.exp(-spare * seconds));
  return Math.exp(-each * seconds) * (1 + waits * both);
}

const ERLANG = 'the simulated capacity of a queue is that of the Erlang C formula';
test(ERLANG, byTurns(ERLANG), () => {
  for (const [workers, saturation] of [
    [1, 120],
    [3, 220],
    [8, 120],
  ] as const) {
    const service = exponentialService(saturation, workers);
    const found = simulatedCapacity((seed) => server({ service }, seed), saturation);
    const each = saturation / workers;
    const [truth] = bisect(saturation, 40, (rate) => shareLaterThan(0.5, rate, workers, each) < LATE_SHARE);
    expect(Math.abs(found / truth - 1), `${workers} workers: ${found}, not ${truth}`).toBeLessThan(0.03);
  }
});

/** The factor, and the server by family and index. */
type Witness = readonly [factor: 0.5 | 2, family: (typeof FAMILIES)[number], index: number];

const witnesses = <Name extends string>(
  constants: Record<Name, number>,
  rows: Readonly<Record<Name, Witness>>,
) => Object.entries<Witness>(rows).map(([name, row]) => ({ constants, name: name as Name, row }));

const ROWS = [
  ...witnesses(DEPTH, {
    factor: [0.5, 'depths', 25],
    deep: [2, 'depths', 1],
    end: [0.5, 'depths', 1],
    growth: [0.5, 'depths', 27],
  }),
  ...witnesses(PROBE, {
    growth: [2, 'more-limiters', 2],
    fineShare: [2, 'limiters', 0],
    largestBatch: [0.5, 'no-limiters', 2],
    shapedMs: [2, 'no-limiters', 1],
    shapedBatches: [2, 'no-limiters', 1],
    waits: [2, 'limiters', 0],
    overload: [2, 'limiters', 8],
    overloadSeconds: [2, 'no-limiters', 2],
  }),
  ...witnesses(FULL, { more: [0.5, 'no-limiters', 3] }),
  ...witnesses(QUOTA, {
    long: [2, 'quotas', 0],
    even: [2, 'quotas', 9],
    burstShare: [2, 'feedback', 0],
    queued: [0.5, 'refusals', 2],
    longestRun: [0.5, 'feedback', 1],
    waits: [2, 'feedback', 5],
    raise: [0.5, 'refusals', 2],
    mostGrowth: [2, 'refusals', 2],
    raises: [0.5, 'refusals', 2],
    beyond: [2, 'feedback', 1],
    longestPauseSeconds: [0.5, 'feedback', 9],
    banDeviations: [2, 'feedback', 7],
  }),
  ...witnesses(SEARCH, {
    overload: [2, 'sharing', 0],
    narrow: [2, 'warming', 0],
    leastDoubling: [2, 'errors', 0],
    ofSaturation: [0.5, 'warming', 0],
    enough: [2, 'errors', 0],
    slowed: [2, 'queues', 0],
  }),
  ...witnesses(FIGURES, {
    unsettled: [0.5, 'warming', 0],
    roundedUp: [2, 'queues', 0],
    wide: [0.5, 'queues', 0],
    collapsed: [2, 'queues', 0],
    alike: [0.5, 'errors', 0],
  }),
  ...witnesses(STEP, {
    warmUp: [2, 'errors', 0],
    growing: [2, 'restarts', 5],
    leastSamples: [2, 'surroundings', 1],
    holdsByChance: [2, 'errors', 4],
    breaksByChance: [2, 'errors', 6],
  }),
];

const isConfirmed = (found: string): number => Number(/, confirmed$/.test(found));

for (const [index, { constants, name, row }] of ROWS.entries()) {
  const [factor, family, server] = row;
  test(
    `${name} × ${factor}: a worse estimate for ${family} ${server}`,
    byTurns('tuned', 6, index),
    async () => {
      const tuned: Record<string, number> = constants;
      const value = tuned[name]!;
      const judge = () => judgeServer(family, server, SEED);
      const right = await judge();
      expect(right.verdict, right.found).toBe('right');
      try {
        tuned[name] = value * factor;
        const { verdict, error = 0, seconds = 0, found } = await judge();
        const isWorse =
          verdict !== 'right' ||
          isConfirmed(right.found) > isConfirmed(found) ||
          found.includes('collapse') !== right.found.includes('collapse') ||
          Math.abs(error) > 2 * Math.abs(right.error ?? 0) + 0.01 ||
          seconds > 1.2 * right.seconds!;
        expect(isWorse, found).toBe(true);
      } finally {
        tuned[name] = value;
      }
    },
  );
}
