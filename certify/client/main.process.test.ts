/** The command with clients in two languages, and with one that is started by hand. */
import { runInChild, type Ended } from '../../fixtures/own-tests/run-command.ts';
import { FULL } from '../../fixtures/own-tests/tiers.ts';
import { spawn } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { freePort } from '../../reference-server/store/postgres-embedded.ts';
import type { ClientReport } from './report.ts';
import { test } from '../../reference-server/testing.ts';

const ROOT = join(import.meta.dirname, '../..');
const CLIENTS = 'certify/client/testing/clients';
/** Situations in which these clients differ. */
const TELLING = [
  'plain-walk,json-spelt-differently,ties-across-pages,large-ids,offsets-and-fractions,next-relative,401-once,429-with-seconds',
  '500-once,redirect-to-another-host,403-not-retried,secret-form-encoded,tls-trusted,tls-another-name,events-beside-rest',
].join();

test.describe.configure({ timeout: 240_000 });

const reportDir = (): string => test.info().outputPath();

const run = (...args: readonly string[]): Promise<Ended> => runInChild('certify/client/main.ts', args);

const certified = async (command: string, only = TELLING, ...further: readonly string[]) => {
  const ended = await run('--command', command, '--only', only, '--report-dir', reportDir(), ...further);
  const report = JSON.parse(await readFile(join(reportDir(), 'client.json'), 'utf8')) as ClientReport;
  const of = (status: string): string[] =>
    report.situations.filter((one) => one.status === status).map(({ name }) => name);
  return { ...ended, report, of };
};

test('a client in Python, with its standard library, is conformant', FULL, async () => {
  const { status, output, of } = await certified(`python3 ${CLIENTS}/client.py`);
  expect([of('fail'), of('warn'), of('error')], output).toEqual([[], [], []]);
  expect(status).toBe(0);
  expect((await readdir(reportDir())).sort()).toEqual(['client-junit.xml', 'client.html', 'client.json']);
});

test('reports what a client in shell lacks', async () => {
  const { status, of, output } = await certified(`sh ${CLIENTS}/client.sh`);
  expect(of('fail')).toEqual(['json-spelt-differently', '500-once']);
  const warned = ['401-once', '429-with-seconds', 'next-relative', 'redirect-to-another-host'];
  expect(of('warn').sort()).toEqual(warned);
  expect(of('untested')).toEqual(['events-beside-rest']);
  expect(output).toContain('NON-CONFORMANT');
  expect(status).toBe(1);
});

test('reports a client that verifies no certificate', FULL, async () => {
  const trusting = join(reportDir(), 'trusting.sh');
  await writeFile(trusting, `curl() { command curl -k "$@"; }\n. ${join(ROOT, CLIENTS, 'client.sh')}\n`);
  const { of, output } = await certified(`sh ${trusting}`, 'tls-trusted,tls-another-name');
  expect(of('fail')).toEqual(['tls-another-name']);
  expect(output).toMatch(/no request to a server whose certificate is for another name/);
});

test('reports a client that asks for next without TLS', FULL, async () => {
  const plain = join(reportDir(), 'plain.sh');
  await writeFile(
    plain,
    `sed() { command sed "$@" | command sed 's/^https:/http:/'; }\n. ${join(ROOT, CLIENTS, 'client.sh')}\n`,
  );
  const { of, output } = await certified(`sh ${plain}`, 'tls-trusted');
  expect(of('fail')).toEqual(['tls-trusted']);
  expect(output).toMatch(/TLS for an https address[^]*1 request without TLS/);
});

test('a command that cannot be started is wrong usage; one without requests is untested', FULL, async () => {
  const missing = await run('--command', 'no-such-client', '--report-dir', reportDir());
  expect(missing.status).toBe(2);
  expect(missing.output).toContain('certify-client: --command: ');
  await mkdir(join(reportDir(), 'client.html'));
  const { status, report, output } = await certified(
    'echo no configuration >&2; exit 3',
    'plain-walk,500-once',
  );
  expect(status).toBe(3);
  expect(output).toMatch(/^certify-client: client\.html could not be written: EISDIR\b[^\n]*$/m);
  expect(report.summary).toContain(
    'the client sent no request, and ended with exit status 3: no configuration',
  );
});

test('stops a client that hangs, and reports it', FULL, async () => {
  const hanging = `python3 ${CLIENTS}/client.py && sleep 1000`;
  const { status, output } = await certified(hanging, 'plain-walk', '--timeout', '5');
  expect(status).toBe(1);
  expect(output).toContain('expected    an end in bounded time');
});

test('--listen waits for a client that is started with the printed values', FULL, async () => {
  const args = ['--listen', String(await freePort()), '--only', 'plain-walk', '--report-dir', reportDir()];
  let printed = '';
  let isStarted = false;
  const { status } = await runInChild('certify/client/main.ts', args, {}, ({ stdout }) =>
    stdout?.on('data', (chunk: Buffer) => {
      printed += chunk.toString();
      const then = /^# then: YOUR-CLIENT (> .*)$/m.exec(printed)?.[1];
      if (!then || isStarted) return;
      isStarted = true;
      const lines = printed.split('\n').filter((line) => line.startsWith('export '));
      const script = [...lines, `python3 ${CLIENTS}/client.py ${then}`].join('\n');
      spawn('sh', ['-c', script], { cwd: ROOT, stdio: 'ignore' });
    }),
  );
  expect(status).toBe(0);
  const report = JSON.parse(await readFile(join(reportDir(), 'client.json'), 'utf8')) as ClientReport;
  expect(report.situations.find(({ name }) => name === 'plain-walk')!.status).toBe('pass');
});
