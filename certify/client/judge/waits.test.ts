/** Waits without a clock: what is told of them, and that no right way to wait is blamed. */
import { expect, test } from '@playwright/test';
import { fc } from '../../../fixtures/own-tests/seeded.ts';
import type { Recorded } from '../record.ts';
import { backoffFindings, tooEarly } from './waits.ts';

const request = (number: number, atMs: number, status: number, page = 1): Recorded => ({
  number,
  atMs,
  endMs: atMs + 1,
  channel: 'pages',
  request: {
    method: 'GET',
    path: `/v1/tenants/t/screenings?from=a&to=b&from_id=${page}`,
    headers: {},
    body: Buffer.alloc(0),
  },
  token: 1,
  status,
});

/** A page that fails once more than it is waited for, then is served; two pages alike. */
function failing(waits: readonly (readonly number[])[]): { requests: Recorded[] } {
  const requests: Recorded[] = [request(1, 0, 200, -1)];
  let atMs = 6;
  waits.forEach((series, page) => {
    for (const wait of series) {
      requests.push(request(requests.length + 1, atMs, 503, page));
      atMs += 1 + wait;
    }
    requests.push(request(requests.length + 1, atMs, 200, page));
    atMs += 5;
  });
  return { requests };
}

const words = (waits: readonly (readonly number[])[]): string =>
  backoffFindings(failing(waits))
    .map(({ message }) => message)
    .join();

test('equal waits, and none at all, are told', () => {
  expect(
    words([
      [1000, 1010, 990],
      [1005, 1000, 1020],
    ]),
  ).toContain('waits that do not grow: 1.00 s, 1.01 s, 0.99 s');
  expect(words([[200, 204, 201, 203, 202]])).toContain('waits that do not grow');
  expect(
    words([
      [2, 3, 1],
      [4, 2, 2],
    ]),
  ).toContain('asked again at once each time: 0.00 s');
});

test('waits that a busy machine’s own pauses hide, are not judged', () => {
  const { requests } = failing([
    [250, 210, 260],
    [230, 240, 220],
  ]);
  expect(backoffFindings({ requests })).toHaveLength(1);
  const busy = [...requests, request(20, 5_000, 200, 7), request(21, 5_150, 200, 8)];
  expect(backoffFindings({ requests: busy })).toEqual([]);
});

test('three equal waits may be chance', () => expect(words([[1000, 1010, 990]])).toBe(''));

test('exponential backoff is not blamed, with any base, factor, cap, and first retry at once', () => {
  // Shorter ones cannot be told from a retry without backoff (AT_ONCE_MS).
  const base = fc.integer({ min: 30, max: 5_000 });
  const factor = fc.double({ min: 1.5, max: 4, noNaN: true });
  fc.assert(
    fc.property(base, factor, fc.integer({ min: 2, max: 6 }), fc.boolean(), (first, by, retries, atOnce) => {
      const waits = Array.from({ length: retries }, (_, retry) => Math.min(first * by ** retry, 20 * first));
      const series = atOnce ? [1, ...waits] : waits;
      expect(words([series, series])).toBe('');
    }),
  );
});

test('half jitter is never blamed, full jitter as good as never', () => {
  const dice = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 6, maxLength: 6 });
  const half = (rolls: readonly number[], from: number): number[] =>
    [0, 1, 2].map((retry) => 200 * 2 ** retry * (0.5 + rolls[from + retry]! / 2));
  fc.assert(
    fc.property(dice, (rolls) => {
      expect(words([half(rolls, 0), half(rolls, 3)])).toBe('');
    }),
  );
  let blamed = 0;
  fc.assert(
    fc.property(fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })), (rolls) => {
      const full = (): number[] => [0, 1, 2].map((retry) => 200 * 2 ** retry * Number(rolls.next().value));
      const series = [full(), full()];
      if (words(series).includes('do not grow')) blamed += 1;
    }),
    { numRuns: 2_000 },
  );
  expect(blamed).toBeLessThan(5);
});

test('a request before the time that Retry-After named is told; one that was under way is not', () => {
  const limited = { ...request(1, 100, 429), waitUntilMs: 2_101 };
  const at = (atMs: number) => tooEarly({ requests: [limited, request(2, atMs, 200)] });
  expect(at(600)[0]!.message).toBe(
    'expected no request for 2.00 s after the 429, as Retry-After says, got the next one after 0.50 s',
  );
  expect(at(100.5)).toEqual([]);
  expect(at(2_090)).toEqual([]);
});
