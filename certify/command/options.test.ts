/** Parsing of the command line, and its error messages of one line. */
import { expect } from '@playwright/test';
import { parseOptions, replayCommand } from './options.ts';
import { test } from '../../reference-server/testing.ts';

const env = { SCREENINGS_CLIENT_SECRET: 'x' };

const MISTAKES: Readonly<Record<string, RegExp>> = {
  '--traget x': /unknown option '--traget' \(Did you mean --target\?\)/,
  '--only 4.2-to-exclusiv': /no requirement "4.2-to-exclusiv"; did you mean "4.2-to-exclusive"\?/,
  '--only ,': /--only selects nothing/,
  '--only 9 --require expiry': /--only selects nothing of --require expiry/,
  '--base-url http://127.0.0.1:1': /--base-url also needs --auth-url and --client-id/,
  '--client-secret s': /other users .*: set SCREENINGS_CLIENT_SECRET/,
  '--target t.json --client-id a': /'--target <file>' cannot be used with option '--client-id <id>'/,
  '--list --init': /cannot be used with option/,
  '--check-target': /--check-target goes with --target/,
  '--dataset d.ndjson --base-url http://127.0.0.1:1': /also needs/,
  '--dataset d.ndjson': /--dataset goes with --target/,
  '--timeout soon': /--timeout/,
  '--deadline 0': /--deadline.*more than 0/,
  '--seed -1': /--seed/,
  // An unset shell variable.
  '--history ': /--history <dir>.* it is empty/,
  '--from-har a.har --max-requests 5':
    /'--from-har <file>' cannot be used with option '--max-requests <number>'/,
  '--from-har a.har --watch': /cannot be used with option '--watch \[dir\]'/,
  surplus: /"surplus" belongs to no flag; write flags like this: npm run certify -- --target target.json/,
};

for (const [argv, words] of Object.entries(MISTAKES))
  test(`${argv} is rejected with one line`, () => {
    const parse = (): unknown => parseOptions(argv.split(' '), env);
    expect(parse).toThrow(words);
    expect(parse).not.toThrow(/\n/);
  });

test('rejects flags that npm kept because no -- precedes them', () => {
  const npm = { ...env, npm_lifecycle_event: 'certify', npm_config_target: 'acme.json' };
  expect(() => parseOptions([], npm)).toThrow(/npm consumed the flags; .* -- --target/);
  expect(parseOptions(['--target', 'acme.json'], npm)).toMatchObject({ target: 'acme.json' });
});

test('rejects --client-id without the secret in the environment', () => {
  const argv = ['--base-url', 'http://127.0.0.1:1', '--auth-url', 'http://127.0.0.1:1', '--client-id', 'a'];
  expect(() => parseOptions(argv, {})).toThrow(/set SCREENINGS_CLIENT_SECRET/);
});

test('selects the requirements of a section, and returns the command that replays the run', () => {
  const args = parseOptions(
    [
      ...['--target', 'my target.json', '--only', '9,5-missing', '--timeout', '2.5', '--deadline', '90'],
      ...['--wait-for-expiry', '--fail-fast'],
    ],
    env,
  )!;
  expect(args.only).toEqual(['5-missing', '9-prefix']);
  const recorded = replayCommand(parseOptions(['--from-har', 'a.har'], env)!, 7);
  expect(recorded).toBe('npm run certify -- --from-har a.har --seed 7');
  expect(replayCommand(args, 7)).toBe(
    "npm run certify -- --target 'my target.json' --only 5-missing,9 --wait-for-expiry --timeout 2.5 --deadline 90 --seed 7",
  );
});
