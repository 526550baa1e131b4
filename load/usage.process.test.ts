/** Mistakes of whoever calls load or bench: 2, in one line, before anything is started. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@playwright/test';
import { byTurns } from '../fixtures/own-tests/tiers.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

for (const [argv, words] of [
  ['load/main.ts smoke --report-dir package.json', /can't be written to package.json .*--report-dir/],
  ['load/main.ts smoke --target fixtures', /fixtures: can't read the target file/],
  ['load/main.ts smoke --target t.json --rate-limit 9/1s', /--rate-limit is the reference server's/],
  ['load/main.ts smoke --rate-algorithm token-bucket', /--rate-algorithm goes with --rate-limit/],
  ['load/main.ts smoke --parallelism 2', /--parallelism goes with --kubernetes/],
  ['load/main.ts soak --chaos --duration 5s', /--chaos needs room for outages: --duration 15s or more/],
  ['load/main.ts soak --chaos --kubernetes x --target t.json', /--chaos .* goes without --kubernetes/],
  ['load/main.ts capacity --start-rate 50 --max-rate 10', /--start-rate 50 lies above --max-rate 10/],
  ['load/main.ts accuracy unicorns', /unicorns is no family of the zoo: queues, sharing/],
  ['load/bench.ts --rounds x', /--rounds.*a whole number above 0 is expected/],
  ['load/bench.ts --report-dir package.json', /can't be written to package.json .*--report-dir/],
  ['load/bench.ts nope', /Allowed choices are service, certify/],
] as const) {
  test(`${argv} is told in one line`, byTurns(argv, 8), async () => {
    const env = { ...process.env, npm_lifecycle_event: undefined };
    const run = new Promise<{ code: unknown; stderr: string }>((done) => {
      execFile(
        process.execPath,
        ['--import', 'tsx', ...argv.split(' ')],
        { cwd: ROOT, env },
        (error, _, stderr) => done({ code: error?.code, stderr }),
      );
    });
    const { code, stderr } = await run;
    expect(stderr).toMatch(words);
    // Node itself has something to say where colours are asked for and refused.
    expect(
      stderr
        .trim()
        .split('\n')
        .filter((line) => !/NO_COLOR|trace-warnings/.test(line)),
    ).toHaveLength(1);
    expect(code).toBe(2);
  });
}
