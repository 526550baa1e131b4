/** Every usage error is reported in one line. */
import { expect } from '@playwright/test';
import { UsageError } from '../../engine/errors.ts';
import { parseFlags } from './flags.ts';
import { test } from '../testing.ts';

for (const [line, message] of [
  ['--write-target fixtures', /--write-target.*it is a directory; name a file/],
  ['--events nowhere/events.ndjson', /--events.*its directory does not exist/],
  ['--dataset nowhere.ndjson', /--dataset.*it can't be read \(ENOENT\)/],
  ['--events-dir /proc/events', /--events-dir.*it can't be written to/],
  ['--access-log package.json/a.log', /--access-log.*it can't be written to/],
  ['--signing-key package.json', /--signing-key.*it contains no private key in PEM/],
  ['--signing-key nowhere.pem', /--signing-key.*it can't be read \(ENOENT\)/],
  ['--port 70000', 'expected 0 to 65535'],
  ['--rate-limit much', "'much' is invalid. expected requests/duration such as 100/10s."],
  ['--rate-algorithm magic', 'Allowed choices are fixed-window, sliding-window, token-bucket'],
  ['--rate-burst 5', '--rate-burst requires --rate-limit'],
  ['--rate-burst 5 --rate-limit 9/1s', 'and --rate-algorithm token-bucket'],
  ['--screenings 5 --empty', '--empty and --screenings exclude each other'],
  ['--keep data', '--keep requires DATABASE_URL'],
  ['--prot 1', '(Did you mean --port?)'],
  ['--public-url api.example.com', 'a URL such as'],
] as const)
  test(`reports a usage error for ${line}`, () => {
    const parse = (): unknown => parseFlags(line.split(' '), {});
    expect(parse).toThrow(UsageError);
    expect(parse).toThrow(message);
    expect(parse).not.toThrow(/\n/);
  });

test('parses valid flags', () => {
  expect(
    parseFlags(['--port', '0', '--rate-limit', '9/1s', '--keep', 'data'], { DATABASE_URL: 'x' }),
  ).toMatchObject({ port: 0, keep: 'data' });
});
