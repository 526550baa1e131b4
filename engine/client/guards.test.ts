/** A guard in front of the target, or a rate limit, is waited for, or reported. */
import { expect, test } from '@playwright/test';
import { systemClock, type Clock } from '../clock.ts';
import { answerTo, fakeClock, getOf } from '../testing.ts';
import type { Exchange, RequestOut } from './exchange.ts';
import { Guards } from './guards.ts';
import { Attempt, retryAfterMs } from './failures.ts';
import { dateMs } from './target-clock.ts';
import { TargetHealth } from './target-health.ts';

const requestOf = (query: string): RequestOut =>
  getOf(`http://target.example/v1/tenants/t/screenings?${query}`);

const answer = (request: RequestOut, status: number, text = ''): Exchange => answerTo(request, text, status);

const closed = (request: RequestOut, answerBegun = false): Exchange => ({
  ...answer(request, 0),
  transportError: { kind: 'reset', message: 'other side closed', answerBegun },
});

/** A request with primary's own token. */
const own = { ...requestOf('a'), authorization: { kind: 'client', client: 'primary' } } as const;

/** A guard that is active for this many milliseconds, and the time that the client waited. */
function guarded(forMs: number): { guards: Guards; waited: () => number } {
  const clock = fakeClock();
  const probe = async (request: RequestOut): Promise<Exchange> =>
    answer(request, clock.now() < forMs ? 403 : 200, '<h1>Forbidden</h1>');
  const guards = new Guards({ clock, probe });
  guards.note(answer(requestOf('a'), 200));
  return { guards, waited: clock.now };
}

test('waits until a request that was served before is served again', async () => {
  const { guards, waited } = guarded(10_000);
  const refused = answer(requestOf('b'), 403, '<h1>Forbidden</h1>');
  expect(await guards.isToRetry(refused, { guards: 0 })).toBe(true);
  expect(waited()).toBe(15_500);
});

test('reports a guard that lasts longer than a minute, and does not wait for it again', async () => {
  const { guards, waited } = guarded(Infinity);
  const refused = answer(requestOf('b'), 403, '<h1>Forbidden</h1>');
  for (let met = 0; met < 2; met++)
    await expect(guards.isToRetry(refused, { guards: 0 })).rejects.toThrow(/a guard .*keeps the kit out/);
  expect(waited()).toBeLessThan(65_000);
});

test('returns a 403 that has the documented code, or that only one request gets', async () => {
  const { guards } = guarded(Infinity);
  const documented = answer(requestOf('b'), 403, '{"code":"forbidden"}');
  expect(await guards.isToRetry(documented, { guards: 0 })).toBe(false);
  expect(await guarded(0).guards.isToRetry(answer(requestOf('b'), 403), { guards: 0 })).toBe(false);
});

test('sends a 403 of several requests in flight again, once', async () => {
  const attempt = { guards: 0 };
  const isSentAgain = (): Promise<boolean> =>
    guarded(0).guards.isToRetry(answer(requestOf('b'), 403), attempt, 6);
  expect([await isSentAgain(), await isSentAgain()]).toEqual([true, false]);
});

test('attributes a 429 without rate_limited to a guard after five rejected tokens, or without the own token', () => {
  const clock = fakeClock();
  const guards = new Guards({ clock, probe: async (request) => answer(request, 200) });
  const isOfGuard = (text: string, isBurst = false): boolean =>
    guards.mayHaveThrottled(answer(own, 429, text), isBurst);
  const guess = (times: number): void => {
    for (let i = 0; i < times; i++) guards.note(answer(requestOf('b'), 401));
  };
  guess(4);
  expect(guards.mayHaveThrottled(answer(requestOf('b'), 429, '<h1>'))).toBe(true);
  expect(isOfGuard('<h1>')).toBe(false);
  guess(1);
  expect([isOfGuard('<h1>'), isOfGuard('<h1>', true), isOfGuard('{"code":"rate_limited"}')]).toEqual([
    true,
    true,
    false,
  ]);
  // A ban may last longer than the minute that counts.
  clock.advance(600_000);
  guards.note(answer(own, 429));
  expect(isOfGuard('<h1>')).toBe(true);
  guards.note(answer(own, 200));
  expect(isOfGuard('<h1>')).toBe(false);
  guess(5);
  guards.note(answer(own, 200));
  expect([isOfGuard('<h1>'), isOfGuard('<h1>', true)]).toEqual([true, false]);
});

test('attributes a page with 429, or a closed connection, to a guard after ten answers of 4xx', () => {
  const guards = new Guards({ clock: systemClock, probe: async (request) => answer(request, 200) });
  const areOfGuard = (): boolean[] => [
    guards.mayHaveThrottled(answer(own, 429, '<h1>')),
    guards.mayHaveThrottled(answer(own, 429, '{"message":"API rate limit exceeded"}')),
    guards.mayHaveClosed(closed(own)),
    guards.mayHaveClosed(closed(own, true)),
  ];
  for (let i = 0; i < 9; i++) guards.note(answer(own, i % 2 === 0 ? 400 : 404, '{"code":"x"}'));
  expect(areOfGuard()).toEqual([false, false, false, false]);
  guards.note(answer(own, 403));
  expect(areOfGuard()).toEqual([true, false, true, false]);
});

/** A valid token request of the client with this id and secret. */
const tokenRequestOf = (name: string): RequestOut => ({
  ...requestOf(''),
  channel: 'token',
  method: 'POST',
  form: [
    ['client_id', name],
    ['client_secret', name],
  ],
});

/** The health of a target with two clients that answers every request so. */
const healthOf = (clock: Clock, probe: (request: RequestOut) => Exchange): TargetHealth =>
  new TargetHealth({
    clock,
    answeredAtMs: clock.now,
    target: {
      clients: {
        primary: { clientId: 'a', clientSecret: 'a' },
        unauthorized: { clientId: 'b', clientSecret: 'b' },
      },
    },
    timeoutMs: 1_000,
    concurrency: 1,
    probe: async (request) => probe(request),
    tokenRequest: () => tokenRequestOf('a'),
  });

const throttled = (clock: Clock): TargetHealth => healthOf(clock, (request) => answer(request, 429));

test('waits fifteen seconds for a guard that closes connections', async () => {
  const clock = fakeClock();
  const health = healthOf(clock, (request) =>
    clock.now() < 15_000 ? closed(request) : answer(request, 200),
  );
  health.note(answer(requestOf('a'), 200));
  for (let i = 0; i < 10; i++) health.note(answer(requestOf('b'), 400, '{"code":"invalid_request"}'));
  const attempt = new Attempt();
  for (let failures = 0; failures < 2; failures++)
    expect(await health.isToRetry(closed(requestOf('b')), attempt)).toBe(true);
  expect(clock.now()).toBeGreaterThan(15_000);
});

test('sends a request again that a guard closes with others, although one was served in between', async () => {
  const clock = fakeClock();
  const isActive = (): boolean => clock.now() >= 1_000 && clock.now() < 5_000;
  const health = healthOf(clock, (request) => (isActive() ? closed(request) : answer(request, 200)));
  health.note(answer(requestOf('a'), 200));
  for (let i = 0; i < 10; i++) health.note(answer(requestOf('b'), 400, '{"code":"invalid_request"}'));
  const attempt = new Attempt();
  const isSentAgain = (): Promise<boolean> => health.isToRetry(closed(requestOf('b')), attempt);
  for (let failures = 0; failures < 3; failures++) expect(await isSentAgain()).toBe(true);
  clock.advance(1_000 - clock.now());
  expect(await isSentAgain()).toBe(true);
  expect(clock.now()).toBeGreaterThan(5_000);
  // It alone is closed from now on, which is no guard's doing.
  let again = 0;
  while (await isSentAgain()) again++;
  expect(again).toBe(6);
});

test('waits once for a rate limit of five minutes, and not for a quota of an hour', async () => {
  const health = throttled(fakeClock());
  const reject = (seconds: string, attempt = new Attempt()): Promise<boolean> => {
    const headers = [['retry-after', seconds]] as const;
    return health.isThrottled({ ...answer(requestOf('a'), 429), headers }, attempt, true);
  };
  const attempt = new Attempt();
  expect(await reject('300', attempt)).toBe(true);
  await expect(reject('300', attempt)).rejects.toThrow('kept answering 429 for');
  await expect(reject('3600')).rejects.toThrow('answers 429 with a Retry-After of 3600 s');
});

test('requests tokens although the quota of pages is used up', async () => {
  const health = throttled(systemClock);
  const headers = [['retry-after', '3600']] as const;
  const limited = { ...answer(requestOf('a'), 429), headers };
  await expect(health.isThrottled(limited, new Attempt(), true)).rejects.toThrow('Retry-After of 3600 s');
  const admit = (request: RequestOut): Promise<Exchange> =>
    health.admit(request, async () => answer(request, 200), 'shared');
  await expect(admit(requestOf('a'))).rejects.toThrow('Retry-After of 3600 s');
  expect(await admit({ ...requestOf('a'), channel: 'token' })).toMatchObject({ status: 200 });
});

test('waits for a rate limit anew, however long ago another request was rejected', async () => {
  const clock = fakeClock();
  const health = throttled(clock);
  const reject = (): Promise<boolean> =>
    health.isThrottled(answer(requestOf('a'), 429), new Attempt(), false);
  expect(await reject()).toBe(true);
  clock.advance(600_000);
  expect(await reject()).toBe(true);
  // Without a pause in between: requests that wait for one another.
  const waits = async (): Promise<void> => {
    for (;;) {
      clock.advance(4_000);
      await reject();
    }
  };
  await expect(waits()).rejects.toThrow('kept answering 429 for');
});

test('waits for a guard that refuses a client which never got a token', async () => {
  const clock = fakeClock();
  const isActive = (): boolean => clock.now() < 3_000;
  const issued = '{"access_token":"e30.e30.AA","token_type":"Bearer","expires_in":3600}';
  const health = healthOf(clock, (request) =>
    isActive() ? answer(request, 403, '<h1>') : answer(request, 200, issued),
  );
  health.note(answer(tokenRequestOf('a'), 200, issued));
  const isUnlocked = (text: string): Promise<boolean> =>
    health.isUnlocked(answer(tokenRequestOf('b'), 403, text), new Attempt());
  expect(await isUnlocked('{"error":"unauthorized_client"}')).toBe(false);
  expect(await isUnlocked('<h1>Forbidden</h1>')).toBe(true);
  expect(clock.now()).toBe(3_500);
});

test('an HTTP-date in Retry-After is compared with the time of the answer', () => {
  const headers = [['retry-after', 'Sun, 01 Mar 2026 08:03:00 GMT']] as const;
  const limited = { ...answer(requestOf('a'), 429), headers };
  const waits = ['08:00:00', '08:02:00', '08:04:00'].map((time) =>
    retryAfterMs(limited, Date.parse(`2026-03-01T${time}Z`)),
  );
  expect(waits).toEqual([181_000, 61_000, 1_000]);
});

test('Date is read in every form of an HTTP-date, in UTC wherever the kit is', () => {
  const zone = process.env['TZ'];
  process.env['TZ'] = 'America/New_York';
  const read = (date: string) => dateMs({ ...answer(requestOf('a'), 200), headers: [['date', date]] });
  const forms = [
    'Sun, 01 Mar 2026 08:03:00 GMT',
    'Sunday, 01-Mar-26 08:03:00 GMT',
    'Sun Mar  1 08:03:00 2026',
  ];
  expect(forms.map(read)).toEqual(Array(3).fill(Date.UTC(2026, 2, 1, 8, 3)));
  expect(read('2026-03-01 08:03:00')).toBeUndefined();
  if (zone === undefined) delete process.env['TZ'];
  else process.env['TZ'] = zone;
});
