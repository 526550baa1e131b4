/** How a run uses its budget and its concurrency, what it leaves untested, and how long it waits in an outage. */
import { expect } from '@playwright/test';
import { faultNamed } from '../reference-server/faults/all.ts';
import { test } from '../reference-server/testing.ts';
import type { RequirementId } from '../engine/requirements.ts';
import { beginningWith, concurrentLanes } from './certify.ts';
import { showProgress } from './command/progress.ts';
import type { Access, Check } from '../engine/run/check.ts';
import { Kit } from '../engine/run/kit.ts';
import { DEFAULTS } from '../engine/run/state/context.ts';
import type { Finding } from '../engine/run/state/ledger.ts';
import { parseScreening } from '../engine/data/dataset.ts';
import type { Target } from '../engine/target/target.ts';
import { failFor } from '../fixtures/playwright.ts';
import { SPECS } from '../specs/all.ts';
import { GROUPS } from '../reference-server/variants/all.ts';
import { certifyServer, failedOf, saidOf } from './proof/faults.ts';
import { compareInstants, instant, shift, type Instant } from '../engine/data/instant.ts';
import type { ServerOptions } from '../reference-server/run/start.ts';
import { errorAnswer } from '../reference-server/http/http.ts';
import {
  answering,
  both,
  isScreenings,
  isTokenRequest,
  middleware,
  queryOf,
  refusals,
  storedPages,
  withHeader,
} from '../reference-server/run/alter.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { byTurns } from '../fixtures/own-tests/tiers.ts';
import { probing } from '../reference-server/faults/fault.ts';
import { outage } from '../reference-server/faults/outage.ts';
import { cache } from '../reference-server/variants/health.ts';
import { arrivingEvery, withoutRecords } from '../reference-server/variants/live.ts';
import { EVERYTHING } from '../reference-server/faults/rows.ts';
import { TENANTS } from '../reference-server/run/provisioning.ts';

test.describe('a budget', () => {
  for (const [row, [budget, least, verdict]] of (
    [
      [100, 60, 'incomplete'],
      [300, 90, 'incomplete'],
      // Checks that exhausted their share of the budget run again with the remaining requests.
      [600, 100, 'conformant'],
    ] as const
  ).entries()) {
    const title = `of ${budget} requests is not exceeded and exercises at least ${least} requirements`;
    test(title, byTurns('budget', 3, row), async ({ small }) => {
      const report = await certifyServer(small, {}, 'full', { budget });
      expect(report.requests).toBeLessThanOrEqual(budget);
      expect(report.verdict).toBe(verdict);
      const of = (status: string) => report.requirements.filter((result) => result.status === status);
      expect(of('fail')).toEqual([]);
      expect(of('pass').length).toBeGreaterThanOrEqual(least);
      const isCut = of('untested').some(({ reason }) => reason?.includes('--budget'));
      expect(isCut).toBe(verdict === 'incomplete');
    });
  }

  test('of 300 requests finds obvious faults', async ({ small }) => {
    for (const name of [
      'to compared with <=',
      'REST errors have codes in capitals',
      'the tenant * is the tenant of the token',
    ]) {
      const { verdict } = await certifyServer(small, faultNamed(name).server!, 'full', { budget: 300 });
      expect(verdict, name).toBe('non-conformant');
    }
  });
});

test('the rate-limit probe does not count towards the request limit of the run', async ({ small }) => {
  const options = { only: '7.2-rate_limited', runs: 1, maxRequests: 200, change: probing(300) };
  const report = await certifyServer(small, {}, 'bare', options);
  expect(saidOf(report, '7.2-rate_limited')).toMatch(/no limit was met within 300 requests/);
});

// -- a run that ends early over data that arrive: nothing can be requested again ---------------------

const endingAt = (count: number, end: AbortController): ServerOptions =>
  middleware(() => {
    let asked = 0;
    return (request, next) => {
      if (++asked === count) end.abort('interrupted');
      return next(request);
    };
  });

for (const [how, options, endsAt] of [
  ['is interrupted', {}, 200],
  ['has a budget', { budget: 200 }, Infinity],
  ['has too few requests', { maxRequests: 200 }, Infinity],
] as const)
  test(`a run that ${how} while screenings arrive reports none of them`, async ({ small }) => {
    const end = new AbortController();
    const server = both(arrivingEvery(10), endingAt(endsAt, end));
    const report = await certifyServer(small, server, 'bare', {
      ...options,
      signal: end.signal,
      pollingScale: 0,
    });
    expect([report.verdict, failedOf(report)]).toEqual(['incomplete', []]);
  });

test('a run that ends after a 500 among requests in flight reports a warning', async ({ small }) => {
  const end = new AbortController();
  const server = middleware(() => {
    let [inFlight, after] = [0, 0];
    let failed: string | undefined;
    return async (request, next) => {
      const { path } = request;
      inFlight++;
      await sleep(5);
      const isFailure = isScreenings(request) && inFlight > 1 && failed === undefined;
      inFlight--;
      if (isFailure) failed = path;
      // It is an accident once the same request is served.
      else if ((path === failed || after > 0) && ++after === 40) end.abort('interrupted');
      return isFailure ? errorAnswer(500, 'internal_error', 'a restart') : next(request);
    };
  });
  const report = await certifyServer(small, server, 'bare', { signal: end.signal });
  expect([report.verdict, failedOf(report)]).toEqual(['incomplete', []]);
  expect(saidOf(report, '7.2-no-unprovoked-5xx')).toMatch(/^warn/);
});

test('--fail-fast ends the run at the first broken requirement', async ({ small }) => {
  const server = refusals([401], (answer) => ({ ...answer, body: '{"code":"unauthorized"}' }));
  const report = await certifyServer(small, server, 'bare', { runs: 1, failFast: true });
  expect(report.verdict).toBe('non-conformant');
  expect(report.basis).toMatch(/^--fail-fast ended the run at (5|7\.2)-\w+$/);
  expect(report.evidence.executed).toBeLessThan(report.evidence.planned / 2);
  expect(saidOf(report, '9-prefix')).toBe(`untested: ${report.basis}`);
});

test('a warning about a MUST ends no run and is shown as no failure', async ({ small }) => {
  const { server, target: change } = GROUPS['with a store of milliseconds']!.find(({ name }) =>
    name.startsWith('both tenants'),
  )!;
  let target: Target | undefined;
  const lines: string[] = [];
  const progress = showProgress({ write: (text: string) => lines.push(text) } as never);
  const warnings: Finding[] = [];
  const report = await certifyServer(small, server!, 'full', {
    ...{ runs: 1, failFast: true, only: '4.2-r3-one-tenant 4.2-r1-zero-width' },
    change: (of) => (target = change!(of)),
    onProgress: (now) => {
      progress.tell(now);
      // The texts of answers end with the run.
      warnings.push(...now.findings.map((finding) => ({ ...finding, exchange: undefined })));
    },
  });
  progress.end();
  expect([report.verdict, report.basis]).toEqual(['conformant', undefined]);
  expect(report.summary).toMatch(/holds, and no other is broken\.$/);
  expect(saidOf(report, '4.2-r3-one-tenant')).toMatch(/^warn/);
  expect(lines.join('')).toContain('! 4.2-r3-one-tenant  ');
  expect(lines.join('')).not.toMatch(/✗|failed/);

  await using kit = new Kit(target!, { ...DEFAULTS, seed: 0 });
  const annotations: { type: string }[] = [];
  await failFor(kit, warnings, { tags: [], annotations, attach: async () => {} } as never);
  expect(annotations.map(({ type }) => type)).toEqual(['4.2-r3-one-tenant warning']);
});

const check = (title: string, access: Access, ...ids: RequirementId[]): Check => ({
  ...{ title, access, ids, needs: 'page', isSupplement: false },
  run: async () => {},
});

test('--watch runs failed checks first, except those that disturb others', () => {
  const order = beginningWith(
    ['5-missing'],
    [
      check('a', 'exclusive', '4.2-window'),
      check('b', 'exclusive', '5-missing'),
      check('c', 'disturbs', '5-missing'),
    ],
  );
  expect(order.map(({ title }) => title).join('')).toBe('bac');
});

test('runs reading checks concurrently and in order, and those that write to the scratch tenant sequentially', () => {
  const groups = concurrentLanes([
    check('a', 'reads'),
    check('b', 'reads'),
    check('c', 'exclusive'),
    check('d', 'reads'),
    check('e', 'scratch'),
    check('f', 'scratch'),
    check('g', 'reads'),
    check('h', 'exclusive'),
  ]);
  const said = groups.map((lanes) =>
    lanes.map((lane) => lane.map(({ title }) => title).join('')).join(' | '),
  );
  expect(said).toEqual(['a | b', 'c', 'ef | d | g', 'h']);
});

test('a selection requires the core of a section, and each requirement that it names', async ({ small }) => {
  for (const [only, verdict, summary] of [
    ['7.1', 'conformant', 'Every core MUST of the selection holds, and no other is broken.'],
    ['7.1-invalid_scope 7.1-invalid_grant', 'incomplete', 'Nothing failed, but not everything could'],
    ['7.1-invalid_scope', 'conformant', 'Every MUST of the selection holds, and no other is broken.'],
  ] as const) {
    const report = await certifyServer(small, {}, 'bare', { only, runs: 1 });
    expect([report.verdict, report.summary]).toEqual([verdict, expect.stringContaining(summary)]);
  }
});

test('a warning never changes the verdict, also where only a SHOULD is selected', async ({ small }) => {
  const { server } = faultNamed('sub has a suffix of the identity provider');
  const report = await certifyServer(small, server, 'bare', { only: '2.2-sub-client', runs: 1 });
  expect(saidOf(report, '2.2-sub-client')).toMatch(/^warn/);
  expect([report.verdict, report.summary]).toEqual([
    'conformant',
    expect.stringMatching(/ 1 recommendation is not followed\.$/),
  ]);
});

test('a requirement declared not applicable is not required, and the summary names what is', async ({
  small,
}) => {
  const certified = (notApplicable: { invalidGrant?: string; unauthorized?: string }) =>
    certifyServer(small, {}, 'full', {
      only: '7.1-unauthorized_client 7.1-invalid_grant 7.2-not_found',
      change: ({ clients: { invalidGrant: _, unauthorized, ...clients }, ...rest }) => ({
        ...{ ...rest, notApplicable },
        clients: notApplicable.unauthorized ? clients : { ...clients, unauthorized },
      }),
    });
  const plain = await certified({});
  expect([plain.verdict, plain.classes.provisioning]).toEqual(['incomplete', 'partly']);
  const reason = 'no client can be suspended here';
  const report = await certified({ invalidGrant: reason });
  expect([report.verdict, report.classes.provisioning]).toEqual(['conformant', 'exercised']);
  expect(report.declared).toEqual([{ id: '7.1-invalid_grant', reason }]);
  const declared = `untested: declared not applicable by the target file: ${reason}`;
  expect(saidOf(report, '7.1-invalid_grant')).toBe(declared);
  const { summary } = await certified({ unauthorized: 'every client may use the grant' });
  expect(summary).toMatch(/^Nothing failed, but not everything could be tested: .*clients\.invalidGrant/);
});

test('a token that expires while one check uses it is renewed', async ({ small }) => {
  let [mints, aheadMs] = [0, 0];
  const now = (): number => Date.now() + aheadMs;
  const server = both(
    middleware(() => async (request, next) => {
      if (isTokenRequest(request)) mints++;
      const answer = withHeader(await next(request), 'date', new Date(now()).toUTCString());
      if (mints === 2 && isScreenings(request)) aheadMs = 2 * 3_600_000;
      return answer;
    }),
    { now },
  );
  const checks = SPECS.filter(({ title }) => title.startsWith('the same next returns the same items late'));
  const report = await certifyServer(small, server, 'bare', { checks });
  expect([mints, failedOf(report)]).toEqual([3, []]);
});

test('reports a rule as untested if its combinations are not served', async ({ small }) => {
  const server = answering('400 invalid_time_range', (_, query) => /\.\d{9}/.test(query.get('from') ?? ''));
  const only = ['7.2-page_size_out_of_range'] as const;
  const report = await certifyServer(small, server, 'bare', { only, runs: 2 });
  expect(saidOf(report, only[0])).toMatch(/^untested: .*of its \d+ combinations were not answered 200/);
});

for (const [name, hangs, id, said] of [
  [
    'a malformed number',
    (pageSize: string) => !/^\d+$/.test(pageSize),
    '7.2-invalid_request',
    /^fail: .*got no answer \(no complete answer within 0.2 s, twice, although another request/,
  ],
  [
    'a large page',
    (pageSize: string) => pageSize === '1000',
    '4.2-pageSize-bounds',
    /^untested: .*no complete answer/,
  ],
] as const)
  test(`a server that never answers ${name}, but everything else: ${id}`, async ({ small }) => {
    const server = middleware(
      () => (request, next) =>
        isScreenings(request) && hangs(queryOf(request).get('pageSize') ?? '1')
          ? new Promise(() => {})
          : next(request),
    );
    const report = await certifyServer(small, server, 'bare', { only: [id], runs: 1, timeoutMs: 200 });
    expect(saidOf(report, id)).toMatch(said);
  });

test('no answer to wrong token requests fails the errors of section 7.1, in one cause', async ({ small }) => {
  const server = middleware(() => async (request, next) => {
    const answer = await next(request);
    return isTokenRequest(request) && answer.status !== 200 ? new Promise(() => {}) : answer;
  });
  const only = '4.1 5-no-echo 7.1 7.2-no-unprovoked-5xx';
  const report = await certifyServer(small, server, 'full', { only, runs: 1, timeoutMs: 200 });
  const errors = ['missing', 'empty', 'duplicated', 'malformed'].map((kind) => `7.1-invalid_request-${kind}`);
  const others = ['unsupported_grant_type', 'invalid_scope', 'unauthorized_client', 'invalid_grant'];
  const [cause, ...more] = report.diagnosis;
  expect([...cause!.findings].sort()).toEqual([...errors, ...others.map((name) => `7.1-${name}`)].sort());
  expect(cause!.behavesLike[0]!.name).toBe('a request that must be rejected gets no answer');
  expect(more).toEqual([]);
});

// -- an outage -------------------------------------------------------------------------------------

/** Scale 1:50: the 30 s of a connection pool become 600 ms, the maximum of 60 s per answer 1.2 s. */
const SCALE = 0.02;
const PASS = /^pass$/;

for (const [name, lateMs, said, front = {}] of [
  ['after half of what a connection pool waits', 15_000, PASS],
  // The cache keeps pages for longer than the kit waits for the fault.
  ['with a cache in front that still answers', 0, PASS, cache(false).server],
  ['after 45 s', 45_000, PASS],
  [
    'not within a minute',
    90_000,
    /^untested: .*a page: no complete answer within 1.2 s, 2 times; raise --timeout/,
  ],
  [
    'after 45 s, and to a next not within a minute',
    (path: string) => (path.includes('from_id') ? 90_000 : 45_000),
    /^untested: .*a next of before: no complete answer within 1.2 s; raise --timeout/,
  ],
] as const)
  test(`a failing server that answers 503 ${name}`, byTurns(name, 4), async ({ small }) => {
    const { server = {}, target } = outage(async (request, stage, next) => {
      if (stage !== 'on' || !isScreenings(request)) return next(request);
      await sleep(SCALE * (typeof lateMs === 'number' ? lateMs : lateMs(request.path)));
      return errorAnswer(503, 'service_unavailable', 'no connection within 30 s');
    });
    const only = '7.2-server-error 7.2-no-unprovoked-5xx';
    const options = { runs: 1, only, timeoutMs: 400, pollingScale: SCALE, change: target! };
    const report = await certifyServer(small, both(server, front), 'full', options);
    expect(saidOf(report, '7.2-server-error')).toMatch(said);
  });

const ofAnother = parseScreening(
  '{"id":1,"tenantId":"00000000-0000-4000-8000-00000000000a","testTime":"2024-06-01T00:00:00Z"}',
);

for (const [what, dataset] of [
  ['an empty dataset', []],
  ['a dataset of another tenant', [ofAnother]],
] as const)
  test(`${what} leaves only 4.2-window untested`, byTurns(what, 2), async ({ small }) => {
    const only = ['4.2-window', '4.2-from_id', '4.2-r2-inverted', '5-missing'] as const;
    const change = (target: Target): Target => ({ ...target, dataset });
    const report = await certifyServer(small, {}, 'bare', { runs: 1, only, change });
    const statuses = only.map((id) => saidOf(report, id).split(':')[0]);
    expect([report.verdict, ...statuses]).toEqual(['incomplete', 'untested', 'pass', 'pass', 'pass']);
  });

/** A store that does not show what is older, while it is told to. */
const withoutOld = (keptFrom: Instant, isShort: () => boolean): ServerOptions =>
  storedPages(() => (query, ask) => {
    const isOld = isShort() && compareInstants(query.from, keptFrom) < 0;
    return ask(isOld ? { ...query, from: keptFrom, fromId: undefined } : query);
  });

for (const [when, lacksOld, said] of [
  ['are deleted during an outage', (stage: string) => stage === 'after', PASS],
  ['are deleted before the server fails', (stage: string) => stage !== 'before', PASS],
  [
    'are missing on every page during an outage, and no longer after it',
    (stage: string) => stage === 'on',
    /^fail: .*no page that lacks item \d+/,
  ],
] as const)
  for (const old of ['all before March', 'the first one'] as const)
    test(`without a dataset, screenings that ${when}, ${old}`, async ({ small }) => {
      const { items } = await small.store.page({ ...EVERYTHING, tenantId: TENANTS.primary, pageSize: 1 });
      const second = shift(instant(items[0]!.testTime), 1n);
      const keptFrom = old === 'the first one' ? second : instant('2024-03-15T00:00:00Z');
      let [isShort, asked] = [false, 0];
      const { server = {}, target: change } = outage((request, stage, next) => {
        isShort = lacksOld(stage);
        if (stage !== 'on' || !isScreenings(request)) return next(request);
        const fails = said === PASS && (!isShort || ++asked > 2);
        return fails ? errorAnswer(503, 'service_unavailable', 'no connection') : next(request);
      });
      const shortened = withoutOld(keptFrom, () => isShort);
      const report = await certifyServer(small, both(shortened, server), 'full', {
        ...{ runs: 1, only: '7.2-server-error', timeoutMs: 400, pollingScale: 0.1 },
        change: (target) => change!(withoutRecords(target)),
      });
      expect(saidOf(report, '7.2-server-error')).toMatch(said);
    });
