/** The kit holds its k6 client to what it asks of any client (section 5.6, 4.2 rule 5, 7.2). */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import type { ClientReport } from '../../certify/client/report.ts';
import { test } from '../zoo/setting.ts';

/** Where the ways of clients part; by hand all of them: npm run certify-client -- --command "sh load/k6/collect.sh". */
const TELLING = [
  ...['plain-walk', 'ties-across-pages', 'large-ids', 'next-relative', 'refresh-margin', '401-once'],
  ...['401-for-ever', '429-with-seconds', '500-once', '403-not-retried', 'events-beside-rest'],
];

test('the k6 client is a conformant one', async ({ k6 }) => {
  const directory = await mkdtemp(join(tmpdir(), 'k6-client-'));
  try {
    const flags = [
      '--command',
      'sh load/k6/collect.sh',
      '--only',
      TELLING.join(','),
      '--report-dir',
      directory,
    ];
    const child = spawn(process.execPath, ['--import', 'tsx', 'certify/client/main.ts', ...flags], {
      cwd: join(import.meta.dirname, '../..'),
      env: { ...process.env, K6_PATH: k6 },
      stdio: 'ignore',
    });
    const status = await new Promise((done) => child.once('close', done));
    const report = JSON.parse(await readFile(join(directory, 'client.json'), 'utf8')) as ClientReport;
    const wrong = report.situations.filter((one) => !['pass', 'untested'].includes(one.status));
    expect(wrong.map(({ name, failures }) => [name, failures])).toEqual([]);
    expect(status).toBe(0);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
