/** A conformant service stays conformant with nginx in front, and with Varnish that caches pages. */
import { expect } from '@playwright/test';
import { temporaryFolder } from '../../engine/files.ts';
import { byTurns, FULL } from '../../fixtures/own-tests/tiers.ts';
import { freePort } from '../../reference-server/store/postgres-embedded.ts';
import { startServer } from '../../reference-server/run/start.ts';
import { test, type World } from '../../reference-server/testing.ts';
import { certify, type CertifyOptions } from '../certify.ts';
import type { Report } from '../report/report.ts';
import { targetFor, type Mode, LIMIT_MS, obstaclesOf, saidOf } from './faults.ts';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { selectIds } from '../../engine/requirements.ts';

type Name = keyof typeof PROGRAMS;

async function certified(
  { database, provisioned }: World,
  name: Name,
  configured: (port: number, service: string) => string,
  mode: Mode,
  { probe = false, ...options }: { probe?: boolean } & Pick<CertifyOptions, 'only'> = {},
): Promise<Report> {
  const [port, inner] = [await freePort(), await freePort()];
  const publicUrl = `http://127.0.0.1:${port}`;
  await using server = await startServer(database, provisioned, { publicUrl, port: inner });
  await using _ = await startGateway(name, port, configured(port, `http://127.0.0.1:${inner}`));
  const target = await targetFor(server, mode);
  const rateLimit = probe ? { maxRequests: 4_000, maxSeconds: 20 } : undefined;
  return await certify({ ...target, rateLimit }, { seed: 1, runs: 4, ...options });
}

test.describe.configure({ timeout: LIMIT_MS });

test('reports the 503 of nginx’s limit_req as a rate limiter', FULL, async ({ small }) => {
  test.skip(missing('nginx'), 'nginx is not installed');
  // Low enough to be exceeded even on a busy machine.
  const limited = (port: number, service: string): string => nginx(port, service, 10);
  const options = { probe: true, only: selectIds(['7.2-rate_limited']) };
  const report = await certified(small, 'nginx', limited, 'full', options);
  expect(report.verdict).toBe('non-conformant');
  expect(saidOf(report, '7.2-rate_limited')).toMatch(/^fail: .*limit_req of nginx/);
});

const missing = (name: Name): boolean => !existsSync(PROGRAMS[name]);

for (const mode of ['full', 'bare'] as const) {
  test(`conformant with nginx in front, ${mode}`, byTurns(`nginx ${mode}`), async ({ small }) => {
    test.skip(missing('nginx'), 'nginx is not installed');
    const passing = (port: number, service: string): string => nginx(port, service);
    expect(obstaclesOf(await certified(small, 'nginx', passing, mode))).toEqual([]);
  });

  test(`conformant with Varnish caching by token, ${mode}`, byTurns(`kept ${mode}`), async ({ small }) => {
    test.skip(missing('varnish'), 'Varnish is not installed');
    const kept = (_: number, service: string): string => varnish(service);
    const report = await certified(small, 'varnish', kept, mode, { probe: true });
    expect(obstaclesOf(report)).toEqual([]);
  });
}

// -- the gateways, from Debian packages ------------------------------------------------------------

const STARTS_WITHIN_MS = 20_000;

const PROGRAMS = { nginx: '/usr/sbin/nginx', varnish: '/usr/sbin/varnishd' } as const;

/** Starts a gateway with a configuration. Throws an Error with its output if it does not listen in time. */
async function startGateway(name: Name, port: number, configuration: string): Promise<AsyncDisposable> {
  const { path: directory, ...folder } = await temporaryFolder(name);
  const file = join(directory, 'configuration');
  await writeFile(file, configuration);
  // varnishd runs as a user of its own, which must be able to read the file.
  await chmod(directory, 0o755);
  if (name === 'nginx') await mkdir(join(directory, 'work'));
  const args =
    name === 'nginx'
      ? ['-p', directory, '-e', 'stderr', '-c', file]
      : ['-F', '-f', file, '-a', `127.0.0.1:${port}`, '-n', join(directory, 'work'), '-s', 'malloc,64m'];
  const child = spawn(PROGRAMS[name], args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (data: Buffer) => (said += data.toString()));
  const ended = once(child, 'exit');
  const gateway: AsyncDisposable = {
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await ended;
      await folder[Symbol.asyncDispose]();
    },
  };
  for (const until = Date.now() + STARTS_WITHIN_MS; Date.now() < until && child.exitCode === null;) {
    const isListening = await fetch(`http://127.0.0.1:${port}`).then(
      () => true,
      () => false,
    );
    if (isListening) return gateway;
    await sleep(50);
  }
  await gateway[Symbol.asyncDispose]();
  throw new Error(`${name} does not listen: ${said.trim()}`);
}

/** Debian's nginx.conf with one proxying server; `rate` limits requests per second, with a burst. */
const nginx = (port: number, service: string, rate?: number): string => `
daemon off;
pid work/nginx.pid;
worker_processes 1;
error_log stderr crit;
events { worker_connections 768; }
http {
  client_body_temp_path work/body; proxy_temp_path work/proxy; fastcgi_temp_path work/fastcgi;
  uwsgi_temp_path work/uwsgi; scgi_temp_path work/scgi;
  access_log off;
  sendfile on;
  tcp_nopush on;
  gzip on;
  gzip_types application/json;
  gzip_proxied any;
  ${rate ? `limit_req_zone $binary_remote_addr zone=all:1m rate=${rate}r/s;` : ''}
  server {
    listen 127.0.0.1:${port};
    location / { ${rate ? 'limit_req zone=all burst=10 nodelay; ' : ''}proxy_pass ${service}; }
  }
}
`;

/** A Varnish configuration that caches pages for two seconds, keyed by URL and token. */
const varnish = (service: string): string => {
  const { hostname, port } = new URL(service);
  return `
vcl 4.1;
backend default { .host = "${hostname}"; .port = "${port}"; }
sub vcl_recv { if (req.method == "GET" && req.http.Authorization) { return (hash); } }
sub vcl_hash { hash_data(req.http.Authorization); }
sub vcl_backend_response {
  if (beresp.status == 200 && bereq.method == "GET") {
    set beresp.uncacheable = false; set beresp.ttl = 2s; set beresp.grace = 0s; return (deliver);
  }
}
`.trimStart();
};
