/** Judging waits: constant ones are reported, and every correct backoff is accepted, long ones before a broken connection too. */
import { expect } from '@playwright/test';
import { fc } from '../../fixtures/own-tests/tiers.ts';
import type { Recorded } from './record.ts';
import { judgePlay } from './judge.ts';
import { backoffFindings, tooEarly } from './judge-requests.ts';
import { SITUATIONS } from './situations/all.ts';
import type { Play } from './situation.ts';
import { test } from '../../reference-server/testing.ts';

const request = (atMs: number, status: number, page = 1): Recorded => ({
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

/** Each page fails once before every wait and is then served; two pages alike. */
function failing(waits: readonly (readonly number[])[]): { requests: Recorded[] } {
  const requests: Recorded[] = [request(0, 200, -1)];
  let atMs = 6;
  waits.forEach((series, page) => {
    for (const wait of series) {
      requests.push(request(atMs, 503, page));
      atMs += 1 + wait;
    }
    requests.push(request(atMs, 200, page));
    atMs += 5;
  });
  return { requests };
}

const words = (waits: readonly (readonly number[])[]): string =>
  backoffFindings(failing(waits))
    .map(({ message }) => message)
    .join();

test('does not judge waits that are not longer than the pauses of a busy machine', () => {
  const { requests } = failing([
    [250, 210, 260],
    [230, 240, 220],
  ]);
  expect(backoffFindings({ requests })).toHaveLength(1);
  const busy = [...requests, request(5_000, 200, 7), request(5_150, 200, 8)];
  expect(backoffFindings({ requests: busy })).toEqual([]);
});

test('accepts three equal waits as chance', () => expect(words([[1000, 1010, 990]])).toBe(''));

test('accepts exponential backoff with any base, factor and cap, and an immediate first retry', () => {
  // Shorter waits look like a retry without backoff (AT_ONCE_MS).
  const backoff = fc.record({
    first: fc.integer({ min: 30, max: 5_000 }),
    factor: fc.double({ min: 1.5, max: 4, noNaN: true }),
    retries: fc.integer({ min: 2, max: 6 }),
    isImmediate: fc.boolean(),
  });
  fc.assert(
    fc.property(backoff, ({ first, factor, retries, isImmediate }) => {
      const waits = Array.from({ length: retries }, (_, retry) =>
        Math.min(first * factor ** retry, 20 * first),
      );
      const series = isImmediate ? [1, ...waits] : waits;
      expect(words([series, series])).toBe('');
    }),
  );
});

test('accepts half jitter always, and full jitter nearly always', () => {
  const dice = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 6, maxLength: 6 });
  const half = (rolls: readonly number[], from: number): number[] =>
    [0, 1, 2].map((retry) => 200 * 2 ** retry * (0.5 + rolls[from + retry]! / 2));
  fc.assert(
    fc.property(dice, (rolls) => {
      expect(words([half(rolls, 0), half(rolls, 3)])).toBe('');
    }),
  );
  let reported = 0;
  fc.assert(
    fc.property(fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })), (rolls) => {
      const full = (): number[] => [0, 1, 2].map((retry) => 200 * 2 ** retry * Number(rolls.next().value));
      const series = [full(), full()];
      if (words(series).includes('do not grow')) reported += 1;
    }),
    { numRuns: 2_000 },
  );
  expect(reported).toBeLessThan(5);
});

test('reports a request before the time of Retry-After, but not one already in flight', () => {
  const limited = { ...request(100, 429), waitUntilMs: 2_101 };
  const at = (atMs: number) => tooEarly({ requests: [limited, request(atMs, 200)] });
  expect(at(600)[0]!.message).toBe(
    'expected no request for 2.00 s after the 429, as Retry-After says, got the next one after 0.50 s',
  );
  expect(at(100.5)).toEqual([]);
  expect(at(2_090)).toEqual([]);
});

const judged = (situation: string, ...requests: readonly Recorded[]): string =>
  SITUATIONS.find(({ name }) => name === situation)!.judge!({ requests } as Partial<Play> as Play)
    .map(({ message }) => message)
    .join();

function mint(atMs: number, status: number): Recorded {
  const page = request(atMs, status);
  return { ...page, channel: 'token', request: { ...page.request, method: 'POST' } };
}

test('allows a retry of a 403 with another token', () =>
  expect(judged('403-not-retried', request(0, 403), { ...request(500, 403), token: 2 })).toBe(''));

test('does not blame the client for a request that a busy machine sent late', () => {
  expect(judged('refresh-margin', mint(0, 200), request(4_000, 200))).toBe('');
  const pages = [request(3_800, 200, 1), request(4_000, 200, 2)];
  expect(judged('refresh-margin', mint(0, 200), ...pages)).toMatch(/got 1 request with a token/);
});

test('reports retries of refused credentials, but not token requests of concurrent walkers', () => {
  const at = (...times: readonly number[]) => times.map((atMs) => mint(atMs, 401));
  expect(judged('credentials-refused', ...at(0, 0.2, 0.4, 0.6))).toBe('');
  expect(judged('credentials-refused', ...at(0, 2, 4))).toMatch(/no retry .*, got 3 token requests/);
});

const WAITING: Readonly<Record<string, readonly Recorded[]>> = {
  'tls-another-name': [],
  '429-with-seconds': [request(0, 429)],
  'html-for-a-page': [request(0, 200)],
  '503-for-ever': [request(0, 503)],
};
for (const [name, requests] of Object.entries(WAITING))
  test(`a client that may still be waiting before a retry breaks no MUST: ${name}`, () => {
    const situation = SITUATIONS.find((one) => one.name === name)!;
    const ended = { stderr: '', status: undefined, stdout: '' };
    const play: Partial<Play> = { requests, plainRequests: 0, stopped: 'silent', ended };
    expect(judgePlay(situation, play as Play).status).toBe('warn');
  });
