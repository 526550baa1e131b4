/** The command as a user runs it: exit status, output, and files. */
import { runCommand, type Ended } from '../fixtures/own-tests/run-command.ts';
import { FULL } from '../fixtures/own-tests/tiers.ts';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { openDatabase } from '../reference-server/store/database.ts';
import { defaultProvisioning, loadProvisioning } from '../reference-server/run/provisioning.ts';
import { tokenAnswers, withHeader } from '../reference-server/run/alter.ts';
import { startServer } from '../reference-server/run/start.ts';
import { skipWithoutEngine, test } from '../reference-server/testing.ts';
import { resolveTarget } from '../engine/target/target.ts';
import { certify } from './certify.ts';
import type { Report } from './report.ts';

const FILES = ['badge.svg', 'junit.xml', 'report.html', 'report.json', 'summary.md'];

const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> =>
  runCommand('certify/main.ts', args, env);

const reportOf = async (directory: string): Promise<Report> =>
  JSON.parse(await readFile(join(directory, 'report.json'), 'utf8')) as Report;

let directory: string;
test.beforeEach(() => {
  directory = test.info().outputPath();
});

test('a selection exits with 0 and reports every requirement', async ({ server }) => {
  const target = join(directory, 'target.json');
  await writeFile(target, JSON.stringify(server.target()));
  const { status, output } = await run([
    '--target',
    target,
    '--only',
    '2.1,4.1,4.2-r2-inverted',
    '--report-dir',
    directory,
  ]);
  expect(output).toContain('CONFORMANT');
  expect(status).toBe(0);
  expect((await readdir(directory)).filter((name) => name !== 'target.json').sort()).toEqual(FILES);
  const report = await reportOf(directory);
  expect(report.requirements).toHaveLength(106);
  expect(report.selection).toContain('4.2-r2-inverted');
  expect(report.requirements.find(({ id }) => id === '4.2-window')).toMatchObject({ status: 'untested' });
});

test('a fault exits with 1 and prints what was sent, expected and received', FULL, async ({ start }) => {
  const faulty = await start(tokenAnswers((answer) => withHeader(answer, 'cache-control', undefined)));
  const { baseUrl, authUrl, clients } = faulty.target();
  const { clientId, clientSecret } = clients.primary;
  const flags = ['--base-url', baseUrl, '--auth-url', authUrl, '--client-id', clientId];
  const { status, output } = await run([...flags, '--only', '4.1', '--report-dir', directory], {
    SCREENINGS_CLIENT_SECRET: clientSecret,
  });
  expect(status).toBe(1);
  for (const word of ['4.1-no-store', 'MUST', 'sent', 'expected', 'received', 'look at', 'replay', 'curl']) {
    expect(output).toContain(word);
  }
  expect(output).not.toContain(clientSecret);
});

test('an unreachable target exits with 3, one line and a report', FULL, async () => {
  const target = join(directory, 'target.json');
  const client = { clientId: 'a', clientSecret: 'b-secret' };
  const nowhere = 'http://127.0.0.1:1';
  await writeFile(
    target,
    JSON.stringify({ baseUrl: nowhere, authUrl: nowhere, clients: { primary: client } }),
  );
  const { status, output } = await run(['--target', target, '--report-dir', directory]);
  expect(status).toBe(3);
  expect(output.replace(/\s+/g, ' ')).toContain('no connection to http://127.0.0.1:1');
  expect((await reportOf(directory)).verdict).toBe('incomplete');
});

test('wrong usage exits with 2 and one line, and writes nothing', FULL, async () => {
  const { status, output } = await run(['--only', 'nothing-like-it', '--report-dir', directory]);
  expect(status).toBe(2);
  expect(output.trim().split('\n')).toHaveLength(1);
  expect(await readdir(directory)).toEqual([]);
});

const written = async (content: object): Promise<string> => {
  const file = join(directory, 'target.json');
  await writeFile(file, JSON.stringify(content));
  return file;
};

test(
  'a recording of the command is judged without sending anything and exits with 3',
  FULL,
  async ({ server }) => {
    const target = await written(server.target());
    const har = join(directory, 'run.har');
    const flags = ['--only', '2.4,4.2-r1-zero-width', '--report-dir', directory];
    expect((await run(['--target', target, '--har', directory, ...flags])).status).toBe(2);
    expect((await run(['--target', target, '--har', har, ...flags])).status).toBe(0);
    for (const more of [[], ['--target', target]]) {
      const { status, output } = await run(['--from-har', har, ...more, ...flags]);
      expect(output).toContain('nothing is sent');
      expect(status).toBe(3);
      const { requests, requirements } = await reportOf(directory);
      expect(requests).toBe(0);
      expect(requirements.find(({ id }) => id === '2.4-items')).toMatchObject({ status: 'pass' });
    }
  },
);

test('--version prints the version', FULL, async () => {
  expect((await run(['--version'])).output).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test('the reference server is conformant with PostgreSQL in a container', FULL, async () => {
  test.setTimeout(300_000);
  await skipWithoutEngine();
  await using database = await openDatabase('testcontainers');
  await using provisioned = await loadProvisioning(
    database,
    defaultProvisioning({ count: 600, secondCount: 100 }),
  );
  await using server = await startServer(database, provisioned);
  const report = await certify(await resolveTarget({ ...server.target() }), { seed: 1 });
  expect(report.requirements.filter(({ status }) => !['pass', 'untested'].includes(status))).toEqual([]);
  expect(report.verdict).toBe('conformant');
});
