/** If TLS offers HTTP/2, part of a run uses it; a request that fails over HTTP/2 is sent again over HTTP/1.1. */
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect } from '@playwright/test';
import { FULL } from '../fixtures/own-tests/tiers.ts';
import { Transport } from '../engine/client/transport.ts';
import type { Exchange } from '../engine/client/exchange.ts';
import { KEY, SELF_SIGNED } from '../reference-server/http/certificates.ts';
import { test } from '../reference-server/faults/testing.ts';
import { answers } from '../reference-server/run/alter.ts';
import { obstaclesOf, certifyVariant } from './proof/variants.ts';

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

type Answer = (request: Http2ServerRequest, response: Http2ServerResponse) => void;

/** The answers to forty requests, sent twelve at a time. */
async function asked(answer: Answer): Promise<Exchange[]> {
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
