/** The command `npm run reference-server`, in separate processes. */
import { runInChild } from '../../fixtures/own-tests/run-command.ts';
import { FULL } from '../../fixtures/own-tests/tiers.ts';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from '@playwright/test';
import { decodeJwt } from 'jose';
import { faultByName } from './fault-by-name.ts';
import { defaultProvisioning, TENANTS } from '../run/provisioning.ts';
import { execute } from '../store/connections.ts';
import { itemsOf, mintToken, pagesOf, test as base } from '../testing.ts';
import type { ReferenceTarget } from '../run/target.ts';

const WINDOW = 'from=2024-02-01T00:00:00Z&to=2025-02-02T00:00:00Z';
const MAIN = 'reference-server/main.ts';
const NODE = [process.execPath, '--import', 'tsx', MAIN];
const NPM = ['npm', 'run', 'reference-server', '--'];
const SMALL = ['--port', '0', '--postgres', 'embedded', '--screenings', '40'];

interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  readonly output: () => string;
  readonly target: ReferenceTarget;
  /** The process id of the server, which `child` may have started. */
  readonly pid: number;
  readonly directory: string;
}

type Run = (
  flags: readonly string[],
  options?: { readonly command?: readonly string[]; readonly url?: string },
) => Promise<Started>;

const test = base.extend<{ run: Run }>({
  run: async ({}, use) => {
    const ends: (() => Promise<unknown>)[] = [];
    await use(async (flags, { command = NODE, url = '' } = {}) => {
      const directory = test.info().outputPath();
      const file = join(directory, 'target.json');
      const child = spawn(command[0]!, [...command.slice(1), ...flags, '--write-target', file], {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, DATABASE_URL: url },
      });
      const ended = once(child, 'exit').then(([status]) => status as number | null);
      ends.push(() => {
        child.kill('SIGTERM');
        return ended;
      });
      let output = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk) => (output += String(chunk)));
      await expect.poll(() => output, { timeout: 60_000 }).toMatch(/^pid \d+$/m);
      const target = JSON.parse(await readFile(file, 'utf8')) as ReferenceTarget;
      const pid = Number(/^pid (\d+)$/m.exec(output)?.[1]);
      return { child, ended, output: () => output, target, pid, directory };
    });
    for (const end of ends) await end();
  },
});

const statusOf = async (target: ReferenceTarget): Promise<() => Promise<number>> => {
  const pages = await pagesOf(target);
  return async () => (await pages(`?${WINDOW}`)).status;
};

test('prints ready, writes a private target file, runs outage commands, exits with 0', async ({ run }) => {
  const { child, ended, output, target, directory } = await run([
    ...SMALL,
    ...['--auth-port', '0', '--path-prefix', '/api/', '--token-lifetime', '60'],
    ...['--rate-limit', '1000/1s', '--rate-algorithm', 'token-bucket', '--rate-burst', '500'],
  ]);
  expect(output()).toMatch(/^reference server: database: embedded PostgreSQL$/m);
  expect(output()).toContain(`baseUrl ${target.baseUrl}\nauthUrl ${target.authUrl}\n`);
  expect(target).toMatchObject({
    dataset: 'target.dataset.ndjson',
    secondDataset: 'target.secondDataset.ndjson',
    events: 'target.events.ndjson',
  });
  for (const name of ['target.json', 'target.dataset.ndjson'])
    expect((await stat(join(directory, name))).mode & 0o777).toBe(0o600);
  const status = await statusOf(target);
  expect(await status()).toBe(200);
  await promisify(execFile)('sh', ['-c', target.fault?.start ?? '']);
  expect(await status()).toBe(503);
  await promisify(execFile)('sh', ['-c', target.fault?.stop ?? '']);
  expect(await status()).toBe(200);
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});

test('uses public URLs in next, iss and aud while it listens on every interface', FULL, async ({ run }) => {
  const { target, output } = await run([
    ...SMALL,
    ...['--host', '0.0.0.0', '--public-url', 'https://api.example.com/screenings/'],
    ...['--public-auth-url', 'https://auth.example.com'],
  ]);
  expect(target).toMatchObject({
    baseUrl: 'https://api.example.com/screenings',
    authUrl: 'https://auth.example.com',
  });
  const port = /listening on \S+:(\d+)/.exec(output())?.[1];
  const here = { ...target, baseUrl: `http://127.0.0.1:${port}`, authUrl: `http://127.0.0.1:${port}` };
  const token = await mintToken(here, target.clients.primary);
  expect(decodeJwt(token)).toMatchObject({ iss: target.authUrl, aud: target.baseUrl });
  const { json, headers } = await (await pagesOf(here))(`?${WINDOW}&pageSize=5`);
  const { next } = (json as { links: { next: string } }).links;
  expect(next).toContain('https://api.example.com/screenings/v1/tenants/');
  expect(headers.get('link')).toContain(next);
});

test('runs with a fault by name, and writes its changes to the target file', FULL, async ({ run }) => {
  const { target, directory } = await run([...SMALL, '--fault', 'specversion is 0.3']);
  expect(target.events).toBe('target.events-of-fault.ndjson');
  expect(await readFile(join(directory, target.events ?? ''), 'utf8')).toContain('"specversion":"0.3"');
  expect(await statusOf(target).then((status) => status())).toBe(200);
});

test('runs with a fault that the commands of the target file switch on and off', FULL, async ({ run }) => {
  const name = 'during an outage errors have an undocumented code';
  const { target } = await run([...SMALL, '--fault', name]);
  const status = await statusOf(target);
  await promisify(execFile)('sh', ['-c', target.fault?.start ?? '']);
  // An outage of the database would be a 503.
  expect(await status()).toBe(500);
  await promisify(execFile)('sh', ['-c', target.fault?.stop ?? '']);
  expect(await status()).toBe(200);
});

test('--list-faults prints one name per line, which --fault accepts', FULL, async () => {
  const { output } = await runInChild(MAIN, ['--list-faults']);
  const names = output.split('\n').filter((line) => line !== '' && !line.startsWith('# '));
  expect(names.length).toBeGreaterThan(300);
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) expect(faultByName(name).name).toBe(name);
});

test('a killed server keeps every acknowledged screening and its event', FULL, async ({ database, run }) => {
  const directory = test.info().outputPath();
  const url = new URL(database.url);
  url.search = '';
  const schema = `kept_${process.pid}`;
  // The clients' secrets must be the same after a restart.
  const { tenants, clients } = defaultProvisioning();
  const provisioning = join(directory, 'provisioning.json');
  const onboarded = tenants.map((tenant) => ({ tenantId: tenant.tenantId, onboarded: tenant.onboarded }));
  await writeFile(provisioning, JSON.stringify({ tenants: onboarded, clients }));
  const flags = ['--port', '0', '--keep', schema, '--provisioning', provisioning, '--events-dir', directory];
  try {
    const acknowledged: unknown[] = [];
    for (const first of [100, 200, 300]) {
      const { child, ended, target } = await run(flags, { url: url.href });
      const lines = Array.from({ length: 20 }, (_, n) => ({
        id: first + n,
        tenantId: TENANTS.primary,
        testTime: `2024-06-01T00:00:00.${first + n}Z`,
      }));
      const ingest = promisify(execFile)('sh', ['-c', target.ingest]);
      ingest.child.stdin?.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
      await ingest;
      acknowledged.push(...lines);
      const items = await itemsOf(target, WINDOW);
      expect(JSON.parse(`[${items.join(',')}]`)).toEqual(acknowledged);
      child.kill('SIGKILL');
      await ended;
    }
    const events = await readFile(join(directory, `${TENANTS.primary}.ndjson`), 'utf8');
    const data = events
      .trimEnd()
      .split('\n')
      .map((line) => /"data":(.*)\}$/.exec(line)?.[1]);
    expect([...new Set(data)]).toEqual(acknowledged.map((line) => JSON.stringify(line)));
  } finally {
    await execute(url.href, `DROP SCHEMA IF EXISTS ${schema} CASCADE`);
  }
});

const alive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

for (const signal of ['SIGTERM', 'SIGINT', 'SIGKILL'] as const)
  test(`${signal} to npm run also ends the server and its database`, FULL, async ({ run }) => {
    const { child, pid, directory } = await run(SMALL, { command: NPM });
    const { stdout } = await promisify(execFile)('ps', ['-o', 'pid=,comm=', '--ppid', String(pid)]);
    const postgres = Number(/(\d+) postgres/.exec(stdout)?.[1]);
    expect(alive(pid) && alive(postgres), directory).toBe(true);
    child.kill(signal);
    await expect.poll(() => alive(pid) || alive(postgres), { timeout: 20_000 }).toBe(false);
  });

const WRONG_FLAGS: [args: (port: string) => string[], message: string][] = [
  [(port) => ['--port', port], 'listen EADDRINUSE: address already in use 127.0.0.1:'],
  [() => ['--host', '192.0.2.1', '--port', '0'], 'listen EADDRNOTAVAIL'],
  [() => ['--fault', 'specversion is 0.4'], 'did you mean "specversion is 0.3"?'],
  [() => ['--list-faults', '4.2-windw'], 'no requirement "4.2-windw"; did you mean "4.2-window"?'],
];
for (const [argsOf, message] of WRONG_FLAGS)
  test(`exits with 2: ${message}`, FULL, async ({ server }) => {
    const { status, output } = await runInChild(MAIN, argsOf(new URL(server.baseUrl).port));
    expect(status).toBe(2);
    expect(output).toMatch(/^reference server: .*\n$/);
    expect(output).toContain(message);
  });
