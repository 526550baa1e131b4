/** Estimators on a few simulated servers of each family: no confident estimate is wrong. */
import { expect, test } from '@playwright/test';
import { byTurns } from '../../fixtures/own-tests/tiers.ts';
import { FAMILIES, judgeServer } from './accuracy.ts';

/** A fixed seed, because one estimate in fifty may be wrong; `npm run load -- accuracy` draws others. */
const SEED = 1;

for (const family of FAMILIES) {
  test(`accuracy of ${family}: no confident estimate is wrong`, byTurns(family), async () => {
    for (let index = 0; index < (family === 'more-limiters' ? 9 : 5); index += 1) {
      const { name, truth, found, verdict } = await judgeServer(family, index, SEED);
      expect(verdict, `${name}: truth ${truth}, found ${found}`).not.toBe('wrong');
    }
  });
}
