/** When a dataset is late: where it lacks something at first, and not where its answer takes a while. */
import { expect, test } from '@playwright/test';
import type { Exchange } from '../../client/exchange.ts';
import { parseJson } from '../../client/json.ts';
import { instant } from '../../data/instant.ts';
import { servedDataset, type Look } from './served-dataset.ts';

const AT = '2026-06-01T00:00:00Z';
const dataset = [1n, 2n].map((id) => ({ id, at: instant(AT), testTime: AT, firstSeen: 0 }));

function showing(ids: readonly number[]): Exchange {
  const items = ids.map((id) => `{"id":${id},"testTime":"${AT}"}`).join(',');
  const request = {
    channel: 'rest',
    method: 'GET',
    url: `http://127.0.0.1/v1/tenants/t/screenings?from=${AT}&to=2027-01-01T00:00:00Z`,
    headers: {},
    authorization: { kind: 'none' },
  } as const;
  const text = `{"items":[${items}],"links":{}}`;
  return {
    request,
    text,
    json: parseJson(text),
    seq: 1,
    status: 200,
    headers: [],
    startedAtMs: 0,
    durationMs: 1,
  };
}

const { now } = Date;
test.afterEach(() => {
  Date.now = now;
});

/** The clock, and a look that takes so long and shows more each time. */
function slowly(durationMs: number, ...shown: readonly (readonly number[])[]): Look {
  let [atMs, looks] = [0, 0];
  Date.now = () => atMs;
  return async () => {
    atMs += durationMs;
    return showing(shown[Math.min(looks++, shown.length - 1)]!);
  };
}

test('a dataset that comes slowly is not late', async () => {
  expect((await servedDataset(dataset, slowly(5_000, [1, 2]), 6_000)).waitedMs).toBeUndefined();
});

test('a dataset of which something shows only after a while is late by so much', async () => {
  expect((await servedDataset(dataset, slowly(1_000, [1], [1], [1, 2]), 60_000)).waitedMs).toBe(3_000);
});
