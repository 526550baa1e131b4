/** Runs the runners of a cluster as processes on this machine. */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from '@playwright/test';
import { byTurns, FULL } from '../../fixtures/own-tests/tiers.ts';
import { SELF_SIGNED } from '../../reference-server/http/certificates.ts';
import { jsonAnswer } from '../../reference-server/http/http.ts';
import { isTokenRequest, middleware } from '../../reference-server/run/alter.ts';
import type { Session } from '../run/session.ts';
import { K6_OFFLINE } from '../run/k6-run.ts';
import { load, openSession, setting, test } from '../zoo/setting.ts';
import { refuseLoopback, type testRunOf, writeKubernetes } from './write.ts';

const run = promisify(execFile);

/** Writes the files of a run, which contain no secret; returns their texts and the path of the archive. */
async function written(scenario: 'smoke' | 'token', session: Session, directory: string) {
  const files = await writeKubernetes(scenario, session, directory);
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')));
  const { binaryData } = JSON.parse(texts[0]!) as { binaryData: { 'kit.tar': string } };
  const archive = Buffer.from(binaryData['kit.tar'], 'base64');
  const tar = join(directory, `kit-${session.options.parallelism}.tar`);
  await writeFile(tar, archive);
  // Decoded, because base64 of any JSON may look like a token.
  const [map, ...others] = texts.map((text) => text.replace(binaryData['kit.tar'], ''));
  const all = [map!, ...others, archive.toString('latin1')];
  for (const text of all) expect(text).not.toMatch(/c0ffee|eyJ/);
  return { texts: all, tar };
}

/** Runs a part of the run, and returns the path of the runner's log. */
async function runner(k6: string, session: Session, directory: string, tar: string, flags: string[] = []) {
  const env = { PATH: process.env['PATH'], HOME: directory, ...K6_OFFLINE, ...session.prepared.env };
  const args = ['run', '--quiet', '--log-format=raw', ...flags, tar];
  // Rejects with the output if a threshold breaks.
  const { stdout, stderr } = await run(k6, args, { env }).catch(
    (error: Awaited<ReturnType<typeof run>>) => error,
  );
  const log = `${tar}${flags.join('').replaceAll('/', '-')}.log`;
  await writeFile(log, `${stderr}${stdout}`);
  return log;
}

const ONE = 'kubernetes: writes a TestRun and a runnable archive without secrets';
test(ONE, byTurns(ONE, 2), async ({ k6 }) => {
  await using at = await setting({ clients: 2 });
  const options = {
    sloP99: 9000,
    rate: 10,
    duration: 1,
    parallelism: 1,
    maxVus: 7,
    out: ['experimental-prometheus-rw'],
  };
  const ca = join(at.directory, 'ca.pem');
  await writeFile(ca, SELF_SIGNED);
  const session = await openSession(k6, { ...at.server.target, ca }, options);
  const { texts, tar } = await written('token', session, at.directory);
  // The operator mounts the ConfigMap at /test.
  expect(JSON.parse(texts[0]!)).toMatchObject({ data: { 'ca.pem': SELF_SIGNED } });
  const testRun = JSON.parse(texts[1]!) as ReturnType<typeof testRunOf>;
  expect(testRun).toMatchObject({ kind: 'TestRun', spec: { parallelism: 1 } });
  expect(testRun.spec.arguments).toContain(' --out experimental-prometheus-rw');
  expect(testRun.metadata.name).toMatch(/^screenings-token-[0-9a-f]{8}$/);
  const trusted = { name: 'SSL_CERT_DIR', value: expect.stringMatching(/^\/test:/) };
  expect(testRun.spec.runner.env).toContainEqual(trusted);
  expect(testRun.spec.runner).toMatchObject({
    automountServiceAccountToken: 'false',
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containerSecurityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
  });
  expect(texts.at(-1)).toContain('"vus":7');
  expect(() => refuseLoopback(at.server.target)).toThrow('unreachable for the cluster');
  const { status, output } = await load(['merge', await runner(k6, session, at.directory, tar)]);
  expect(output).toMatch(/^1 parts: \d+ requests .* 0.00 % failed\nheld/);
  expect(status).toBe(0);
});

const DEAD = 'kubernetes: counts a request that fails for lack of a token once';
test(DEAD, byTurns(DEAD, 2), async ({ k6 }) => {
  let issued = 0;
  const dead = middleware(
    () => async (request, next) =>
      // The preparation and the setup get a token.
      isTokenRequest(request) && ++issued > 2 ? jsonAnswer(503, {}) : next(request),
  );
  await using at = await setting({ fault: dead, tokenLifetimeSeconds: 1 });
  const options = { sloP99: 9000, rate: 20, duration: 4, parallelism: 1 };
  const session = await openSession(k6, at.server.target, options);
  const { tar } = await written('smoke', session, at.directory);
  const { status, output } = await load(['merge', await runner(k6, session, at.directory, tar)]);
  expect(output).toMatch(/ (\d\d|100)\.\d\d % failed/);
  expect(status).toBe(1);
});

test('kubernetes: three runners merge to the result of one', FULL, async ({ k6 }) => {
  test.slow();
  const service = { workers: 64, serviceMs: 21, distribution: 'deterministic' } as const;
  await using at = await setting({ behaviour: () => ({ service }) });
  // One seed gives the same arrivals for any number of runners.
  const options = { sloP99: 9000, pageSize: 10, seed: 5, rate: 60, duration: 3 };
  const logs = async (segments: readonly string[]): Promise<string[]> => {
    const one = await openSession(k6, at.server.target, { ...options, parallelism: segments.length });
    const { tar } = await written('smoke', one, at.directory);
    const sequence = '--execution-segment-sequence=0,1/3,2/3,1';
    const part = (segment: string): string[] =>
      segments.length > 1 ? [`--execution-segment=${segment}`, sequence] : [];
    return Promise.all(segments.map((segment) => runner(k6, one, at.directory, tar, part(segment))));
  };
  const three = await logs(['0:1/3', '1/3:2/3', '2/3:1']);
  const one = await logs(['0:1']);
  const merge = async (files: readonly string[]) => {
    const { status, output } = await load(['merge', ...files]);
    return { status, output, requests: Number(/(\d+) requests/.exec(output)?.[1]) };
  };
  const [merged, alone] = [await merge(three), await merge(one)];
  expect([merged, alone]).toMatchObject([{ status: 0 }, { status: 0 }]);
  expect(merged.output).toMatch(/^3 parts: .*\nheld/);
  expect(merged.requests).toBeGreaterThan(100);
  expect(Math.abs(merged.requests / alone.requests - 1)).toBeLessThan(0.05);

  const says = (status: number, text: string) => ({ status, output: expect.stringContaining(text) });
  const [first, second] = three as [string, string];
  expect(await merge(three.slice(1))).toMatchObject(says(3, '2 of 3 parts'));
  expect(await merge([first, first, second])).toMatchObject(says(2, 'twice'));
  expect(await merge([first, second, one[0]!])).toMatchObject(says(2, 'not of one run'));
});
