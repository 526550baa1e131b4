/** The command line of certify-client. */
import { expect, test } from '@playwright/test';
import { parseArguments } from './arguments.ts';
import { filled } from './command.ts';
import { SITUATIONS } from './situations/all.ts';

test('a command, with what it leaves out', () => {
  expect(parseArguments(['--command', 'node my-client.js'])).toEqual({
    command: 'node my-client.js',
    reportDir: 'reports',
    concurrency: 4,
    timeout: 90,
  });
});

const WRONG: readonly (readonly [string, readonly string[], RegExp])[] = [
  ['nothing', [], /give --command "…", or --listen PORT/],
  ['both', ['--command', 'x', '--listen', '80'], /give --command/],
  ['an empty command', ['--command', ' '], /--command is empty/],
  ['a port that is none', ['--listen', 'http'], /expected 1 to 65535/],
  ['a situation that is none', ['--command', 'x', '--only', 'plain-wlak'], /did you mean "plain-walk"/],
  ['an unknown flag', ['--comand', 'x'], /unknown option/],
];
for (const [name, argv, words] of WRONG) {
  test(`wrong: ${name}`, () => expect(() => parseArguments(argv)).toThrow(words));
}

test('the list names every situation, once', () => {
  const lines: string[] = [];
  expect(parseArguments(['--list'], (line) => lines.push(line))).toBeUndefined();
  const names = lines.map((line) => line.split('  ')[0]);
  expect(names).toEqual([...new Set(SITUATIONS.map(({ name }) => name))]);
});

test('placeholders become words of the shell', () => {
  const given = {
    baseUrl: 'http://a/x',
    authUrl: 'http://b',
    clientId: "o'brien",
    clientSecret: 's',
    tenantId: 't',
    from: 'f',
    to: 'u',
  };
  expect(filled('c {base_url} {client_id} {page_size} {other}', given)).toBe(
    `c 'http://a/x' 'o'\\''brien' '' {other}`,
  );
});
