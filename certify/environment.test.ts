/** Problems on the way to a target leave a run incomplete with one line that names the remedy; no requirement fails. */
import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { resolveTarget, type Target } from '../engine/target/target.ts';
import { EXPIRED, KEY, secured, SELF_SIGNED } from '../reference-server/http/certificates.ts';
import { listen } from '../reference-server/http/http.ts';
import { test } from '../reference-server/testing.ts';
import { startServer, type ReferenceServer } from '../reference-server/run/start.ts';
import { certify, selectIds } from './certify.ts';
import { targetFor, obstaclesOf, certifyVariant } from './proof/faults.ts';
import type { Report } from './report.ts';
import { fastClock } from '../fixtures/own-tests/fast-clock.ts';
import { byTurns, FULL } from '../fixtures/own-tests/tiers.ts';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import { Transport } from '../engine/client/transport.ts';
import type { Exchange } from '../engine/client/exchange.ts';
import { answers } from '../reference-server/run/alter.ts';

const overTls = (server: ReferenceServer, host: string, cert = SELF_SIGNED) =>
  secured({ port: portOf(server), stop: async () => {} }, host, 0, cert);

const portOf = (server: ReferenceServer): number => Number(new URL(server.baseUrl).port);

const certified = (target: Target): Promise<Report> =>
  certify(target, {
    seed: 1,
    runs: 1,
    timeoutMs: 2_000,
    clock: fastClock(),
    only: selectIds(['2.1', '4.1', '4.2-success']),
  });

function leavesItIncomplete(report: Report, words: RegExp): void {
  expect(report.verdict).toBe('incomplete');
  expect(report.requirements.filter(({ status }) => ['fail', 'error'].includes(status))).toEqual([]);
  expect(report.summary).toMatch(words);
  expect(report.summary).not.toContain('\n');
}

for (const [name, cert, host, words] of [
  ['a self-signed certificate', SELF_SIGNED, 'localhost', /not trusted.*`ca`.*NODE_EXTRA_CA_CERTS/],
  ['an expired certificate', EXPIRED, 'localhost', /has expired.*NODE_EXTRA_CA_CERTS/],
  ['a certificate of another name', SELF_SIGNED, '127.0.0.1', /another name/],
] as const) {
  test(name, async ({ small: { database, provisioned } }) => {
    await using server = await startServer(database, provisioned);
    await using tls = await overTls(server, host, cert);
    const target = { ...(await targetFor(server, 'bare')), baseUrl: tls.origin, authUrl: tls.origin };
    // Trusts the CA unless trust itself is tested.
    const known = words.source.includes('not trusted') ? target : { ...target, ca: cert };
    leavesItIncomplete(await certified(known), words);
  });
}

test('a private CA that the target file names is trusted', async ({ small: { database, provisioned } }) => {
  await using server = await startServer(database, provisioned);
  await using tls = await overTls(server, 'localhost');
  const directory = test.info().outputPath();
  await writeFile(join(directory, 'ca.pem'), SELF_SIGNED);
  const { clientId, clientSecret } = server.target().clients.primary;
  const target = await resolveTarget(
    {
      baseUrl: tls.origin,
      authUrl: tls.origin,
      clients: { primary: { clientId, clientSecret } },
      ca: 'ca.pem',
    },
    { directory },
  );
  expect((await certified(target)).verdict).toBe('conformant');
});

for (const [member, status] of [
  ['baseUrl', 301],
  ['baseUrl', 308],
  ['authUrl', 302],
  ['authUrl', 307],
] as const) {
  test(`reports a ${member} that answers ${status}`, async ({ small: { database, provisioned } }) => {
    await using server = await startServer(database, provisioned);
    const { origin } = new URL(server.baseUrl);
    await using moved = await listen();
    moved.handle(async ({ path }) => ({ status, headers: [['location', `${origin}${path}`]], body: '' }));
    const target = { ...(await targetFor(server, 'bare')), [member]: moved.origin };
    const words = new RegExp(`redirects \\(${status}\\) to ${origin}; name that as ${member}`);
    leavesItIncomplete(await certified(target), words);
  });
}

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
  const sockets = new Set<Socket>();
  const server: Server = createServer().on('connect', ({ url }, socket: Socket) => {
    asked.push(url!);
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    if (instead !== undefined) return void (instead && socket.end(`HTTP/1.1 ${instead}\r\n\r\n`));
    const onward = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      socket.pipe(onward).pipe(socket);
    });
    onward.on('error', () => socket.destroy());
    socket.on('close', () => onward.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function withEnvironment<T>(env: Record<string, string>, run: () => Promise<T>): Promise<T> {
  const before = VARIABLES.map((name) => [name, process.env[name]] as const);
  for (const name of VARIABLES) delete process.env[name];
  Object.assign(process.env, env);
  try {
    return await run();
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
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

test('uses the proxy, named with or without a scheme', async ({ small: { database, provisioned } }) => {
  await using server = await startServer(database, provisioned);
  await using proxy = await openProxy(portOf(server));
  const target = await targetBeyondProxy(server);
  for (const named of [`http://${proxy.host}`, proxy.host]) {
    const report = await withEnvironment({ HTTP_PROXY: named }, () => certified(target));
    expect(report.verdict).toBe('conformant');
  }
  expect(new Set(proxy.asked)).toEqual(new Set([`${NAME}:${portOf(server)}`]));
});

test('uses no proxy for NO_PROXY and loopback addresses', async ({ small: { database, provisioned } }) => {
  await using server = await startServer(database, provisioned);
  await using proxy = await openProxy(portOf(server));
  const spared = await withEnvironment({ HTTP_PROXY: proxy.host, NO_PROXY: '.example' }, async () =>
    certified(await targetBeyondProxy(server)),
  );
  expect(spared.verdict).toBe('incomplete');
  expect(spared.summary).toContain(`ENOTFOUND ${NAME}`);
  expect(spared.summary).not.toContain('proxy');
  const { baseUrl, authUrl, clients } = server.target();
  const own = await resolveTarget({ baseUrl, authUrl, clients: { primary: clients.primary } });
  expect((await withEnvironment({ HTTP_PROXY: proxy.host }, () => certified(own))).verdict).toBe(
    'conformant',
  );
  expect(proxy.asked).toEqual([]);
});

for (const [instead, words] of [
  ['407 Proxy Authentication Required', /the proxy answered 407.*by the proxy 127/],
  ['502 Bad Gateway', /the proxy answered 502.*by the proxy 127/],
  ['', /does not answer within 2 s.*by the proxy 127/],
] as const) {
  for (const scheme of ['http', 'https']) {
    const title = `a proxy that says “${instead}” to ${scheme}`;
    test(title, byTurns(title, 3), async ({ small: { database, provisioned } }) => {
      await using server = await startServer(database, provisioned);
      await using proxy = await openProxy(portOf(server), instead);
      const report = await withEnvironment(
        { HTTPS_PROXY: proxy.host, HTTP_PROXY: `http://a:b@${proxy.host}` },
        async () => certified(await targetBeyondProxy(server, scheme)),
      );
      expect(report.verdict).toBe('incomplete');
      expect(report.summary).toMatch(words);
      expect(report.summary).not.toContain('a:b');
    });
  }
}

// -- HTTP/2 ----------------------------------------------------------------------------------------

test('a run uses both versions if both are offered, and reports them', FULL, async ({ small }) => {
  test.setTimeout(120_000);
  const versions: Record<string, number> = {};
  const server = {
    offersHttp2: true,
    store: small.store,
    ...answers((answer, { isHttp2 }) => {
      versions[String(isHttp2)] = (versions[String(isHttp2)] ?? 0) + 1;
      return answer;
    }),
  };
  const variant = { name: 'HTTP/2', server };
  const report = await certifyVariant(small.database, small.provisioned, variant, 'full', { runs: 2 });
  expect(obstaclesOf(report)).toEqual([]);
  const seen = Object.fromEntries(report.observations.map((one) => [one.topic, one.seen]));
  expect(seen['dialects']).toEqual(expect.arrayContaining(['HTTP/1.1', 'HTTP/2']));
  expect(seen['http2']).toBeUndefined();
  expect(versions['true']).toBeGreaterThan(200);
});

type Http2Answer = (request: Http2ServerRequest, response: Http2ServerResponse) => void;

async function asked(answer: Http2Answer): Promise<Exchange[]> {
  const server = createSecureServer({ key: KEY, cert: SELF_SIGNED, allowHTTP1: true }, answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `https://localhost:${(server.address() as AddressInfo).port}/`;
  await using transport = new Transport({ timeoutMs: 5_000, ca: SELF_SIGNED });
  const authorization = { kind: 'none' } as const;
  const request = { channel: 'rest', method: 'GET', url, headers: {}, authorization, isHttp2: true } as const;
  const exchanges: Exchange[] = [];
  for (let left = 40; left > 0;) {
    const some = Array.from({ length: Math.min(left, 12) }, () => transport.send(request, 'Bearer of'));
    exchanges.push(...(await Promise.all(some)));
    left -= some.length;
  }
  server.close();
  return exchanges;
}

test('loses no request when the server ends a session', async () => {
  let count = 0;
  const exchanges = await asked((request, response) => {
    if (++count % 7 === 0) request.stream.session?.close();
    if (count === 16) return request.stream.session?.destroy();
    response.end(`${request.httpVersion} ${request.headers['authorization'] as string}`);
  });
  expect(exchanges.filter(({ text }) => !text.endsWith(' Bearer of'))).toEqual([]);
  expect(exchanges.filter(({ text }) => text.startsWith('2.0')).length).toBeGreaterThan(30);
});

test('repeats a request over HTTP/1.1 that HTTP/2 does not answer', async () => {
  const exchanges = await asked((request, response) => {
    if (request.httpVersionMajor === 2) return request.stream.close(7);
    response.end(request.httpVersion);
  });
  expect(new Set(exchanges.map(({ status, text }) => `${status} ${text}`))).toEqual(new Set(['200 1.1']));
  expect(exchanges[0]!.http2Failure).toBe('Stream closed with error code NGHTTP2_REFUSED_STREAM');
});
