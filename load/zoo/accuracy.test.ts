/** A few servers of each family of the zoo: what is said with confidence is right. */
import { expect, test } from '@playwright/test';
import { byTurns } from '../../fixtures/own-tests/tiers.ts';
import { FAMILIES, visit } from './accuracy.ts';

/** One in fifty may be wrong: more seeds are for the command that prints the table. */
const DRAWN = 1;

for (const family of FAMILIES) {
  test(`zoo: ${family}: right, or undecided and says so`, byTurns(family), async () => {
    for (const { name, truth, found, verdict } of await visit(
      family,
      family === 'more-limiters' ? 9 : 5,
      DRAWN,
    ))
      expect(verdict, `${name}: truth ${truth}, found ${found}`).not.toBe('wrong');
  });
}
