/** Usage errors of load and bench are reported in one line before anything is started. */
import { writeFile } from 'node:fs/promises';
import { expect, test } from '@playwright/test';
import { UsageError } from '../engine/errors.ts';
import { run } from './command-line.ts';

const MISSPELT = { baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1', clients: {}, windw: 1 };

for (const [line, words] of [
  ['', /name a command/],
  ['smok', /Did you mean smoke/],
  ['smoke --rate fast', /--rate.*a number above 0 is expected/],
  ['smoke --report-dir package.json', /can't be written to package.json .*--report-dir/],
  ['smoke --target fixtures', /fixtures: can't read the target file/],
  ['smoke --target MISSPELT', /windw.*window/],
  ['smoke --target t.json --rate-limit 9/1s', /--target <file>' cannot be used with option '--rate-limit/],
  ['smoke --rate-algorithm token-bucket', /--rate-algorithm requires --rate-limit/],
  ['smoke --parallelism 2', /--parallelism requires --kubernetes/],
  ['soak --chaos --duration 5s', /--chaos needs time for outages: give --duration 15s or more/],
  ['soak --chaos --kubernetes x --target t.json', /--chaos' cannot be used with option '--kubernetes/],
  ['tenants --backfills 0.5', /--backfills.*expected 0 to/],
  ['plan --spare 0.5', /--spare.*expected 0 to/],
  ['plan --retries 1', /--retries.*a share from 0, below 1/],
  ['capacity --start-rate 50 --max-rate 10', /--start-rate 50 exceeds --max-rate 10/],
  ['plan --from x', /required option '--tenants <n>' not specified/],
  ['merge nowhere.json', /nowhere.json: cannot be read/],
  ['accuracy unicorns', /no family "unicorns"; the families are queues, sharing/],
  ['bench --report-dir package.json', /can't be written to package.json .*--report-dir/],
  ['bench nope', /Allowed choices are service, certify/],
] as const)
  test(`reports a usage error for load ${line}`, async ({}, info) => {
    const file = info.outputPath('target.json');
    if (line.includes('MISSPELT')) await writeFile(file, JSON.stringify(MISSPELT));
    const argv = line.replace('MISSPELT', file).split(' ').filter(Boolean);
    const { signal } = new AbortController();
    const error: unknown = await run(argv, { tell: () => {}, signal }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UsageError);
    expect((error as UsageError).message).toMatch(words);
    expect((error as UsageError).message).not.toContain('\n');
  });
