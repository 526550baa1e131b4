/** Non-implementations, and targets that fail during a run: k6 stops, and the result is void or broken, never held. */
import { FULL } from '../fixtures/own-tests/tiers.ts';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from '@playwright/test';
import { SPELL } from '../reference-server/non-implementations/bodies.ts';
import { NON_IMPLEMENTATIONS } from '../reference-server/non-implementations/servers.ts';
import {
  withTokenEndpoint,
  ITEMS,
  page,
  tokenAnswer,
} from '../reference-server/non-implementations/tools.ts';
import { serve } from '../reference-server/http/http.ts';
import { isTokenRequest } from '../reference-server/run/alter.ts';
import { load, setting, test, writeTarget } from './zoo/setting.ts';
import type { SimulatedSettings } from './zoo/server.ts';
import type { Behaviour } from './zoo/targets.ts';

test.describe.configure({ mode: 'parallel' });

const SMOKE = ['smoke', '--duration', '3s', '--rate', '10', '--timeout', '1', '--slo-p99', '5000'];

/** Answers for a second from its first page on. */
function hanging(): Behaviour {
  let firstMs: number | undefined;
  const work = (atMs: number): number => (atMs < (firstMs ??= atMs) + 1000 ? 1 : 1e6);
  return { service: { workers: 100, serviceMs: 1, distribution: 'deterministic' }, work };
}

/** Late for an SLO of 500 ms, and in time for the client. */
const slow = { workers: 64, serviceMs: 700, distribution: 'deterministic' } as const;

const FAILING: Readonly<Record<string, SimulatedSettings>> = {
  'answers later than the SLO': { behaviour: () => ({ service: slow }) },
  'hangs during the run': { behaviour: hanging },
  'goes away during the run': {},
};

for (const [name, settings] of Object.entries(FAILING))
  test(`does not hold for a target that ${name}`, FULL, async () => {
    await using at = await setting(settings);
    const running = load([...SMOKE, '--slo-p99', '500', ...at.flags], { TMPDIR: at.directory });
    if (name === 'goes away during the run') {
      while (at.server.counts.pages < 5) await sleep(50);
      await at.server[Symbol.asyncDispose]();
    }
    const { status, output } = await running;
    const result = await at.result('smoke');
    expect(result).toMatchObject({ held: false, conformant: true });
    expect(output).not.toMatch(/\bheld\b/);
    // On a busy machine the run is void.
    expect(status).toBe(result.void === false ? 1 : 3);
    // k6's working directory is removed.
    expect((await readdir(at.directory)).filter((file) => file.startsWith('screenings-load-'))).toEqual([]);
  });

const SELECTED = [
  'nothing listens',
  'resets every connection',
  'tokens for everybody, and a static copy of one good page',
  'a body of 500 MB',
  'bodies that never end, after 60 pages',
  'a gzip bomb',
  'a screening 450 levels deep',
  'next leads to another origin',
  '429, with Retry-After of a year',
];

for (const { name, start } of NON_IMPLEMENTATIONS.filter((one) => SELECTED.includes(one.name)))
  test(`does not hold for: ${name}`, FULL, async ({}, info) => {
    await using server = await start();
    const urls = ['--base-url', server.origin, '--auth-url', server.origin, '--client-id', 'primary-client'];
    // Of ten pages, one run in two hundred has none that shows what is wrong.
    const flags = [...SMOKE, '--duration', '2s', ...urls, '--report-dir', info.outputPath()];
    const { status, output } = await load(flags, { SCREENINGS_CLIENT_SECRET: 'an unknown secret' });
    expect([1, 3]).toContain(status);
    expect(output).not.toMatch(/\bheld\b|an unknown secret|at .*\.ts:\d/);
    expect(server.leaked?.() ?? []).toEqual([]);
  });

for (const [kind, issued] of [
  ['a JWT', undefined],
  ['opaque', 'opaque+token/of=nobody'],
] as const)
  test(
    `removes a repeated token (${kind}), a repeated secret and terminal codes from all output`,
    FULL,
    async ({}, info) => {
      const secret = 'a "secret" <of> nobody';
      const echo = withTokenEndpoint(({ headers }) => {
        const said = `${headers['authorization']} ${Buffer.from(secret).toString('base64')} ${secret} ${SPELL}`;
        return page([{ ...ITEMS[0], testTime: said, tenantId: said }, ...ITEMS.slice(1)], said);
      });
      await using server = await serve(async (request) =>
        issued && isTokenRequest(request) ? tokenAnswer(issued) : echo(request),
      );
      const file = await writeTarget(info.outputPath(), server.origin, secret);
      const directory = info.outputPath('result');
      const { status, output } = await load([...SMOKE, '--target', file, '--report-dir', directory]);
      expect(status).toBe(1);
      const [json, html] = await Promise.all(
        ['json', 'html'].map((kind) => readFile(`${directory}/load-smoke.${kind}`, 'utf8')),
      );
      for (const text of [output, json, html])
        expect(text).not.toMatch(
          /eyJ|opaque.{1,3}token|secret" <of>|secret\\+" <of>|secret&quot; &lt;of|YSAic2Vj/,
        );
      for (const text of [output, html]) expect(text).not.toMatch(CONTROL);
    },
  );

const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;
