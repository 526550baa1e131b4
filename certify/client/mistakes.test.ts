/** Every mistake of a client is found by its situation with the expected words, and by no other. */
import { expect, test } from '@playwright/test';
import { byTurns } from '../../fixtures/own-tests/tiers.ts';
import { SITUATIONS } from './situations/all.ts';
import { MISTAKES } from './testing/mistakes.ts';
import { played } from './testing/played.ts';

for (const [name, mistake] of Object.entries(MISTAKES)) {
  const { habits, status = 'fail', shows, also = [] } = mistake;
  test(`a client that ${name}`, byTurns(name), async () => {
    const { situations, verdict } = await played(habits);
    for (const [situation, words] of Object.entries(shows)) {
      const result = situations.find((one) => one.name === situation);
      const messages = result?.failures.map(({ message }) => message).join('\n') ?? '';
      expect(messages, `${situation} is ${result?.status} ${result?.reason ?? ''}`).toMatch(words);
    }
    const told = Object.keys(shows).map((one) => situations.find((result) => result.name === one)!.status);
    expect(told).toContain(status);
    expect(verdict).toBe(status === 'fail' ? 'non-conformant' : 'conformant');
    const found = situations.filter((one) => /fail|warn|error/.test(one.status)).map((one) => one.name);
    if (!also.includes('*')) expect([...Object.keys(shows), ...also]).toEqual(expect.arrayContaining(found));
  });
}

test('every situation finds a mistake', () => {
  const found = new Set(
    Object.values(MISTAKES).flatMap(({ shows, also = [] }) => [...Object.keys(shows), ...also]),
  );
  // Tested with real clients in main.process.test.ts, or impossible to break.
  const elsewhere = ['tls-trusted', 'tls-another-name'];
  const names = SITUATIONS.map(({ name }) => name).filter((name) => !found.has(name));
  expect(names.filter((name) => !elsewhere.includes(name))).toEqual([]);
});
