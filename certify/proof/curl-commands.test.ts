/** Commands of a report, pasted into a shell, repeat the requests, and execute no text of the server. */
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect } from '@playwright/test';
import { resolveTarget } from '../../engine/target/target.ts';
import { byTurns } from '../../fixtures/own-tests/tiers.ts';
import { answers, both, nextOf, pages, withoutLink } from '../../reference-server/run/alter.ts';
import { test } from '../../reference-server/testing.ts';
import { startServer } from '../../reference-server/run/start.ts';
import { certify } from '../certify.ts';
import { resultsOf } from '../render/service-results.ts';
import { escape } from '../render/markup.ts';
import { pastable } from '../render/results.ts';
import { renderingsOf } from '../render/sample.testing.ts';
import { faultNamed } from '../../reference-server/faults/all.ts';
import { certifyFault, resultOf, targetFor } from './faults.ts';
import { SPECS } from '../../specs/all.ts';
import { selectIds } from '../../engine/requirements.ts';

const run = promisify(execFile);

/** Text that a shell would execute, within any kind of quotes. */
const HOSTILE = [
  '`touch pasted-1`',
  '$(touch pasted-2)',
  "'; touch pasted-3; '",
  '"; touch pasted-4; "',
  '\ntouch pasted-5\n',
  '\u2028touch pasted-6\r',
  '| touch pasted-7 #',
].join(' ');

const PASTED = 'pasted commands repeat the requests and execute no text of the server';
test(PASTED, byTurns(PASTED), async ({ small: { database, provisioned } }) => {
  test.setTimeout(300_000);
  // Drops an item of every page with more than three, and puts hostile text into bodies, next and errors.
  const text = JSON.stringify(HOSTILE);
  const hostile = both(
    pages((page) => {
      if (page.items.length > 3) page.items.splice(2, 1);
      page.items = page.items.map((item) => `${item.slice(0, -1)},"comment":${text}}`);
      const next = nextOf(page);
      if (next !== undefined) page.links = { next: `${next}&note=${HOSTILE}` };
      page.further = `,"note":${text}`;
      withoutLink(page);
    }),
    answers((answer) =>
      answer.status === 200
        ? answer
        : { ...answer, body: `{"error":${text},"error_description":${text},"code":${text}}` },
    ),
  );
  // Over TLS with a certificate that only the target file names.
  await using server = await startServer(database, provisioned, { ...hostile, offersHttp2: true });
  const { baseUrl, authUrl, ca, ...supplied } = server.target();
  const { clientId, clientSecret } = supplied.clients.primary;
  const clients = { primary: { clientId, clientSecret: '${ACME_SECRET}' } };
  const env = { ACME_SECRET: clientSecret };
  const target = await resolveTarget({ baseUrl, authUrl, ca, name: HOSTILE, clients }, { env });
  const only = selectIds(['2.4', '4.2', '5-missing', '7.1']);
  const options = { seed: 1, runs: 3, only, replay: 'echo replayed', pollingScale: 0.1 };
  const report = await certify(target, options);
  expect(report.verdict).toBe('non-conformant');
  const failures = report.requirements.flatMap(({ failures }) => failures);

  const { tokenCommands } = report;
  expect(tokenCommands[0]).toContain('$ACME_SECRET');
  // Every kind of request, and whole walks, which contain text of the server in each next.
  const curls = [...new Set(failures.map(({ curl }) => curl))].filter((curl) => curl.length < 4_000);
  const walks = failures.flatMap(({ counterexample }) => counterexample?.walk ?? []);
  const { badge: _, ...formats } = renderingsOf(resultsOf(report));
  const shown = report.requirements.flatMap(({ failures: [first] }) => first?.curl ?? []).slice(0, 20);
  for (const [format, rendered] of Object.entries(formats))
    for (const command of [...tokenCommands, ...shown])
      expect(
        [pastable(command), escape(pastable(command))].some((text) => rendered.includes(text)),
        format,
      ).toBe(true);
  expect(walks.length).toBeGreaterThan(0);

  const directory = test.info().outputPath();
  const { stderr, stdout } = await run('sh', ['-c', [...tokenCommands, ...curls, ...walks].join('\n')], {
    cwd: directory,
    env: { PATH: process.env['PATH'], ...env },
    maxBuffer: 1e9,
    timeout: 120_000,
  });
  expect(await readdir(directory)).toEqual([]);
  expect(stderr).not.toMatch(/not found|syntax|unexpected|No such/i);
  expect(stdout).toMatch(/^HTTP\/\S+ 200/m);
  expect(stdout).toContain('{"items"');
});

const REPEATED = 'every curl command repeats the request of the kit and receives the reported answer';
test(REPEATED, byTurns(REPEATED), async ({ small: { database, provisioned } }) => {
  // All checks, and then every command.
  test.setTimeout(400_000);
  const asked: string[] = [];
  const teapot = answers((answer, { method, path, headers, body }) => {
    const parts = [method, path, headers.authorization ?? '', headers['x-gateway-key'], String(body)];
    // Masks tokens, which differ between requests.
    asked.push(parts.join(' ').replace(/[\w-]{20,}(?=[."]|$| |&)/g, '…'));
    return answer.status >= 400 ? { ...answer, status: 418 } : answer;
  });
  await using server = await startServer(database, provisioned, teapot);
  const target = await targetFor(server, 'full');
  const headers = { 'x-gateway-key': 'gateway key' };
  const report = await certify({ ...target, headers }, { checks: SPECS, seed: 1, pollingScale: 0.1 });
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
  const fault = faultNamed('reads a pageSize up to its first letter');
  const report = await certifyFault(small, fault, 'full', ['7.2-invalid_request']);
  const { failures } = resultOf(report, '7.2-invalid_request');
  expect(failures.length).toBeGreaterThan(0);
  for (const { request } of failures) {
    expect(request).toContain(small.provisioned.set.tenants[0]!.tenantId);
    expect(request).not.toContain('a new one');
    expect(new URL(request.split(/[ ,]/)[1]!).searchParams.size).toBeLessThanOrEqual(4);
  }
});
