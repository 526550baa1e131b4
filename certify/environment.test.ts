/** Problems on the way to a target leave a run incomplete with one line that names the remedy; no requirement fails. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import {
  createServer as createPlain,
  request as forward,
  type RequestListener,
  type Server,
} from 'node:http';
import { createServer as createTls } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { resolveTarget, type Target } from '../engine/target/target.ts';
import { EXPIRED, KEY, SELF_SIGNED } from '../reference-server/http/certificates.ts';
import { test } from '../reference-server/faults/testing.ts';
import { startServer } from '../reference-server/run/start.ts';
import { certify, selectIds } from './certify.ts';
import { targetFor } from './proof/faults.ts';
import type { Report } from './report.ts';

interface Listening extends AsyncDisposable {
  readonly port: number;
}

async function listening(server: Server): Promise<Listening> {
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      });
    },
  };
}

/** Forwards requests to a server without TLS. */
const forwardTo =
  (origin: string): RequestListener =>
  (request, response) => {
    const { method, headers, url } = request;
    const onward = forward(`${origin}${url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    request.pipe(onward);
  };

const redirecting =
  (origin: string, status: number): RequestListener =>
  (request, response) => {
    request.resume();
    response.writeHead(status, { location: `${origin}${request.url}` }).end();
  };

const only = selectIds(['2.1', '4.2-success']);
const certified = (target: Target): Promise<Report> => certify(target, { seed: 1, runs: 1, only });

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
    await using tls = await listening(
      createTls({ key: KEY, cert }, forwardTo(new URL(server.baseUrl).origin)),
    );
    const url = `https://${host}:${tls.port}`;
    const target = { ...(await targetFor(server, 'bare')), baseUrl: url, authUrl: url };
    // Trusts the CA unless trust itself is tested.
    const known = words.source.includes('not trusted') ? target : { ...target, ca: cert };
    leavesItIncomplete(await certified(known), words);
  });
}

test('a private CA that the target file names is trusted', async ({ small: { database, provisioned } }) => {
  await using server = await startServer(database, provisioned);
  await using tls = await listening(
    createTls({ key: KEY, cert: SELF_SIGNED }, forwardTo(new URL(server.baseUrl).origin)),
  );
  const directory = await mkdtemp(join(tmpdir(), 'screenings-ca-'));
  try {
    await writeFile(join(directory, 'ca.pem'), SELF_SIGNED);
    const { clientId, clientSecret } = server.target().clients.primary;
    const url = `https://localhost:${tls.port}`;
    const target = await resolveTarget(
      { baseUrl: url, authUrl: url, clients: { primary: { clientId, clientSecret } }, ca: 'ca.pem' },
      { directory },
    );
    expect((await certified(target)).verdict).toBe('conformant');
  } finally {
    await rm(directory, { recursive: true });
  }
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
    await using moved = await listening(createPlain(redirecting(origin, status)));
    const target = { ...(await targetFor(server, 'bare')), [member]: `http://localhost:${moved.port}` };
    const words = new RegExp(`redirects \\(${status}\\) to ${origin}; name that as ${member}`);
    leavesItIncomplete(await certified(target), words);
  });
}

test('keepToken supplies a later run with an expired token', async ({ small: { database, provisioned } }) => {
  const directory = await mkdtemp(join(tmpdir(), 'screenings-kept-'));
  const keepToken = join(directory, 'kept', 'token');
  const signingKeyPem = String(
    generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
  );
  const run = async (hoursAgo: number, port?: number): Promise<{ port: number; status: string }> => {
    await using server = await startServer(database, provisioned, {
      signingKeyPem,
      now: () => Date.now() - hoursAgo * 3_600_000,
      ...(port ? { ports: { api: port } } : {}),
    });
    const target = { ...(await targetFor(server, 'bare')), keepToken };
    const report = await certify(target, { seed: 1, runs: 1, only: ['5-expired'] });
    const { status } = report.requirements.find(({ id }) => id === '5-expired')!;
    return { port: Number(new URL(server.baseUrl).port), status };
  };
  try {
    const first = await run(2);
    expect(first.status).toBe('untested');
    expect((await stat(keepToken)).mode & 0o777).toBe(0o600);
    const kept = await readFile(keepToken, 'utf8');
    expect((await run(0, first.port)).status).toBe('pass');
    expect(await readFile(keepToken, 'utf8')).not.toBe(kept);
  } finally {
    await rm(directory, { recursive: true });
  }
});
