/** A dataset is late if an item is missing at first, not if the answer is slow. */
import { expect, test } from '@playwright/test';
import type { Clock } from '../../clock.ts';
import type { Exchange } from '../../client/exchange.ts';
import { answerTo, getOf } from '../../testing.ts';
import { instant } from '../../data/instant.ts';
import { asServed, servedDataset, type FetchPage } from './served-dataset.ts';

const AT = '2026-06-01T00:00:00Z';
const dataset = [1n, 2n].map((id) => ({ id, at: instant(AT), testTime: AT, firstSeen: 0, firstSeenMs: 0 }));

function showing(ids: readonly number[]): Exchange {
  const items = ids.map((id) => `{"id":${id},"testTime":"${AT}"}`).join(',');
  const url = `http://127.0.0.1/v1/tenants/t/screenings?from=${AT}&to=2027-01-01T00:00:00Z`;
  return answerTo(getOf(url), `{"items":[${items}],"links":{}}`);
}

/** A clock, and a lookup that takes `durationMs` and shows more each time. */
function polling(durationMs: number, ...shown: readonly (readonly number[])[]): [FetchPage, Clock] {
  let [atMs, looks] = [0, 0];
  const fetchPage: FetchPage = async () => {
    atMs += durationMs;
    return showing(shown[Math.min(looks++, shown.length - 1)]!);
  };
  return [fetchPage, { now: () => atMs, sleep: async () => {} }];
}

test('a dataset in slow answers is not late', async () => {
  const [fetchPage, clock] = polling(5_000, [1, 2]);
  expect((await servedDataset(dataset, fetchPage, { clock, untilMs: 6_000 })).waitedMs).toBeUndefined();
});

test('one of two replicas is late', async () => {
  const [fetchPage, clock] = polling(500, [1], [1, 2], [], [1, 2], [1], [1, 2]);
  expect((await servedDataset(dataset, fetchPage, { clock, untilMs: 60_000 })).waitedMs).toBe(3_000);
});

test('one of two replicas is late, and the other one answers first', async () => {
  const [fetchPage, clock] = polling(500, [1, 2], [1], [1, 2], [1], [1, 2]);
  expect((await servedDataset(dataset, fetchPage, { clock, untilMs: 60_000 })).waitedMs).toBe(2_500);
});

test('one of two replicas is late, and a cache repeats what the other one answers', async () => {
  const [fetchPage, clock] = polling(500, [1, 2], [1], [1, 2], [1], [1, 2]);
  const cached = new Map<string, ReturnType<FetchPage>>();
  const fromCache: FetchPage = (query) => {
    const key = JSON.stringify(query);
    const answer = cached.get(key) ?? fetchPage(query);
    cached.set(key, answer);
    return answer;
  };
  expect((await servedDataset(dataset, fromCache, { clock, untilMs: 60_000 })).waitedMs).toBe(2_500);
});

test('reports how late a dataset was that appeared after a while', async () => {
  const [fetchPage, clock] = polling(1_000, [1], [1], [1, 2]);
  expect((await servedDataset(dataset, fetchPage, { clock, untilMs: 60_000 })).waitedMs).toBe(3_000);
});

test('a store is coarser only if what it shows was stored with more digits', () => {
  const stored = [`${AT.slice(0, -1)}.123Z`, `${AT.slice(0, -1)}.123456Z`].map((text, index) => ({
    id: BigInt(index),
    at: instant(text),
  }));
  expect(asServed(stored, [])).toEqual(stored);
  expect(asServed(stored, stored.slice(0, 1))).toEqual(stored);
  const [{ at }] = stored as [(typeof stored)[0]];
  expect(asServed(stored, [{ id: 1n, at }])).toEqual(stored.map(({ id }) => ({ id, at })));
});
