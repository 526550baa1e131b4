/** What a failure shows of a long answer: its beginning, and no half of a secret. */
import { expect, test } from '@playwright/test';
import type { Exchange } from '../../client/exchange.ts';
import type { Target } from '../../target/target.ts';
import { failureOf } from './evidence.ts';
import { createRedactor } from './redact.ts';

const SECRET = 'correct-horse-battery-staple';

function shownOf(text: string): string {
  const request = {
    channel: 'rest',
    method: 'GET',
    url: 'http://127.0.0.1/',
    headers: {},
    authorization: { kind: 'none' },
  } as const;
  const exchange: Exchange = {
    seq: 1,
    request,
    status: 200,
    headers: [],
    text,
    json: undefined,
    startedAtMs: 0,
    durationMs: 1,
  };
  const target = { headers: {}, clients: {} } as unknown as Target;
  const mismatch = { expected: 'a', received: 'b' };
  const { redact } = createRedactor([SECRET]);
  return failureOf({ id: '2.4-items', cause: '', mismatch, exchange, count: 1 }, { target, redact }).response;
}

test('wherever a long answer is cut, no part of a secret is left', () => {
  for (let length = 4_900; length < 5_100; length++) {
    // Redacted, the first four thousand characters are few.
    const text = `eyJ${'x'.repeat(4_000)}.eyJ9.z ${'-'.repeat(length - 4_900)} ${`${SECRET} `.repeat(40)}`;
    expect(shownOf(text.repeat(2))).not.toMatch(/corr|staple/);
  }
});

test('an answer is shown whole, or cut with an ellipsis', () => {
  expect(shownOf('one\n two')).toBe('200 one two');
  expect(shownOf('x'.repeat(600))).toBe(`200 ${'x'.repeat(600)}`);
  for (const length of [601, 5_000, 5_001, 100_000])
    expect(shownOf('x'.repeat(length))).toBe(`200 ${'x'.repeat(600)}…`);
});
