/** Comparison with a baseline, known failures, and the history of runs. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { changesSince, exitOnNew, readBaseline, readKnownFailures, statesOf } from './changes.ts';
import { historyHtml, keep, lastRun } from '../render/history.ts';
import { conformantReport, sampleReport } from '../render/sample.testing.ts';
import type { Report } from './report.ts';
import { test } from '../../reference-server/testing.ts';

const failures = [{ message: 'm', expected: 'e', received: 'r', request: '', response: '', curl: '' }];
const broken = { status: 'fail', checks: 1, failures } as const;
const observing = (report: Report, seen: string): Report => ({
  ...report,
  observations: [{ topic: 'unknown-tenant', question: 'q', seen: [seen] }],
});
const untested = { status: 'untested', reason: 'r' } as const;

const first = sampleReport({ '4.2-r4-order': broken, '2.1-scope': untested });
/** One regression, one fixed requirement, one no longer exercised. */
const third = sampleReport({ '4.2-window': broken, '2.3-id': untested });

test('a baseline comparison reports exactly the one regression', () => {
  const quiet = { ...first, changes: changesSince(first, first) };
  expect(quiet.changes).toMatchObject({ newlyFailing: [], newlyPassing: [], noLongerExercised: [] });
  expect(exitOnNew(quiet)).toBe(0);

  const before = observing(first, '403 forbidden');
  const loud = { ...third, changes: changesSince(before, observing(third, '404 not_found')) };
  expect(loud.changes).toEqual({
    since: first.startedAt,
    sameTarget: true,
    newlyFailing: ['4.2-window'],
    newlyPassing: ['2.1-scope', '4.2-r4-order'],
    noLongerExercised: ['2.3-id'],
    changedObservations: ['unknown-tenant: 403 forbidden before, now 404 not_found'],
  });
  expect(changesSince(before, before).changedObservations).toEqual([]);
  expect(exitOnNew(loud)).toBe(1);
});

test('a baseline that --only limited says nothing of what it excluded', () => {
  const limited = { ...first, selection: ['2.1-scope'] };
  expect(changesSince(limited, third)).toMatchObject({
    newlyFailing: ['4.2-window'],
    newlyPassing: ['2.1-scope'],
    noLongerExercised: [],
  });
  expect(historyHtml([limited, third], 'a')).toContain('<td>·</td><td class="fail">✗</td>');
});

test('exits with 3 if less was exercised than before', () => {
  const less = sampleReport({ '4.2-r4-order': broken, '2.3-id': untested, '2.1-scope': untested });
  expect(exitOnNew({ ...less, changes: changesSince(first, less) })).toBe(3);
});

test('known failures are excused until they expire or pass again', () => {
  const known = (expires: string, id = '4.2-window') =>
    statesOf([{ id, reason: 'ticket 7', expires }], third);
  const exit = (knownFailures: NonNullable<Report['knownFailures']>) =>
    exitOnNew({ ...third, knownFailures });
  expect(exit([])).toBe(1);
  expect(known(third.startedAt.slice(0, 10))[0]!.stand).toBe('failing');
  expect(exit(known('2099-01-01'))).toBe(0);
  expect(known('2020-01-01')[0]!.stand).toBe('expired');
  expect(exit(known('2020-01-01'))).toBe(1);
  expect(known('2099-01-01', '2.1-scope')[0]!.stand).toBe('passes again');
  expect(exit([...known('2099-01-01'), ...known('2099-01-01', '2.1-scope')])).toBe(3);
});

test('rejects an unusable file with one line', async () => {
  const directory = test.info().outputPath();
  const file = join(directory, 'a.json');
  for (const [content, words] of [
    ['{', /is not JSON/],
    [
      '[{"id":"4.2-windw","reason":"r","expires":"2026-01-01"}]',
      /no requirement "4.2-windw"; did you mean "4.2-window"/,
    ],
    ['[{"id":"4.2-window","reason":"r","expires":"soon"}]', /0.expires/],
    ['[{"id":"4.2-window","reason":"r"}]', /0.expires/],
  ] as const) {
    await writeFile(file, content);
    await expect(readKnownFailures(file)).rejects.toThrow(words);
  }
  await writeFile(join(directory, '2026-04-01T09-30-00-000Z.json'), '{');
  await expect(lastRun(directory)).rejects.toThrow(/^--history: .* is not JSON$/);
  await expect(readBaseline(file)).rejects.toThrow(/is not a report.json/);
  await expect(readBaseline(join(directory, 'none'))).rejects.toThrow(/--baseline: can't read .*ENOENT/);
});

test('history keeps the report of every run, compares with the latest, and draws a mark per run', async () => {
  const directory = test.info().outputPath();
  expect(await lastRun(join(directory, 'none'))).toBeUndefined();
  const runs = [conformantReport(), sampleReport()].map((report, index) => ({
    ...report,
    startedAt: `2026-04-0${index + 1}T09:30:00.000Z`,
  }));
  for (const run of runs) await keep(directory, run);
  expect((await readdir(directory)).sort()).toEqual([
    '2026-04-01T09-30-00-000Z.json',
    '2026-04-02T09-30-00-000Z.json',
    'history.html',
  ]);
  expect((await lastRun(directory))!.startedAt).toBe(runs[1]!.startedAt);
  const drawn = await readFile(join(directory, 'history.html'), 'utf8');
  expect(drawn).toContain('<td class="fail">✗ new</td>');
  expect(drawn).not.toContain('>5-missing<');
  expect(historyHtml([], '<script>')).not.toContain('<script>');
});
