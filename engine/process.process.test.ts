/** No process is left running, however a command ends. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect } from '@playwright/test';
import { byTurns } from '../fixtures/own-tests/tiers.ts';
import { test } from '../reference-server/testing.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const MANY = ['--tenant', '7d0c1de3-0000-4000-8000-000000000001', '--count', '90000000'];
const DATASET = ['--import', 'tsx', 'fixtures/dataset/main.ts', ...MANY];

/** Output goes to a file, so that writing never yields to the event loop. */
const dataset = (env: NodeJS.ProcessEnv) =>
  spawn('sh', ['-c', 'exec "$0" "$@" >/dev/null', process.execPath, ...DATASET], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: 'ignore',
  });

test('a command ends if npm was killed before Node started', async () => {
  const gone = spawnSync('true').pid;
  const child = dataset({ STARTED_BY: String(gone) });
  expect(await once(child, 'exit')).toEqual([143, null]);
});

const STATUSES = [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const;
for (const [row, [signal, status]] of STATUSES.entries()) {
  test(`${signal} ends a command that writes without a pause`, byTurns('signals', 3, row), async () => {
    const child = spawn(process.execPath, DATASET, { cwd: ROOT, stdio: ['ignore', 'pipe', 'ignore'] });
    const exited = once(child, 'exit');
    child.stdout.once('data', () => child.kill(signal)).resume();
    expect(await exited).toEqual([status, null]);
  });
}

test('an exception that nothing catches is a failure of the kit, and not of the target', () => {
  const program = `
    import { runCommand } from './engine/command-line.ts';
    runCommand('certify', () => new Promise(() => setTimeout(() => { throw new Error('odd'); })));
  `;
  const flags = ['--import', 'tsx', '--input-type=module', '-e', program];
  const { status, stderr } = spawnSync(process.execPath, flags, { cwd: ROOT, encoding: 'utf8' });
  expect(stderr).toContain('certify: the kit itself failed: Error: odd');
  expect(status).toBe(4);
});

test('every npm script passes the id of npm and replaces the shell by its command', () => {
  const scripts = JSON.parse(execFileSync('npm', ['pkg', 'get', 'scripts'], { cwd: ROOT, encoding: 'utf8' }));
  for (const [name, script] of Object.entries<string>(scripts).filter(([, one]) => one.includes('tsx ')))
    if (name !== 'build') expect(script).toMatch(/^STARTED_BY=\$PPID exec node --import tsx /);
});

const GUARDED = `
  import { spawnGuarded } from './engine/process.ts';
  const child = spawnGuarded('sh', ['-c', process.argv[1]], { env: process.env });
  child.stdout.pipe(process.stdout);
  child.on('close', (code) => console.log('ended ' + code));
`;
const guarded = (script: string) =>
  spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', GUARDED, script], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
const isRunning = (pid: number): boolean => spawnSync('kill', ['-0', String(pid)]).status === 0;

test('a guarded process ends when its parent is killed', async () => {
  const parent = guarded('echo $$; sleep 100; echo too late');
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const pid = Number(line.toString());
  expect(isRunning(pid)).toBe(true);
  parent.kill('SIGKILL');
  await expect.poll(() => isRunning(pid)).toBe(false);
});

test('a guarded process may end by itself while its children still write', async () => {
  const parent = guarded('(sleep 0.3; echo later) & echo first; exit 7');
  let output = '';
  parent.stdout.on('data', (piece: Buffer) => (output += piece.toString()));
  await once(parent, 'close');
  expect(output).toBe('first\nlater\nended 7\n');
});
