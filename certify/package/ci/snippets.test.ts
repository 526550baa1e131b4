/** The CI snippets parse, and the commands in them use existing flags. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { parse } from 'yaml';
import { parseOptions } from '../../command/options.ts';
import { test } from '../../../reference-server/testing.ts';

const ROOT = join(import.meta.dirname, '../../..');
const ACTION = '.github/actions/certify/action.yml';
const read = (path: string): Promise<string> => readFile(join(ROOT, path), 'utf8');

interface Step {
  readonly run?: string;
  readonly uses?: string;
  readonly with?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

const flagsOf = (text: string): string[][] =>
  [...text.matchAll(/run certify -- (--[^'\n]*)/g)].map(([, flags]) => flags!.trim().split(' '));

for (const name of ['gitlab.yml', 'Jenkinsfile'])
  test(`${name}: uses existing flags, always keeps a report and contains no secret`, async () => {
    const text = await read(`certify/package/ci/${name}`);
    const [flags] = flagsOf(text);
    expect(parseOptions(flags!, {})).toMatchObject({
      target: 'target.json',
      history: 'history',
      failOn: 'new',
    });
    expect(text).toContain('reports/junit.xml');
    expect(text).toContain('run load -- smoke --target target.json');
    expect(text).toContain('"keepToken": "kept/token"');
    expect(text).toMatch(/always/);
    expect(text.trim().split('\n').length).toBeLessThan(16);
    if (name.endsWith('.yml')) expect(Object.keys(parse(text) as object)).toEqual(['certify']);
  });

test('github.yml calls the action with existing inputs', async () => {
  const workflow = parse(await read('certify/package/ci/github.yml')) as {
    jobs: { certify: { steps: Step[] } };
  };
  const action = parse(await read(ACTION)) as { inputs: object; runs: { steps: Step[] } };
  const { steps } = workflow.jobs.certify;
  const called = steps.find(({ uses }) => uses?.includes('/.github/actions/certify@'))!;
  for (const input of Object.keys(called.with!)) expect(Object.keys(action.inputs)).toContain(input);
  expect(parseOptions(['--target', 'a', ...called.with!['arguments']!.split(' ')], {})).toMatchObject({
    history: 'history',
    failOn: 'new',
  });
  // Actions of others are pinned to a commit.
  for (const { uses } of [...steps, ...action.runs.steps])
    if (uses && uses !== called.uses) expect(uses).toMatch(/^actions\/[\w-]+@[0-9a-f]{40}$/);
  expect(called.with).toMatchObject({ load: 'smoke' });
  const kept = steps.find(({ uses }) => uses?.startsWith('actions/cache@'))!;
  expect(kept.with!['path']!.split('\n')).toEqual(['history', 'kept']);
  // Inputs are passed through the environment, so they are never interpreted as script.
  for (const { run } of action.runs.steps) expect(run ?? '').not.toContain('${{');
});
