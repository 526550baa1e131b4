/** Every script, run by hand: exit statuses, custom thresholds, no downloads. The other tests with k6 run them by the kit. */
import { execFile, spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '../../engine/files.ts';
import { expect } from '@playwright/test';
import { byTurns } from '../../fixtures/own-tests/tiers.ts';
import { page, token, withTokenEndpoint } from '../../reference-server/non-implementations/tools.ts';
import { type Handler, jsonAnswer, serve } from '../../reference-server/http/http.ts';
import { isTokenRequest, pages } from '../../reference-server/run/alter.ts';
import { writeScripts } from '../commands/write.ts';
import { baseEnvironment, K6_OFFLINE, scriptPath } from '../run/k6-run.ts';
import { load, setting, test } from '../zoo/setting.ts';
import type { SimulatedSettings } from '../zoo/server.ts';

const run = promisify(execFile);
const SCRIPTS = ['pages', 'rate-limit', 'tenants', 'token', 'walks'];

async function byHand(
  k6: string,
  at: string,
  secret: string,
  [command = 'run', ...rest]: readonly string[],
  values: Record<string, string> = {},
) {
  const flags = Object.entries(values).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
  const env = { PATH: process.env['PATH'], HOME: at, ...K6_OFFLINE, SCREENINGS_CLIENT_SECRET: secret };
  const child = spawn(k6, [command, '--quiet', '--no-color', ...flags, ...rest], { cwd: at, env });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (piece: Buffer) => (output += piece.toString()));
  const status = await new Promise((done) => child.on('close', done));
  return { status, output };
}

/** A simulated server, with its addresses and first client as values for -e. */
async function simulated(settings: SimulatedSettings = {}) {
  const at = await setting(settings);
  const { baseUrl: BASE_URL, authUrl: AUTH_URL, clients } = at.server.target;
  const { clientId: CLIENT_ID, clientSecret: secret } = clients.primary;
  const values = { BASE_URL, AUTH_URL, CLIENT_ID, P99_MS: '9000', DURATION: '1s' };
  return { at, clients, values, secret };
}

const HANDS: Readonly<
  Record<string, readonly [script: string, says: RegExp, values?: Record<string, string>]>
> = {
  smoke: ['pages', /✓ 'p\(99\)<9000'.*TOTAL RESULTS.*✓ a page has the requested items in order/s],
  token: ['token', /✓ 'rate<=0.001'/],
  walks: ['walks', /✓ deep pages cost as much as first pages at their position/],
  'rate-limit': ['rate-limit', /none-found.*✓ the limiter is identified or absent/s],
  // Only the search for the window requests first pages, which do not count.
  poll: [
    'pages',
    /✓ 'rate<=0.001'/,
    { SCENARIO: 'poll', HEAD: '5m', THRESHOLDS: '{"page_ms{page:first}":["max<=0"]}' },
  ],
  soak: ['pages', /✓ 'rate<=0.001'/, { SCENARIO: 'soak', DURATION: '0m2s' }],
  spike: ['pages', /page_ms{phase:after}/, { SCENARIO: 'spike', DURATION: '6s' }],
};

for (const [row, [name, [script, says, more = {}]]] of Object.entries(HANDS).entries())
  test(`by hand: ${name}`, byTurns('by hand', 7, row), async ({ k6 }) => {
    const { at, secret, values } = await simulated();
    await using _ = at;
    const given = { ...values, ...more };
    const { status, output } = await byHand(k6, at.directory, secret, ['run', scriptPath(script)], given);
    expect([status, output]).toEqual([0, expect.stringMatching(says)]);
    expect(output).not.toContain('c0ffee');
  });

const MORE =
  'by hand: takes thresholds, a file of clients and tags, archives without secrets, and explains wrong values';
test(MORE, byTurns(MORE), async ({ k6 }) => {
  const { at, clients, secret, values } = await simulated({ clients: 2 });
  await using _ = at;
  const file = join(at.directory, 'clients.csv');
  const rows = Object.values(clients).map(({ clientId, clientSecret }) => `${clientId},${clientSecret}`);
  await writeFile(file, `client_id,client_secret\n${rows.join('\n')}\n`);
  const tags = ['client:simulated-0', 'client:simulated-1', 'page:first', 'page_size:50'];
  const counted = [...tags, 'phase:even', 'testid:mine'].map((tag) => [`http_reqs{${tag}}`, ['count>2']]);
  const pages = { ...values, CLIENTS: file, RATE: '20', PAGE_SIZE: '50', TESTID: 'mine' };
  const path = scriptPath('pages');
  const run = (more: Record<string, string>, ...flags: string[]) =>
    byHand(k6, at.directory, secret, ['run', ...flags, path], { ...pages, ...more });
  const says = (text: string) => ({ output: expect.stringContaining(text) });
  const thresholds = JSON.stringify(Object.fromEntries(counted));
  expect(await run({ THRESHOLDS: thresholds })).toMatchObject({ status: 0 });
  expect(await run({ THRESHOLDS: '{"page_ms":["p(99)<0"]}' })).toMatchObject({ status: 99 });
  // The script's own thresholds of a metric stay in force.
  const late = await run({ P99_MS: '0.01', THRESHOLDS: '{"page_ms":["max<9000"]}' });
  expect(late).toMatchObject({ status: 99, ...says("'p(99)<0.01'") });
  // Nothing is requested: no moment is due, or each iteration throws.
  const nothing: Record<string, string>[] = [{ RATE: '0' }, { FROM: 'yesterday', TO: 'today' }];
  for (const none of nothing) expect(await run(none)).toMatchObject({ status: 99, ...says("✗ 'count>0'") });
  expect(await run({ FROM: '2026-03-01T00:00:00Z' })).toMatchObject(says('-e FROM and -e TO must be'));
  expect(await run({ THRESHOLDS: 'p99' })).toMatchObject(says('THRESHOLDS=p99: expected JSON such'));
  expect(await run({ DURATION: 'long' })).toMatchObject(says('a duration such as 90s or 5m'));
  const shortcut = await run({}, '--vus', '3', '--duration', '1s');
  expect(shortcut).toMatchObject({ status: 108, ...says('give -e RATE=… and -e DURATION=…') });
  const tar = join(at.directory, 'kit.tar');
  const archive = byHand(k6, at.directory, '', ['archive', '-O', tar, path], values);
  expect(await archive).toMatchObject({ status: 0 });
  expect(await byHand(k6, at.directory, secret, ['run', tar])).toMatchObject({ status: 0 });
  const missing = await byHand(k6, at.directory, '', ['run', tar]);
  expect(missing).toMatchObject({ status: 107, ...says('SCREENINGS_CLIENT_SECRET') });
});

/** Mints one token, then fails. */
function deadTokenEndpoint(): Handler {
  let minted = 0;
  return async (request) =>
    !isTokenRequest(request)
      ? page()
      : minted++ > 0
        ? jsonAnswer(503, { error: 'server_error' })
        : jsonAnswer(200, {
            access_token: token(),
            token_type: 'Bearer',
            expires_in: 1,
            scope: 'screenings.read',
          });
}

/** Serves one page in `times` requests, and 429 otherwise. */
function mostly429(times = Infinity): Handler {
  let asked = 0;
  const limited = { ...jsonAnswer(429, { code: 'rate_limited' }), headers: [['retry-after', '1'] as const] };
  return withTokenEndpoint(() => (++asked % times === 0 ? page() : limited));
}

const RED: readonly (readonly [scenario: string, server: string, () => Handler])[] = [
  ['smoke', 'a token endpoint that fails after the first token', deadTokenEndpoint],
  ['smoke', 'only 429', mostly429],
  ['smoke', '98 % of answers 429', () => mostly429(50)],
  ['spike', 'a token endpoint that fails after the first token', deadTokenEndpoint],
  ['walks', '98 % of answers 429', () => mostly429(50)],
  ['rate-limit', 'only 429', mostly429],
];

for (const [row, [scenario, name, server]] of RED.entries())
  test(`by hand: ${scenario} fails for ${name}`, byTurns('red', RED.length, row), async ({ k6 }) => {
    await using target = await serve(server());
    const [script, , more = {}] = HANDS[scenario]!;
    const window = { FROM: '2026-03-01T00:00:00Z', TO: '2026-03-02T00:00:00Z' };
    const addresses = { BASE_URL: target.origin, AUTH_URL: target.origin, CLIENT_ID: 'primary-client' };
    const values = { ...addresses, ...window, DURATION: '4s', ...more };
    const { status, output } = await byHand(k6, tmpdir(), 'a secret', ['run', scriptPath(script)], values);
    expect([99, output]).toEqual([status, expect.stringContaining('✗')]);
  });

test('passes k6 the variables of its outputs, and no credentials', () => {
  const passed = { K6_WEB_DASHBOARD: 'true', K6_PROMETHEUS_RW_SERVER_URL: 'http://127.0.0.1:9090' };
  const given = {
    ...passed,
    K6_PROMETHEUS_RW_PASSWORD: 'hidden',
    K6_OTEL_HEADERS: 'hidden',
    K6_DURATION: '1h',
    AWS_SECRET_ACCESS_KEY: 'hidden',
  };
  expect(baseEnvironment(given)).toEqual(passed);
});

for (const [row, way] of ['--out', 'K6_OUT'].entries())
  test(
    `${way} sends k6's metrics to the output, with findings by requirement`,
    byTurns('outputs', 12, row),
    async () => {
      const fault = pages(({ items }, _query, number) => number % 3 === 0 && items.reverse());
      await using at = await setting({ fault });
      const metrics = join(at.directory, 'metrics.json');
      // At this rate every page is judged.
      const out = `json=${metrics}`;
      const [given, env] = way === '--out' ? [[way, out], {}] : [[], { [way]: out }];
      const flags = ['--duration', '3s', '--rate', '5', '--slo-p99', '5000', ...given];
      expect((await load(['smoke', ...flags, ...at.flags], env)).status).toBe(1);
      const result = await at.result('smoke');
      expect(result).toMatchObject({ held: false, conformant: false });
      expect(result.findings.map(({ id }) => id)).toContain('4.2-r4-order');
      const text = await readFile(metrics, 'utf8');
      expect(text).toContain('"requirement":"4.2-r4-order"');
      expect(text).not.toContain('c0ffee');
    },
  );

test('the dashboard queries only metrics of the scripts, by their Prometheus names', async () => {
  const read = (path: string): Promise<string> => readFile(new URL(path, import.meta.url), 'utf8');
  const [dashboard, client] = [await read('../grafana-dashboard.json'), await read('./lib/client.ts')];
  const own = [...client.matchAll(/new (Counter|Trend)\('(\w+)'/g)].map(
    ([, type, name]) => `k6_${name}_${type === 'Counter' ? 'total' : 'p99'}`,
  );
  const asked = dashboard.match(/k6_\w+/g) ?? [];
  expect(asked.length).toBeGreaterThan(5);
  expect([...own, 'k6_checks_rate', 'k6_vus']).toEqual(expect.arrayContaining(asked));
});

test('no script has dependencies to download, in place or copied', async ({ k6 }) => {
  await using directory = await temporaryFolder('load-test');
  const copies = await writeScripts(directory.path);
  expect(copies.length).toBeGreaterThan(3);
  for (const path of [...SCRIPTS.map(scriptPath), ...copies]) {
    const env = { ...process.env, ...K6_OFFLINE };
    const { stdout } = await run(k6, ['deps', '--json', path], { env, cwd: directory.path });
    const found = JSON.parse(stdout) as { buildDependencies: object; customBuildRequired: boolean };
    expect(found).toMatchObject({ customBuildRequired: false });
    expect(stdout).not.toContain('https://');
  }
});
