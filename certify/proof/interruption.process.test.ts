/** Ctrl-C, a deadline and a full disk end with one clear line, the right exit status and no process left. */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from '@playwright/test';
import { UNREACHABLE } from '../../engine/testing.ts';
import { runInChild } from '../../fixtures/own-tests/run-command.ts';
import { byTurns } from '../../fixtures/own-tests/tiers.ts';
import type { Report } from '../report/report.ts';
import { test } from '../../reference-server/testing.ts';

test.describe.configure({ mode: 'parallel' });

interface Hardship {
  readonly args: (directory: string) => readonly string[];
  /** Sends a signal this long after the first output. */
  readonly signal?: { readonly name: NodeJS.Signals; readonly afterMs: number };
  /** The maximum size of a file, which simulates a full disk. */
  readonly fileOctets?: number;
  readonly status: number;
  readonly words: RegExp;
  readonly verdicts: readonly string[];
}

const NONE = 'no report';
const args = (directory: string): readonly string[] => ['--report-dir', directory];
// Interrupted before the first request, a run writes no report.
const interrupted = { args, words: /interrupted/, verdicts: ['incomplete', NONE] };

const HARDSHIPS: Readonly<Record<string, Hardship>> = {
  ...Object.fromEntries(
    [0, 0.5, 1, 2, 4].map((seconds) => [
      `Ctrl-C ${seconds} s after the first word, with its own server`,
      { ...interrupted, signal: { name: 'SIGINT', afterMs: seconds * 1000 }, status: 130 } as const,
    ]),
  ),
  SIGTERM: { ...interrupted, signal: { name: 'SIGTERM', afterMs: 4000 }, status: 143 },
  'a deadline of 2 s': {
    args: (directory) => [...args(directory), '--deadline', '2'],
    status: 3,
    words: /ended by --deadline 2 after \d+ of \d+ checks/,
    verdicts: ['incomplete'],
  },
  'a report folder that is a file': {
    args: () => args('package.json'),
    status: 2,
    words: /^certify: files can't be written to .*name another directory with --report-dir$/m,
    verdicts: [NONE],
  },
  'no room for the report on the disk': {
    args: (directory) => ['--target', join(directory, 'target.json'), ...args(directory)],
    fileOctets: 8192,
    // Nothing was tested; a conformant run whose report cannot be written exits with 4.
    status: 3,
    words: /report\.json.* could not be written: EFBIG/,
    verdicts: [NONE],
  },
};

for (const [name, hardship] of Object.entries(HARDSHIPS))
  test(name, byTurns(name), async () => {
    const directory = test.info().outputPath();
    await writeFile(join(directory, 'target.json'), JSON.stringify(UNREACHABLE));
    const { status, output, leftOver } = await run(hardship, directory);
    const verdict = await readFile(join(directory, 'report.json'), 'utf8').then(
      (text) => (JSON.parse(text) as Report).verdict,
      () => NONE,
    );
    expect(status, output).toBe(hardship.status);
    expect(output.replace(/\n {4,}/g, ' ')).toMatch(hardship.words);
    expect(hardship.verdicts).toContain(verdict);
    expect(leftOver).toBe(0);
    expect(output).not.toMatch(/^ +at .*:\d+:\d+|no probe was executed/m);
    expect(output).not.toContain('\u001b');
  });

/** Runs certify as a user does; `leftOver` is the number of its processes that are still running. */
async function run({ args, signal, fileOctets }: Hardship, directory: string) {
  const mark = randomUUID();
  const env = { CI: 'true', NO_COLOR: undefined, HARDSHIP: mark };
  const ended = await runInChild('certify/main.ts', args(directory), env, async (child) => {
    if (fileOctets) execFileSync('prlimit', [`--pid=${child.pid}`, `--fsize=${fileOctets}`]);
    if (!signal) return;
    await Promise.race([child.stdout, child.stderr].map((stream) => once(stream!, 'data')));
    await sleep(signal.afterMs);
    child.kill(signal.name);
  });
  return { ...ended, leftOver: await countMarked(`HARDSHIP=${mark}`) };
}

/** Works only on Linux. */
async function countMarked(mark: string): Promise<number> {
  const processes = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const environments = await Promise.all(
    processes.map((id) => readFile(`/proc/${id}/environ`, 'utf8').catch(() => '')),
  );
  return environments.filter((text) => text.includes(mark)).length;
}
