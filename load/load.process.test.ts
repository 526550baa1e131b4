/** k6 itself against simulated servers: exit statuses, thresholds, judging, tokens, secrets. No assertion on timing. */
import { byTurns, FULL } from '../fixtures/own-tests/tiers.ts';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from '@playwright/test';
import { SELF_SIGNED } from '../reference-server/http/certificates.ts';
import { secured } from '../reference-server/degenerate/secured.ts';
import { json, page, TENANT, withTokenEndpoint } from '../reference-server/degenerate/tools.ts';
import { serve, type Listener } from '../reference-server/http/http.ts';
import type { Session } from './run/session.ts';
import { runScenario } from './scenarios/all.ts';
import { paging } from './scenarios/paging.ts';
import { rateLimit } from './scenarios/rate-limit.ts';
import type { ScenarioOptions } from './scenarios/scenario.ts';
import { load, openSession, OPTIONS, setting, test } from './zoo/setting.ts';
import type { SimulatedSettings } from './zoo/server.ts';
import { startSimulatedServer } from './zoo/start.ts';

const SECRET = 'simulated-secret-0-c0ffee';
const SMOKE = ['smoke', '--duration', '3s', '--rate', '10', '--slo-p99'];

test('smoke: a right target holds, exit status 0, and no secret is in any output', async () => {
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

test('interrupted, a scenario ends and says what it has: void, exit status 130', FULL, async () => {
  await using at = await setting({});
  const { status, output } = await load(
    ['soak', '--duration', '10m', '--rate', '20', ...at.flags],
    {},
    async (child) => {
      while ((await at.server.counts()).pages < 10) await sleep(100);
      child.kill('SIGINT');
    },
  );
  expect(output).toMatch(/VOID: interrupted after \d+ s/);
  expect(status).toBe(130);
  const result = await at.result('soak');
  expect(result.void).toContain('interrupted');
  expect(result.requests).toBeGreaterThan(0);
});

test(
  'smoke: a slow target breaks the SLO, exit status 1; on a machine that is busy otherwise it is void',
  FULL,
  async () => {
    const service = { workers: 64, serviceMs: 120, distribution: 'deterministic' } as const;
    await using at = await setting({ service });
    const { status } = await load([...SMOKE, '100', ...at.flags]);
    const result = await at.result('smoke');
    expect(result).toMatchObject({ conformant: true, held: false });
    if (result.void === false) expect(status).toBe(1);
    else expect([status, result.void]).toEqual([3, expect.stringMatching(/busy|processor|fell behind/)]);
  },
);

test('smoke: a starved generator is void, exit status 3', FULL, async () => {
  test.slow();
  const service = { workers: 64, serviceMs: 150, distribution: 'deterministic' } as const;
  await using at = await setting({ service });
  const flags = ['--duration', '1s', '--rate', '80', '--slo-p99', '1500', '--max-vus', '2'];
  const { status, output } = await load(['smoke', ...flags, ...at.flags]);
  expect(output).toContain('VOID');
  expect(status).toBe(3);
  expect((await at.result('smoke')).void).toContain('VU');
});

test('usage is exit status 2, a target that is not there 3', FULL, async ({}, info) => {
  expect(await load(['smok'])).toMatchObject({ status: 2, output: expect.stringContaining('smoke') });
  const dead = info.outputPath('dead.json');
  const clients = { primary: { clientId: 'a', clientSecret: 'not-to-be-shown' } };
  const nowhere = 'http://127.0.0.1:1';
  await writeFile(dead, JSON.stringify({ baseUrl: nowhere, authUrl: nowhere, clients }));
  const answer = await load(['smoke', '--target', dead]);
  expect(answer.status).toBe(3);
  expect(answer.output).not.toContain('not-to-be-shown');
});

test('tokens that live 4 s over 10 s: no 401, and few token calls', FULL, async ({ k6 }) => {
  await using server = await startSimulatedServer({ tokenLifetimeSeconds: 4 });
  const session = await openSession(k6, server.target(), { pageSize: 10 });
  const [seconds, vus] = [10, 3];
  // Once: what a busy machine makes void is void for latencies, not for counts of tokens.
  await session.tryArrivals(20, seconds, { vus }, 0);
  const { tokens, pages, unauthenticated } = await server.counts();
  expect(unauthenticated).toBe(0);
  expect(pages).toBeGreaterThan(0);
  // A token a VU and three quarters of a lifetime, one for the setup, one for the look before.
  expect(tokens).toBeLessThanOrEqual(2 + vus * Math.ceil(seconds / (4 * 0.75)));
  expect(tokens).toBeGreaterThan(4);
});

/** A share of the requests is rejected: the SLO says whether that is too many. */
for (const name of ['smoke', 'poll', 'soak'] as const)
  test(
    `${name} holds where --slo-errors allows as many failures, and not where it does not`,
    FULL,
    async ({ k6 }) => {
      const limiter = { kind: 'token-bucket', limit: 10, windowMs: 1000, burst: 10 } as const;
      await using server = await startSimulatedServer({ limiter });
      for (const errorRate of [0.9, 0.1]) {
        const session = await openSession(k6, server.target(), { slo: { p99Ms: 9000, errorRate } });
        const result = await runScenario(name, session, { ...OPTIONS, requestsPerSecond: 20, seconds: 4 });
        const { held, conformant, thresholds, summary } = result;
        const shown = JSON.stringify({ void: result.void, conformant, thresholds, summary });
        expect(held, shown).toBe(errorRate === 0.9);
      }
    },
  );

test(
  'soak: a target that serves hardly anything ends the run early, exit status 1',
  FULL,
  async ({}, info) => {
    test.slow();
    let asked = 0;
    await using server = await serve(withTokenEndpoint(() => (asked++ < 50 ? page() : json(503, {}))));
    const { origin } = server;
    const primary = { clientId: 'primary-client', clientSecret: 'x', tenantId: TENANT };
    const window = { from: '2026-03-01T00:00:00Z', to: '2026-03-02T00:00:00Z' };
    const file = info.outputPath('target.json');
    await writeFile(file, JSON.stringify({ baseUrl: origin, authUrl: origin, clients: { primary }, window }));
    const flags = ['--duration', '10m', '--report-dir', info.outputPath(), '--target', file];
    const { status, output } = await load(['soak', ...flags]);
    expect(output).toMatch(/\d+\.\d s of 10 min 0 s: \d+ answers, .* failed/);
    expect(output).toContain('threshold broken: failed rate<0.9 over 20 s');
    expect(status).toBe(1);
  },
);

type Limited = Awaited<ReturnType<typeof rateLimit.run>>;
const fixedWindow = { kind: 'fixed-window', limit: 30, windowMs: 2000 } as const;
const wide = { maxRequests: 600, maxSeconds: 30 };

/** With k6 itself; how the kinds are told apart is tried in virtual time. */
const LIMITERS: Readonly<
  Record<string, [SimulatedSettings, Partial<ScenarioOptions>, (found: Limited, session: Session) => void]>
> = {
  'a target without a limiter is asked as often as was said': [
    {},
    { maxRequests: 60, maxSeconds: 20 },
    ({ limiter }) => expect(limiter).toMatchObject({ kind: 'none-found', requests: 60 }),
  ],
  'a token bucket is named within the budget': [
    { limiter: { kind: 'token-bucket', limit: 20, windowMs: 2000, burst: 30 } },
    { maxRequests: 400, maxSeconds: 30 },
    ({ limiter }) => {
      expect(limiter!.requests).toBeLessThanOrEqual(400);
      // What else fits depends on how busy this machine is; the bucket itself always fits.
      expect([limiter!.kind, ...limiter!.alternatives]).toContain('token-bucket');
    },
  ],
  'what is asked before the probe uses nothing up': [
    { limiter: { kind: 'sliding-log', limit: 40, windowMs: 60_000 } },
    { maxRequests: 60, maxSeconds: 5 },
    ({ tables }) => expect(tables!['answers']!.findIndex(({ ok }) => ok === 0)).toBe(40),
  ],
  'a concurrency limit is none of requests in time': [
    { service: { workers: 12, serviceMs: 80, distribution: 'deterministic' }, atOnce: 12 },
    wide,
    (found) => {
      expect(found).toMatchObject({ limiter: { kind: 'cannot-tell' }, held: true });
      // A busy machine sends what belongs together apart, and leaves it open.
      expect([11, 12, 13, undefined]).toContain(found.limiter!.atOnce);
    },
  ],
  "a second client tells a limit that is each client's own": [
    { limiter: fixedWindow, clients: 2 },
    wide,
    ({ limiter }) => expect(limiter).toMatchObject({ scope: 'client' }),
  ],
  'a second client tells a limit that is shared': [
    { limiter: fixedWindow, sharedLimiter: true, clients: 2 },
    wide,
    ({ limiter }) => expect(limiter).toMatchObject({ scope: 'shared' }),
  ],
  'a Retry-After that is too short is a finding': [
    { limiter: { ...fixedWindow, windowMs: 3000 }, retryAfterLie: -3 },
    { maxRequests: 400, maxSeconds: 20 },
    (_, { findings }) => expect(findings.map(({ id }) => id)).toContain('7.2-retry-after-honest'),
  ],
};

for (const [title, [settings, options, holds]] of Object.entries(LIMITERS))
  test(`rate-limit: ${title}`, FULL, async ({ k6 }) => {
    await using server = await startSimulatedServer(settings);
    const session = await openSession(k6, server.target(), {}, rateLimit);
    holds(await rateLimit.run(session, { ...OPTIONS, ...options }), session);
  });

test("the target's own certificates are trusted, and no others", byTurns('certificates'), async () => {
  await using at = await setting({});
  const ca = join(at.directory, 'ca.pem');
  await writeFile(ca, SELF_SIGNED);
  const port = Number(new URL(at.server.baseUrl).port);
  const inner = { port, stop: async () => {} } as Listener;
  await using front = await secured(inner, 'localhost');
  const target = {
    ...at.server.target(),
    ...{ baseUrl: front.origin, authUrl: front.origin, ca },
    // The server knows nothing of the TLS in front of it, so that its next has another scheme.
    trustedOrigins: [front.origin.replace('https:', 'http:')],
  };
  const file = join(at.directory, 'tls.json');
  await writeFile(file, JSON.stringify(target));
  const flags = [
    'smoke',
    '--target',
    file,
    '--duration',
    '1s',
    '--slo-p99',
    '5000',
    '--report-dir',
    at.directory,
  ];
  expect(await load(flags)).toMatchObject({ status: 0, output: expect.stringContaining('held') });
  await writeFile(file, JSON.stringify({ ...target, ca: undefined }));
  expect(await load(flags)).toMatchObject({ status: 3, output: expect.stringContaining('not trusted') });
  await using wrong = await secured(inner, '127.0.0.1');
  await writeFile(file, JSON.stringify({ ...target, baseUrl: wrong.origin, authUrl: wrong.origin }));
  expect((await load(flags)).status).toBe(3);
});

test('paging: OFFSET is named, and a cut cursor is a finding', FULL, async ({ k6 }) => {
  await using slow = await startSimulatedServer({ paging: 'offset', screenings: 30_000, pagingCost: 12 });
  const options = { ...OPTIONS, pageSize: 1000, maxPages: 100 };
  const { depth } = await paging.run(await openSession(k6, slow.target()), options);
  expect(depth).toMatchObject({ flat: false, shape: 'grows-with-depth' });
  await using cut = await startSimulatedServer({ paging: 'millisecond-cursor', screenings: 2000 });
  const session = await openSession(k6, cut.target());
  await paging.run(session, options);
  expect(session.findings.map(({ id }) => id)).toContain('4.2-r6-next-from');
});
