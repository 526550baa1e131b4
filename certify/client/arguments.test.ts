/** Parsing of the command line of certify-client. */
import { expect } from '@playwright/test';
import { parseArguments } from './arguments.ts';
import { fillIn } from './client.ts';
import { SITUATIONS } from './situations/all.ts';
import { test } from '../../reference-server/testing.ts';

test('parses a command and returns the defaults', () => {
  expect(parseArguments(['--command', 'node my-client.js'])).toEqual({
    command: 'node my-client.js',
    reportDir: 'reports',
    concurrency: 4,
    timeout: 90,
  });
});

const WRONG: readonly (readonly [string, readonly string[], RegExp])[] = [
  ['no flags', [], /give --command "…", or --listen PORT/],
  ['both --command and --listen', ['--command', 'x', '--listen', '80'], /give --command/],
  ['an empty command', ['--command', ' '], /--command is empty/],
  ['an invalid port', ['--listen', 'http'], /expected 1 to 65535/],
  ['an unknown situation', ['--command', 'x', '--only', 'plain-wlak'], /did you mean "plain-walk"/],
  ['an unknown flag', ['--comand', 'x'], /unknown option/],
];
for (const [name, argv, words] of WRONG)
  test(`rejects ${name}`, () => expect(() => parseArguments(argv)).toThrow(words));

test('--list prints every situation once', () => {
  const lines: string[] = [];
  expect(parseArguments(['--list'], (line) => lines.push(line))).toBeUndefined();
  const names = lines.map((line) => line.split('  ')[0]);
  expect(names).toEqual([...new Set(SITUATIONS.map(({ name }) => name))]);
});

test('replaces placeholders by quoted shell words', () => {
  const given = {
    baseUrl: 'http://a/x',
    authUrl: 'http://b',
    clientId: "o'brien",
    clientSecret: 's',
    tenantId: 't',
    from: 'f',
    to: 'u',
  };
  expect(fillIn('c {base_url} {client_id} {page_size} {other}', given)).toBe(
    `c 'http://a/x' 'o'\\''brien' '' {other}`,
  );
});
