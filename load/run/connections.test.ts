/** The number of virtual users: whatever limit of connections a target has, it is found, and the search for it ends. */
import { expect, test } from '@playwright/test';
import { Connections } from './connections.ts';

const NEEDED = 500;

test('connections refused once, as by a restart, are no limit, and a limit ends where more are accepted', () => {
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
  test(`limits of 2 to 120 connections are found from ${first} virtual users on`, () => {
    const wrong: string[] = [];
    for (let limit = 2; limit <= 120; limit += 1) {
      const connections = new Connections();
      let vus: number | 'all' = first;
      let runs = 0;
      while (vus !== 'all' && ++runs < 20) {
        // k6's setup keeps one of them.
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
