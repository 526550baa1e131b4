/** The judge of pages under load: a right page passes, and each wrong one is named. */
import { expect, test } from '@playwright/test';
import { REQUIREMENTS } from '../../../engine/requirements.ts';
import { compareIds, instantKey } from './instant.ts';
import { judgeLimited, judgePage, policyOf, type PageAnswer, type PageQuestion } from './judge.ts';

const TENANT = '7d0c5a52-0000-4000-8000-000000000001';
const QUESTION: PageQuestion = {
  url: 'http://127.0.0.1/',
  tenantId: TENANT,
  from: '2026-01-01T00:00:00Z',
  to: '2026-01-02T00:00:00Z',
  pageSize: 2,
};
const item = (id: string, testTime: string, tenantId = TENANT): string =>
  `{"id":${id},"tenantId":"${tenantId}","testTime":"${testTime}","note":"\\"id\\":1"}`;
const FIRST = item('9007199254740993', '2026-01-01T01:00:00.000001+01:00');
const SECOND = item('9007199254740994', '2026-01-01T00:00:00.000001Z');
const NEXT =
  'http://127.0.0.1/x?from=2026-01-01T00%3A00%3A00.000001Z&to=2026-01-02T00%3A00%3A00Z&pageSize=2&from_id=9007199254740994';

const answer = (items: string[], next?: string, link = next): PageAnswer => ({
  status: 200,
  body: `{"items":[${items.join(',')}],"links":${next ? `{"next":${JSON.stringify(next)}}` : '{}'}}`,
  headers: link ? { Link: `<${link}>; rel="next"` } : {},
});

const ids = (question: PageQuestion, given: PageAnswer): string[] =>
  judgePage(question, given).findings.map(({ id }) => id);

test('a right page passes, ids beyond 2^53 kept exact', () => {
  const verdict = judgePage(QUESTION, answer([FIRST, SECOND], NEXT));
  expect(verdict.findings).toEqual([]);
  expect(verdict.items).toBe(2);
  expect(verdict.last?.id).toBe('9007199254740994');
});

const after = judgePage(QUESTION, answer([FIRST, SECOND], NEXT)).last;

const BROKEN: readonly [string, PageQuestion, PageAnswer][] = [
  ['4.2-r4-order', QUESTION, answer([SECOND, FIRST])],
  ['4.2-r5-exactly-once', QUESTION, answer([FIRST, FIRST])],
  ['4.2-r5-exactly-once', { ...QUESTION, after }, answer([SECOND])],
  ['4.2-window', QUESTION, answer([item('1', '2025-12-31T23:59:59.999999Z')])],
  ['4.2-to-exclusive', QUESTION, answer([item('1', '2026-01-02T01:00:00+01:00')])],
  ['4.2-r3-one-tenant', QUESTION, answer([item('1', '2026-01-01T05:00:00Z', TENANT.replace('7d', '8d'))])],
  ['2.3-testTime', QUESTION, answer([item('1', 'yesterday')])],
  ['2.4-items', { ...QUESTION, pageSize: 1 }, answer([FIRST, SECOND])],
  ['2.4-links', QUESTION, { ...answer([]), body: '{"items":[]}' }],
  ['2.4-items', QUESTION, { ...answer([]), body: '{"links":{}}' }],
  ['4.2-r7-link', QUESTION, { ...answer([FIRST, SECOND], NEXT), headers: {} }],
  ['4.2-r7-link', QUESTION, answer([FIRST, SECOND], NEXT, `${NEXT}&x=1`)],
  ['4.2-r7-link-absent', QUESTION, answer([FIRST], undefined, NEXT)],
  ['4.2-r6-next-to', QUESTION, answer([FIRST, SECOND], NEXT.replace('01-02T', '01-03T'))],
  ['4.2-r6-next-pageSize', QUESTION, answer([FIRST, SECOND], NEXT.replace('pageSize=2', 'pageSize=3'))],
  ['4.2-r6-next-from', QUESTION, answer([FIRST, SECOND], NEXT.replace('.000001', '.000'))],
  ['4.2-r6-next-from_id', QUESTION, answer([FIRST, SECOND], NEXT.replace('994', '992'))],
];

for (const [index, [id, question, given]] of BROKEN.entries()) {
  test(`broken ${index + 1}: ${id}`, () => {
    expect(ids(question, given)).toEqual([id]);
    expect(REQUIREMENTS.map((requirement) => String(requirement.id))).toContain(id);
  });
}

test('a 429 names its code and its wait', () => {
  const body = '{"code":"rate_limited"}';
  expect(judgeLimited({ status: 429, body, headers: { 'Retry-After': '3' } })).toEqual({
    findings: [],
    retryAfterSeconds: 3,
  });
  expect(judgeLimited({ status: 429, body, headers: {} }).findings.map(({ id }) => id)).toEqual([
    '7.2-retry-after',
  ]);
  expect(
    judgeLimited({ status: 429, body: '{}', headers: { 'retry-after': '1' } }).findings.map(({ id }) => id),
  ).toEqual(['7.2-rate_limited']);
});

test('a declared quota is read in its old and its new form; the one that lets the least through counts', () => {
  const of = (headers: Record<string, string>) => policyOf(headers);
  expect(of({ 'Ratelimit-Policy': '"default";q=600;w=60' })).toEqual({ limit: 600, windowSeconds: 60 });
  expect(of({ 'RateLimit-Policy': '10;w=1, 1000;w=3600' })).toEqual({ limit: 1000, windowSeconds: 3600 });
  expect(of({ 'RateLimit-Limit': '100, 100;w=60;comment="a minute"' })).toEqual({
    limit: 100,
    windowSeconds: 60,
  });
  const rest = { limit: 100, windowSeconds: 7, atLeast: true };
  expect(of({ 'RateLimit-Limit': '100', 'RateLimit-Reset': '7' })).toEqual(rest);
  expect(of({ RateLimit: 'limit=100, remaining=3, reset=7' })).toEqual(rest);
  const moment = String(Math.round(Date.now() / 1000) + 7);
  expect(of({ 'X-RateLimit-Limit': '100', 'X-RateLimit-Reset': moment })).toEqual({
    ...rest,
    windowSeconds: expect.closeTo(7, -0.5),
  });
  expect(of({ 'X-RateLimit-Remaining': '5' })).toBeUndefined();
});

test('instants sort by moment, ids by number', () => {
  expect(instantKey('2026-01-01T01:00:00.10+01:00')).toBe(instantKey('2026-01-01T00:00:00.1Z'));
  expect(instantKey('1969-12-31T23:59:59.5Z')! < instantKey('1970-01-01T00:00:00Z')!).toBe(true);
  expect(instantKey('2026-01-01T00:00:00.000001Z')! < instantKey('2026-01-01T00:00:00.1Z')!).toBe(true);
  expect(instantKey('2026-01-01')).toBeUndefined();
  expect(['10', '9', '-3', '-12'].sort(compareIds)).toEqual(['-12', '-3', '9', '10']);
});
