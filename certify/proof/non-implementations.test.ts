/** A non-implementation is never conformant; this is reported after few requests and never as an error of the kit. */
import { expect } from '@playwright/test';
import { fakeClock } from '../../engine/testing.ts';
import { resolveTarget } from '../../engine/target/target.ts';
import { MANY_ITEMS, SPELL } from '../../reference-server/non-implementations/bodies.ts';
import {
  alwaysEmpty,
  NON_IMPLEMENTATIONS,
  dyingAfter,
  neverEnding,
} from '../../reference-server/non-implementations/servers.ts';
import type { Address } from '../../reference-server/non-implementations/tools.ts';
import { certifyServer, saidOf, type Mode } from './faults.ts';
import { byTurns } from '../../fixtures/own-tests/tiers.ts';
import { test, type World } from '../../reference-server/testing.ts';
import type { ServerOptions } from '../../reference-server/run/start.ts';
import { certify } from '../certify.ts';
import { resultsOf } from '../render/service-results.ts';
import { renderingsOf } from '../render/sample.testing.ts';
import type { Report } from '../report/report.ts';
import { selectIds } from '../../engine/requirements.ts';

/** No non-implementation may cost the requests of a whole run. */
const MOST_REQUESTS = 2_400;

test.describe.configure({ mode: 'parallel' });

const certified = (world: World, server: ServerOptions, mode: Mode, timeoutMs = 500): Promise<Report> =>
  certifyServer(world, server, mode, { runs: 4, timeoutMs, clock: fakeClock(Date.now) });

function neverGreen(report: Report): void {
  expect(report.verdict).not.toBe('conformant');
  expect(report.requirements.filter(({ status }) => status === 'error')).toEqual([]);
  expect(report.requests).toBeLessThan(MOST_REQUESTS);
  expect(report.summary).not.toBe('');
}

const credentials = { clientId: 'primary-client', clientSecret: 'a secret of nobody' };

/** Requirements whose checks read everything that a server returns. */
const READING = '2.1 2.2 2.3 2.4 4.2-success 4.2-r5-exactly-once 7.1-invalid_request-missing 7.2';

async function read({ origin }: Address): Promise<Report> {
  const target = await resolveTarget({ baseUrl: origin, authUrl: origin, clients: { primary: credentials } });
  return certify(target, {
    ...{ seed: 1, runs: 1, timeoutMs: 1_000, maxRequests: 800, clock: fakeClock(Date.now) },
    only: selectIds(READING.split(' ')),
  });
}

/** What undici says of a request that it does not send, and of an answer that it does not expect. */
const OF_UNDICI = /invalid authorization header|invalid request path|expression evaluated/;

const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;

for (const { name, start } of NON_IMPLEMENTATIONS)
  test(name, byTurns(name, 8), async () => {
    await using server = await start();
    const report = await read(server);
    neverGreen(report);
    expect(server.leaked?.() ?? []).toEqual([]);
    expect(JSON.stringify(report)).not.toMatch(OF_UNDICI);
    if (name === MANY_ITEMS) expect(saidOf(report, '2.4-items')).toMatch(/^fail/);
    // html.process.test.ts shows in a browser that hostile text is not executed.
    const { badge: _, ...texts } = renderingsOf(resultsOf(report));
    for (const text of Object.values(texts)) expect(CONTROL.exec(text)).toBeNull();
    for (const text of [texts.html, texts.junit, texts.summary]) expect(text).not.toContain(SPELL);
  });

for (const [row, mode] of (['full', 'bare'] as const).entries()) {
  test(`always an empty page, ${mode}`, byTurns('always an empty page', 4, row), async ({ small }) => {
    const report = await certified(small, alwaysEmpty, mode);
    neverGreen(report);
    // Without a dataset, an empty tenant looks the same as a server that hides everything.
    expect(report.verdict).toBe(mode === 'full' ? 'non-conformant' : 'incomplete');
  });

  test(`next never ends, ${mode}`, byTurns('next never ends', 4, row), async ({ small }) => {
    test.slow();
    // Endless within the window, or beyond it. The timeout allows for large pages on a busy machine.
    const report = await certified(small, neverEnding(mode === 'full' ? 1n : 0n), mode, 10_000);
    neverGreen(report);
    expect(saidOf(report, '4.2-r5-exactly-once')).toMatch(/^fail/);
  });

  for (const how of ['resets', 'hangs', '503', '429'] as const)
    for (const requests of [1, 40, 200]) {
      const title = `${how} after ${requests} requests, ${mode}`;
      test(title, byTurns(title, 8), async ({ small }) => {
        neverGreen(await certified(small, dyingAfter(requests, how), mode));
      });
    }
}
