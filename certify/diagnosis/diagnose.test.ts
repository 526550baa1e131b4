/** Failures with one cause form one group. certify/proof/faults.test.ts holds the first cause of every fault. */
import { expect } from '@playwright/test';
import { REQUIREMENTS, requirement, type RequirementId } from '../../engine/requirements.ts';
import type { RequirementResult } from '../report/report.ts';
import { diagnose } from './diagnose.ts';
import { MISTAKES } from './mistakes/all.ts';
import { test } from '../../reference-server/testing.ts';

type Shown = Partial<Readonly<Record<'request' | 'sameAs' | 'response', string>>>;

const failed = (
  id: RequirementId,
  message: string,
  { request = '', response = '', ...more }: Shown = {},
): RequirementResult => {
  const [, expected = '', received = ''] = /^expected (.*), got (.*)$/.exec(message) ?? [];
  return {
    ...requirement(id),
    lookAt: [...requirement(id).lookAt],
    status: requirement(id).level === 'MUST' ? 'fail' : 'warn',
    checks: 1,
    durationMs: 0,
    failures: [{ message, expected, received, request, response, curl: '', ...more }],
  };
};

const causes = (...results: readonly RequirementResult[]): string[] =>
  diagnose(results).map(({ findings }) => findings.join(' '));

const PAGE = 'GET http://a/v1/tenants/t/screenings?from=2026-03-01T00%3A00%3A00Z&to=2026-03-02T00%3A00%3A00Z';
const CUT = 'expected next with from=2026-03-01T00:00:00.751823Z, got from=2026-03-01T00:00:00.751Z';
const LOST = 'expected all 30 screenings of the window, got 29 items on 3 pages: item 5 is missing';
const SERVED = 'expected 401 unauthenticated, got 200 {"items":[],"links":{}}';
const REFUSED = 'expected 200, got 404 {"code":"not_found"}';
const OTHER = 'expected 401 unauthenticated, got 401 {"code":"unauthorized"}';
const LIMITED =
  'expected 429 rate_limited past the rate limit, and no 5xx, got 503 <html> after 90 requests one at a time, and 200 after 2 s: a rate limiter that answers 503';
const LIKE =
  'expected no 5xx and no broken connection, got 503 <html> at 2026-11-25T16:30:48.909Z, and 166 more like it in 2141 requests; served when tried again. A rate limiter answers 429 with Retry-After';
const BROKEN = 'a broken connection (other side closed)';
const CRASHED = { response: '500 {"statusCode":500,"code":"internal_error"}' };
const ITEM = 'item 5 at 2026-03-01T00:00:00.089Z';
const between = (from: string, to: string): string =>
  `GET http://a/v1/tenants/t/screenings?from=${encodeURIComponent(from)}&to=${encodeURIComponent(to)}`;
const MICRO_LATER = between('2026-03-01T00:00:00.089001Z', '2026-03-02T00:00:00Z');
const cutToMillis = failed('4.2-fractions', `expected not ${ITEM}, got ${ITEM}`, {
  request: MICRO_LATER,
  sameAs: between('2026-03-01T00:00:00.089Z', '2026-03-02T00:00:00Z'),
});
const NO_SCOPE = { request: 'POST http://a/oauth/token with …: scope=screenings.write' };
const as422 = (expected: string): string => `expected ${expected}, got 422 {"detail":[]}`;

/** The causes that failures are grouped into, each with its root first, and these failures. */
const CAUSES: Readonly<Record<string, readonly [causes: readonly string[], ...RequirementResult[]]>> = {
  'groups consequences under their root': [
    ['4.2-r6-next-from 4.2-r5-exactly-once'],
    failed('4.2-r5-exactly-once', LOST),
    failed('4.2-r6-next-from', CUT),
  ],
  'one answer that is wrong in two members has two causes': [
    ['2.3-testTime', '4.2-r7-link'],
    failed('2.3-testTime', 'expected testTime: an RFC 3339 date-time with offset, got testTime: 1', {
      request: PAGE,
    }),
    failed('4.2-r7-link', 'expected Link: <https://a>; rel="next", got no Link header', { request: PAGE }),
  ],
  'valid requests that are refused alike follow from what they have in common': [
    ['4.2-r1-zero-width 4.2-success'],
    failed('4.2-success', REFUSED),
    failed('4.2-r1-zero-width', REFUSED),
  ],
  'valid requests of several kinds that are refused alike are one cause': [
    ['4.2-success 4.2-r1-zero-width 4.2-fractions'],
    failed('4.2-r1-zero-width', REFUSED),
    failed('4.2-fractions', REFUSED),
    failed('4.2-success', REFUSED),
  ],
  'where no token is accepted, a valid one is not either': [
    ['4.2-success 5-valid-token'],
    failed('4.2-success', 'expected 200, got 401 unauthenticated'),
    failed('5-valid-token', 'expected 200: the token lasts 3595 s more, got 401 unauthenticated'),
  ],
  'a token that is not verified does not follow from a request without one': [
    ['5-missing', '5-forged'],
    failed('5-missing', SERVED),
    failed('5-forged', SERVED),
  ],
  'if any string is accepted as a token, every token is': [
    ['5-missing 5-forged 5-garbage 5-tampered'],
    failed('5-forged', SERVED),
    failed('5-garbage', SERVED),
    failed('5-tampered', SERVED),
    failed('5-missing', SERVED),
  ],
  'one wrong code of every 401 is one cause, under the requirement named for it': [
    ['7.2-unauthenticated 5-garbage 5-missing 5-forged'],
    ...(['5-garbage', '5-missing', '5-forged', '7.2-unauthenticated'] as const).map((id) =>
      failed(id, OTHER),
    ),
  ],
  'REST errors do not follow from token errors, nor refused parameters from a refused token': [
    ['7.2-invalid_request 7.2-invalid_time_range', '5-missing', '7.1-body'],
    failed('7.1-body', 'expected error and error_description, got 422 {"detail":[]}'),
    failed('5-missing', as422('401 unauthenticated')),
    failed('7.2-invalid_request', as422('400 invalid_request')),
    failed('7.2-invalid_time_range', as422('400 invalid_time_range')),
  ],
  'an accepted request does not follow from one rejected with another status': [
    ['7.2-invalid_request 7.2-invalid_time_range', '7.2-invalid_request'],
    {
      ...failed('7.2-invalid_request', as422('400 invalid_request')),
      failures: [as422('400 invalid_request'), 'expected 400 invalid_request, got 200 {"items":[]}'].flatMap(
        (message) => failed('7.2-invalid_request', message).failures,
      ),
    },
    failed('7.2-invalid_time_range', as422('400 invalid_time_range')),
  ],
  'the page of a limiter follows from its status, and other pages do not': [
    ['7.2-rate_limited 7.2-no-unprovoked-5xx 7.2-body'],
    failed('7.2-body', 'expected a JSON body with internal_error or service_unavailable, got 503 <html>'),
    failed('7.2-rate_limited', LIMITED),
    failed('7.2-no-unprovoked-5xx', LIMITED),
  ],
  'a recommendation that explains a MUST comes first': [
    ['4.2-fractions-finer 4.2-window'],
    failed(
      '4.2-window',
      'expected only items in [2026-03-01T00:00:00.1234567Z, 2026-03-02T00:00:00Z), got item 5 at 2026-03-01T00:00:00.1234561Z',
    ),
    failed(
      '4.2-fractions-finer',
      'expected not item 5 at 2026-03-01T00:00:00.1234561Z, got item 5 at 2026-03-01T00:00:00.1234561Z',
    ),
  ],
  'an item within a millisecond of a bound is selected wrongly where digits are cut': [
    ['4.2-fractions 4.2-r2-inverted 4.2-r5-exactly-once'],
    {
      ...cutToMillis,
      failures: [
        ...cutToMillis.failures,
        ...failed('4.2-fractions', `expected ${ITEM}, got 0 items without it`).failures,
      ],
    },
    failed('4.2-r2-inverted', 'expected 400 invalid_time_range, got 200 {"items":[],"links":{}}', {
      request: between('2026-03-01T00:00:00.000001Z', '2026-03-01T00:00:00Z'),
    }),
    failed('4.2-r5-exactly-once', `${LOST.replace('item 5', ITEM)}, which comes after item 4`, {
      request: between('2026-02-01T00:00:00Z', '2026-03-01T00:00:00.089001Z'),
    }),
  ],
  'an inverted window of a day is a cause of its own': [
    ['4.2-fractions', '4.2-r2-inverted'],
    cutToMillis,
    failed('4.2-r2-inverted', 'expected 400 invalid_time_range, got 200 {"items":[],"links":{}}', {
      request: between('2026-03-02T00:00:00Z', '2026-03-01T00:00:00Z'),
    }),
  ],
  'a token for an unknown scope names none because it is issued': [
    ['7.1-invalid_scope 2.1-scope 2.2-scope'],
    failed('2.1-scope', 'expected scope: nothing beyond "screenings.write", got scope: nothing', NO_SCOPE),
    failed('2.2-scope', 'expected scope: a string, got scope: nothing', NO_SCOPE),
    failed('7.1-invalid_scope', 'expected 400 invalid_scope, got 200 with a token', NO_SCOPE),
  ],
  'a wrong code does not follow from a page of an error that has none': [
    ['7.2-body', '7.2-no-unprovoked-5xx', '7.2-page_size_out_of_range'],
    failed('7.2-body', 'expected a JSON body with internal_error, got 500 {"message":"Internal"}'),
    failed('7.2-no-unprovoked-5xx', 'expected no 5xx, got 500 {"message":"Internal"}'),
    failed('7.2-page_size_out_of_range', 'expected 400 page_size_out_of_range, got 400 invalid_request'),
  ],
  'requests that a crash leaves unanswered are one cause, and one that is served is another': [
    ['5-missing', '7.2-no-unprovoked-5xx 4.2-r1-zero-width 5-forged 7.1-unsupported_grant_type'],
    failed('4.2-r1-zero-width', 'expected 200 without items, got 500 internal_error'),
    failed('5-missing', SERVED),
    failed('5-forged', `expected 401 unauthenticated, got ${BROKEN}`),
    failed('7.1-unsupported_grant_type', `expected 400 unsupported_grant_type, got ${BROKEN}`),
    failed('7.2-no-unprovoked-5xx', `expected no 5xx and no broken connection, got ${BROKEN}`),
  ],
  'a broken recommendation alone is not a cause': [
    [],
    failed('2.2-sub-client', 'expected sub: a, got sub: b'),
  ],
};

for (const [title, [expected, ...results]] of Object.entries(CAUSES))
  test(title, () => {
    expect(causes(...results).sort()).toEqual([...expected].sort());
  });

const NO_5XX = 'expected no 5xx and no broken connection, got';
const INTERNAL = '{"message":"Internal Server Error","_links":{"self":{"href":"/v1"}}}';

/** The kind of mistake that is named first, and failures that show it. */
const LIKELIEST: Readonly<Record<string, readonly RequirementResult[]>> = {
  'a cache does not know what makes answers differ': [
    failed('4.2-from_id', 'expected 3 items, got 4', { request: `${PAGE}&from_id=4`, sameAs: PAGE }),
    failed('4.2-window', 'expected an item, got none', { request: PAGE, sameAs: PAGE.replace('-02', '-09') }),
  ],
  'testTime is formatted again on one of the transports': [
    failed(
      '6-same-object',
      'expected testTime: "2026-03-01T01:00:00+01:00", got testTime: "2026-03-01T00:00:00Z"',
    ),
  ],
  'the framework’s own error answers': [
    failed('4.2-from-required', `expected 400 invalid_request, got 500 ${INTERNAL}`, {
      response: `500 ${INTERNAL}`,
    }),
    failed('7.2-unauthenticated', 'expected 401 unauthenticated, got 401 <html>', {
      response: '401 <html><h1>',
    }),
  ],
  'odd input makes the server fail': [
    failed('4.2-success', 'expected 200, got 500 internal_error', CRASHED),
    // With the documented code.
    failed('7.2-no-unprovoked-5xx', `${NO_5XX} 500 internal_error`, CRASHED),
    failed('7.2-no-unprovoked-5xx', `${NO_5XX} a broken connection`),
  ],
  'valid requests fail now and then': [
    failed(
      '7.2-no-unprovoked-5xx',
      `${NO_5XX} ${BROKEN}, and 59 more like it in 1754 requests; served when tried again. One instance of several that fails looks like this`,
    ),
  ],
  'the store’s copies do not hold the same': [
    failed('4.2-window', 'expected all 3 screenings of the dataset, got 2 items without item 5'),
  ],
  'a bound of the window is compared in the wrong way': [
    failed('4.2-window', 'expected only items in [2026-03-01T00:00:00Z, 2026-03-02T00:00:00Z), got item 5'),
  ],
  'the refusal is another than the one for its cause': [
    failed('4.2-from-required', 'expected 400 invalid_request, got 404 not_found'),
  ],
  'a tenant that is not onboarded is one without screenings': [
    failed('7.2-not_found', 'expected 404 not_found, got 200 {"items":[],"links":{}}'),
  ],
  'a valid token request is refused for what means nothing': [
    failed('4.1-success', 'expected 200, got 406 invalid_request'),
  ],
  'the rate limit does not say how long to wait': [
    failed('7.2-no-unprovoked-5xx', LIKE, { response: '503 <html><h1>' }),
  ],
};

for (const [name, results] of Object.entries(LIKELIEST))
  test(`names first: ${name}`, () => {
    for (const result of results) {
      const [likeliest] = diagnose([result])[0]!.behavesLike;
      expect(likeliest!.name, result.failures[0]!.message).toBe(name);
      expect(likeliest!.remedy).toMatch(/\S\n\S/);
    }
  });

for (const [result, ...names] of [
  [
    failed('7.1-invalid_scope', 'expected 400 invalid_scope, got 200 with a token'),
    'a scope or a client is granted what it must not have',
    'client_id, secret, grant or scope are compared leniently',
  ],
  [
    failed('7.2-no-unprovoked-5xx', `${NO_5XX} 500 <html>`, { response: '500 <html><h1>' }),
    'odd input makes the server fail',
    'the framework’s own error answers',
  ],
  [
    failed('7.2-body', 'expected a JSON body, got 400 <html>', { response: '400 <html><h1>' }),
    'the framework’s own error answers',
    'errors do not carry the documented code',
    'a gateway before the service refuses the request',
  ],
] as const)
  test(`names ${names.length} kinds, the likeliest first, of ${result.id}`, () => {
    const [cause] = diagnose([result]);
    expect(cause!.behavesLike.slice(0, names.length).map(({ name }) => name)).toEqual(names);
  });

test('names no kind of mistake of another answer', () => {
  const [cause] = diagnose([failed('5-forged', `expected 401 unauthenticated, got ${BROKEN}`)]);
  expect(cause!.behavesLike).toEqual([]);
});

test('every requirement has a kind of mistake, and no kind names another requirement', () => {
  const broken = new Set(MISTAKES.flatMap(({ breaks }) => breaks.split(' ')));
  expect([...broken].sort()).toEqual(REQUIREMENTS.map(({ id }) => id as string).sort());
});
