/** Every mistake shows in its situation, with the right words, and blames no other. */
import { expect, test } from '@playwright/test';
import { certifyClient } from './certify-client.ts';
import type { ClientReport } from './report.ts';
import { SITUATIONS } from './situations/all.ts';
import { CALL_MISTAKES } from './testing/call-mistakes.ts';
import type { Mistake } from './testing/mistake.ts';
import { PAGE_MISTAKES } from './testing/page-mistakes.ts';
import { SLOW } from './testing/slow.ts';
import { smallClient } from './testing/small-client.ts';

const MISTAKES = { ...PAGE_MISTAKES, ...CALL_MISTAKES };

function report({ habits, shows, also = [], alone }: Mistake): Promise<ClientReport> {
  const wanted = [...Object.keys(shows), ...also];
  return certifyClient(smallClient(habits), {
    name: 'a small client',
    kit: { name: 'kit', version: '0' },
    ...(alone ? { only: ['plain-walk', ...wanted] } : {}),
    skip: SLOW.filter((name) => !wanted.includes(name)),
    concurrency: 6,
    pollingMs: 30_000,
  });
}

for (const [name, mistake] of Object.entries(MISTAKES)) {
  const { status = 'fail', shows, also = [] } = mistake;
  test(`a client that ${name}`, async () => {
    const { situations, verdict } = await report(mistake);
    for (const [situation, words] of Object.entries(shows)) {
      const result = situations.find((one) => one.name === situation);
      const messages = result?.failures.map(({ message }) => message).join('\n') ?? '';
      expect(messages, `${situation} is ${result?.status} ${result?.reason ?? ''}`).toMatch(words);
    }
    const told = Object.keys(shows).map((one) => situations.find((result) => result.name === one)!.status);
    expect(told).toContain(status);
    expect(verdict).toBe(status === 'fail' ? 'non-conformant' : 'conformant');
    const blamed = situations.filter((one) => /fail|warn|error/.test(one.status)).map((one) => one.name);
    if (!also.includes('*')) expect([...Object.keys(shows), ...also]).toEqual(expect.arrayContaining(blamed));
  });
}

test('every situation has been seen to find something', () => {
  const found = new Set(
    Object.values(MISTAKES).flatMap(({ shows, also = [] }) => [...Object.keys(shows), ...also]),
  );
  // Shown by the clients that run in a process of their own, or no client can break it.
  const elsewhere = ['tls-trusted', 'tls-another-name'];
  const names = SITUATIONS.map(({ name }) => name).filter((name) => !found.has(name));
  expect(names.filter((name) => !elsewhere.includes(name))).toEqual([]);
});
