/** The search for the number of virtual users finds any connection limit of a target, and ends. */
import { expect, test } from '@playwright/test';
import { Connections } from './connections.ts';

const NEEDED = 500;

test('assumes no limit after a single refusal, and drops a limit once more connections are accepted', () => {
  const connections = new Connections();
  connections.accept(20);
  expect(connections.refuse(40)).toBe(40);
  expect(connections.refused).toBe(Infinity);
  connections.accept(40);
  expect([connections.refuse(80), connections.refuse(80)]).toEqual([80, 56]);
  expect(connections.most).toBeLessThan(80);
  connections.accept(80);
  expect([connections.refused, connections.most]).toEqual([Infinity, Infinity]);
});

for (const first of [1, 8, 60, 400]) {
  test(`finds limits of 2 to 120 connections, starting with ${first} virtual users`, () => {
    const wrong: string[] = [];
    for (let limit = 2; limit <= 120; limit += 1) {
      const connections = new Connections();
      let vus: number | 'all' = first;
      let runs = 0;
      while (vus !== 'all' && ++runs < 20) {
        // k6's setup uses one connection.
        const fewer: number | undefined = vus + 1 > limit ? connections.refuse(vus) : undefined;
        if (fewer === undefined) connections.accept(vus);
        vus = fewer ?? connections.more(vus, NEEDED);
      }
      const { accepted, refused } = connections;
      const isFound = accepted <= limit && refused > limit && accepted >= Math.floor(limit / 1.3) - 1;
      if (!isFound || runs === 20) wrong.push(`${limit}: ${accepted} to ${refused} after ${runs} runs`);
    }
    expect(wrong).toEqual([]);
  });
}
