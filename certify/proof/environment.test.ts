/** Problems on the way to a target leave a run incomplete with one line that names the remedy; no requirement fails. */
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from '@playwright/test';
import { fakeClock } from '../../engine/testing.ts';
import { resolveTarget, type Target } from '../../engine/target/target.ts';
import { EXPIRED, KEY, secured, SELF_SIGNED } from '../../reference-server/http/certificates.ts';
import { listen } from '../../reference-server/http/http.ts';
import { test } from '../../reference-server/testing.ts';
import type { ReferenceServer } from '../../reference-server/run/start.ts';
import { certify } from '../certify.ts';
import { certifyServer, expectIncomplete, failedOf, obstaclesOf, saidOf, targetFor } from './faults.ts';
import type { Report } from '../report/report.ts';
import { byTurns, FULL } from '../../fixtures/own-tests/tiers.ts';
import {
  answers,
  authenticating,
  both,
  counting,
  emptyPage,
  html,
  isScreenings,
  middleware,
  refusal,
  withHeader,
} from '../../reference-server/run/alter.ts';
import { authorized, headerOf, tokenOf } from '../../reference-server/faults/bearer.ts';
import { anySecret, refusing } from '../../reference-server/faults/forms.ts';
import { answersFor } from '../../reference-server/variants/accidents.ts';
import { beyond } from '../../reference-server/variants/health.ts';
import { listenOn, sockets } from '../../reference-server/non-implementations/tools.ts';
import { selectIds } from '../../engine/requirements.ts';

const portOf = (server: ReferenceServer): number => Number(new URL(server.baseUrl).port);

const overTls = (server: ReferenceServer, host: string, cert: string) =>
  secured({ port: portOf(server), stop: async () => {} }, host, 0, cert);

/** The target file of a server, with both endpoints at this address. */
const movedTo = async (server: ReferenceServer, origin: string, ca?: string): Promise<Target> => ({
  ...(await targetFor(server, 'bare')),
  ...{ baseUrl: origin, authUrl: origin, ca },
});

const certified = (target: Target, only = '2.1 4.1 4.2-success'): Promise<Report> =>
  certify(target, {
    ...{ seed: 1, runs: 1, timeoutMs: 2_000, clock: fakeClock(Date.now) },
    only: selectIds(only.split(' ')),
  });

for (const [name, cert, host, trusted, words] of [
  ['trusts a private CA that the target file names', SELF_SIGNED, 'localhost', true, undefined],
  ['a self-signed certificate', SELF_SIGNED, 'localhost', false, /not trusted.*`ca`.*NODE_EXTRA_CA_CERTS/],
  ['an expired certificate', EXPIRED, 'localhost', true, /has expired.*NODE_EXTRA_CA_CERTS/],
  ['a certificate of another name', SELF_SIGNED, '127.0.0.1', true, /another name/],
] as const)
  test(name, byTurns(name, 3), async ({ server }) => {
    await using tls = await overTls(server, host, cert);
    const report = await certified(await movedTo(server, tls.origin, trusted ? cert : undefined));
    if (words) expectIncomplete(report, words);
    else expect(report.verdict).toBe('conformant');
  });

test('reports an https URL of a server without TLS', async ({ server }) => {
  const report = await certified(await movedTo(server, server.baseUrl.replace('http:', 'https:')));
  expectIncomplete(report, /could be established \(wrong version number\); check that .* https URL/);
});

test('reports a server that demands a client certificate', async ({ server }) => {
  const demanding = { requestCert: true, rejectUnauthorized: true, maxVersion: 'TLSv1.2' } as const;
  await using tls = await listenOn(createTlsServer({ key: KEY, cert: SELF_SIGNED, ...demanding }));
  const url = tls.origin.replace('http://127.0.0.1', 'https://localhost');
  const report = await certified(await movedTo(server, url, SELF_SIGNED));
  expectIncomplete(report, /\(.*alert handshake failure\); it may demand a client cert/);
});

test('reports an http URL of a server with TLS', async ({ server }) => {
  await using tls = await listenOn(createTlsServer({ key: KEY, cert: SELF_SIGNED }));
  const report = await certified(await movedTo(server, tls.origin));
  expectIncomplete(report, /every connection to .* breaks .*; check the scheme and the port/);
});

for (const [member, status] of [
  ['baseUrl', 308],
  ['authUrl', 307],
] as const)
  test(`reports a ${member} that answers ${status}`, async ({ server }) => {
    const { origin } = new URL(server.baseUrl);
    await using moved = await listen();
    moved.handle(async ({ path }) => ({ status, headers: [['location', `${origin}${path}`]], body: '' }));
    const target = { ...(await targetFor(server, 'bare')), [member]: moved.origin };
    const words = new RegExp(`redirects \\(${status}\\) to ${origin}; name that as ${member}`);
    expectIncomplete(await certified(target), words);
  });

for (const status of [502, 521])
  test(`reports a gateway that answers ${status} to everything`, async ({ small }) => {
    const unreachable = answersFor(20, 60_000, () => html(status, 'No origin'), { matches: () => true });
    const options = { runs: 1, clock: fakeClock(Date.now), only: '4.2-success 5' };
    const report = await certifyServer(small, unreachable, 'bare', options);
    expectIncomplete(report, new RegExp(`answers ${status} to everything`));
  });

for (const [answer, instead, words] of [
  ['500', refusal('500 internal_error'), /^7\.2-no-unprovoked-5xx: .*500 internal_error[^:]*$/],
  // Of pages and of tokens: neither a guard nor a lockout is waited for again and again.
  ['the 403 of a firewall', html(403, 'Forbidden'), /^$/],
] as const)
  test(`ends soon where everything is answered ${answer} from some request on`, async ({ small }) => {
    const failing = answersFor(60, Infinity, () => instead, { matches: () => true });
    const clock = fakeClock(Date.now);
    const startedAtMs = clock.now();
    const only = '4.1 5 7.1 7.2-no-unprovoked-5xx';
    const report = await certifyServer(small, failing, 'bare', { runs: 1, clock, only });
    expect(failedOf(report).join()).toMatch(words);
    expect(clock.now() - startedAtMs).toBeLessThan(240_000);
  });

/** As a firewall drops what it takes for an attack. */
test('leaves it open where a forged token alone gets no answer in time', async ({ small }) => {
  const late = middleware(() => async (request, next) => {
    if (headerOf(tokenOf(request)).x5c) await sleep(2_000);
    return next(request);
  });
  const options = { runs: 1, timeoutMs: 1_000, only: '5-forged' };
  expectIncomplete(await certifyServer(small, late, 'bare', options), /no complete answer within 1 s/);
});

const DELAYED = 'sends fewer wrong secrets where each delays the next answer twice as long';
test(DELAYED, byTurns(DELAYED, 3), async ({ small }) => {
  const delaying = authenticating(() => {
    let delayMs = 80;
    return async (id, secret, real) => {
      const client = await real(id, secret);
      if (!client && secret.trim() !== '') await sleep((delayMs *= 2));
      return client;
    };
  });
  const only = '7.1-invalid_client-id 7.1-invalid_client-secret';
  const options = { runs: 1, timeoutMs: 2_000, only };
  const { verdict, summary } = await certifyServer(small, delaying, 'bare', options);
  expect(verdict, summary).toBe('conformant');
});

const GONE = 'reports that every screening is gone at the end';
test(GONE, byTurns(GONE, 3), async ({ small }) => {
  const emptied = counting(async (asked, request, next) => {
    const answer = await next(request);
    return asked > 700 && answer.status === 200 ? emptyPage() : answer;
  }, isScreenings);
  expectIncomplete(await certifyServer(small, emptied, 'bare', { runs: 1 }), /empty at the end of the run/);
});

/** Passes each connection on to the port until `isBroken`, given the number of the connection and whether it was used. */
function brokenConnections(port: number, isBroken: (connection: number, isUsed: boolean) => boolean) {
  let connections = 0;
  return sockets((socket) => {
    const number = ++connections;
    let isUsed = false;
    const onward = connect(port, '127.0.0.1');
    socket.on('data', (chunk) => {
      if (isBroken(number, isUsed)) socket.resetAndDestroy();
      else onward.write(chunk);
    });
    onward.on('data', (chunk) => {
      isUsed = true;
      socket.write(chunk);
    });
    onward.on('error', () => onward.destroy()).on('close', () => socket.destroy());
    socket.on('close', () => onward.destroy());
  });
}

for (const [what, isBroken, verdict] of [
  ['accepts a server that resets each connection after an answer', (_, isUsed) => isUsed, 'conformant'],
  [
    'reports a server that resets every second new connection',
    (connection) => connection % 2 === 0,
    'non-conformant',
  ],
] as [string, Parameters<typeof brokenConnections>[1], Report['verdict']][])
  test(what, byTurns(what, 3), async ({ server }) => {
    await using passing = await brokenConnections(portOf(server), isBroken);
    const report = await certified(
      await movedTo(server, passing.origin),
      '4.1 4.2-success 7.2-no-unprovoked-5xx',
    );
    expect(report.verdict, report.summary).toBe(verdict);
    if (verdict === 'non-conformant')
      expect(failedOf(report).join()).toMatch(/of 20 requests over new connections broken/);
  });

// -- proxies: their own errors and their silence are not attributed to the target --------------------

/** A name that only the proxy can resolve. */
const NAME = 'target.example';
const VARIABLES = ['http_proxy', 'https_proxy', 'no_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'];

interface Proxy extends AsyncDisposable {
  readonly host: string;
  readonly asked: string[];
}

/** Answers CONNECT with a tunnel to the port; with `instead` by that status line, or not at all if it is ''. */
async function openProxy(port: number, instead?: string): Promise<Proxy> {
  const asked: string[] = [];
  const server = createServer().on('connect', ({ url }, socket: Socket) => {
    asked.push(url!);
    if (instead !== undefined) return void (instead && socket.end(`HTTP/1.1 ${instead}\r\n\r\n`));
    const onward = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      socket.pipe(onward).pipe(socket);
    });
    onward.on('error', () => socket.destroy());
    socket.on('close', () => onward.destroy());
  });
  const address = await listenOn(server);
  return { ...address, host: new URL(address.origin).host, asked };
}

async function withEnvironment<T>(env: Record<string, string>, run: () => Promise<T>): Promise<T> {
  const before = { ...process.env };
  for (const name of VARIABLES) delete process.env[name];
  try {
    Object.assign(process.env, env);
    return await run();
  } finally {
    for (const name of VARIABLES) delete process.env[name];
    Object.assign(process.env, before);
  }
}

function targetBeyondProxy(server: ReferenceServer, scheme = 'http'): Promise<Target> {
  const { baseUrl, clients } = server.target();
  const { origin, port } = new URL(baseUrl);
  const url = `${scheme}://${NAME}:${port}`;
  return resolveTarget({
    baseUrl: url,
    authUrl: url,
    issuer: origin,
    trustedOrigins: [origin],
    clients: { primary: clients.primary },
  });
}

test('uses the proxy, named with or without a scheme', async ({ server }) => {
  await using proxy = await openProxy(portOf(server));
  const target = await targetBeyondProxy(server);
  for (const named of [`http://${proxy.host}`, proxy.host]) {
    const report = await withEnvironment({ HTTP_PROXY: named }, () =>
      certified(target, '2.1 4.1 5-missing 7.2-no-unprovoked-5xx'),
    );
    expect(report.verdict, report.summary).toBe('conformant');
  }
  expect(new Set(proxy.asked)).toEqual(new Set([`${NAME}:${portOf(server)}`]));
});

test('uses no proxy for NO_PROXY and loopback addresses', async ({ server }) => {
  await using proxy = await openProxy(portOf(server));
  const spared = await withEnvironment({ HTTP_PROXY: proxy.host, NO_PROXY: '.example' }, async () =>
    certified(await targetBeyondProxy(server)),
  );
  expectIncomplete(spared, new RegExp(`^(?!.*proxy).*ENOTFOUND ${NAME}`));
  const own = await targetFor(server, 'bare');
  const { verdict } = await withEnvironment({ HTTP_PROXY: proxy.host }, () => certified(own));
  expect(verdict).toBe('conformant');
  expect(proxy.asked).toEqual([]);
});

for (const [instead, words] of [
  ['407 Proxy Authentication Required', /the proxy answered 407.*by the proxy 127/],
  ['', /does not answer within 2 s.*by the proxy 127/],
] as const)
  for (const scheme of ['http', 'https']) {
    const title = `a proxy that says “${instead}” to ${scheme}`;
    test(title, byTurns(title), async ({ server }) => {
      await using proxy = await openProxy(portOf(server), instead);
      const report = await withEnvironment(
        { HTTPS_PROXY: proxy.host, HTTP_PROXY: `http://a:b@${proxy.host}` },
        async () => certified(await targetBeyondProxy(server, scheme)),
      );
      expectIncomplete(report, words);
      expect(report.summary).not.toContain('a:b');
    });
  }

const seenIn = ({ observations }: Report): Partial<Record<string, readonly string[]>> =>
  Object.fromEntries(observations.map(({ topic, seen }) => [topic, seen]));

test('what bcrypt, Nimbus and Akka HTTP accept by default is observed, not judged', async ({ small }) => {
  const lenient = both(
    anySecret((shown, real) => shown === `${real}\0${real}`),
    authorized((value) => value.replace(/!$/, '').replace(/^Bearer(?=\S)/, '$& ')),
  );
  const only = ['5-scheme', '5-tampered', '7.1-invalid_client-secret'] as const;
  for (const [server, status] of [
    [lenient, '200'],
    [{}, '401'],
  ] as const) {
    const report = await certifyServer(small, server, 'full', { runs: 2, only });
    const seen = seenIn(report);
    for (const topic of ['secret-after-nul', 'letter-after-signature', 'no-space-after-bearer'])
      expect(seen[topic]).toEqual([status]);
    for (const id of only) expect(saidOf(report, id)).toBe('pass');
  }
});

// The proof of variants permits warnings.
test('invalid_target for an unknown resource is no warning', async ({ small }) => {
  const only = ['4.1-unknown-parameters'] as const;
  const server = refusing('400 invalid_target', (_, form) => form.has('resource'));
  for (const mode of ['full', 'bare'] as const) {
    const report = await certifyServer(small, server, mode, { runs: 1, only });
    expect(saidOf(report, only[0])).toBe('pass');
  }
});

test('waits for a firewall that blocks all requests after an odd one', async ({ small }) => {
  const clock = fakeClock(Date.now);
  let untilMs = 0;
  const firewall = middleware(() => (request, next) => {
    if (!isScreenings(request)) return next(request);
    if (clock.now() < untilMs) return html(403, 'Forbidden');
    if (/from_id=(%00|9{20})/.test(request.path)) untilMs = clock.now() + 3_000;
    return next(request);
  });
  const only = ['7.2-no-unprovoked-5xx', '7.2-forbidden', '7.2-body'] as const;
  expect(failedOf(await certifyServer(small, firewall, 'bare', { runs: 1, only, clock }))).toEqual([]);
});

// As limit_req of nginx without a burst, with 429: requests that wait for it may take what it admits from one another.
test('waits for a rate limit of 20 a second that admits one request at a time', async ({ small }) => {
  const clock = fakeClock(Date.now);
  const tooMany = () => withHeader(refusal('429 rate_limited'), 'retry-after', '1');
  const server = beyond({ limit: 20, burst: 1 }, tooMany, isScreenings, clock.now);
  const report = await certifyServer(small, server, 'bare', { only: '4.2', runs: 2, clock });
  expect(report.verdict, report.summary).toBe('conformant');
});

test('a run uses both versions of HTTP if both are offered, and reports them', FULL, async ({ small }) => {
  test.setTimeout(120_000);
  let isSent = 0;
  const counting = answers((answer, { isHttp2 }) => {
    isSent += isHttp2 ? 1 : 0;
    return answer;
  });
  const report = await certifyServer(small, { offersHttp2: true, ...counting }, 'full', { runs: 2 });
  expect(obstaclesOf(report)).toEqual([]);
  const { dialects, http2 } = seenIn(report);
  expect(dialects).toEqual(expect.arrayContaining(['HTTP/1.1', 'HTTP/2']));
  expect(http2).toBeUndefined();
  expect(isSent).toBeGreaterThan(200);
});
