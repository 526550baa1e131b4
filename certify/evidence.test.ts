/** Runs the commands of a report in a shell: they must reproduce the failures. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from '@playwright/test';
import { byTurns } from '../fixtures/own-tests/tiers.ts';
import { answers } from '../reference-server/run/alter.ts';
import { FAULTS } from '../reference-server/faults/all.ts';
import { certifyFault, targetFor } from './proof/faults.ts';
import { test } from '../reference-server/faults/testing.ts';
import { startServer } from '../reference-server/run/start.ts';
import { SPECS } from '../specs/all.ts';
import { certify } from './certify.ts';

const TITLE = 'every curl command repeats the request of the kit and receives the reported answer';
test(TITLE, byTurns(TITLE, 2), async ({ small: { database, provisioned } }) => {
  // All checks, and then every command.
  test.setTimeout(400_000);
  const asked: string[] = [];
  const teapot = answers((answer, { method, path, headers, body }) => {
    const parts = [method, path, headers.authorization ?? '', headers['x-gateway-key'], String(body)];
    // Masks tokens, which differ between requests.
    asked.push(parts.join(' ').replace(/[\w-]{20,}(?=\.|$| |&)/g, '…'));
    return answer.status >= 400 ? { ...answer, status: 418 } : answer;
  });
  await using server = await startServer(database, provisioned, teapot);
  const target = await targetFor(server, 'full');
  const headers = { 'x-gateway-key': 'gateway key' };
  const report = await certify({ ...target, headers }, { checks: SPECS, seed: 1 });
  const askedByKit = new Set(asked);

  const { primary, ...others } = target.clients;
  const env = {
    ...process.env,
    ...Object.fromEntries(
      Object.entries(others).map(([name, { clientSecret }]) => [`SECRET_OF_${name}`, clientSecret]),
    ),
    SCREENINGS_CLIENT_SECRET: primary.clientSecret,
    EXPIRED_TOKEN: target.expiredToken,
    // Signed with a key of the kit, so the value does not matter here.
    FORGED_TOKEN: ['a', 'b', 'c'].map((letter) => letter.repeat(30)).join('.'),
    X_GATEWAY_KEY: headers['x-gateway-key'],
  };
  const commands = report.requirements.flatMap(({ failures }) => failures.map(({ curl }) => curl));
  expect(commands.length).toBeGreaterThan(40);
  const script = [
    ...report.tokenCommands,
    ...commands.map((curl) => `${curl} -s -o /dev/null -w '%{http_code}\\n'`),
  ];
  asked.length = 0;
  const { stdout } = await promisify(execFile)('bash', ['-c', script.join('\n')], { env });
  expect(stdout.match(/^HTTP.*|^\d+$/gm)).toEqual(commands.map(() => '418'));
  expect(asked.filter((one) => !askedByKit.has(one))).toEqual([]);
});

test('a missing rejection is reported with the smallest request that shows it', async ({ small }) => {
  const fault = FAULTS.find(({ name }) => name === 'pageSize read up to the first letter')!;
  const report = await certifyFault(small, fault, 'full', ['7.2-invalid_request']);
  const { failures } = report.requirements.find(({ id }) => id === '7.2-invalid_request')!;
  expect(failures.length).toBeGreaterThan(0);
  for (const { request } of failures) {
    expect(request).toContain(small.provisioned.set.tenants[0]!.tenantId);
    expect(request).not.toContain('a new one');
    expect(new URL(request.split(/[ ,]/)[1]!).searchParams.size).toBeLessThanOrEqual(4);
  }
});
