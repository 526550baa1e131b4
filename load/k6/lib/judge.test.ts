/** Both judges of pages under load, k6's with selectors and the kit's, accept a correct page and find each fault. */
import { expect, test } from '@playwright/test';
import { parse } from 'lossless-json';
import { REQUIREMENTS } from '../../../engine/requirements.ts';
import { MAX_PAGE_SIZE } from '../../../engine/client/page.ts';
import { resolveTarget } from '../../../engine/target/target.ts';
import { Judge } from '../../run/judging.ts';
import { compareIds, instantKey, shortlyBefore } from './window.ts';
import { MAX_PAGE_SIZE as IN_SCRIPTS } from './presets.ts';
import { judgeLimited, judgePage, type PageAnswer, policyOf } from './judge.ts';

const TENANT = '7d0c5a52-0000-4000-8000-000000000001';
const QUERY = 'from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z&pageSize=2';
const BASE = 'http://127.0.0.1';
const PATH = `${BASE}/v1/tenants/${TENANT}/screenings`;
const QUESTION = `${PATH}?${QUERY}`;
const item = (id: string, testTime: string, tenantId = TENANT): string =>
  `{"id":${id},"tenantId":"${tenantId}","testTime":"${testTime}","note":"\\"id\\":1"}`;
const FIRST = item('9007199254740993', '2026-01-01T01:00:00.000001+01:00');
const SECOND = item('9007199254740994', '2026-01-01T00:00:00.000001Z');
const FOREIGN = item('1', '2026-01-01T05:00:00Z', TENANT.replace('7d', '8d'));
const NEXT = `${PATH}?from=2026-01-01T00%3A00%3A00.000001Z&to=2026-01-02T00%3A00%3A00Z&pageSize=2&from_id=9007199254740994`;

/** Implements the k6 selectors that the judge uses. */
function select(body: string, selector: string): unknown {
  const page = parse(body, undefined, (text) => text) as Record<string, unknown>;
  const [first, second, field] = selector.split('.');
  const member = page[first!] as Record<string, unknown>[] | Record<string, unknown> | undefined;
  if (second === undefined) return member;
  if (second !== '#') return (member as Record<string, unknown>)[second];
  if (!Array.isArray(member)) return undefined;
  if (field === undefined) return member.length;
  const values = member.flatMap((item) => item[field.replace('|@tostr', '')] ?? []);
  return field.endsWith('|@tostr') ? `[${values.join(',')}]` : values;
}

const answer = (items: string[], next?: string, link = next): PageAnswer & { body: string } => {
  const body = `{"items":[${items.join(',')}],"links":${next ? `{"next":${JSON.stringify(next)}}` : '{}'}}`;
  return withBody(body, link);
};

const withBody = (body: string, link?: string): PageAnswer & { body: string } => ({
  body,
  headers: {
    'Content-Type': 'application/json',
    'Cache-Control': 'no-store',
    ...(link ? { Link: `<${link}>; rel="next"` } : {}),
  },
  json: (selector) => select(body, selector),
});

const inK6 = (url: string, given: PageAnswer): string[] => judgePage(url, given).map(({ id }) => id);

const clients = { primary: { clientId: 'a', clientSecret: 'b' } };
const judge = new Judge(await resolveTarget({ baseUrl: BASE, authUrl: BASE, clients }));
const byKit = (url: string, given: PageAnswer & { body: string }): string[] =>
  judge.judge({ kind: 'sample', url, followed: false, status: 200, ...given }).map(({ id }) => id);

test('accepts a correct page with ids beyond 2^53', () => {
  const right = answer([FIRST, SECOND], NEXT);
  expect([inK6(QUESTION, right), byKit(QUESTION, right)]).toEqual([[], []]);
});

test('accepts a raw + in next, and a final page with a next of another resource', () => {
  const next = NEXT.replace('00%3A00%3A00.000001Z', '01:00:00.000001+01:00').replace('994', '993');
  const final = answer([FIRST]);
  const pages = [
    answer([item('1', '2026-01-01T00:00:00Z'), FIRST], next),
    { ...final, headers: { ...final.headers, Link: '</tenants>; rel="next"; anchor="/v1"' } },
  ];
  for (const page of pages) expect([inK6(QUESTION, page), byKit(QUESTION, page)]).toEqual([[], []]);
});

const RELATIVE = NEXT.slice(BASE.length);

for (const link of [
  `<${NEXT}>; rel=next`,
  `<${PATH}>; rel="first", <${NEXT}>; title="a, b"; rel="last next"`,
  `<${RELATIVE}>; rel="next"`,
  `<${NEXT.slice(PATH.length)}>; rel="next"`,
  `<${NEXT.replace('7d0c', '7D0C').replaceAll('%3A', ':')}>; rel="next"`,
  `</tenants>; rel="next"; anchor="/v1", <${NEXT}>; anchor="${PATH}"; rel="next"`,
])
  test(`accepts Link: ${link}`, () => {
    const page = answer([FIRST, SECOND], NEXT);
    expect(inK6(QUESTION, { ...page, headers: { ...page.headers, Link: link } })).toEqual([]);
  });

/** The requirement, the faulty page, and the kit's requirement if it is more specific. */
const BROKEN: readonly [string, url: string, ReturnType<typeof answer>, kit?: string][] = [
  ['4.2-r4-order', QUESTION, answer([SECOND, FIRST])],
  ['4.2-r5-exactly-once', QUESTION, answer([FIRST, FIRST])],
  ['4.2-from_id', NEXT, answer([SECOND])],
  ['4.2-window', QUESTION, answer([item('1', '2025-12-31T23:59:59.999999Z')])],
  ['4.2-to-exclusive', QUESTION, answer([item('1', '2026-01-02T01:00:00+01:00')])],
  ['4.2-r3-one-tenant', QUESTION, answer([FOREIGN]), '2.3-tenantId'],
  ['2.3-testTime', QUESTION, answer([item('1', 'yesterday')])],
  ['2.4-items', QUESTION.replace('Size=2', 'Size=1'), answer([FIRST, SECOND])],
  ['2.4-links', QUESTION, withBody('{"items":[]}')],
  ['2.4-items', QUESTION, withBody('{"links":{}}')],
  ['4.2-r7-link', QUESTION, answer([FIRST, SECOND], NEXT, '')],
  ['4.2-r7-link', QUESTION, answer([FIRST, SECOND], NEXT, `${NEXT}&x=1`)],
  ['4.2-r7-link-absent', QUESTION, answer([FIRST], undefined, NEXT)],
  ['4.2-r6-next-to', QUESTION, answer([FIRST, SECOND], NEXT.replace('01-02T', '01-03T'))],
  ['4.2-r6-next-pageSize', QUESTION, answer([FIRST, SECOND], NEXT.replace('pageSize=2', 'pageSize=3'))],
  ['4.2-r6-next-from', QUESTION, answer([FIRST, SECOND], NEXT.replace('.000001', '.000'))],
  ['4.2-r6-next-from_id', QUESTION, answer([FIRST, SECOND], NEXT.replace('994', '992'))],
];

for (const [index, [id, url, given, kit = id]] of BROKEN.entries()) {
  test(`reports ${id} (page ${index + 1})`, () => {
    expect(inK6(url, given)).toEqual([id]);
    expect(byKit(url, given)).toContain(kit);
    expect(REQUIREMENTS.map((requirement) => String(requirement.id))).toContain(id);
  });
}

test('requires the code and Retry-After of a 429', () => {
  const body = '{"code":"rate_limited"}';
  const ids = (answer: Parameters<typeof judgeLimited>[0]) => judgeLimited(answer).map(({ id }) => id);
  expect(ids({ body, headers: { 'Retry-After': '3' } })).toEqual([]);
  expect(ids({ body, headers: {} })).toEqual(['7.2-retry-after']);
  expect(ids({ body: '{}', headers: { 'retry-after': '1' } })).toEqual(['7.2-rate_limited']);
});

test('parses old and new forms of a declared quota, and uses the strictest', () => {
  const of = (headers: Record<string, string>) => policyOf(headers);
  expect(of({ 'Ratelimit-Policy': '"default";q=600;w=60' })).toEqual({ limit: 600, windowSeconds: 60 });
  expect(of({ 'RateLimit-Policy': '10;w=1, 1000;w=3600' })).toEqual({ limit: 1000, windowSeconds: 3600 });
  const aMinute = { limit: 100, windowSeconds: 60 };
  expect(of({ 'RateLimit-Limit': '100, 100;w=60;comment="a minute"' })).toEqual(aMinute);
  const rest = { limit: 100, windowSeconds: 7, atLeast: true };
  expect(of({ 'RateLimit-Limit': '100', 'RateLimit-Reset': '7' })).toEqual(rest);
  expect(of({ RateLimit: 'limit=100, remaining=3, reset=7' })).toEqual(rest);
  const moment = String(Math.round(Date.now() / 1000) + 7);
  const about = { ...rest, windowSeconds: expect.closeTo(7, -0.5) };
  expect(of({ 'X-RateLimit-Limit': '100', 'X-RateLimit-Reset': moment })).toEqual(about);
  expect(of({ 'X-RateLimit-Remaining': '5' })).toBeUndefined();
});

test('sorts instants by moment and ids by number', () => {
  expect(instantKey('2026-01-01T01:00:00.10+01:00')).toBe(instantKey('2026-01-01T00:00:00.1Z'));
  expect(instantKey('1969-12-31T23:59:59.5Z')! < instantKey('1970-01-01T00:00:00Z')!).toBe(true);
  expect(instantKey('2026-01-01T00:00:00.000001Z')! < instantKey('2026-01-01T00:00:00.1Z')!).toBe(true);
  for (const none of ['2026-01-01', 'yesterday']) expect(instantKey(none)).toBeUndefined();
  expect(instantKey('2016-12-31t23:59:60z')).toBe(instantKey('2017-01-01T00:00:00Z'));
  expect(['10', '9', '-3', '-12'].sort(compareIds)).toEqual(['-12', '-3', '9', '10']);
});

test('instants shortly before a moment differ, and are at most a second earlier', () => {
  const texts = Array.from({ length: 1000 }, (_, index) =>
    shortlyBefore(Date.parse('2026-01-01T00:00:00Z'), index / 1000),
  );
  expect(new Set(texts).size).toBe(1000);
  expect([texts[0], texts[999]]).toEqual(['2025-12-31T23:59:59.000000Z', '2025-12-31T23:59:59.999000Z']);
});

test('the largest page of the scripts is that of the engine', () => expect(IN_SCRIPTS).toBe(MAX_PAGE_SIZE));
