/** Where k6 is found, with fake `go` and `docker` commands. */
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@playwright/test';
import { cachedK6, ensureK6, findK6, K6_VERSION } from './find-k6.ts';
import { UsageError } from '../../engine/errors.ts';

let directory = '';
const kept = { ...process.env };

test.beforeEach(async ({}, info) => {
  directory = info.outputPath();
  await mkdir(join(directory, 'bin'), { recursive: true });
  process.env['PATH'] = join(directory, 'bin');
  process.env['XDG_CACHE_HOME'] = join(directory, 'cache');
  delete process.env['K6_PATH'];
});

test.afterEach(() => {
  for (const name of ['PATH', 'XDG_CACHE_HOME', 'K6_PATH']) {
    if (kept[name] === undefined) delete process.env[name];
    else process.env[name] = kept[name];
  }
});

async function command(name: string, script: string): Promise<string> {
  const path = join(directory, 'bin', name);
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
  return path;
}

test('K6_PATH takes precedence over the PATH, and must be executable', async () => {
  const onPath = await command('k6', 'true');
  expect(await findK6()).toBe(onPath);
  process.env['K6_PATH'] = await command('other-k6', 'true');
  expect(await findK6()).toBe(process.env['K6_PATH']);
  process.env['K6_PATH'] = join(directory, 'nothing');
  await expect(findK6()).rejects.toThrow(UsageError);
});

test('builds k6 with Go from the module proxy, once', async () => {
  await command(
    'go',
    `if [ "$1" = env ]; then echo 'https://proxy.test,direct'; exit; fi
echo "$GOPROXY $GOFLAGS $*" > '${directory}/asked'
while [ "$1" != -o ]; do shift; done
echo built > "$2"`,
  );
  const told: string[] = [];
  expect(await ensureK6((line) => told.push(line))).toBe(cachedK6());
  expect(await readFile(cachedK6(), 'utf8')).toBe('built\n');
  expect(await readFile(join(directory, 'asked'), 'utf8')).toMatch(/^https:\/\/proxy\.test -mod=mod build /);
  expect(await ensureK6((line) => told.push(line))).toBe(cachedK6());
  expect(told).toHaveLength(1);
});

test('copies k6 from the official image if there is no Go', async () => {
  test.skip(process.platform !== 'linux', 'not applicable: the image contains a Linux binary');
  await command(
    'docker',
    `echo "$*" >> '${directory}/asked'
case $1 in create) echo container-1 ;; cp) echo copied > "$3" ;; esac`,
  );
  expect(await ensureK6(() => {})).toBe(cachedK6());
  expect(await readFile(cachedK6(), 'utf8')).toBe('copied\n');
  const asked = (await readFile(join(directory, 'asked'), 'utf8')).trim().split('\n');
  expect(asked[0]).toBe(`create grafana/k6:${K6_VERSION.slice(1)}`);
  expect(asked.at(-1)).toBe('rm container-1');
});

test('explains in one line how to install k6 if there is neither', async () => {
  const failure = await ensureK6(() => {}).catch((error: Error) => error);
  expect(failure).toBeInstanceOf(UsageError);
  expect((failure as Error).message.split('\n')).toHaveLength(1);
  expect((failure as Error).message).toContain('install-k6');
});
