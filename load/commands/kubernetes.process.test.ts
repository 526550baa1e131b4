/** Runs the pods of a cluster as processes on this machine. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from '@playwright/test';
import { byTurns, FULL } from '../../fixtures/own-tests/tiers.ts';
import type { ScenarioSummary } from '../k6/lib/summary.ts';
import { type Merged, mergeParts } from './merge.ts';
import { K6_OFFLINE } from '../run/k6-run.ts';
import { load, openSession, OPTIONS, setting, test } from '../zoo/setting.ts';
import { refuseLoopback, type testRunOf, writeKubernetes } from './write.ts';

const run = promisify(execFile);

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

for (const scenario of ['smoke', 'token'] as const)
  test(
    `kubernetes: writes a TestRun and a runnable archive of ${scenario}, without secrets`,
    byTurns(scenario, 2),
    async ({ k6 }) => {
      await using at = await setting({ clients: 2 });
      const session = await openSession(k6, at.server.target, { slo: { p99Ms: 9000, errorRate: 0.001 } });
      const options = { ...OPTIONS, rate: 10, duration: 1 };
      const files = await writeKubernetes(scenario, session, options, at.directory, 3);
      const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')));
      const testRun = JSON.parse(texts[1]!) as ReturnType<typeof testRunOf>;
      expect(testRun).toMatchObject({ kind: 'TestRun', spec: { parallelism: 3 } });
      expect(testRun.metadata.name).toMatch(new RegExp(`^screenings-${scenario}-[0-9a-f]{8}$`));
      expect(testRun.spec.runner).toMatchObject({
        automountServiceAccountToken: 'false',
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
        containerSecurityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      });
      expect(() => refuseLoopback(at.server.target)).toThrow('unreachable for the cluster');

      const { binaryData } = JSON.parse(texts[0]!) as { binaryData: { 'kit.tar': string } };
      const archive = Buffer.from(binaryData['kit.tar'], 'base64');
      for (const text of [...texts, archive.toString('latin1')]) expect(text.includes('c0ffee')).toBe(false);
      expect(archive.includes('eyJ')).toBe(false);
      const tar = join(at.directory, 'kit.tar');
      await writeFile(tar, archive);
      const { stdout } = await run(k6, ['run', '--quiet', tar], {
        env: { PATH: process.env['PATH'], HOME: at.directory, ...K6_OFFLINE, ...session.prepared.env },
      });
      const { shared, ...summary } = JSON.parse(
        stdout.split('\n').find((line) => line.startsWith('{'))!,
      ) as ScenarioSummary;
      const merged = mergeParts([{ ...summary, shared: { ...shared!, parts: 1 } }]);
      expect(merged).toMatchObject({ held: true, errorRate: 0 });
      expect(merged.requests).toBeGreaterThan(5);
    },
  );

test(
  'kubernetes: three runners, started paused like by the operator, merge to the result of one',
  FULL,
  async ({ k6 }) => {
    test.slow();
    await using at = await setting({
      service: { workers: 64, serviceMs: 21, distribution: 'deterministic' },
    });
    const options = { ...OPTIONS, rate: 60, duration: 3 };
    // One seed gives the same arrivals for any number of runners.
    const open = () =>
      openSession(k6, at.server.target, { slo: { p99Ms: 5000, errorRate: 0.001 }, pageSize: 10, seed: 5 });
    const { env } = (await open()).prepared;
    const written = async (parallelism: number): Promise<string> => {
      const files = await writeKubernetes('smoke', await open(), options, at.directory, parallelism);
      const { binaryData } = JSON.parse(await readFile(files[0]!, 'utf8')) as {
        binaryData: { 'kit.tar': string };
      };
      const tar = join(at.directory, `kit-${parallelism}.tar`);
      await writeFile(tar, Buffer.from(binaryData['kit.tar'], 'base64'));
      return tar;
    };
    const sequence = '0,1/3,2/3,1';
    const runners = async (tar: string, segments: readonly string[]): Promise<string[]> => {
      const started = await Promise.all(
        segments.map(async (segment) => {
          const address = `127.0.0.1:${await freePort()}`;
          const flags = ['run', '--quiet', '--log-format=raw', '--paused', `--address=${address}`];
          const parts =
            segments.length > 1
              ? [`--execution-segment=${segment}`, `--execution-segment-sequence=${sequence}`]
              : [];
          const child = spawn(k6, [...flags, ...parts, tar], {
            env: { PATH: process.env['PATH'], HOME: at.directory, ...K6_OFFLINE, ...env },
          });
          let output = '';
          for (const stream of [child.stdout, child.stderr])
            stream.on('data', (piece: Buffer) => (output += piece.toString()));
          const ended = new Promise<string>((done) => child.on('close', () => done(output)));
          const status = async (init?: RequestInit) => fetch(`http://${address}/v1/status`, init);
          await expect.poll(async () => (await status().catch(() => undefined))?.ok).toBe(true);
          return { status, ended };
        }),
      );
      // Like the operator's starter.
      const body = JSON.stringify({ data: { attributes: { paused: false }, id: 'default', type: 'status' } });
      await Promise.all(started.map(({ status }) => status({ method: 'PATCH', body })));
      const outputs = await Promise.all(started.map(({ ended }) => ended));
      return Promise.all(
        outputs.map(async (output, index) => {
          const log = join(at.directory, `runner-${segments.length}-${index}.log`);
          await writeFile(log, output);
          return log;
        }),
      );
    };
    const three = await runners(await written(3), ['0:1/3', '1/3:2/3', '2/3:1']);
    const one = await runners(await written(1), ['0:1']);
    const sum = join(at.directory, 'sum.json');
    const whole = join(at.directory, 'whole.json');
    const says = (status: number, text: string) => ({ status, output: expect.stringContaining(text) });
    expect(await load(['merge', ...three, '--output', sum])).toMatchObject(says(0, 'held'));
    expect((await load(['merge', ...one, '--output', whole])).status).toBe(0);
    const [merged, alone] = await Promise.all(
      [sum, whole].map(async (file) => JSON.parse(await readFile(file, 'utf8')) as Merged),
    );
    expect(merged!.parts).toBe(3);
    expect(merged!.requests).toBeGreaterThan(100);
    expect(Math.abs(merged!.requestsPerSecond / alone!.requestsPerSecond - 1)).toBeLessThan(0.05);

    expect(await load(['merge', ...three.slice(1)])).toMatchObject(says(3, '2 of 3 parts'));
    const [first, second] = three as [string, string];
    expect(await load(['merge', first, first, second])).toMatchObject(says(2, 'twice'));
    expect(await load(['merge', first, second, one[0]!])).toMatchObject(says(2, 'not of one run'));
  },
);
