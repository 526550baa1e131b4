/** The exit status, output and files of a run. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect } from '@playwright/test';
import { REQUIREMENTS } from '../../engine/requirements.ts';
import { UNREACHABLE } from '../../engine/testing.ts';
import { tokenAnswers, withHeader } from '../../reference-server/run/alter.ts';
import { test } from '../../reference-server/testing.ts';
import { parseOptions } from './options.ts';
import { resultOf } from '../proof/faults.ts';
import { resultsOf } from '../render/service-results.ts';
import type { Report } from '../report/report.ts';
import { run } from './run-certify.ts';

let directory: string;
test.beforeEach(() => {
  directory = test.info().outputPath();
});

async function ended(...argv: readonly string[]): Promise<{ status: number; output: string }> {
  const options = parseOptions([...argv, '--report-dir', directory], process.env)!;
  const output = new PassThrough();
  const status = await run(options, {
    input: new PassThrough() as never,
    output: output as never,
    at: (path) => path,
    signal: new AbortController().signal,
    interruptedStatus: () => undefined,
  });
  output.end();
  return { status, output: await text(output) };
}

const reportOf = async (): Promise<Report> =>
  JSON.parse(await readFile(join(directory, 'report.json'), 'utf8')) as Report;

const written = async (content: object): Promise<string> => {
  const file = join(directory, 'target.json');
  await writeFile(file, JSON.stringify(content));
  return file;
};

test('a selection exits with 0 and reports every requirement', async ({ server }) => {
  const target = await written(server.target());
  const { status, output } = await ended('--target', target, '--only', '2.1,4.1,4.2-r2-inverted');
  expect(output).toContain('CONFORMANT');
  expect(status).toBe(0);
  const report = await reportOf();
  const files = Object.values(resultsOf(report).files);
  expect((await readdir(directory)).sort()).toEqual([...files, 'target.json'].sort());
  expect(report.requirements).toHaveLength(REQUIREMENTS.length);
  expect(report.selection).toContain('4.2-r2-inverted');
  expect(resultOf(report, '4.2-window').status).toBe('untested');
});

test('a fault exits with 1 and prints what was sent, expected and received', async ({ start }) => {
  const faulty = await start(tokenAnswers((answer) => withHeader(answer, 'cache-control', undefined)));
  const { baseUrl, authUrl, clients } = faulty.target();
  const { clientId, clientSecret } = clients.primary;
  process.env['SCREENINGS_CLIENT_SECRET'] = clientSecret;
  const flags = ['--base-url', baseUrl, '--auth-url', authUrl, '--client-id', clientId];
  const { status, output } = await ended(...flags, '--only', '4.1');
  expect(status).toBe(1);
  for (const word of ['4.1-no-store', 'MUST', 'sent', 'expected', 'received', 'look at', 'replay', 'curl'])
    expect(output).toContain(word);
  expect(output).not.toContain(clientSecret);
});

test('an unreachable target exits with 3, one line and a report', async () => {
  const { status, output } = await ended('--target', await written(UNREACHABLE));
  expect(status).toBe(3);
  expect(output.replace(/\s+/g, ' ')).toContain(`no connection to ${UNREACHABLE.authUrl}`);
  expect((await reportOf()).verdict).toBe('incomplete');
});

for (const [flag, name, message] of [
  ['--watch', 'none', /^--watch: can't read .*none \(ENOENT\)$/],
  ['--dataset', 'none', /^--dataset: can't read .*none \(ENOENT\)$/],
  ['--dataset', '.', /^--dataset: can't read .* \(EISDIR\)$/],
  ['--dataset', 'target.json', /^--dataset: .*target\.json:1: .*"id"/],
] as const)
  test(`reports ${flag} ${name} in one line before anything is sent`, async () => {
    const target = await written(UNREACHABLE);
    await expect(ended('--target', target, flag, join(directory, name))).rejects.toThrow(message);
  });

test('a recording of a run is judged without sending anything and exits with 3', async ({ server }) => {
  const target = await written(server.target());
  const har = join(directory, 'run.har');
  const only = ['--only', '2.4,4.2-r1-zero-width'];
  await expect(ended('--target', target, '--har', directory, ...only)).rejects.toThrow('is a directory');
  expect((await ended('--target', target, '--har', har, ...only)).status).toBe(0);
  for (const more of [[], ['--target', target]]) {
    const { status, output } = await ended('--from-har', har, ...more, ...only);
    expect(output).toContain('nothing is sent');
    expect(status).toBe(3);
    const report = await reportOf();
    expect(report.requests).toBe(0);
    expect(resultOf(report, '2.4-items').status).toBe('pass');
  }
});
