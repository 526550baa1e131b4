/** Every script by the kit and by hand: exit statuses, thresholds of its own, nothing fetched. */
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from '@playwright/test';
import { baseEnvironment, K6_OFFLINE, runK6, scriptPath } from '../run/k6-run.ts';
import { load, setting, test } from '../zoo/setting.ts';
import { openSession } from '../zoo/setting.ts';

const run = promisify(execFile);
const SCRIPTS = ['arrivals', 'poll', 'ramp', 'rate-limit', 'smoke', 'soak', 'spike', 'token', 'walks'];

test('every script runs, ends with status 0, and with 99 where a threshold is broken', async ({ k6 }) => {
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

test('scripts run by hand: with -e and the secret in the environment, held against thresholds of their own', async ({
  k6,
}) => {
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

test('the dashboard asks for metrics that scripts send, by the names that the Prometheus output gives them', async () => {
  const dashboard = JSON.parse(
    await readFile(new URL('../grafana-dashboard.json', import.meta.url), 'utf8'),
  ) as { schemaVersion: number; panels: { targets: { expr: string }[] }[] };
  expect(dashboard.schemaVersion).toBeGreaterThan(0);
  const client = await readFile(new URL('./lib/client.ts', import.meta.url), 'utf8');
  const own = [...client.matchAll(/new (Counter|Trend)\('(\w+)'/g)].map(([, type, name]) =>
    type === 'Counter' ? `k6_${name}_total` : `k6_${name}_p99`,
  );
  const known = [...own, 'k6_checks_rate', 'k6_vus'];
  const asked = dashboard.panels.flatMap(({ targets }) =>
    targets.flatMap(({ expr }) => expr.match(/k6_\w+/g) ?? []),
  );
  expect(asked.length).toBeGreaterThan(5);
  expect(asked.filter((name) => !known.includes(name))).toEqual([]);
});

test('no script would fetch anything', async ({ k6 }) => {
  const directory = await mkdtemp(join(tmpdir(), 'load-test-'));
  try {
    for (const script of SCRIPTS) {
      const path = scriptPath(script);
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
