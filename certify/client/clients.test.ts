/** Every mistake of a client is found by its situation with the expected words, and by no other; right clients are conformant. */
import { expect, test } from '@playwright/test';
import { formatInstant, instant } from '../../engine/data/instant.ts';
import { byTurns, FULL } from '../../fixtures/own-tests/tiers.ts';
import type { ClientReport } from './report.ts';
import { SITUATIONS } from './situations/all.ts';
import { realWorld } from './stage.ts';
import { fakeWorld } from './testing/fake-world.ts';
import { FAILING, linked, WARNED } from './testing/mistakes.ts';
import { smallClient, type Habits } from './testing/small-client.ts';
import { certifyClient, type Options } from './certify-client.ts';

const played = (habits: Habits, options: Partial<Options> = {}): Promise<ClientReport> =>
  certifyClient(smallClient(habits), {
    name: 'a small client',
    concurrency: 4,
    timeout: 0,
    world: fakeWorld,
    ...options,
  });

const withStatus = { fail: FAILING, warn: WARNED };
for (const [status, mistakes] of Object.entries(withStatus))
  for (const [name, [habits, shows, also = []]] of Object.entries(mistakes))
    test(`a client that ${name}`, byTurns(name), async () => {
      const { situations, verdict } = await played(habits);
      const found = situations.filter((one) => /fail|warn|error/.test(one.status));
      for (const [situation, words] of Object.entries(shows)) {
        const messages = found.find((one) => one.name === situation)?.failures.map(({ message }) => message);
        expect(messages?.join('\n'), situation).toMatch(words);
      }
      expect(found.filter((one) => one.name in shows).map((one) => one.status)).toContain(status);
      expect(verdict).toBe(status === 'fail' ? 'non-conformant' : 'conformant');
      const names = found.map((one) => one.name);
      if (!also.includes('*'))
        expect([...Object.keys(shows), ...also]).toEqual(expect.arrayContaining(names));
    });

test('without exit status 0 after the plain walk, no other situation is played', async () => {
  const habits: Habits = { chokesOn: () => 'it reads no page' };
  const { situations, verdict } = await played(habits, { timeout: 60, world: realWorld });
  expect(verdict).toBe('non-conformant');
  const [first, ...others] = SITUATIONS.map(({ name }) => situations.find((one) => one.name === name)!);
  expect(first!.status).toBe('fail');
  for (const { status, reason } of others)
    expect([status, reason]).toEqual(['untested', `${first!.name} must end with exit status 0 first`]);
});

test('every situation finds a mistake', () => {
  const mistakes = Object.values({ ...FAILING, ...WARNED });
  const found = mistakes.flatMap(([, shows, also = []]) => [...Object.keys(shows), ...also]);
  // main.process.test.ts tests these with real clients.
  found.push('tls-trusted', 'tls-another-name');
  expect(SITUATIONS.map(({ name }) => name).filter((name) => !found.includes(name))).toEqual([]);
});

// -- right clients --------------------------------------------------------------------------------

/** The target of rel="next" in a Link header (RFC 8288). */
const linkNext = (link: string): string | undefined =>
  [...link.matchAll(/<([^>]*)>((?:\s*;\s*[\w*]+\s*=\s*(?:"[^"]*"|[^\s;,"]*))*)/g)].find(([, , rest]) =>
    /;\s*rel\s*=\s*(?:"[^"]*\bnext\b[^"]*"|next\b)/i.test(rest ?? ''),
  )?.[1];

const inUtc = (next: URL): URL => {
  next.searchParams.set('from', formatInstant(instant(next.searchParams.get('from')!)));
  return next;
};

const sorted = (next: URL): URL => {
  next.searchParams.sort();
  return next;
};

const RIGHT: Readonly<Record<string, Habits>> = {
  // judge-requests.test.ts tries other waits before retries.
  'as it is': {},
  'asks HEAD first': { headFirst: true },
  'the Link header leads on': { onward: linked(linkNext) },
  'two retries, then it gives up': { retries: { 500: 2, 429: 2, 0: 0 } },
  'renews its token long before exp': { marginSeconds: 1800 },
  'removes no duplicates: there are none': { dedupes: 'never' },
  'ids as text': { idOf: (id) => `"${id}"` },
  'events and pages': { readsEvents: 'deduped' },
  'asks for more scopes than there are': { scope: 'screenings.read screenings.export' },
  'pages of its own size': { pageSize: 3 },
  'writes next in a spelling of its own, without a loss': {
    onward: (next) => next.href.replace(/%3A/gi, ':'),
  },
  'two halves of the window, concurrently': { splitAt: '2026-03-02T08:20:00Z' },
  'puts the from of next into UTC': { onward: inUtc },
  'a parameter order of its own': { onward: sorted },
};

/** Situations whose windows do not contain the instant at which a client splits them. */
const WITHOUT_INSTANT = ['empty-window', 'summer-time-ends'];

function expectRight({ situations, verdict, summary }: ClientReport): void {
  const held = situations.filter(({ status }) => /fail|warn|error/.test(status));
  expect(held.map((one) => [one.name, one.failures])).toEqual([]);
  expect(verdict, summary).toBe('conformant');
}

for (const [name, habits] of Object.entries(RIGHT)) {
  test(`a right client: ${name}`, byTurns(name), async () => {
    const others = SITUATIONS.map((one) => one.name).filter((one) => !WITHOUT_INSTANT.includes(one));
    expectRight(await played(habits, habits.splitAt === undefined ? {} : { only: others }));
  });
}

const closing: Habits['sends'] = ({ headers, ...sent }) => ({
  ...sent,
  headers: { ...headers, connection: 'close' },
});

test('a right client: one connection per request, over sockets and in real time', FULL, async () => {
  expectRight(await played({ sends: closing }, { world: realWorld, concurrency: 12 }));
});
