/** Right clients of different making: conformant, and nothing is held against them. */
import { expect, test } from '@playwright/test';
import { certifyClient } from './certify-client.ts';
import { RIGHT } from './testing/right.ts';
import { smallClient } from './testing/small-client.ts';
import { SLOW } from './testing/slow.ts';

for (const [name, { habits, plays, without = [] }] of Object.entries(RIGHT)) {
  test(`a right client: ${name}`, async () => {
    const { situations, verdict, summary } = await certifyClient(smallClient(habits), {
      name,
      kit: { name: 'kit', version: '0' },
      skip: [...SLOW.filter((situation) => !plays?.test(situation)), ...without],
      concurrency: 12,
      pollingMs: 60_000,
    });
    const held = situations.filter(({ status }) => /fail|warn|error/.test(status));
    expect(held.map((one) => [one.name, one.failures])).toEqual([]);
    expect(verdict, summary).toBe('conformant');
  });
}
