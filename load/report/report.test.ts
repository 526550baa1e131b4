/** The page of a load result: ticks, the figure with its interval, and accessible tables. */
import { expect, test } from '@playwright/test';
import { EXIT, exitStatus, gatherFindings, type LoadResult } from '../result.ts';
import { resultHtml, terminalSummary } from './write.ts';
import { plot } from './plot.ts';

const ticks = (values: readonly number[], logY = false): number[] => {
  const points = values.map((value, index) => [index, value] as const);
  const drawn = String(plot('t', 'x', 'y', { n: points }, { logY }));
  return [...drawn.matchAll(/text-anchor="end" dominant-baseline="middle">([^<]+)</g)].map(([, text]) =>
    Number(text),
  );
};

test('a result is undecided if a figure is unconfirmed, also that of all clients or during back-fills', () => {
  const [sure, open] = [{ confirmed: true }, { confirmed: false }];
  const statuses = [
    { capacity: { ...sure, perServer: open } },
    { tenants: { alone: sure, beside: open } },
  ].map((figures) =>
    exitStatus({ void: false, conformant: true, held: true, ...figures } as unknown as LoadResult),
  );
  expect(statuses).toEqual([EXIT.void, EXIT.void]);
});

test('counts a violation also beyond the messages that it lists', () => {
  const found = Array.from({ length: 7 }, (_, index) => ({ id: '4.2-r4-order', message: `item ${index}` }));
  const findings = gatherFindings(found);
  expect(findings[0]!.failures).toHaveLength(5);
  const shown = terminalSummary({ summary: [], findings, void: false } as unknown as LoadResult);
  expect(shown).toContain('4.2-r4-order MUST: item 0 (7 ×)');
});

test('chooses ticks of 1, 2 or 5 times a power of ten that enclose the data', () => {
  expect(ticks([3, 137])).toEqual([0, 50, 100, 150]);
  expect(ticks([0.037])).toEqual([0, 0.01, 0.02, 0.03, 0.04]);
  expect(ticks([3, 4000], true)).toEqual([1, 10, 100, 1000, 10_000]);
  expect(ticks([10, 10], true)).toEqual([10, 100]);
});

test('shows the capacity in its interval, and makes tables scrollable by keyboard', () => {
  const step = { seconds: 5, p50Ms: 4, p99Ms: 20, errorRate: 0, limitedRate: 0, held: true };
  const result = {
    ...{ scenario: 'capacity', target: 'x', startedAt: '', durationMs: 1 },
    ...{ void: false, findings: [], summary: [] },
    capacity: {
      requestsPerSecond: 150,
      interval: [138, null],
      slo: { p99Ms: 500, errorRate: 0.001 },
      clients: 1,
      steps: [{ ...step, offered: 200, achieved: 150, accepted: 150 }],
    },
  } as unknown as LoadResult;
  const page = resultHtml(result);
  expect(page).toContain('class="interval"');
  expect(page).toContain('150.0/s, between 138.0 and unknown');
  const regions = page.match(/<div class="scroll"[^>]*>/g)!;
  expect(regions).toEqual([
    '<div class="scroll" role="region" tabindex="0" aria-label="The steps of the search">',
  ]);
});
