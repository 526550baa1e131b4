/** Ctrl-C, a deadline and a full disk end with one clear line, the right exit status and no process left. */
import { expect, test } from '@playwright/test';
import { byTurns } from '../../fixtures/own-tests/tiers.ts';
import { CASES, measure } from './hardships.ts';

test.describe.configure({ mode: 'parallel' });

for (const one of CASES.filter(({ main }) => main.startsWith('certify')))
  test(one.name, byTurns(one.name, 8), async () => {
    const { wrong, run } = await measure(one);
    expect(wrong, run.output).toEqual([]);
  });
