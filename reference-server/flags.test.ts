/** Mistakes on the command line of the reference server, each told in one line. */
import { expect, test } from '@playwright/test';
import { UsageError } from '../engine/errors.ts';
import { parseFlags } from './flags.ts';

for (const [line, message] of [
  ['--write-target fixtures', /--write-target.*it is a folder; name a file/],
  ['--events nowhere/events.ndjson', /--events.*its folder is not there/],
  ['--dataset nowhere.ndjson', /--dataset.*it can't be read \(ENOENT\)/],
  ['--events-dir /proc/events', /--events-dir.*it can't be written to/],
  ['--access-log package.json/a.log', /--access-log.*it can't be written to/],
  ['--signing-key package.json', /--signing-key.*it holds no private key in PEM/],
  ['--signing-key nowhere.pem', /--signing-key.*it can't be read \(ENOENT\)/],
  ['--port 70000', 'expected 0 to 65535'],
  ['--rate-limit much', '"much" is not a rate'],
  ['--rate-algorithm magic', 'Allowed choices are fixed-window, sliding-window, token-bucket'],
  ['--dataset /nowhere.ndjson --postgres embedded', 'ENOENT'],
  ['--rate-burst 5', '--rate-burst goes with --rate-limit'],
  ['--rate-burst 5 --rate-limit 9/1s', 'and --rate-algorithm token-bucket'],
  ['--screenings 5 --empty', '--empty and --screenings exclude each other'],
  ['--keep data', '--keep goes with DATABASE_URL'],
  ['--prot 1', '(Did you mean --port?)'],
  ['--public-url api.example.com', 'a URL such as'],
] as const)
  test(`reference-server ${line}: a usage error`, () => {
    let told: unknown;
    try {
      parseFlags(line.split(' '), {});
    } catch (error) {
      told = error;
    }
    expect(told).toBeInstanceOf(UsageError);
    const { message: said } = told as UsageError;
    expect(said).not.toContain('\n');
    if (typeof message === 'string') expect(said).toContain(message);
    else expect(said).toMatch(message);
  });

test('flags that are right are read', () => {
  expect(
    parseFlags(['--port', '0', '--rate-limit', '9/1s', '--keep', 'data'], { DATABASE_URL: 'x' }),
  ).toMatchObject({
    port: 0,
    keep: 'data',
  });
});
