/** Late answers of a failing server are awaited; without an answer the requirement is untested. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from '@playwright/test';
import { byTurns } from '../fixtures/own-tests/tiers.ts';
import { outage } from '../reference-server/faults/outage.ts';
import { startInProcess, test } from '../reference-server/faults/testing.ts';
import { errorAnswer } from '../reference-server/http/http.ts';
import { isScreenings } from '../reference-server/run/alter.ts';
import { certify } from './certify.ts';
import { targetFor } from './proof/faults.ts';

/** Scale 1:50: the 30 s of a connection pool become 600 ms, the maximum of 60 s per answer 1.2 s. */
const SCALE = 0.02;

for (const [name, lateMs, status, reason] of [
  ['after half of what a connection pool waits', 15_000, 'pass', undefined],
  ['after 45 s', 45_000, 'pass', undefined],
  [
    'not within a minute',
    90_000,
    'untested',
    /a page: no complete answer within 1.2 s, 2 times; raise --timeout/,
  ],
  [
    'after 45 s, and to a next not within a minute',
    (path: string) => (path.includes('from_id') ? 90_000 : 45_000),
    'untested',
    /a next of before: no complete answer within 1.2 s; raise --timeout/,
  ],
] as const)
  test(`a failing server that answers 503 ${name}`, byTurns(name, 2), async ({ small }) => {
    const late = outage(async (request, stage, next) => {
      if (stage !== 'on' || !isScreenings(request)) return next(request);
      await sleep(SCALE * (typeof lateMs === 'number' ? lateMs : lateMs(request.path)));
      return errorAnswer(503, 'service_unavailable', 'no connection within 30 s');
    });
    await using server = await startInProcess(small, late.server);
    const { dispatcher } = server;
    const target = late.target!(await targetFor(server, 'full'));
    const only = ['7.2-server-error', '7.2-no-unprovoked-5xx'] as const;
    const report = await certify(target, {
      seed: 1,
      runs: 1,
      only,
      timeoutMs: 400,
      pollingScale: SCALE,
      dispatcher,
    });
    const result = report.requirements.find(({ id }) => id === '7.2-server-error')!;
    expect([result.status, result.failures]).toEqual([status, []]);
    if (reason) expect(result.reason).toMatch(reason);
  });
