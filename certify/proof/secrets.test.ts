/** No report and no file that a run writes contains a secret or a token, in any encoding. */
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { expect } from '@playwright/test';
import { opaqueTokensFrom } from '../../reference-server/faults/tokens.ts';
import { answers, both, tokenBody } from '../../reference-server/run/alter.ts';
import { targetFor } from './faults.ts';
import { startInProcess, test } from '../../reference-server/testing.ts';
import { jsonAnswer } from '../../reference-server/http/http.ts';
import { createRedactor, REDACTED } from '../../engine/run/evidence/redact.ts';
import { secretsOf } from '../../engine/target/target.ts';
import { makeKeys } from '../report/certificate.ts';
import { redactReport } from '../report/report.ts';
import { certify } from '../certify.ts';
import { entryOf, harText } from '../command/har.ts';
import { keep } from '../render/history.ts';
import { showProgress } from '../command/progress.ts';
import { resultsOf } from '../render/service-results.ts';
import { terminal } from '../render/terminal.ts';
import { writeAtomically } from '../../engine/files.ts';
import { writeReport } from '../render/write.ts';
import { hostileReport, sampleReport } from '../render/sample.testing.ts';
import { selectIds } from '../../engine/requirements.ts';

/** Repeats the whole request in every error answer, as a debugging page does. */
const echo = answers((answer, request) => {
  if (answer.status === 200) return answer;
  const { headers, path, body } = request;
  const form = new URLSearchParams(body.toString());
  const [id, secret] = ['client_id', 'client_secret'].map((name) => form.get(name) ?? '');
  const claims = Buffer.from(JSON.stringify({ exp: 1, secret })).toString('base64url');
  return jsonAnswer(answer.status, {
    headers,
    path,
    body: body.toString(),
    base64: body.toString('base64'),
    authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
    cookie: `session=${Buffer.from('{"alg":"none"}').toString('base64url')}.${claims}.AAAA; key=${encodeURIComponent(secret!)}`,
  });
});

for (const [kind, tokens] of [
  ['JWTs', {}],
  ['opaque tokens that begin as JWTs do', opaqueTokensFrom('eyJ')],
] as const)
  test(`a failing run against a server of ${kind} that repeats every request writes no secret`, async ({
    small,
  }) => {
    const issued = new Set<string>();
    const listening = tokenBody((body) => {
      issued.add(String(body['access_token']));
      return body;
    });
    await using server = await startInProcess(small, both(tokens, listening, echo));
    const directory = test.info().outputPath();
    const headers = { 'x-gateway-key': 'key for the gateway alone' };
    const target = { ...(await targetFor(server, 'full')), headers };
    const redactor = createRedactor(secretsOf(target));
    const entries: object[] = [];
    const lines: string[] = [];
    const progress = showProgress({ write: (text: string) => lines.push(text) } as never, redactor.redact);
    const report = await certify(target, {
      ...{ seed: 1, runs: 1, dispatcher: server.dispatcher },
      only: selectIds(['2.1', '4.2-success', '5-missing', '5-tampered', '7.1']),
      // Pages do not repeat the request.
      onExchange: (exchange) =>
        (exchange.status !== 200 || exchange.request.channel === 'token') &&
        entries.push(entryOf(exchange, redactor)),
      onProgress: progress.tell,
    });
    progress.end();
    expect(report.verdict).toBe('non-conformant');

    await writeReport(report, directory, (await makeKeys()).private);
    await writeAtomically(join(directory, 'run.har'), harText(entries));
    await writeAtomically(join(directory, 'terminal.txt'), `${lines.join('')}${terminal(resultsOf(report))}`);
    await keep(join(directory, 'history'), report);
    const files = (await readdir(directory, { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name));
    const written = [...Object.values(resultsOf(report).files), 'certificate.jws', 'run.har', 'history.html'];
    expect(files.map((file) => basename(file))).toEqual(expect.arrayContaining(written));
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
      // The payload alone would reveal the owner of the token, and the signature belongs to it.
      ...(secret.includes('.') ? secret.split('.').slice(1) : []),
      Buffer.from(secret).toString('base64').replace(/.=*$/, ''),
      Buffer.from(`primary-client:${secret}`).toString('base64'),
      Buffer.from(JSON.stringify({ exp: 1, secret }))
        .toString('base64url')
        .slice(0, -3),
    ]);
    const leaks: string[] = [];
    for (const file of files) {
      const text = await readFile(file, 'utf8');
      for (const spelling of spellings) {
        const at = text.indexOf(spelling);
        if (at >= 0) leaks.push(`${file}: …${text.slice(Math.max(0, at - 80), at + 20)}…`);
      }
    }
    expect(leaks).toEqual([]);
  });

test('no secret survives in a report, and a secret that is one of its words leaves it readable', () => {
  const secret = 's3cr3t/of+the client';
  const spellings = [secret, encodeURIComponent(secret)];
  const report = { ...hostileReport(`before ${spellings.join(' ')} after`), selection: ['4.2'] };
  const redacted = JSON.stringify(redactReport(report, createRedactor([secret])));
  expect(redacted).toContain(REDACTED);
  for (const spelling of spellings) expect(redacted).not.toContain(spelling);

  const sample = sampleReport();
  const fixed = ({ requirements, classes, verdict }: typeof sample) => [
    ...requirements.map(({ id, status, level, class: needs, title, lookAt }) => [
      ...[id, status, level, needs, title, lookAt],
    ]),
    ...[classes, verdict],
  ];
  for (const word of ['core', 'pass', 'status', '4.2-window', 'conformant', 'requirements', 'untested'])
    expect(fixed(redactReport(sample, createRedactor([word])))).toEqual(fixed(sample));
});
