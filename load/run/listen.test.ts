/** What k6 writes, read line by line: a long run takes no more memory than a short one. */
import { EventEmitter } from 'node:events';
import { expect, test } from '@playwright/test';
import { listen } from './k6-run.ts';

test('of very many arrivals one in so many is kept, and all else', () => {
  const lines = new EventEmitter();
  let judged = 0;
  const heard = listen(lines, () => (judged++ === 0 ? [{ id: '4.2-window', message: 'once' }] : []), 1000);
  for (let index = 0; index < 50_000; index += 1) {
    const status = index % 10 === 0 ? 500 : 200;
    lines.emit('line', JSON.stringify({ kind: 'arrival', dueMs: index, latencyMs: 1, status }));
    if (index % 1000 === 0) lines.emit('line', JSON.stringify({ kind: 'sample', url: '', body: '' }));
  }
  lines.emit('line', '{"kind":"arrival","dueMs":');
  expect(heard.records.length).toBeLessThanOrEqual(1000);
  expect(Math.abs(heard.records.length * heard.oneIn - 50_000)).toBeLessThanOrEqual(heard.oneIn);
  const due = heard.records.map((one) => (one.kind === 'arrival' ? one.dueMs : NaN));
  expect(due).toEqual(due.map((_, index) => index * heard.oneIn));
  expect([judged, heard.findings.length, heard.complaint]).toEqual([50, 1, '{"kind":"arrival","dueMs":']);
});
