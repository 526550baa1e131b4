/** A conformant service stays conformant with nginx or Varnish in front, even if Varnish caches pages. */
import { expect } from '@playwright/test';
import { byTurns, FULL } from '../../fixtures/own-tests/tiers.ts';
import { freePort } from '../../reference-server/store/free-port.ts';
import { startServer } from '../../reference-server/run/start.ts';
import { test, type World } from '../../reference-server/faults/testing.ts';
import { certify, selectIds, type CertifyOptions } from '../certify.ts';
import type { Report } from '../report.ts';
import { targetFor, type Mode } from './faults.ts';
import { isInstalled, nginx, PROGRAMS, startGateway, varnish } from './gateways.ts';
import { obstaclesOf } from './variants.ts';

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
  await using server = await startServer(database, provisioned, {
    publicUrl,
    ports: { api: inner },
  });
  await using _ = await startGateway(name, port, configured(port, `http://127.0.0.1:${inner}`));
  const target = await targetFor(server, mode);
  const rateLimit = probe ? { maxRequests: 4_000, maxSeconds: 20 } : undefined;
  return await certify({ ...target, rateLimit }, { seed: 1, runs: 4, ...options });
}

test('reports the 503 of nginx’s limit_req as a rate limiter', FULL, async ({ small }) => {
  test.skip(missing('nginx'), 'nginx is not installed');
  // Low enough to be exceeded even on a busy machine.
  const limited = (port: number, service: string): string => nginx(port, service, 10);
  const options = { probe: true, only: selectIds(['7.2-rate_limited']) };
  const { verdict, requirements } = await certified(small, 'nginx', limited, 'full', options);
  expect(verdict).toBe('non-conformant');
  const { status, failures } = requirements.find(({ id }) => id === '7.2-rate_limited')!;
  expect([status, failures[0]?.message]).toEqual(['fail', expect.stringContaining('limit_req of nginx')]);
});

/** In CI a missing program is a failure. */
const missing = (name: Name): boolean => !process.env['CI'] && !isInstalled(name);

for (const mode of ['full', 'bare'] as const) {
  test(`conformant with nginx in front, ${mode}`, byTurns(`nginx ${mode}`), async ({ small }) => {
    test.skip(missing('nginx'), 'nginx is not installed');
    const passing = (port: number, service: string): string => nginx(port, service);
    expect(obstaclesOf(await certified(small, 'nginx', passing, mode))).toEqual([]);
  });

  test(`conformant with Varnish in front, ${mode}`, byTurns(`Varnish ${mode}`), async ({ small }) => {
    test.skip(missing('varnish'), 'Varnish is not installed');
    expect(
      obstaclesOf(await certified(small, 'varnish', (_, service) => varnish(service, false), mode)),
    ).toEqual([]);
  });

  test(
    `conformant with Varnish that caches pages per token, ${mode}`,
    byTurns(`kept ${mode}`),
    async ({ small }) => {
      test.skip(missing('varnish'), 'Varnish is not installed');
      const kept = (_: number, service: string): string => varnish(service, true);
      const report = await certified(small, 'varnish', kept, mode, { probe: true });
      expect(obstaclesOf(report)).toEqual([]);
    },
  );
}
