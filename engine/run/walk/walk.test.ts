/** A truncated walk proves nothing about items that it had not reached. */
import { expect, test } from '@playwright/test';
import type { Exchange } from '../../client/exchange.ts';
import { parseJson } from '../../client/json.ts';
import { instant } from '../../data/instant.ts';
import { WalkSummary, walkMismatch, type Walk } from './walk.ts';

const FROM = '2026-01-01T00:00:00Z';
const query = { from: FROM, to: '2027-01-01T00:00:00Z' };
const AT = '2026-06-01T00:00:00Z';
const known = [1, 2, 3].map((id) => ({ id: BigInt(id), at: instant(AT), testTime: AT, firstSeen: 0 }));

function pageOf(ids: readonly number[]): Exchange {
  const items = ids.map((id) => `{"id":${id},"testTime":"${AT}"}`).join(',');
  const request = {
    channel: 'rest',
    method: 'GET',
    url: `http://127.0.0.1/v1/tenants/t/screenings?from=${FROM}&to=${query.to}&pageSize=1`,
    headers: {},
    authorization: { kind: 'none' },
  } as const;
  const text = `{"items":[${items}],"links":{}}`;
  const answer = { seq: 1, status: 200, headers: [], startedAtMs: 0, durationMs: 1 };
  return { ...answer, request, text, json: parseJson(text) };
}

function truncatedAfter(...pages: readonly (readonly number[])[]): Walk {
  const exchanges = pages.map(pageOf);
  const summary = new WalkSummary();
  for (const exchange of exchanges) summary.add(exchange);
  return { query, exchanges, items: [], summary, end: 'cut' };
}

test('a truncated walk lost no item that it had not reached', () => {
  expect(walkMismatch(truncatedAfter([], []), known)).toBeUndefined();
});

test('a truncated walk counts the items that it passed only', () => {
  expect(walkMismatch(truncatedAfter([1], [2]), known)).toBeUndefined();
});

test('an item that a walk passed without returning it is lost', () => {
  expect(walkMismatch(truncatedAfter([1], [3]), known)?.received).toContain('item 2');
});
