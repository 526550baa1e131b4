/** Variants of the transport: encodings, connections, addresses, delays. */
import { setTimeout as sleep } from 'node:timers/promises';
import { brotliCompressSync, constants, deflateRawSync, gzipSync } from 'node:zlib';
import { answers, html, isScreenings, isTokenRequest, middleware, withHeader } from '../run/alter.ts';
import type { ServiceAnswer } from '../http/http.ts';
import { variants, type Variant } from './variant.ts';

const octetsOf = ({ body }: ServiceAnswer): Buffer | undefined =>
  typeof body === 'string' ? Buffer.from(body) : Buffer.isBuffer(body) ? body : undefined;

async function* inChunks(octets: Buffer): AsyncGenerator<Buffer> {
  for (let start = 0; start < octets.length; start += 700) {
    yield octets.subarray(start, start + 700);
    await Promise.resolve();
  }
}

export const addresses = variants({
  'a path prefix before /v1 and /oauth': { pathPrefix: '/gateway/api' },
  'token endpoint and API on origins of their own': { separateOrigins: true },
});

export const protocols = variants({ 'HTTP/2 beside HTTP/1.1': { offersHttp2: true } });

export const gzipped = variants({
  'answers compressed with gzip': answers((answer) => {
    const octets = octetsOf(answer);
    return octets && octets.length > 0
      ? withHeader({ ...answer, body: gzipSync(octets, { level: 1 }) }, 'content-encoding', 'gzip')
      : answer;
  }),
});

export const encodings = variants({
  'chunked answers': answers((answer) => {
    const octets = octetsOf(answer);
    return octets && octets.length > 0 ? { ...answer, body: inChunks(octets) } : answer;
  }),
  'parameters after application/json': answers((answer) =>
    answer.headers.some(([name, value]) => name === 'content-type' && value === 'application/json')
      ? withHeader(answer, 'Content-Type', 'application/json; charset=UTF-8')
      : answer,
  ),
});

export const connections = variants({
  'Connection: close': answers((answer) => withHeader(answer, 'connection', 'close')),
  'one answer in twenty takes 80 ms': middleware(() => {
    let asked = 0;
    return async (request, next) => {
      asked += 1;
      if (asked % 20 === 0) await sleep(80);
      return next(request);
    };
  }),
  'cookies, request ids and caching headers on everything': answers((answer) => ({
    ...answer,
    headers: [
      ...answer.headers,
      ['set-cookie', 'lb=a; Path=/'],
      ['set-cookie', 'route=b'],
      ['x-request-id', '1'],
      ['vary', 'Accept'],
    ],
  })),
});

export const cachedHeaders = variants({
  'header values of a connection are cached without regard to case, as by Jetty': middleware(() => {
    const caches = new WeakMap<object, Map<string, string>>();
    return (request, next) => {
      const { connection, headers } = request;
      const { authorization } = headers;
      if (!connection || authorization === undefined) return next(request);
      const cache = caches.get(connection) ?? new Map<string, string>();
      const key = authorization.toLowerCase();
      const first = cache.get(key) ?? authorization;
      caches.set(connection, cache.set(key, first));
      return next({ ...request, headers: { ...headers, authorization: first } });
    };
  }),
});

/** `Sunday, 06-Nov-94 08:49:37 GMT`: obsolete, but recipients must accept it (RFC 9110, 5.6.7). */
function rfc850(at: Date): string {
  const [, day, month, year, time] = at.toUTCString().split(' ');
  const weekday = at.toLocaleDateString('en', { weekday: 'long', timeZone: 'UTC' });
  return `${weekday}, ${day}-${month}-${year!.slice(2)} ${time} GMT`;
}

export const limited: readonly Variant[] = [
  {
    name: 'a rate limit of 120 a second that says when to come back as an HTTP-date, or as RFC 850 has it',
    server: {
      rateLimit: { limit: 120, windowMs: 1_000 },
      ...answers((answer, request) => {
        const wait = answer.headers.find(([name]) => name === 'retry-after')?.[1];
        if (!isScreenings(request) || wait === undefined) return answer;
        const at = new Date(Date.now() + Number(wait) * 1_000);
        return withHeader(answer, 'Retry-After', at.getSeconds() % 2 ? at.toUTCString() : rfc850(at));
      }),
    },
    target: (target) => ({ ...target, rateLimit: { maxRequests: 600, maxSeconds: 20 } }),
  },
];

/** Slow to certify, so each runs alone and only in the full tests. */
export const slow: readonly Variant[] = [
  {
    name: 'a rate limit of 25 a second, sliding',
    server: { rateLimit: { limit: 25, windowMs: 1_000, algorithm: 'sliding-window' } },
    target: (target) => ({ ...target, rateLimit: { maxRequests: 200, maxSeconds: 20 } }),
  },
  {
    name: 'a rate limit by token bucket with a burst',
    server: { rateLimit: { limit: 40, windowMs: 1_000, algorithm: 'token-bucket', burst: 80 } },
    target: (target) => ({ ...target, rateLimit: { maxRequests: 400, maxSeconds: 20 } }),
  },
];

const CODERS: Readonly<Record<string, (octets: Buffer) => Buffer>> = {
  gzip: (octets) => gzipSync(octets, { level: 1 }),
  br: (octets) => brotliCompressSync(octets, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  deflate: (octets) => deflateRawSync(octets, { level: 1 }),
};

export const compressed = variants({
  'every answer in the coding that Accept-Encoding names, deflate without a header of its own': answers(
    (answer, request) => {
      const octets = octetsOf(answer);
      const coding = (request.headers['accept-encoding'] ?? '').split(',')[0]!.trim();
      const coder = CODERS[coding];
      if (!octets || octets.length === 0 || !coder) return withHeader(answer, 'vary', 'Accept-Encoding');
      const encoded = withHeader({ ...answer, body: coder(octets) }, 'content-encoding', coding);
      return withHeader(encoded, 'vary', 'Accept-Encoding');
    },
  ),
  'a gateway sorts and encodes the query anew, and asks for Content-Length': middleware(
    () => (request, next) => {
      if (isTokenRequest(request) && request.headers['content-length'] === undefined)
        return html(411, 'Length Required');
      const [path, query] = request.path.split('?');
      if (!isScreenings(request) || !query || /%(?![0-9a-f]{2})|%[89a-f]|\+/i.test(query))
        return next(request);
      const sorted = new URLSearchParams(query);
      sorted.sort();
      return next({ ...request, path: `${path}?${sorted}` });
    },
  ),
});
