/** Fixtures of the tests with k6: k6, the command line, a simulated server with a report directory, a session. */
import type { ChildProcess } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runInChild, type Ended } from '../../fixtures/own-tests/run-command.ts';
import { TENANT } from '../../reference-server/non-implementations/tools.ts';
import { temporaryFolder } from '../../engine/files.ts';
import { resolveTarget } from '../../engine/target/target.ts';
import { SLO } from '../k6/lib/presets.ts';
import type { LoadResult } from '../result.ts';
import { findK6 } from '../run/find-k6.ts';
import { prepare } from '../run/target.ts';
import type { ScenarioOptions } from '../run/flags.ts';
import { type Scenario, Session } from '../run/session.ts';
import { type SimulatedSettings, startSimulatedServer } from './server.ts';
import { test as base } from '../../reference-server/testing.ts';

const MISSING = 'k6 is not there: npm run load -- install-k6';

/** `k6` is the path of k6. Without k6 a test is skipped; in CI, where a skip would go unnoticed, it fails. */
export const test = base.extend<{ readonly k6: string }>({
  k6: [
    async ({}, use, { skip }) => {
      const k6 = await findK6();
      if (!k6 && process.env['CI']) throw new Error(MISSING);
      skip(!k6, MISSING);
      await use(k6!);
    },
    { auto: true },
  ],
});

/** Runs the command line in a child process; `meanwhile` may end it. */
export const load = (
  args: readonly string[],
  env: Record<string, string> = {},
  meanwhile?: (child: ChildProcess) => unknown,
): Promise<Ended> => runInChild('load/main.ts', args, env, meanwhile);

/** Starts a simulated server with a target file and a report directory. */
export async function setting(settings: SimulatedSettings) {
  const folder = await temporaryFolder('load-test');
  const directory = folder.path;
  const server = await startSimulatedServer(settings);
  const target = join(directory, 'target.json');
  await writeFile(target, JSON.stringify(server.target));
  return {
    server,
    directory,
    flags: ['--target', target, '--report-dir', directory],
    result: async (name: string) =>
      JSON.parse(await readFile(join(directory, `load-${name}.json`), 'utf8')) as LoadResult,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** Writes a target file for a server of non-implementations/tools.ts and returns its path. */
export async function writeTarget(directory: string, origin: string, clientSecret = 'x'): Promise<string> {
  const primary = { clientId: 'primary-client', clientSecret, tenantId: TENANT };
  const window = { from: '2026-03-01T00:00:00Z', to: '2026-03-02T00:00:00Z' };
  const path = join(directory, 'target.json');
  await writeFile(path, JSON.stringify({ baseUrl: origin, authUrl: origin, clients: { primary }, window }));
  return path;
}

export async function openSession(
  k6: string,
  target: unknown,
  options: Partial<ScenarioOptions> = {},
  { window }: Pick<Scenario, 'window'> = {},
): Promise<Session> {
  const prepared = await prepare(await resolveTarget(target), window);
  return new Session(k6, prepared, { ...OPTIONS, ...options }, () => {});
}

export const OPTIONS: ScenarioOptions = {
  ...{ reportDir: '', timeout: 10, seed: 1, screenings: 1, parallelism: 3 },
  ...{ sloP99: SLO.p99Ms, sloErrors: SLO.errorRate, maxVus: 2000 },
  ...{ startRate: 20, maxRate: 1000, thoroughness: 0.3, pageSize: 100, maxPages: 10 },
  ...{ maxRequests: 100, maxSeconds: 10, rate: 100, duration: 4, spikeFactor: 2, head: 300 },
  ...{ poll: 60, backfills: 0, tokenRenewal: 3540 },
};
