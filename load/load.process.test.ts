/** k6 against simulated servers: exit statuses, thresholds, judging, tokens, secrets. No assertions on timing. */
import { byTurns, FULL } from '../fixtures/own-tests/tiers.ts';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from '@playwright/test';
import { GENERATED_WINDOW } from '../fixtures/dataset/generator.ts';
import { secured, SELF_SIGNED } from '../reference-server/http/certificates.ts';
import { page, withTokenEndpoint } from '../reference-server/non-implementations/tools.ts';
import { isTokenRequest, middleware, nextQuery, queryOf, withHeader } from '../reference-server/run/alter.ts';
import { resolveTarget } from '../engine/target/target.ts';
import { createLimiter } from './estimate/limiter-models.ts';
import { jsonAnswer, type Listener, serve } from '../reference-server/http/http.ts';
import { type Session, VoidRun } from './run/session.ts';
import { prepare } from './run/target.ts';
import { runScenario } from './scenarios/all.ts';
import { paging } from './scenarios/paging.ts';
import { rateLimit } from './scenarios/rate-limit.ts';
import type { ScenarioOptions } from './run/flags.ts';
import { load, openSession, setting, test, writeTarget } from './zoo/setting.ts';
import { type SimulatedSettings, startSimulatedServer } from './zoo/server.ts';
import { limited } from './zoo/targets.ts';

const SECRET = 'simulated-secret-0-c0ffee';
const SMOKE = ['smoke', '--duration', '3s', '--rate', '10', '--slo-p99'];

test('smoke: a correct target holds with exit status 0, and no output contains a secret', async () => {
  await using at = await setting({});
  const { status, output } = await load([...SMOKE, '5000', ...at.flags]);
  expect(output).toContain('held');
  expect(status).toBe(0);
  expect(await at.result('smoke')).toMatchObject({ void: false, conformant: true, held: true, findings: [] });
  for (const file of (await readdir(at.directory)).filter((name) => name.startsWith('load-'))) {
    const text = await readFile(join(at.directory, file), 'utf8');
    expect(text).not.toContain(SECRET);
    expect(text).not.toContain('eyJ');
    expect(text).not.toMatch(/(src|href)="https?:/);
  }
  expect(output).not.toContain(SECRET);
});

test('a window without screenings is not measured', async () => {
  await using at = await setting({ screenings: 0 });
  const { status, output } = await load([...SMOKE, '5000', ...at.flags]);
  expect(output).toContain("no screenings in the target file's window");
  expect(status).toBe(3);
});

test('a second tenant without screenings in the window gets no load', async () => {
  const second = middleware(
    () => async (request, next) =>
      request.path.includes('000000000002') ? jsonAnswer(200, { items: [], links: {} }) : next(request),
  );
  await using server = await startSimulatedServer({ clients: 2, fault: second });
  const { base } = await prepare(await resolveTarget(server.target));
  expect(base.clients.map(({ clientId }) => clientId)).toEqual(['simulated-0']);
});

test('keeps a finite number of virtual users after a run without an answer', FULL, async ({ k6 }) => {
  const silent = middleware(() => async (request, next) => {
    if (!isTokenRequest(request)) await sleep(3000);
    return next(request);
  });
  await using server = await startSimulatedServer({ fault: silent });
  const session = await openSession(k6, server.target, { timeout: 1 }, { window: GENERATED_WINDOW });
  await session.tryArrivals('arrivals', 5, 2, {}, 0);
  const { run } = await session.tryArrivals('arrivals', 5, 2, {}, 0);
  expect(run.config.vus).toBeGreaterThan(0);
});

test('an output of metrics adds no thresholds', FULL, async ({ k6 }, info) => {
  await using server = await startSimulatedServer({});
  const thresholds = async (out?: string[]) => {
    // Every page is late, which the kit judges.
    const session = await openSession(k6, server.target, { out, sloP99: 0.01 });
    const { run } = await session.tryArrivals('smoke', 10, 1, { vus: 10 }, 0);
    return [run.status, run.summary!.thresholds];
  };
  expect(await thresholds([`json=${info.outputPath('metrics.json')}`])).toEqual(await thresholds());
});

test('smoke: generator overload is void with exit status 3', FULL, async () => {
  test.slow();
  const service = { workers: 64, serviceMs: 150, distribution: 'deterministic' } as const;
  await using at = await setting({ behaviour: () => ({ service }) });
  const flags = ['--duration', '1s', '--rate', '80', '--slo-p99', '1500', '--max-vus', '2'];
  const { status, output } = await load(['smoke', ...flags, ...at.flags]);
  expect(output).toContain('VOID');
  expect(status).toBe(3);
  expect((await at.result('smoke')).void).toContain('VU');
});

test('tenants: reports the number of tenants with and without a back-fill', FULL, async () => {
  test.slow();
  await using at = await setting({ screenings: 2000 });
  const flags = ['--poll', '10s', '--max-rate', '20', '--thoroughness', '0.05', '--slo-p99', '5000'];
  const { output } = await load(['tenants', ...flags, ...at.flags]);
  // A busy machine may leave the figure open.
  expect(output).toMatch(
    /carries (maybe )?\d+ tenants; (maybe \d+|\d+|an undecided number) while one of them reads all screenings|number of tenants is undecided|VOID/,
  );
  expect(output).not.toContain('the kit itself failed');
});

test('renews tokens of 4 s in time and not too often', FULL, async ({ k6 }) => {
  await using server = await startSimulatedServer({ tokenLifetimeSeconds: 4 });
  const session = await openSession(k6, server.target, { pageSize: 10 });
  const [seconds, vus] = [10, 3];
  // Without retries: a void run still has the right number of tokens.
  await session.tryArrivals('arrivals', 20, seconds, { vus }, 0);
  const { tokens, pages, unauthenticated } = server.counts;
  expect(unauthenticated).toBe(0);
  expect(pages).toBeGreaterThan(0);
  // One token per VU and three quarters of a lifetime, one for the setup, one for the preparation.
  expect(tokens).toBeLessThanOrEqual(2 + vus * Math.ceil(seconds / (4 * 0.75)));
  expect(tokens).toBeGreaterThan(4);
});

test('a rate limit holds only if --slo-errors allows the rejections', FULL, async ({ k6 }) => {
  const behaviour = () => limited({ kind: 'token-bucket', limit: 10, windowMs: 1000, burst: 10 });
  await using server = await startSimulatedServer({ behaviour });
  for (const errorRate of [0.9, 0.1]) {
    const options = { sloP99: 9000, sloErrors: errorRate, rate: 20 };
    const session = await openSession(k6, server.target, options);
    const { held, void: why, summary } = await runScenario('poll', session);
    expect(held, JSON.stringify([why, summary])).toBe(errorRate === 0.9);
  }
});

test('soak: stops early with exit status 1 if almost all requests fail', FULL, async ({}, info) => {
  test.slow();
  let asked = 0;
  await using server = await serve(withTokenEndpoint(() => (asked++ < 50 ? page() : jsonAnswer(503, {}))));
  const file = await writeTarget(info.outputPath(), server.origin);
  const flags = ['--duration', '10m', '--report-dir', info.outputPath(), '--target', file];
  const { status, output } = await load(['soak', ...flags]);
  expect(output).toMatch(/\d+\.\d s of 10 min 0 s: \d+ answers, .* failed/);
  expect(output).toContain('threshold broken: failed rate<0.9 over 20 s');
  expect(output).toMatch(/answered with 503 × \d+/);
  expect(status).toBe(1);
});

type Limited = Awaited<ReturnType<typeof rateLimit.run>>;
const fixedWindow = { kind: 'fixed-window', limit: 30, windowMs: 2000 } as const;
/** No window ends while both clients are asked, also on a busy machine: their requests take less than 4 s. */
const longer = { kind: 'sliding-log', limit: 30, windowMs: 4000 } as const;
const smaller = { ...longer, limit: 5 };
const threeSeconds = limited({ ...fixedWindow, windowMs: 3000 });
const tooShort = { ...threeSeconds, retryAfter: (seconds: number) => Math.ceil(seconds) - 3 };
const shared = createLimiter(longer);
const wide = { maxRequests: 2500, maxSeconds: 120 };

/** Admits six pages with screenings in 2 s, and any number of empty ones. */
const limitedByItems = middleware(() => {
  const limiter = createLimiter({ ...fixedWindow, limit: 6 });
  return async (request, next) => {
    const answer = await next(request);
    const isFull = String(answer.body).includes('"testTime"');
    if (!isFull || limiter(performance.now()) === 0) return answer;
    return withHeader(jsonAnswer(429, { code: 'rate_limited' }), 'retry-after', '2');
  };
});

/** Tests with k6; the identification itself is tested in virtual time. */
const LIMITERS: Readonly<
  Record<string, [SimulatedSettings, Partial<ScenarioOptions>, (found: Limited, session: Session) => void]>
> = {
  'starts the probe with an unused limit': [
    { behaviour: () => limited({ kind: 'sliding-log', limit: 40, windowMs: 60_000 }) },
    { maxRequests: 60, maxSeconds: 5 },
    ({ tables }) => expect(tables!['answers']!.filter(({ ok }) => ok === 1)).toHaveLength(40),
  ],
  'recognises a limit per client with a second client': [
    { behaviour: () => limited(longer), clients: 2 },
    wide,
    ({ limiter }) => expect(limiter).toMatchObject({ scope: 'client' }),
  ],
  'recognises a shared limit with a second client': [
    { behaviour: () => ({ limits: [() => shared] }), clients: 2 },
    wide,
    ({ limiter }, { requests }) => expect(limiter).toMatchObject({ scope: 'shared', requests }),
  ],
  'reports no shared limit because a second client has a smaller one': [
    { behaviour: (tenantId) => limited(tenantId.endsWith('1') ? longer : smaller), clients: 2 },
    wide,
    ({ limiter }) => expect(limiter).toMatchObject({ scope: 'client' }),
  ],
  'reports a limit that counts items or bytes': [
    { fault: limitedByItems },
    wide,
    ({ limiter, summary }) => {
      expect(limiter).toMatchObject({ kind: 'none-found', fullPages: { unit: 'items-or-bytes' } });
      expect(summary!.join()).toContain('the limit counts items or bytes');
    },
  ],
  'reports a Retry-After that is too short': [
    { behaviour: () => tooShort },
    { maxRequests: 400, maxSeconds: 20 },
    (_, { findings }) => expect(findings.map(({ id }) => id)).toContain('7.2-retry-after-honest'),
  ],
};

/** Other processes may void a measurement or leave it open, which is no answer: it is repeated, a few times at most. */
async function untilDecided<Found>(
  measure: () => Promise<Found>,
  isOpen: (found: Found) => boolean = () => false,
  attempts = 4,
): Promise<Found> {
  try {
    const found = await measure();
    if (attempts === 1 || !isOpen(found)) return found;
  } catch (error) {
    if (attempts === 1 || !(error instanceof VoidRun)) throw error;
  }
  return untilDecided(measure, isOpen, attempts - 1);
}

for (const [title, [settings, options, holds]] of Object.entries(LIMITERS))
  test(`rate-limit: ${title}`, FULL, async ({ k6 }) => {
    test.slow();
    await using server = await startSimulatedServer(settings);
    let isRepeated = false;
    const measure = async () => {
      // The requests of an earlier attempt no longer count.
      if (isRepeated) await sleep(longer.windowMs);
      isRepeated = true;
      const session = await openSession(k6, server.target, options, rateLimit);
      return [await rateLimit.run(session), session] as const;
    };
    // On a busy machine a window may end while both clients are asked.
    holds(...(await untilDecided(measure, ([found]) => found.limiter?.scope === 'cannot-tell')));
  });

test("trusts only the target file's certificates besides the system's", byTurns('certificates'), async () => {
  // One page, because the server does not know about the TLS proxy, and its next has the scheme http.
  await using at = await setting({ screenings: 500 });
  const ca = join(at.directory, 'ca.pem');
  await writeFile(ca, SELF_SIGNED);
  const inner = { port: at.server.port, stop: async () => {} } as Listener;
  await using front = await secured(inner, 'localhost');
  const target = { ...at.server.target, baseUrl: front.origin, authUrl: front.origin, ca };
  const file = join(at.directory, 'tls.json');
  await writeFile(file, JSON.stringify(target));
  const flags = [...SMOKE, '5000', '--page-size', '1000', '--target', file, '--report-dir', at.directory];
  expect(await load(flags)).toMatchObject({ status: 0, output: expect.stringContaining('held') });
  await writeFile(file, JSON.stringify({ ...target, ca: undefined }));
  expect(await load(flags)).toMatchObject({ status: 3, output: expect.stringContaining('not trusted') });
  await using wrong = await secured(inner, '127.0.0.1');
  await writeFile(file, JSON.stringify({ ...target, baseUrl: wrong.origin, authUrl: wrong.origin }));
  expect((await load(flags)).status).toBe(3);
});

test('paging: recognises OFFSET, a failed first page and a truncated cursor', FULL, async ({ k6 }) => {
  test.slow();
  const [first, last] = [GENERATED_WINDOW.from, GENERATED_WINDOW.to].map((at) => Date.parse(at));
  const offset = middleware(() => async (request, next) => {
    const query = queryOf(request);
    const part = (Date.parse(query.get('from')!) - first!) / (last! - first!);
    if (query.has('from_id')) await sleep(300 * part);
    return next(request);
  });
  await using slow = await startSimulatedServer({ screenings: 6000, fault: offset });
  // Small pages, so that also on a busy machine the delay is most of the cost.
  const options = { pageSize: 200, maxPages: 100 };
  const measure = async () => paging.run(await openSession(k6, slow.target, options));
  const { depth } = await untilDecided(measure);
  expect(depth).toMatchObject({ flat: false, shape: 'grows-with-depth' });
  const isFirst = (query: URLSearchParams) =>
    query.has('from') && !query.has('from_id') && Date.parse(query.get('from')!) !== first;
  const fails = middleware(
    () => async (request, next) => (isFirst(queryOf(request)) ? jsonAnswer(503, {}) : next(request)),
  );
  await using failing = await startSimulatedServer({ screenings: 6000, fault: fails });
  const compared = paging.run(await openSession(k6, failing.target, options));
  await expect(compared).rejects.toThrow('status 503');
  const cursor = nextQuery((next) => next.set('from', new Date(next.get('from')!).toISOString()));
  await using cut = await startSimulatedServer({ fault: cursor, screenings: 3000 });
  const session = await openSession(k6, cut.target, options);
  await untilDecided(() => paging.run(session));
  expect(session.findings.map(({ id }) => id)).toContain('4.2-r6-next-from');
});
