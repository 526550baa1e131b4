/** The tests of attacks and outages as rows of a table: run by Playwright, read from its JSON. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { JSONReport, JSONReportSuite } from '@playwright/test/reporter';

export interface TestedCase {
  readonly file: string;
  readonly title: string;
  readonly seconds: number;
  readonly passed: boolean;
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const FILES = [
  'certify/secrets.test.ts',
  'load/hostile.test.ts',
  'load/chaos.test.ts',
  ...['hostile', 'attack', 'outage', 'events', 'tokens'].map((name) => `reference-server/${name}.test.ts`),
];

/** What was skipped counts as failed: a table with holes says nothing. */
export async function runTestedCases(): Promise<readonly TestedCase[]> {
  const config = '--config=fixtures/own-tests/playwright.config.ts';
  const cli = fileURLToPath(import.meta.resolve('@playwright/test/cli'));
  const child = spawn(process.execPath, [cli, 'test', config, '--reporter=json', ...FILES], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, CI: 'true', SEED: process.env['SEED'] ?? '1' },
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await new Promise((done) => child.once('close', done));
  const { suites } = JSON.parse(output) as JSONReport;
  return suites.flatMap((suite) => casesOf(suite, []));
}

function casesOf(suite: JSONReportSuite, within: readonly string[]): TestedCase[] {
  const cases = suite.specs.map(({ file, title, ok, tests }) => ({
    file,
    title: [...within, title].join(', '),
    seconds: (tests[0]?.results.at(-1)?.duration ?? 0) / 1000,
    passed: ok && tests.every(({ status }) => status === 'expected'),
  }));
  return [...cases, ...(suite.suites ?? []).flatMap((inner) => casesOf(inner, [...within, inner.title]))];
}
