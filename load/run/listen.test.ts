/** Reads k6's output line by line, with bounded memory and progress lines. */
import { EventEmitter } from 'node:events';
import { expect, test } from '@playwright/test';
import { listen } from './k6-run.ts';
import { Progress } from './progress.ts';

test('keeps a fraction of many arrivals, and everything else', () => {
  const lines = new EventEmitter();
  let judged = 0;
  const output = listen(
    lines,
    () => (judged++ === 0 ? [{ id: '4.2-window', message: 'once' }] : []),
    () => {},
    1000,
  );
  for (let index = 0; index < 50_000; index += 1) {
    const status = index % 10 === 0 ? 500 : 200;
    lines.emit('line', JSON.stringify({ kind: 'arrival', dueMs: index, latencyMs: 1, status }));
    if (index % 1000 === 0) lines.emit('line', JSON.stringify({ kind: 'sample', url: '', body: '' }));
  }
  lines.emit('line', '{"kind":"arrival","dueMs":');
  expect(output.records.length).toBeLessThanOrEqual(1000);
  expect(Math.abs(output.records.length * output.oneIn - 50_000)).toBeLessThanOrEqual(output.oneIn);
  const due = output.records.map((one) => (one.kind === 'arrival' ? one.dueMs : NaN));
  expect(due).toEqual(due.map((_, index) => index * output.oneIn));
  expect([judged, output.findings.length, output.complaint]).toEqual([50, 1, '{"kind":"arrival","dueMs":']);
});

test('prints at most 60 lines of 80 columns for an hour, and stops after 20 s with 90 % failures', () => {
  const told: string[] = [];
  const progress = new Progress({ seconds: 3600, p99Ms: 500 }, (line) => told.push(line));
  const failingFromMs = 3_000_000;
  let hopelessAtMs: number | undefined;
  for (let dueMs = 0; dueMs < 3_600_000; dueMs += 100) {
    const status = dueMs >= failingFromMs ? 503 : 200;
    const latencyMs = dueMs % 10_000 === 0 ? 600 : 10;
    if (progress.note({ dueMs, latencyMs, status })) hopelessAtMs ??= dueMs;
  }
  expect(told.length).toBeLessThanOrEqual(60);
  expect(told.filter((line) => line.length > 80)).toEqual([]);
  expect(told[29]).toMatch(/^  30 min \d s of 1 h 0 min: 1[78],\d{3} answers, 180 late, 0 failed$/);
  expect(hopelessAtMs! - failingFromMs).toBeGreaterThanOrEqual(18_000);
  expect(hopelessAtMs! - failingFromMs).toBeLessThanOrEqual(41_000);
});

test('does not stop for a short outage or for few answers', () => {
  const hopelessIn = (everyMs: number, failsFor: number): boolean => {
    const progress = new Progress({ seconds: 600, p99Ms: 500 }, () => {});
    return Array.from({ length: 600_000 / everyMs }, (_, index) => index * everyMs)
      .map((dueMs) => progress.note({ dueMs, latencyMs: 1, status: dueMs < failsFor ? 0 : 200 }))
      .some(Boolean);
  };
  expect([hopelessIn(100, 15_000), hopelessIn(2000, 600_000), hopelessIn(100, 60_000)]).toEqual([
    false,
    false,
    true,
  ]);
});
