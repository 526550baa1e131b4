/** The end of a run: what later answers show of earlier ones, and whether enough was exercised for a certificate. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { exchangeOf, type Exchange } from '../fixtures/client/exchange.ts';
import { requirement } from '../fixtures/requirements.ts';
import type { Outcome } from '../fixtures/run/ledger.ts';
import { failFor, RUN_FILES, test } from '../fixtures/test.ts';

async function left<T>(name: keyof typeof RUN_FILES): Promise<T[]> {
  const path = join(process.env['SCREENINGS_RUN_DIRECTORY'] ?? '', RUN_FILES[name]);
  const text = await readFile(path, 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}

test('the whole run: what every answer says of every other', async ({ kit }, testInfo) => {
  await kit.oracle();
  for (const page of await left<Exchange>('pages')) kit.knowledge.remember(exchangeOf(page));
  await failFor(kit, await kit.conclude(), testInfo);
});

test('the whole run: every core MUST was exercised', async () => {
  const open = (await left<Outcome>('outcomes'))
    .filter(({ state, supplement }) => state === 'untested' && !supplement)
    .flatMap(({ ids, reason }) => ids.map((id) => ({ ...requirement(id), reason })))
    .filter((row) => row.level === 'MUST' && row.class === 'core');
  if (open.length > 0)
    throw new Error(`incomplete:\n${open.map(({ id, reason }) => `  ${id}: ${reason}`).join('\n')}`);
});
