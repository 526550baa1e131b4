import { expect } from '@playwright/test';
import type { RateLimiter } from '../parts.ts';
import { createRateLimiter, parseRate, RATE_ALGORITHMS, type RateLimit } from './rate-limit.ts';
import { test } from '../testing.ts';

const answers = (limiter: RateLimiter, momentsMs: readonly number[], client = 'a'): (number | 'ok')[] =>
  momentsMs.map((nowMs) => limiter(client, nowMs) ?? 'ok');

const LIMIT: RateLimit = { limit: 3, windowMs: 10_000 };

const CASES: [title: string, rate: RateLimit, momentsMs: number[], expected: (number | 'ok')[]][] = [
  ['fixed-window counts up to the limit', LIMIT, [0, 1, 2, 3], ['ok', 'ok', 'ok', 10]],
  [
    'fixed-window resets by the clock',
    LIMIT,
    [9_000, 9_001, 9_002, 9_003, 10_000],
    ['ok', 'ok', 'ok', 1, 'ok'],
  ],
  [
    'fixed-window admits twice the limit around a reset',
    LIMIT,
    [9_997, 9_998, 9_999, 10_000, 10_001, 10_002, 10_003],
    ['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 10],
  ],
  [
    'sliding-window admits at most the limit in any interval of its length',
    { ...LIMIT, algorithm: 'sliding-window' },
    [9_000, 9_500, 9_999, 10_000, 18_999, 19_000, 19_001, 19_500],
    ['ok', 'ok', 'ok', 9, 1, 'ok', 1, 'ok'],
  ],
  [
    'token-bucket starts full and refills evenly',
    { limit: 2, windowMs: 10_000, algorithm: 'token-bucket' },
    [0, 0, 0, 4_999, 5_000, 5_001, 15_000, 15_000, 15_000],
    ['ok', 'ok', 5, 1, 'ok', 5, 'ok', 'ok', 5],
  ],
  [
    'token-bucket admits a burst other than the limit',
    { limit: 10, windowMs: 10_000, burst: 1, algorithm: 'token-bucket' },
    [0, 0, 999, 1_000, 60_000, 60_000],
    ['ok', 1, 1, 'ok', 'ok', 1],
  ],
];

for (const [title, rate, moments, expected] of CASES)
  test(title, () => {
    expect(answers(createRateLimiter(rate), moments)).toEqual(expected);
  });

for (const algorithm of RATE_ALGORITHMS) {
  test(`${algorithm} limits each client separately`, () => {
    const limiter = createRateLimiter({ ...LIMIT, algorithm });
    const wait = algorithm === 'token-bucket' ? 4 : 10;
    expect(answers(limiter, [0, 0, 0, 0], 'a')).toEqual(['ok', 'ok', 'ok', wait]);
    expect(answers(limiter, [0, 0, 0], 'b')).toEqual(['ok', 'ok', 'ok']);
  });

  test(`${algorithm} admits a request after the wait of Retry-After, at any moment`, () => {
    for (let startMs = 0; startMs < 12_000; startMs += 137) {
      const limiter = createRateLimiter({ limit: 3, windowMs: 7_000, algorithm });
      let nowMs = startMs;
      for (let request = 0; request < 20; request += 1) {
        const [answer] = answers(limiter, [nowMs]);
        if (answer === 'ok') continue;
        nowMs += Number(answer) * 1000;
        expect(answers(limiter, [nowMs])).toEqual(['ok']);
      }
    }
  });
}

test('parses rates, and rejects other texts', () => {
  expect(['100/10s', '5/s', '1/250ms', '1000/1h'].map(parseRate)).toEqual([
    { limit: 100, windowMs: 10_000 },
    { limit: 5, windowMs: 1_000 },
    { limit: 1, windowMs: 250 },
    { limit: 1000, windowMs: 3_600_000 },
  ]);
  for (const text of ['0/10s', '10/0s', '10', '10/10', 'ten/s'])
    expect(parseRate(text), text).toBeUndefined();
});
