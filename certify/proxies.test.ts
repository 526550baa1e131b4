/** The proxy of the environment is used; its own errors and its silence are not attributed to the target. */
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { expect } from '@playwright/test';
import { resolveTarget, type Target } from '../engine/target/target.ts';
import { fastClock } from '../fixtures/own-tests/fast-clock.ts';
import { byTurns } from '../fixtures/own-tests/tiers.ts';
import { test } from '../reference-server/faults/testing.ts';
import { startServer, type ReferenceServer } from '../reference-server/run/start.ts';
import { certify, selectIds } from './certify.ts';
import type { Report } from './report.ts';

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

const certified = (target: Target): Promise<Report> =>
  certify(target, {
    seed: 1,
    runs: 1,
    timeoutMs: 2_000,
    clock: fastClock(),
    only: selectIds(['2.1', '4.1', '4.2-success']),
  });

const portOf = (server: ReferenceServer): number => Number(new URL(server.baseUrl).port);

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
