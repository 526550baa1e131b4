/** No secret and no token leaves the kit: in none of the files that a run writes, and in no spelling. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { answers, isTokenRequest, middleware } from '../reference-server/faults/alter.ts';
import { targetFor } from './proof/faults.ts';
import { test } from '../reference-server/faults/testing.ts';
import { jsonAnswer, type Handler } from '../reference-server/http.ts';
import { startServer } from '../reference-server/start.ts';
import { certify } from './certify.ts';
import { writeReport } from './render/write.ts';

/** Every answer repeats what was asked, with all headers: what a debugging page does. */
const echo = (handler: Handler): Handler =>
  answers((answer, request) => {
    if (answer.status === 200) return answer;
    const { headers, path, body } = request;
    return jsonAnswer(answer.status, {
      headers,
      path,
      body: body.toString(),
      base64: body.toString('base64'),
    });
  }).wrapHandler!(handler);

test('a failing run of a server that repeats everything', async ({ small: { database, provisioned } }) => {
  const issued = new Set<string>();
  const listening = middleware(() => async (request, next) => {
    const answer = await next(request);
    if (isTokenRequest(request) && answer.status === 200) {
      issued.add((JSON.parse(String(answer.body)) as { access_token: string }).access_token);
    }
    return answer;
  });
  await using server = await startServer(database, provisioned, {
    wrapHandler: (handler) => echo(listening.wrapHandler!(handler)),
  });
  const directory = await mkdtemp(join(tmpdir(), 'screenings-report-'));
  try {
    const target = await targetFor(server, 'full');
    const headers = { 'x-gateway-key': 'gateway key of nobody else' };
    const report = await certify({ ...target, headers }, { seed: 1, runs: 4 });
    expect(report.verdict).toBe('non-conformant');

    const files = await writeReport(report, directory);
    expect(files.length).toBeGreaterThan(3);
    const secrets = [
      ...Object.values(target.clients).map(({ clientSecret }) => clientSecret),
      target.expiredToken ?? '',
      headers['x-gateway-key'],
      ...issued,
    ];
    expect(issued.size).toBeGreaterThan(3);
    const spellings = secrets.flatMap((secret) => [
      secret,
      encodeURIComponent(secret),
      // The payload alone would still tell whose token it is, the signature that it is one.
      ...(secret.includes('.') ? secret.split('.').slice(1) : []),
      Buffer.from(`primary-client:${secret}`).toString('base64'),
    ]);
    for (const file of files) {
      const text = await readFile(file, 'utf8');
      for (const spelling of spellings) {
        const at = text.indexOf(spelling);
        expect(at < 0 ? '' : `${file}: …${text.slice(Math.max(0, at - 80), at + 20)}…`).toBe('');
      }
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
