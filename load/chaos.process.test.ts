/** soak --chaos: outages under load; every page is compared with the stored screenings. No assertions on timing. */
import { FULL } from '../fixtures/own-tests/tiers.ts';
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { Oracle } from '../engine/data/oracle.ts';
import { both, middleware, pages } from '../reference-server/run/alter.ts';
import { changes } from './run/target.ts';
import type { SimulatedSettings } from './zoo/server.ts';
import { load, setting, test } from './zoo/setting.ts';

test.describe.configure({ mode: 'parallel' });
test.beforeEach(() => test.slow());

const FLAGS = ['--chaos', '--rate', '15', '--page-size', '40', '--slo-p99', '9000'];

interface Outage {
  readonly isFailing: () => boolean;
  readonly hasFailed: () => boolean;
}

type Fault = NonNullable<SimulatedSettings['fault']>;

/** Runs a server that fails while a file exists. */
async function chaos(
  fault: (outage: Outage) => Fault,
  meanwhile: (child: ChildProcess, outage: Outage) => void = () => {},
  duration = '15s',
) {
  let mark = '';
  let failed = false;
  const isFailing = (): boolean => {
    const now = existsSync(mark);
    failed ||= now;
    return now;
  };
  const outage = { isFailing, hasFailed: () => failed };
  await using at = await setting({ screenings: 1500, fault: fault(outage) });
  mark = join(at.directory, 'failing');
  const commands = { start: `touch ${mark}`, stop: `rm -f ${mark}` };
  const target = JSON.stringify({ ...at.server.target, fault: commands });
  await writeFile(join(at.directory, 'target.json'), target);
  const flags = [...FLAGS, '--duration', duration, ...at.flags];
  const running = load(['soak', ...flags], {}, (child) => meanwhile(child, outage));
  return { ...(await running), result: await at.result('soak'), stillFails: isFailing() };
}

const failing = ({ isFailing }: Pick<Outage, 'isFailing'>, body = '{"code":"service_unavailable"}'): Fault =>
  middleware(() => async (request, next) => {
    const answer = await next(request);
    if (!isFailing() || request.path.startsWith('/oauth')) return answer;
    return { status: 503, headers: [['content-type', 'application/json']], body };
  });

test('holds for a server that fails as documented and recovers', FULL, async () => {
  const { status, output, result, stillFails } = await chaos((outage) => failing(outage));
  expect(result, output).toMatchObject({ void: false, conformant: true, held: true });
  expect(output).toMatch(/\d outages? of .*503 × \d+; served again after/);
  expect(output).toMatch(/pages compared with the \d+ screenings stored/);
  expect([status, stillFails]).toEqual([0, false]);
});

test('reports a lost screening and an HTML error', FULL, async () => {
  const { status, result } = await chaos(({ isFailing, hasFailed }) =>
    both(
      pages(({ items }) => hasFailed() && items.length > 2 && items.splice(1, 1)),
      failing({ isFailing }, '<h1>503</h1>'),
    ),
  );
  expect(result).toMatchObject({ void: false, conformant: false });
  const ids = result.findings.map(({ id }) => id);
  expect(ids).toEqual(expect.arrayContaining(['7.2-body', '4.2-window', '4.2-repeatable']));
  expect(status).toBe(1);
});

test('reports 7.2-server-error for a server that does not recover', FULL, async () => {
  const { status, result } = await chaos(({ isFailing, hasFailed }) =>
    failing({ isFailing: () => isFailing() || hasFailed() }),
  );
  expect(result).toMatchObject({ void: false, conformant: false });
  expect(result.findings.map(({ id }) => id)).toEqual(['7.2-server-error']);
  expect(status).toBe(1);
});

test('ends the outage and reports its results as void when it is interrupted', FULL, async () => {
  const { status, output, result, stillFails } = await chaos(
    (outage) => failing(outage),
    (child, { hasFailed }) => {
      const poll = setInterval(() => {
        if (hasFailed()) (clearInterval(poll), child.kill('SIGINT'));
      }, 50);
      child.once('exit', () => clearInterval(poll));
    },
    // Only the interruption ends it in time.
    '10m',
  );
  expect([status, stillFails]).toEqual([130, false]);
  expect(output).toMatch(/VOID: interrupted after \d+ s/);
  expect(result.void).toContain('interrupted');
  expect(result.requests).toBeGreaterThan(0);
});

test('is void if the fault commands make no request fail', FULL, async () => {
  const { status, result } = await chaos(() => ({}));
  expect(result.void).toContain('made no request fail');
  expect(status).toBe(3);
});

test('distinguishes lost from new screenings', () => {
  const of = (...ids: bigint[]) => ({
    window: { from: '', to: '' },
    oracles: [Oracle.of(ids.map((id) => ({ at: { seconds: 1n, fraction: '' }, testTime: '', id })))],
  });
  expect(changes(of(1n, 2n), of(1n, 2n))).toEqual({ lost: [], added: false });
  expect(changes(of(1n, 2n), of(2n, 3n))).toMatchObject({ lost: [{ id: 1n }], added: true });
});
