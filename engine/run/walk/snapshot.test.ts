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

const IS_REPORTED = { received: expect.stringContaining('item 1 ') as unknown };

for (const [what, knownMs, later, expected] of [
  ['accepts an item that the first answer lacks, known a second before it', 1_000, [1, 2], undefined],
  ['reports it if the request of the first answer never returns it', 1_000, [2], IS_REPORTED],
  ['reports an item that the first answer lacks, known ten seconds before it', 10_000, [1, 2], IS_REPORTED],
] as const)
  test(what, async () => {
    const [oracle, firstMs] = [new Oracle(false), 20_000];
    for (const id of [1n, 2n]) oracle.add({ id, at: instant(AT), testTime: AT }, 0, firstMs - knownMs);
    const kit = {
      knowledge: { oracleOf: () => oracle },
      clock: fakeClock(),
      client: { send: async () => pageOf(later, firstMs + 200) },
      oracle: async () => oracle,
      pollingMs: (ms: number) => ms,
    } as unknown as Kit;
    const mismatch = await repeatMismatch(kit, pageOf([2], firstMs), pageOf([1, 2], firstMs + 100));
    if (expected) expect(mismatch).toMatchObject(expected);
    else expect(mismatch).toBeUndefined();
  });
