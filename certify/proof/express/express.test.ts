/** A typical first version on Express: each mistake is reported as a separate cause, and without them it is conformant. */
import { expect } from '@playwright/test';
import { FULL } from '../../../fixtures/own-tests/tiers.ts';
import { test, type World } from '../../../reference-server/faults/testing.ts';
import { certify } from '../../certify.ts';
import type { Report } from '../../report.ts';
import { MISTAKES, startExpress, type ExpressMistake } from './service.ts';

const ALL = Object.keys(MISTAKES) as ExpressMistake[];

async function certified({ store }: World, mistakes: ReadonlySet<ExpressMistake>): Promise<Report> {
  await using service = await startExpress(store, mistakes);
  return await certify(service.target, { seed: 1, runs: 2, shrink: { evaluations: 4 }, pollingScale: 0.1 });
}

const rootsOf = (report: Report): string[] => report.diagnosis.map(({ root }) => root);
const isListed = (name: ExpressMistake, roots: readonly string[]): boolean =>
  MISTAKES[name].some((id) => roots.includes(id));

test('reports every mistake of a first version as a separate cause', async ({ small }) => {
  const report = await certified(small, new Set(ALL));
  const roots = rootsOf(report);
  expect(ALL.filter((name) => !isListed(name, roots))).toEqual([]);
  const framework = 'the framework’s own error answers';
  const first = (is: (findings: readonly string[]) => boolean): string | undefined =>
    report.diagnosis.find(({ findings }) => is(findings))?.behavesLike[0]?.name;
  // The 422 of validation is one cause, whichever of its requirements comes first.
  expect(first((ids) => MISTAKES['validation answers 422'].every((id) => ids.includes(id)))).toBe(framework);
  expect(first(([id]) => id === '7.2-unauthenticated')).toBe(framework);
  expect(first((ids) => ids.join() === '7.2-invalid_request')).toBe('what is no integer is read as one');
});

test('is conformant after its causes are fixed, three at a time', FULL, async ({ small }) => {
  test.setTimeout(400_000);
  const left = new Set(ALL);
  for (;;) {
    const report = await certified(small, left);
    const roots = rootsOf(report);
    if (left.size === 0) return expect([report.verdict, roots]).toEqual(['conformant', []]);
    expect([...left].filter((name) => !isListed(name, roots))).toEqual([]);
    for (const name of [...left].slice(0, 3)) left.delete(name);
  }
});
