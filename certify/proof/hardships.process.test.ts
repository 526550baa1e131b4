/** Ctrl-C, a deadline, no room on the disk: one clear line, the right exit status, nothing left running. */
import { expect, test } from '@playwright/test';
import { CASES, measure } from './hardships.ts';

test.describe.configure({ mode: 'parallel' });

/** The table has more moments of Ctrl-C. */
const MOMENTS = /Ctrl-C (0.5|1|2|8) s/;

for (const one of CASES.filter(({ name, main }) => !MOMENTS.test(name) && main.startsWith('certify')))
  test(one.name, async () => {
    const { wrong, run } = await measure(one);
    expect(wrong, run.output).toEqual([]);
  });
