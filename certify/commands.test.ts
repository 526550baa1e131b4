/** Commands of a report, pasted into a shell, repeat the requests, and execute no text of the server. */
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect } from '@playwright/test';
import { resolveTarget } from '../engine/target/target.ts';
import { byTurns } from '../fixtures/own-tests/tiers.ts';
import { answers } from '../reference-server/run/alter.ts';
import { test } from '../reference-server/testing.ts';
import { startServer } from '../reference-server/run/start.ts';
import { certify, selectIds } from './certify.ts';
import { html } from './render/html.ts';
import { junit } from './render/junit.ts';
import { summary } from './render/summary.ts';
import { resultsOf } from './render/of-report.ts';
import { terminal } from './render/terminal.ts';
import type { Report } from './report.ts';
import { FAULTS } from '../reference-server/faults/all.ts';
import { certifyFault, targetFor } from './proof/faults.ts';
import { SPECS } from '../specs/all.ts';

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

const LABELS = 'curl|walk|token|replay';

const entities = (text: string): string =>
  text
    .replace(/&#39;/g, "'")
    .replace(/&quot;/g, '"')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&amp;/g, '&');

/** Lines that start with the label of a command, and their continuation lines. */
function labelledCommands(text: string): string[] {
  const commands: string[] = [];
  let within = false;
  for (const line of text.split('\n')) {
    const labelled = new RegExp(`^ {0,2}(?:${LABELS}) +(.*)$`).exec(line);
    const under: RegExpExecArray | null = within ? /^ {10,12}(\S.*)$/.exec(line) : null;
    within = labelled !== null || under !== null;
    if (labelled ?? under) commands.push((labelled ?? under)![1]!);
  }
  return commands;
}

const FORMATS: Readonly<Record<string, (report: Report) => string[]>> = {
  'terminal, 60 columns': (report) =>
    labelledCommands(terminal(resultsOf(report), { color: false, columns: 60 })),
  'terminal, 80 columns': (report) =>
    labelledCommands(terminal(resultsOf(report), { color: false, columns: 80 })),
  'terminal, 200 columns': (report) =>
    labelledCommands(terminal(resultsOf(report), { color: false, columns: 200 })),
  'summary.md': (report) =>
    [...summary(resultsOf(report)).matchAll(/^(`{3,})text\n([^]*?)\n\1$/gm)].flatMap(([, , block]) =>
      labelledCommands(block!),
    ),
  'report.html': (report) =>
    [...html(resultsOf(report)).matchAll(/<div class="command"><code[^>]*>([^]*?)<\/code>/g)].map(
      ([, text]) => entities(text!),
    ),
  'junit.xml': (report) =>
    [...junit(resultsOf(report)).matchAll(/<(failure|system-out)[^>]*>([^]*?)<\/\1>/g)].flatMap(
      ([, , text]) => labelledCommands(entities(text!)),
    ),
};

const PASTED = 'commands pasted from any format repeat the requests and execute no text of the server';
test(PASTED, byTurns(PASTED), async ({ small: { database, provisioned } }) => {
  test.setTimeout(300_000);
  // Drops an item of every page with more than three, and puts hostile text into bodies, next and errors.
  const hostile = answers((answer, { path }) => {
    if (answer.status !== 200)
      return {
        ...answer,
        body: JSON.stringify({ error: HOSTILE, error_description: HOSTILE, code: HOSTILE }),
      };
    if (path.startsWith('/oauth')) return answer;
    const page = JSON.parse(String(answer.body)) as {
      items: object[];
      links: { next?: string };
      note: string;
    };
    if (page.items.length > 3) page.items.splice(2, 1);
    page.items = page.items.map((item) => ({ ...item, comment: HOSTILE }));
    if (page.links.next) page.links.next += `&note=${HOSTILE}`;
    page.note = HOSTILE;
    return {
      ...answer,
      headers: answer.headers.filter(([name]) => name !== 'link'),
      body: JSON.stringify(page),
    };
  });
  await using server = await startServer(database, provisioned, hostile);
  const { clients, baseUrl, authUrl } = server.target();
  const { clientId, clientSecret } = clients.primary;
  const target = await resolveTarget(
    { baseUrl, authUrl, name: HOSTILE, clients: { primary: { clientId, clientSecret: '${ACME_SECRET}' } } },
    { env: { ACME_SECRET: clientSecret } },
  );
  const only = selectIds(['2.4', '4.2', '5-missing', '7.1']);
  const report = await certify(target, { seed: 1, runs: 3, only, replay: 'echo replayed' });
  expect(report.verdict).toBe('non-conformant');
  const failures = report.requirements.flatMap(({ failures }) => failures);
  expect(failures.some(({ counterexample }) => counterexample?.['walk'])).toBe(true);

  const directory = test.info().outputPath();
  const env = { PATH: process.env['PATH'], ACME_SECRET: clientSecret };
  // Formats share most commands; each is pasted only once.
  const pasted = new Set<string>();
  let received = '';
  for (const [format, commandsOf] of Object.entries(FORMATS)) {
    const commands = [...new Set(commandsOf(report))];
    const kinds = ['TOKEN=$(curl', 'curl -sS -i', 'echo replayed'];
    for (const kind of kinds)
      expect(commands.filter((text) => text.startsWith(kind)).length, `${kind} in ${format}`).toBeGreaterThan(
        0,
      );
    const tokens = commands.filter((text) => text.startsWith('TOKEN='));
    expect(tokens[0]).toContain('$ACME_SECRET');
    // Every kind of request, and whole walks, which contain text of the server in each next.
    const curls = commands.filter((text) => text.startsWith('curl')).slice(0, 12);
    const walks = commands.filter((text) => text.startsWith('next=')).slice(0, 2);
    const unpasted = [...curls, ...walks].filter((text) => !pasted.has(text));
    for (const text of unpasted) pasted.add(text);
    if (unpasted.length === 0) continue;
    const { stderr, stdout } = await run('sh', ['-c', [...tokens, ...unpasted].join('\n')], {
      cwd: directory,
      env,
      maxBuffer: 1e9,
      timeout: 60_000,
    });
    expect(await readdir(directory), format).toEqual([]);
    expect(stderr, format).not.toMatch(/not found|syntax|unexpected|No such/i);
    received += stdout;
  }
  // Some formats show one failure per requirement, which need not be a walk.
  expect([...pasted].some((text) => text.startsWith('next='))).toBe(true);
  expect(received).toContain('HTTP/1.1 200');
  expect(received).toContain('{"items"');
});

const REPEATED = 'every curl command repeats the request of the kit and receives the reported answer';
test(REPEATED, byTurns(REPEATED, 2), async ({ small: { database, provisioned } }) => {
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
