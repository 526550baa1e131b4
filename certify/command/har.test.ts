/** HAR files: written without secrets, and judged from the file alone. */
import { writeFile } from 'node:fs/promises';
import { expect } from '@playwright/test';
import type { RequirementId } from '../../engine/requirements.ts';
import { createRedactor } from '../../engine/run/evidence/redact.ts';
import { secretsOf, type Target } from '../../engine/target/target.ts';
import { answers, pageText } from '../../reference-server/run/alter.ts';
import type { ServerOptions } from '../../reference-server/run/start.ts';
import { test, type World } from '../../reference-server/testing.ts';
import { GROUPS } from '../../reference-server/variants/all.ts';
import { combined } from '../../reference-server/variants/variant.ts';
import { beginOf, entryOf, harText, judgeRecording, readHar, targetOfRecording } from './har.ts';
import type { Recording } from './har.ts';
import { certifyServer, failedOf, saidOf } from '../proof/faults.ts';
import type { Report } from '../report/report.ts';

interface Entry {
  readonly response: { readonly content: { readonly text: string } };
}

async function reread(entries: readonly object[]): Promise<Recording> {
  const file = test.info().outputPath('run.har');
  await writeFile(file, harText(entries));
  return readHar(file);
}

const judged = (recording: Recording): Promise<Report> =>
  judgeRecording(recording, targetOfRecording(recording), {});

/** Certifies a server; returns the entries that its HAR file would have. */
async function record(world: World, server: ServerOptions, only: readonly RequirementId[]) {
  const entries: Entry[] = [];
  let target: Target | undefined;
  let redactor = createRedactor([]);
  const { requests } = await certifyServer(world, server, 'full', {
    ...{ runs: 1, only },
    onExchange: (exchange) => entries.push(entryOf(exchange, redactor) as Entry),
    change: (of) => {
      redactor = createRedactor(secretsOf(of));
      return (target = of);
    },
  });
  return { entries, requests, target: target! };
}

test('judges recorded traffic without secrets', async ({ small }) => {
  const server = pageText('"links":{}', '"links":{"next":null}');
  const { entries, requests, target } = await record(small, server, ['2.1-scope', '4.2-r1-zero-width']);
  // secrets.test.ts searches them for secrets.
  expect(entries).toHaveLength(requests);
  const recording = await reread(entries);
  expect(recording).toMatchObject({ baseUrl: target.baseUrl, authUrl: target.authUrl });
  const require: Target['require'] = ['events'];
  const report = await judgeRecording(recording, { ...targetOfRecording(recording), require }, {});
  expect([report.verdict, report.requests, report.required]).toEqual(['non-conformant', 0, require]);
  expect(failedOf(report).join()).toMatch(/^2\.4-next-absent: /);
  expect(saidOf(report, '5-missing')).toMatch(/^untested/);
});

test('recorded answers of a gateway or a guard in front break no requirement', async ({ small }) => {
  const { server = {} } = combined([
    ...GROUPS['behind a gateway']!,
    ...GROUPS['with a gateway for odd paths']!,
  ]);
  const { entries } = await record(small, server, ['5-missing', '5-forbidden', '7.2-invalid_time_range']);
  const recording = await reread(entries);
  const forbidden = recording.exchanges.find(({ status }) => status === 403)!;
  const byGuard = { ...forbidden, text: '<h1>Blocked</h1>', json: undefined };
  const report = await judged({ ...recording, exchanges: [...recording.exchanges, byGuard] });
  expect(failedOf(report)).toEqual([]);
  expect(saidOf(report, '7.2-body')).toBe('pass');
});

test('bodies that the recorder left out or cut short break no requirement', async ({ small }) => {
  const { entries } = await record(small, {}, ['4.2-success', '2.4-items', '7.1-invalid_scope']);
  const altered = entries.flatMap(({ response: { content, ...response }, ...entry }) =>
    [undefined, '', content.text.slice(0, -1), content.text].map((text) => ({
      ...entry,
      response: { ...response, content: { ...content, text } },
    })),
  );
  const recording = await reread(altered);
  // Only the copies with a whole body are read, and only those of requests for the service's own addresses.
  expect(recording.exchanges).toHaveLength((await reread(entries)).exchanges.length);
  const report = await judged(recording);
  expect(failedOf(report)).toEqual([]);
  expect(saidOf(report, '2.4-items')).toBe('pass');
});

test('judges an empty body that the server sent', async ({ small }) => {
  const emptied = answers((answer) => (answer.status === 200 ? { ...answer, body: '' } : answer));
  const { entries } = await record(small, emptied, ['4.2-success', '2.4-items']);
  expect(failedOf(await judged(await reread(entries))).join()).toContain('2.1-');
});

test('an empty body that a proxy sent in place of one breaks no requirement', async ({ small }) => {
  const { entries } = await record(small, {}, ['4.2-success', '7.1-invalid_scope']);
  const { exchanges, ...addresses } = await reread(entries);
  const emptied = exchanges.map((exchange) => ({
    ...exchange,
    headers: exchange.headers.filter(([name]) => name !== 'content-length'),
    text: '',
    json: undefined,
  }));
  expect(failedOf(await judged({ ...addresses, exchanges: [...emptied, ...exchanges] }))).toEqual([]);
});

const TENANT = '1b9e2c40-0000-4000-8000-000000000001';
const ADDRESS = `https://api.example/v1/tenants/${TENANT}/screenings`;

/** A recorded answer to a request for a page; `a` is the client's token. */
const entry = (startedDateTime: string, status: number, text: string, { token = 'a', link = '' } = {}) => ({
  startedDateTime,
  request: {
    method: 'GET',
    url: `${ADDRESS}?from=2026-03-01T00%3A00%3A00Z&to=2026-03-02T00%3A00%3A00Z`,
    headers: [{ name: 'Authorization', value: `Bearer ${token}` }],
  },
  response: {
    status,
    headers: [
      { name: 'content-type', value: 'application/json' },
      { name: 'retry-after', value: '1' },
      { name: 'link', value: link },
    ],
    content: { size: text.length, mimeType: 'application/json', text },
  },
});

test('a recording does not show whether a testTime was corrected, or how a raw + is read', async () => {
  const entries = ['08', '09'].map((hour) => {
    const item = { id: 1, tenantId: TENANT, testTime: `2026-03-01T${hour}:00:00+01:00` };
    const next = `${ADDRESS}?from=${item.testTime}&to=2026-03-02T01:00:00+01:00&from_id=1`;
    const text = JSON.stringify({ items: [item], links: { next } });
    return entry(`2026-03-01T${hour}:30:00Z`, 200, text, { link: `<${next}>; rel="next"` });
  });
  const report = await judged(await reread(entries));
  expect(failedOf(report)).toEqual([]);
  expect(saidOf(report, '2.3-id-stable')).toMatch(/^untested/);
});

const PAGE = '{"items":[],"links":{}}';
const UNAUTHENTICATED = '{"code":"unauthenticated"}';
const HTML = '<h1>Service Unavailable</h1>';
/** A rejection of a gateway, in its own words. */
const MANY = '{"message":"Too many requests"}';

/** Judges answers that a client got at one address, one a second. */
async function failedOfAnswers(
  ...answers: readonly (readonly [status: number, text: string, token?: string])[]
): Promise<string> {
  const entries = answers.map(([status, text, token], second) =>
    entry(`2026-03-01T08:30:${String(second).padStart(2, '0')}Z`, status, text, { token }),
  );
  return failedOf(await judged(await reread(entries))).join();
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

test('reads a long recording, and one with an entry without a URL', async () => {
  expect(beginOf(Array.from({ length: 200_000 }, (_, startedAtMs) => ({ startedAtMs })))).toBe(0);
  const { request, ...rest } = entry('2026-03-01T08:30:00Z', 200, PAGE);
  const { exchanges } = await reread(
    ['', request.url].map((url) => ({ ...rest, request: { ...request, url } })),
  );
  expect(exchanges).toHaveLength(1);
});

test('rejects a file that is not HAR with one line', async () => {
  await expect(reread([])).rejects.toThrow('contains no request to the service');
  const file = test.info().outputPath('a.har');
  await writeFile(file, '{"log":{}}');
  await expect(readHar(file)).rejects.toThrow('is not a HAR file: log.entries:');
});
