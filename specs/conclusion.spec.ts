/**
 * The end of a run: the checks that need all answers, and whether enough was tested for a certificate. They cover
 * what this worker saw: the whole run, unless a test failed and Playwright started a new worker.
 */
import { requirement } from '../engine/requirements.ts';
import { failFor, test } from '../fixtures/playwright.ts';

test('every exchange of the run satisfies the requirements that any exchange can break', async ({
  kit,
}, testInfo) => {
  await failFor(kit, await kit.conclude(), testInfo);
});

test('every core MUST was exercised', async ({ kit }) => {
  const open = kit.ledger.outcomes
    .filter(({ state, isSupplement }) => state === 'untested' && !isSupplement)
    .flatMap(({ ids, reason }) => ids.map((id) => ({ ...requirement(id), reason })))
    .filter((row) => row.level === 'MUST' && row.class === 'core');
  if (open.length > 0)
    throw new Error(`incomplete:\n${open.map(({ id, reason }) => `  ${id}: ${reason}`).join('\n')}`);
});
