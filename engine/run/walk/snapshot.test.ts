/** Two answers to the same request may differ only in what a lagging replica had not shown at first (4.2-repeatable). */
import { expect, test } from '@playwright/test';
import { instant } from '../../data/instant.ts';
import { Oracle } from '../../data/oracle.ts';
import { answerTo, fakeClock, getOf } from '../../testing.ts';
import type { Kit } from '../kit.ts';
import { repeatMismatch } from './snapshot.ts';

const AT = '2026-03-01T12:00:00Z';
const request = getOf(
  'http://x/v1/tenants/a/screenings?from=2026-03-01T12:00:00Z&to=2026-03-01T13:00:00Z&pageSize=9',
);
const pageOf = (ids: readonly number[], startedAtMs: number) => {
  const items = ids.map((id) => ({ id, tenantId: 'a', testTime: AT }));
  return answerTo(request, JSON.stringify({ items, links: {} }), 200, startedAtMs);
};

for (const [knownMs, expected] of [
  [1_000, undefined],
  [10_000, { received: expect.stringContaining('item 1 ') as unknown }],
] as const)
  test(`${expected ? 'reports' : 'accepts'} an item that the first answer lacks, known ${knownMs} ms before it`, async () => {
    const [oracle, firstMs] = [new Oracle(false), 20_000];
    for (const id of [1n, 2n]) oracle.add({ id, at: instant(AT), testTime: AT }, 0, firstMs - knownMs);
    const knowledge = { oracleOf: () => oracle };
    const clock = fakeClock();
    const kit = { knowledge, clock, oracle: async () => oracle, pollingMs: (ms: number) => ms };
    const [first, second] = [pageOf([2], firstMs), pageOf([1, 2], firstMs + 100)];
    const mismatch = await repeatMismatch(kit as unknown as Kit, first, second);
    if (expected) expect(mismatch).toMatchObject(expected);
    else expect(mismatch).toBeUndefined();
  });
