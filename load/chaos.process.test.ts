/** soak --chaos: outages under load; every page is compared with the stored screenings. No assertions on timing. */
import { FULL } from '../fixtures/own-tests/tiers.ts';
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { temporaryFolder } from '../engine/files.ts';
import { middleware, storedPages } from '../reference-server/run/alter.ts';
import { openDatabase } from '../reference-server/store/database.ts';
import { defaultProvisioning, loadProvisioning } from '../reference-server/run/provisioning.ts';
import { startServer, type ServerOptions } from '../reference-server/run/start.ts';
import type { LoadResult } from './result.ts';
import { changes } from './run/target.ts';
import { load, test } from './zoo/setting.ts';

test.describe.configure({ mode: 'parallel' });

const SHORT = ['--chaos', '--duration', '15s', '--rate', '15', '--page-size', '40', '--slo-p99', '9000'];

interface Outage {
  readonly isFailing: () => boolean;
  readonly hasFailed: () => boolean;
}

/** Runs a server that fails while a file exists. */
async function chaos(
  options: (outage: Outage) => ServerOptions,
  meanwhile: (child: ChildProcess, outage: Outage) => void = () => {},
): Promise<{ status: number; output: string; result: LoadResult; stillFails: boolean }> {
  await using folder = await temporaryFolder('load-test');
  const directory = folder.path;
  const mark = join(directory, 'failing');
  let failed = false;
  const isFailing = (): boolean => {
    const now = existsSync(mark);
    failed ||= now;
    return now;
  };
  const outage = { isFailing, hasFailed: () => failed };
  await using database = await openDatabase('embedded');
  await using provisioned = await loadProvisioning(database, defaultProvisioning({ count: 1500 }));
  await using server = await startServer(database, provisioned, options(outage));
  const { baseUrl, authUrl, clients } = server.target();
  const fault = { start: `touch ${mark}`, stop: `rm -f ${mark}` };
  const target = join(directory, 'target.json');
  await writeFile(target, JSON.stringify({ baseUrl, authUrl, clients, fault }));
  const flags = ['soak', ...SHORT, '--target', target, '--report-dir', directory];
  const { status, output } = await load(flags, {}, (child) => meanwhile(child, outage));
  const result = JSON.parse(await readFile(join(directory, 'load-soak.json'), 'utf8')) as LoadResult;
  return { status, output, result, stillFails: isFailing() };
}

const failing = (
  { isFailing }: Pick<Outage, 'isFailing'>,
  body = '{"code":"service_unavailable"}',
): ServerOptions =>
  middleware(() => async (request, next) => {
    const answer = await next(request);
    if (!isFailing() || request.path.startsWith('/oauth')) return answer;
    return { status: 503, headers: [['content-type', 'application/json']], body };
  });

test('holds for a server that fails as documented and recovers', FULL, async () => {
  test.slow();
  const { status, output, result, stillFails } = await chaos((outage) => failing(outage));
  expect(result, output).toMatchObject({ void: false, conformant: true, held: true });
  expect(output).toMatch(/\d outages? of .*503 × \d+; served again after/);
  expect(output).toMatch(/pages compared with the \d+ screenings stored/);
  expect([status, stillFails]).toEqual([0, false]);
});

test('reports a lost screening and an HTML error', FULL, async () => {
  test.slow();
  const { status, result } = await chaos(({ isFailing, hasFailed }) => {
    const { wrapParts } = storedPages(() => async (query, ask) => {
      const page = await ask(query);
      return hasFailed() && page.items.length > 2 ? { ...page, items: page.items.toSpliced(1, 1) } : page;
    });
    return { ...failing({ isFailing }, '<h1>503</h1>'), wrapParts: wrapParts! };
  });
  expect(result).toMatchObject({ void: false, conformant: false });
  const ids = result.findings.map(({ id }) => id);
  expect(ids).toEqual(expect.arrayContaining(['7.2-body', '4.2-window', '4.2-repeatable']));
  expect(status).toBe(1);
});

test('reports 7.2-server-error for a server that does not recover', FULL, async () => {
  test.slow();
  const { status, result } = await chaos(({ isFailing, hasFailed }) =>
    failing({ isFailing: () => isFailing() || hasFailed() }),
  );
  expect(result).toMatchObject({ void: false, conformant: false });
  expect(result.findings.map(({ id }) => id)).toEqual(['7.2-server-error']);
  expect(status).toBe(1);
});

test('ends the outage when it is interrupted', FULL, async () => {
  test.slow();
  const { status, stillFails } = await chaos(
    (outage) => failing(outage),
    (child, { hasFailed }) => {
      const poll = setInterval(() => {
        if (hasFailed()) (clearInterval(poll), child.kill('SIGINT'));
      }, 50);
      child.once('exit', () => clearInterval(poll));
    },
  );
  expect([status, stillFails]).toEqual([130, false]);
});

test('is void if the fault commands make no request fail', FULL, async () => {
  test.slow();
  const { status, result } = await chaos(() => ({}));
  expect(result.void).toContain('made no request fail');
  expect(status).toBe(3);
});

test('distinguishes lost from new screenings', () => {
  const of = (...ids: bigint[]) => ({
    window: { from: '', to: '' },
    items: [ids.map((id) => ({ at: { seconds: 1n, fraction: '' }, testTime: '', id }))],
  });
  expect(changes(of(1n, 2n), of(1n, 2n))).toEqual({ lost: [], added: false });
  expect(changes(of(1n, 2n), of(2n, 3n))).toMatchObject({ lost: [{ id: 1n }], added: true });
});
