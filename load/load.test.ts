/** k6 itself against simulated servers: exit statuses, thresholds, judging, tokens, secrets. No assertion on timing. */
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from '@playwright/test';
import { Ajv } from 'ajv';
import { makeCertificates, secured } from '../certify/client/certificates.ts';
import type { Listener } from '../reference-server/http.ts';
import { TESTRUN_SCHEMA, type TestRun } from './kubernetes/testrun.ts';
import { writeKubernetes } from './kubernetes/write.ts';
import { startSimulatedServer, type SimulatedServer } from './simulated/start.ts';
import type { SimulatedSettings } from './simulated/server.ts';
import type { LoadResult } from './result.ts';
import { findK6 } from './run/find-k6.ts';
import { arrivalsOf, baseEnvironment, K6_OFFLINE, runK6, scriptPath } from './run/k6-run.ts';
import { paging } from './scenarios/paging.ts';
import { rateLimit } from './scenarios/rate-limit.ts';
import { runScenario } from './scenarios/all.ts';
import { verifySegments } from './verify/segments.ts';
import { openSession, OPTIONS } from './verify/session.ts';
import { verifyTokens } from './verify/tokens.ts';

const run = promisify(execFile);
const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url));
const SCRIPTS = ['arrivals', 'poll', 'ramp', 'rate-limit', 'smoke', 'soak', 'spike', 'token', 'walks'];

let k6 = '';
test.beforeAll(async () => {
  k6 = (await findK6()) ?? '';
  if (!k6 && process.env['CI']) throw new Error('k6 is not there: npm run load -- install-k6');
});
test.beforeEach(() => test.skip(!k6, 'k6 is not there: npm run load -- install-k6'));

/** Runs the command line as a user does. */
async function load(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<{ status: number; output: string }> {
  const child = spawn(process.execPath, ['--import', 'tsx', MAIN, ...args], {
    env: { ...process.env, ...env },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (piece: Buffer) => (output += piece.toString()));
  return new Promise((done) => child.on('close', (code) => done({ status: code ?? -1, output })));
}

/** A simulated server, its target file, a place for results. */
async function setting(settings: SimulatedSettings) {
  const directory = await mkdtemp(join(tmpdir(), 'load-test-'));
  const server: SimulatedServer = await startSimulatedServer(settings);
  const target = join(directory, 'target.json');
  await writeFile(target, JSON.stringify(server.target()));
  return {
    server,
    directory,
    flags: ['--target', target, '--report-dir', directory],
    result: async (name: string) =>
      JSON.parse(await readFile(join(directory, `load-${name}.json`), 'utf8')) as LoadResult,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

const SECRET = 'simulated-secret-0-c0ffee';

test('smoke: a right target holds, exit status 0, and no secret is in any output', async () => {
  await using at = await setting({});
  const { status, output } = await load([
    'smoke',
    '--duration',
    '3s',
    '--rate',
    '10',
    '--slo-p99',
    '5000',
    ...at.flags,
  ]);
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

test('smoke: fast but wrong fails, exit status 1', async () => {
  await using at = await setting({ disorderEvery: 3 });
  const { status } = await load([
    'smoke',
    '--duration',
    '3s',
    '--rate',
    '10',
    '--slo-p99',
    '5000',
    ...at.flags,
  ]);
  expect(status).toBe(1);
  const result = await at.result('smoke');
  expect(result).toMatchObject({ void: false, conformant: false });
  expect(result.findings.map(({ id }) => id)).toContain('4.2-r4-order');
  expect(result.thresholds).toMatchObject({ 'findings count<1': false });
});

test('smoke: a slow target breaks the SLO, exit status 1; a machine that is busy otherwise blames nobody', async () => {
  const service = { workers: 64, serviceMs: 120, distribution: 'deterministic' } as const;
  await using at = await setting({ service });
  const { status } = await load([
    'smoke',
    '--duration',
    '3s',
    '--rate',
    '10',
    '--slo-p99',
    '100',
    ...at.flags,
  ]);
  const result = await at.result('smoke');
  expect(result).toMatchObject({ conformant: true, held: false });
  if (result.void === false) expect(status).toBe(1);
  else expect([status, result.void]).toEqual([3, expect.stringMatching(/busy|processor|fell behind/)]);
});

test('smoke: a starved generator is void, exit status 3', async () => {
  test.slow();
  const service = { workers: 64, serviceMs: 150, distribution: 'deterministic' } as const;
  await using at = await setting({ service });
  const flags = ['--duration', '1s', '--rate', '80', '--slo-p99', '1500', '--max-vus', '2'];
  const { status, output } = await load(['smoke', ...flags, ...at.flags]);
  expect(output).toContain('VOID');
  expect(status).toBe(3);
  expect((await at.result('smoke')).void).toContain('VU');
});

test('usage is exit status 2, a target that is not there 3', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'load-test-'));
  try {
    const unknown = join(directory, 'unknown.json');
    const clients = { primary: { clientId: 'a', clientSecret: 'not-to-be-shown' } };
    await writeFile(
      unknown,
      JSON.stringify({ baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1', clients, windw: 1 }),
    );
    expect(await load(['smoke', '--target', unknown])).toMatchObject({
      status: 2,
      output: expect.stringContaining('window'),
    });
    expect(await load(['smok'])).toMatchObject({ status: 2 });
    expect(await load(['smoke', '--rate', 'fast'])).toMatchObject({ status: 2 });
    const dead = join(directory, 'dead.json');
    await writeFile(
      dead,
      JSON.stringify({ baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1', clients }),
    );
    const answer = await load(['smoke', '--target', dead]);
    expect(answer.status).toBe(3);
    expect(answer.output).not.toContain('not-to-be-shown');
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('every script runs, ends with status 0, and with 99 where a threshold is broken', async () => {
  await using at = await setting({});
  const session = await openSession(k6, at.server.target());
  const { from, to } = session.prepared.base.window;
  const common = {
    vus: 2,
    requestsPerSecond: 10,
    seconds: 1,
    probe: { maxRequests: 5, maxSeconds: 2 },
    walks: [{ label: 'all', from, to, pageSize: 100, maxPages: 2 }],
  };
  for (const script of SCRIPTS) {
    const wide = session.config(script, common);
    const held = await runK6(script, { k6, env: session.prepared.env, config: wide });
    expect([script, held.status, held.complaint]).toEqual([script, 0, '']);
    const impossible = { http_req_duration: ['max<0'] };
    const broken = await runK6(script, {
      k6,
      env: session.prepared.env,
      config: { ...wide, thresholds: impossible },
    });
    expect([script, broken.status]).toEqual([script, 99]);
    expect(broken.summary?.thresholds).toEqual({ 'http_req_duration max<0': false });
  }
});

test('scripts run by hand: with -e and the secret in the environment, held against thresholds of their own', async () => {
  await using at = await setting({});
  const { baseUrl, authUrl, clients } = at.server.target() as {
    baseUrl: string;
    authUrl: string;
    clients: { primary: { clientId: string; clientSecret: string } };
  };
  const byHand = async (script: string, secret: string, ...more: string[]) => {
    const values = [`BASE_URL=${baseUrl}`, `AUTH_URL=${authUrl}`, `CLIENT_ID=${clients.primary.clientId}`];
    const flags = [...values, 'DURATION=1s', 'RATE=10', ...more].flatMap((one) => ['-e', one]);
    const child = spawn(k6, ['run', '--quiet', '--no-color', ...flags, scriptPath(script)], {
      env: { PATH: process.env['PATH'], HOME: at.directory, ...K6_OFFLINE, SCREENINGS_CLIENT_SECRET: secret },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (piece: Buffer) => (output += piece.toString()));
    const status = await new Promise((done) => child.on('close', done));
    return { status, output };
  };
  const slow = 'P99_MS=9000';
  for (const script of ['smoke', 'poll', 'token', 'spike', 'soak', 'walks']) {
    const { status, output } = await byHand(script, clients.primary.clientSecret, slow);
    expect([script, status, output]).toEqual([script, 0, expect.not.stringContaining('c0ffee')]);
  }
  const smoke = await byHand('smoke', clients.primary.clientSecret, slow);
  expect(smoke.output).toMatch(/✓ a page holds what was asked for, in order: \d+ of \d+/);
  expect(smoke.output).toContain('✓ p(99)<9000');
  expect(smoke.output).not.toContain('latency_bucket');
  expect((await byHand('smoke', clients.primary.clientSecret, 'P99_MS=0')).status).toBe(99);
  const missing = await byHand('smoke', '');
  expect([missing.status, missing.output]).toEqual([
    107,
    expect.stringContaining('SCREENINGS_CLIENT_SECRET'),
  ]);
});

test("k6 is told where its metrics go, and nobody's secrets", () => {
  const given = {
    K6_WEB_DASHBOARD: 'true',
    K6_PROMETHEUS_RW_SERVER_URL: 'http://127.0.0.1:9090',
    K6_PROMETHEUS_RW_PASSWORD: 'hidden',
    K6_OTEL_HEADERS: 'hidden',
    K6_DURATION: '1h',
    AWS_SECRET_ACCESS_KEY: 'hidden',
  };
  expect(baseEnvironment(given)).toEqual({
    K6_WEB_DASHBOARD: 'true',
    K6_PROMETHEUS_RW_SERVER_URL: 'http://127.0.0.1:9090',
  });
});

test("--out: k6's own metrics go where they are sent, findings by requirement", async () => {
  await using at = await setting({ disorderEvery: 3 });
  const metrics = join(at.directory, 'metrics.json');
  const flags = ['--duration', '1s', '--rate', '10', '--slo-p99', '5000', '--out', `json=${metrics}`];
  expect((await load(['smoke', ...flags, ...at.flags])).status).toBe(1);
  const text = await readFile(metrics, 'utf8');
  expect(text).toContain('"requirement":"4.2-r4-order"');
  expect(text).not.toContain('latency_bucket');
  expect(text).not.toContain('c0ffee');
});

test('no script would fetch anything', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'load-test-'));
  try {
    for (const script of SCRIPTS) {
      const path = fileURLToPath(new URL(`./k6/${script}.ts`, import.meta.url));
      const env = { ...process.env, ...K6_OFFLINE };
      const { stdout } = await run(k6, ['deps', '--json', path], { env, cwd: directory });
      const found = JSON.parse(stdout) as { buildDependencies: object; customBuildRequired: boolean };
      expect(found).toMatchObject({ customBuildRequired: false });
      expect(stdout).not.toContain('https://');
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('kubernetes: a TestRun that the operator takes, an archive that runs, no secret in either', async () => {
  await using at = await setting({ clients: 2 });
  const session = await openSession(k6, at.server.target());
  const options = { ...OPTIONS, requestsPerSecond: 10, seconds: 1 };
  const files = await writeKubernetes('smoke', session, options, at.directory, 3);
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')));
  const testRun = JSON.parse(texts[1]!) as TestRun;
  const validate = new Ajv({ allErrors: true }).compile(TESTRUN_SCHEMA);
  expect(validate(testRun), JSON.stringify(validate.errors)).toBe(true);
  expect(validate({ ...testRun, spec: { ...testRun.spec, paralelism: 3 } })).toBe(false);

  const { binaryData } = JSON.parse(texts[0]!) as { binaryData: { 'kit.tar': string } };
  const archive = Buffer.from(binaryData['kit.tar'], 'base64');
  for (const text of [...texts, archive.toString('latin1')]) expect(text.includes('c0ffee')).toBe(false);
  expect(archive.includes('eyJ')).toBe(false);
  const tar = join(at.directory, 'kit.tar');
  await writeFile(tar, archive);
  const { stdout } = await run(k6, ['run', '--quiet', tar], {
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: at.directory,
      ...K6_OFFLINE,
      ...session.prepared.env,
    },
  });
  const summary = JSON.parse(stdout.split('\n').find((line) => line.startsWith('{'))!) as {
    counts: { pages: number };
  };
  expect(summary.counts.pages).toBeGreaterThan(0);
});

test('tokens that live 4 s over 10 s: no 401, and few token calls', async () => {
  const outcome = await verifyTokens(k6, 4, 10);
  expect(outcome.unauthenticated).toBe(0);
  expect(outcome.pages).toBeGreaterThan(0);
  expect(outcome.tokens).toBeLessThanOrEqual(outcome.bound);
  expect(outcome.tokens).toBeGreaterThan(4);
});

test('three segments ask exactly what one generator asks', async () => {
  const { rateError } = await verifySegments(k6, 60, 2, 1500);
  expect(rateError).toBe(0);
});

test('rate-limit: a target with a limiter is asked few times, one without as often as was said', async () => {
  await using none = await startSimulatedServer({});
  const free = await rateLimit.run(await openSession(k6, none.target()), {
    ...OPTIONS,
    maxRequests: 60,
    maxSeconds: 20,
  });
  expect(free.limiter).toMatchObject({ kind: 'none-found', requests: 60 });
  await using limited = await startSimulatedServer({
    limiter: { kind: 'token-bucket', limit: 20, windowMs: 2000, burst: 30 },
  });
  const session = await openSession(k6, limited.target());
  const found = (await rateLimit.run(session, { ...OPTIONS, maxRequests: 400, maxSeconds: 30 })).limiter!;
  expect(found.requests).toBeLessThanOrEqual(400);
  // What else fits depends on how busy this machine is; the bucket itself always fits.
  expect([found.kind, ...found.alternatives]).toContain('token-bucket');
});

for (const [shared, scope] of [
  [false, 'client'],
  [true, 'shared'],
] as const) {
  test(`rate-limit: a second client tells a limit that is ${shared ? 'shared' : "each client's own"}`, async () => {
    await using server = await startSimulatedServer({
      limiter: { kind: 'fixed-window', limit: 30, windowMs: 2000 },
      sharedLimiter: shared,
      clients: 2,
    });
    const session = await openSession(k6, server.target());
    const found = await rateLimit.run(session, { ...OPTIONS, maxRequests: 600, maxSeconds: 30 });
    expect(found.limiter).toMatchObject({ scope });
  });
}

test("the target's own certificates are trusted, and nobody else's", async () => {
  await using at = await setting({});
  const { ours, another } = await makeCertificates(at.directory);
  const port = Number(new URL(at.server.baseUrl).port);
  const inner = { port, stop: async () => {} } as Listener;
  await using front = await secured(inner, ours);
  const target = { ...at.server.target(), baseUrl: front.origin, authUrl: front.origin, ca: ours.file };
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
  expect(await load(flags)).toMatchObject({ status: 3, output: expect.stringContaining('SELF_SIGNED') });
  await using wrong = await secured(inner, another);
  await writeFile(file, JSON.stringify({ ...target, baseUrl: wrong.origin, authUrl: wrong.origin }));
  expect((await load(flags)).status).toBe(3);
});

test('rate-limit: a Retry-After that lies is a finding', async () => {
  const limiter = { kind: 'fixed-window', limit: 30, windowMs: 3000 } as const;
  await using server = await startSimulatedServer({ limiter, retryAfterLie: -3 });
  const session = await openSession(k6, server.target());
  await rateLimit.run(session, { ...OPTIONS, maxRequests: 400, maxSeconds: 20 });
  expect(session.findings.map(({ id }) => id)).toContain('7.2-retry-after-honest');
});

test('paging: OFFSET is named, and a cut cursor is a finding', async () => {
  await using slow = await startSimulatedServer({ paging: 'offset', screenings: 30_000, pagingCost: 12 });
  const options = { ...OPTIONS, pageSize: 1000, maxPages: 100 };
  const { depth } = await paging.run(await openSession(k6, slow.target()), options);
  expect(depth).toMatchObject({ flat: false, shape: 'grows-with-depth' });
  await using cut = await startSimulatedServer({ paging: 'millisecond-cursor', screenings: 2000 });
  const session = await openSession(k6, cut.target());
  await paging.run(session, options);
  expect(session.findings.map(({ id }) => id)).toContain('4.2-r6-next-from');
});

test('an unreachable token endpoint half-way is void, not a verdict', async () => {
  const server = await startSimulatedServer({});
  const session = await openSession(k6, server.target());
  await server[Symbol.asyncDispose]();
  const result = await runScenario('smoke', session, { ...OPTIONS, requestsPerSecond: 5, seconds: 1 });
  expect(result.void).not.toBe(false);
  expect(arrivalsOf([])).toEqual([]);
});
