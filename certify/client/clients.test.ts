/** Every mistake of a client is found by its situation with the expected words, and by no other; right clients are conformant. */
import { expect } from '@playwright/test';
import { parseLinks } from '../../engine/client/link-header.ts';
import { unlessAborted } from '../../engine/clock.ts';
import { formatInstant, instant } from '../../engine/data/instant.ts';
import { fakeClock } from '../../engine/testing.ts';
import { byTurns, FULL } from '../../fixtures/own-tests/tiers.ts';
import { InProcess } from '../../reference-server/http/in-process.ts';
import type { ClientReport } from './report.ts';
import { SITUATIONS } from './situations/all.ts';
import { realWorld, type World } from './stage.ts';
import { changed, FAILING, linked, WARNED, withHeader } from './testing/mistakes.ts';
import { smallClient, type Habits } from './testing/small-client.ts';
import { certifyClient, type Options } from './certify-client.ts';
import { test } from '../../reference-server/testing.ts';

const played = (habits: Habits, options: Partial<Options> = {}): Promise<ClientReport> =>
  certifyClient(smallClient(habits), {
    name: 'a small client',
    concurrency: 4,
    timeout: 0,
    world: fakeWorld,
    ...options,
  });

for (const [status, mistakes] of Object.entries({ fail: FAILING, warn: WARNED }))
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
  const habits: Habits = { chokesOn: [/^/, 'it reads no page'] };
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

const linkNext = (link: string): string | undefined =>
  parseLinks(link).find(({ relations }) => relations.includes('next'))?.target;

const inUtc = (text: string): string => formatInstant(instant(text));

const sorted = (next: URL): URL => {
  next.searchParams.sort();
  return next;
};

const RIGHT: Readonly<Record<string, Habits>> = {
  // judge-requests.test.ts tries other waits before retries.
  'as it is': {},
  'asks HEAD first': { headFirst: true },
  'spells the scheme in lower case (RFC 9110, 11.1)': {
    sends: ({ headers: { authorization, ...headers }, ...sent }) => ({
      ...sent,
      headers: authorization
        ? { ...headers, authorization: authorization.replace('Bearer', 'bearer') }
        : headers,
    }),
  },
  'the Link header leads on': { onward: linked(linkNext) },
  'two retries, then it gives up': { retries: { 500: 2, 429: 2, 0: 0 } },
  'renews its token long before exp': { marginSeconds: 1800 },
  'removes no duplicates: there are none': { dedupes: 'never' },
  'asks after the walk for what follows the last item': { resumes: true },
  'ids as text': { idOf: (id) => `"${id}"` },
  'events and pages': { readsEvents: 'deduped' },
  'asks for more scopes than there are': { scope: 'screenings.read screenings.export' },
  'pages of its own size': { first: (url) => changed(url, 'pageSize', () => '3') },
  'spells next in its own way, without a loss': {
    onward: (next) => next.href.replace(/%3A/gi, ':'),
  },
  'two halves of the window, concurrently': {
    parts: [{ to: '2026-03-02T08:20:00Z' }, { from: '2026-03-02T08:20:00Z' }],
  },
  // The second begins at the last testTime of a page of the first.
  'windows that overlap': { parts: [{ to: '2026-03-02T08:20:00Z' }, { from: '2026-03-02T08:09:00Z' }] },
  'prints times as Python does': {
    spells: (testTime) => testTime.replace('T', ' ').replace('Z', '+00:00'),
  },
  'puts the from of next into UTC': { onward: (next) => changed(next, 'from', inUtc) },
  'a parameter order of its own': { onward: sorted },
};

/** Situations whose windows do not contain the instant at which a client cuts them. */
const WITHOUT_INSTANT = ['empty-window', 'summer-time-ends'];

function expectRight({ situations, verdict, summary }: ClientReport): void {
  const held = situations.filter(({ status }) => /fail|warn|error/.test(status));
  expect(held.map((one) => [one.name, one.failures])).toEqual([]);
  expect(verdict, summary).toBe('conformant');
}

for (const [name, habits] of Object.entries(RIGHT))
  test(`a right client: ${name}`, byTurns(name), async () => {
    const others = SITUATIONS.map((one) => one.name).filter((one) => !WITHOUT_INSTANT.includes(one));
    expectRight(await played(habits, habits.parts === undefined ? {} : { only: others }));
  });

test('a right client: one connection per request, over sockets and in real time', FULL, async () => {
  const closing = withHeader('connection', () => 'close');
  expectRight(await played(closing, { world: realWorld, concurrency: 12 }));
});

// -- a world without sockets -----------------------------------------------------------------------

/** The simulated duration of a request's way, and of an answer's. */
const TRAVEL_MS = 0.25;

/** In-process transport and a fake clock: a request takes half a millisecond. */
function fakeWorld(): World {
  const inProcess = new InProcess();
  const beganMs = Date.now();
  const clock = fakeClock(() => beganMs);
  return {
    clock,
    // TLS is not simulated, because no client in this process trusts the certificate.
    async listen(_port, tlsHost) {
      const listener = inProcess.listen();
      return { ...listener, ...(tlsHost ? { origin: `https://${tlsHost}:${listener.port}` } : {}) };
    },
    async fetch(input, { method = 'GET', headers = {}, body = null, signal: given } = {}) {
      const { origin, pathname, search } = new URL(String(input).replace('localhost', '127.0.0.1'));
      const signal = given ?? new AbortController().signal;
      clock.advance(TRAVEL_MS);
      const answer = inProcess.request({
        ...{ origin, path: pathname + search, method: method as 'GET', body: body as string | null },
        ...{ headers: headers as Record<string, string>, signal },
      });
      const { statusCode, headers: raw, body: content } = await unlessAborted(signal, answer);
      clock.advance(TRAVEL_MS);
      const texts = (raw as unknown as Buffer[]).map((octets) => octets.toString('latin1'));
      const pairs = texts.flatMap((text, at): [string, string][] => (at % 2 ? [[texts[at - 1]!, text]] : []));
      return new Response(ReadableStream.from(content as AsyncIterable<Uint8Array>), {
        status: statusCode,
        headers: pairs,
      });
    },
  };
}
