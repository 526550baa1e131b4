/** Right clients of different making: conformant, and nothing is held against them. */
import { expect, test } from '@playwright/test';
import { certifyClient } from './certify-client.ts';
import { RIGHT } from './testing/right.ts';
import { smallClient } from './testing/small-client.ts';

/** What a client that gives up early, and says so, is told. */
const TOLERATED: Readonly<Record<string, readonly string[]>> = {
  'two retries, then it gives up': [],
};

for (const [name, habits] of Object.entries(RIGHT)) {
  test(`a right client: ${name}`, async () => {
    const { situations, verdict, summary } = await certifyClient(smallClient(habits), {
      name,
      kit: { name: 'kit', version: '0' },
      concurrency: 12,
      patienceMs: 60_000,
    });
    const held = situations.filter(({ status }) => /fail|warn|error/.test(status));
    expect(
      held.filter((one) => !TOLERATED[name]?.includes(one.name)).map((one) => [one.name, one.failures]),
    ).toEqual([]);
    expect(verdict, summary).toBe('conformant');
  });
}
