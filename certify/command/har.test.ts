/** HAR files: written without secrets, and judged from the file alone. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { createRedactor } from '../../engine/run/evidence/redact.ts';
import { secretsOf, type Target } from '../../engine/target/target.ts';
import { answers, pageText } from '../../reference-server/run/alter.ts';
import { test } from '../../reference-server/testing.ts';
import { GROUPS } from '../../reference-server/variants/all.ts';
import { combined } from '../../reference-server/variants/variant.ts';
import { judgeRecording, targetOfRecording, entryOf, harText, readHar } from './har.ts';
import { certifyServer, failedOf, resultOf } from '../proof/faults.ts';

let directory: string;
test.beforeEach(() => {
  directory = test.info().outputPath();
});

test('judges recorded traffic without secrets', async ({ small }) => {
  let target: Target | undefined;
  let redactor = createRedactor([]);
  const entries: object[] = [];
  const { requests } = await certifyServer(small, pageText('"links":{}', '"links":{"next":null}'), 'full', {
    ...{ runs: 1, only: ['2.1-scope', '4.2-r1-zero-width'] },
    onExchange: (exchange) => entries.push(entryOf(exchange, redactor)),
    change: (of) => {
      redactor = createRedactor(secretsOf(of));
      return (target = of);
    },
  });
  expect(entries).toHaveLength(requests);
  const text = harText(entries);
  for (const secret of secretsOf(target!)) expect(text).not.toContain(secret);
  expect(text).not.toMatch(/eyJ[\w-]+\.eyJ/);

  const file = join(directory, 'run.har');
  await writeFile(file, text);
  const recording = await readHar(file);
  expect(recording).toMatchObject({ baseUrl: target!.baseUrl, authUrl: target!.authUrl });
  const report = await judgeRecording(recording, targetOfRecording(recording), {});
  expect([report.verdict, report.requests]).toEqual(['non-conformant', 0]);
  expect(failedOf(report).join()).toMatch(/^2\.4-next-absent: /);
  expect(resultOf(report, '5-missing').status).toBe('untested');
});

test('recorded answers of a gateway or a guard in front break no requirement', async ({ small }) => {
  const { server = {} } = combined([
    ...GROUPS['behind a gateway']!,
    ...GROUPS['with a gateway for odd paths']!,
  ]);
  const redactor = createRedactor([]);
  const entries: object[] = [];
  await certifyServer(small, server, 'full', {
    ...{ runs: 1, only: ['5-missing', '5-forbidden', '7.2-invalid_time_range'] },
    onExchange: (exchange) => entries.push(entryOf(exchange, redactor)),
  });
  const file = join(directory, 'run.har');
  await writeFile(file, harText(entries));
  const recording = await readHar(file);
  const forbidden = recording.exchanges.find(({ status }) => status === 403)!;
  const byGuard = { ...forbidden, text: '<h1>Blocked</h1>', json: undefined };
  const exchanges = [...recording.exchanges, byGuard];
  const report = await judgeRecording({ ...recording, exchanges }, targetOfRecording(recording), {});
  expect(failedOf(report)).toEqual([]);
  expect(resultOf(report, '7.2-body').status).toBe('pass');
});

test('bodies that the recorder left out or cut short break no requirement', async ({ small }) => {
  const redactor = createRedactor([]);
  const entries: { response: { content: { text: string } } }[] = [];
  await certifyServer(small, {}, 'full', {
    ...{ runs: 1, only: ['4.2-success', '2.4-items', '7.1-invalid_scope'] },
    onExchange: (exchange) => entries.push(entryOf(exchange, redactor) as (typeof entries)[number]),
  });
  const altered = entries.flatMap(({ response: { content, ...response }, ...entry }) =>
    [{ text: undefined }, { text: '' }, { text: content.text.slice(0, -1) }, { text: content.text }].map(
      ({ text }) => ({ ...entry, response: { ...response, content: { ...content, text } } }),
    ),
  );
  const file = join(directory, 'run.har');
  await writeFile(file, harText(altered));
  const recording = await readHar(file);
  expect(recording.exchanges).toHaveLength(entries.length);
  const report = await judgeRecording(recording, targetOfRecording(recording), {});
  expect(failedOf(report)).toEqual([]);
  expect(resultOf(report, '2.4-items').status).toBe('pass');
});

test('judges an empty body that the server sent', async ({ small }) => {
  const redactor = createRedactor([]);
  const entries: object[] = [];
  await certifyServer(
    small,
    answers((answer) => (answer.status === 200 ? { ...answer, body: '' } : answer)),
    'full',
    {
      ...{ runs: 1, only: ['4.2-success', '2.4-items'] },
      onExchange: (exchange) => entries.push(entryOf(exchange, redactor)),
    },
  );
  const file = join(directory, 'run.har');
  await writeFile(file, harText(entries));
  const recording = await readHar(file);
  const report = await judgeRecording(recording, targetOfRecording(recording), {});
  expect(failedOf(report).join()).toContain('2.1-');
});

test('a recording does not show whether a testTime was corrected, or how a raw + is read', async () => {
  const file = join(directory, 'run.har');
  const tenant = '1b9e2c40-0000-4000-8000-000000000001';
  const url = `https://api.example/v1/tenants/${tenant}/screenings?from=2026-03-01T00%3A00%3A00Z&to=2026-03-02T00%3A00%3A00Z`;
  const entries = ['08', '09'].map((hour) => {
    const item = { id: 1, tenantId: tenant, testTime: `2026-03-01T${hour}:00:00+01:00` };
    const next = `${url.split('?')[0]}?from=${item.testTime}&to=2026-03-02T01:00:00+01:00&from_id=1`;
    const text = JSON.stringify({ items: [item], links: { next } });
    const headers = [
      { name: 'content-type', value: 'application/json' },
      { name: 'link', value: `<${next}>; rel="next"` },
    ];
    return {
      startedDateTime: `2026-03-01T${hour}:30:00Z`,
      request: { method: 'GET', url, headers: [] },
      response: { status: 200, headers, content: { size: text.length, mimeType: 'application/json', text } },
    };
  });
  await writeFile(file, harText(entries));
  const recording = await readHar(file);
  const report = await judgeRecording(recording, targetOfRecording(recording), {});
  expect(failedOf(report)).toEqual([]);
  expect(resultOf(report, '2.3-id-stable').status).toBe('untested');
});

const PAGE = '{"items":[],"links":{}}';
const UNAUTHENTICATED = '{"code":"unauthenticated"}';
const HTML = '<h1>Service Unavailable</h1>';
/** A rejection of a gateway, in its own words. */
const MANY = '{"message":"Too many requests"}';

/** Judges answers that a client got at one address, one a second; `Bearer a` is its token. */
async function failedOfAnswers(
  ...answers: readonly (readonly [status: number, text: string, token?: string])[]
): Promise<string> {
  const url =
    'https://api.example/v1/tenants/1b9e2c40-0000-4000-8000-000000000001/screenings?from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:00Z';
  const entries = answers.map(([status, text, token = 'a'], second) => ({
    startedDateTime: `2026-03-01T08:30:${String(second).padStart(2, '0')}Z`,
    request: { method: 'GET', url, headers: [{ name: 'Authorization', value: `Bearer ${token}` }] },
    response: {
      status,
      headers: [
        { name: 'content-type', value: 'application/json' },
        { name: 'retry-after', value: '1' },
      ],
      content: { size: text.length, mimeType: 'application/json', text },
    },
  }));
  const file = join(directory, 'run.har');
  await writeFile(file, harText(entries));
  const recording = await readHar(file);
  return failedOf(await judgeRecording(recording, targetOfRecording(recording), {})).join();
}

test('a recorded failure of a request that was served later is judged as live: not', async () => {
  expect(await failedOfAnswers([503, HTML], [500, MANY], [200, PAGE])).toBe('');
  expect(await failedOfAnswers([200, PAGE], [503, HTML])).toMatch(/^7\.2-body: .*got 503/);
  expect(await failedOfAnswers([500, HTML, 'b'], [200, PAGE])).toMatch(/^7\.2-body: .*got 500/);
});

test('a recorded 429 without rate_limited is judged as live: not after five rejected tokens', async () => {
  const rejected = Array.from({ length: 5 }, () => [401, UNAUTHENTICATED, 'b'] as const);
  expect(await failedOfAnswers([200, PAGE], ...rejected, [429, MANY])).toBe('');
  expect(await failedOfAnswers([200, PAGE], [429, MANY])).toMatch(/7\.2-rate_limited: .*got 429/);
});

test('rejects a file that is not HAR with one line', async () => {
  const file = join(directory, 'a.har');
  await writeFile(file, '{"log":{"entries":[]}}');
  await expect(readHar(file)).rejects.toThrow('contains no request to the service');
  await writeFile(file, '{"log":{}}');
  await expect(readHar(file)).rejects.toThrow('is not a HAR file: log.entries:');
});
