/** Correct clients of different kinds are conformant, without any finding. */
import { expect, test } from '@playwright/test';
import { byTurns, FULL } from '../../fixtures/own-tests/tiers.ts';
import type { ClientReport } from './report.ts';
import { SITUATIONS } from './situations/all.ts';
import { played } from './testing/played.ts';
import { RIGHT } from './testing/right.ts';
import { realWorld } from './world.ts';

function expectRight({ situations, verdict, summary }: ClientReport): void {
  const held = situations.filter(({ status }) => /fail|warn|error/.test(status));
  expect(held.map((one) => [one.name, one.failures])).toEqual([]);
  expect(verdict, summary).toBe('conformant');
}

for (const [name, { habits, without = [] }] of Object.entries(RIGHT)) {
  test(`a right client: ${name}`, byTurns(name), async () => {
    const only = SITUATIONS.map((one) => one.name).filter((one) => !without.includes(one));
    expectRight(await played(habits, without.length > 0 ? { only } : {}));
  });
}

test('a right client: one connection per request, over sockets and in real time', FULL, async () => {
  expectRight(await played({ keepAlive: false }, { world: realWorld, concurrency: 12 }));
});
