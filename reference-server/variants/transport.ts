/** Variants of the transport: encodings, connections, addresses, delays. */
import { setTimeout as sleep } from 'node:timers/promises';
import { brotliCompressSync, constants, deflateRawSync, gzipSync } from 'node:zlib';
import {
  answers,
  counting,
  html,
  isScreenings,
  isTokenRequest,
  middleware,
  withHeader,
} from '../run/alter.ts';
import type { ServiceAnswer } from '../http/http.ts';
import type { ServerOptions } from '../run/start.ts';
import { probing } from '../faults/fault.ts';
import type { Groups } from './variant.ts';

/** Changes bodies that are neither empty nor streamed. */
const encoded = (
  alter: (answer: ServiceAnswer, octets: Buffer, accepted: string) => ServiceAnswer,
): ServerOptions =>
  answers((answer, { headers }) => {
    const { body } = answer;
    const octets =
      typeof body === 'string' || Buffer.isBuffer(body) ? Buffer.from(body as string) : undefined;
    const accepted = (headers['accept-encoding'] ?? '').split(',')[0]!.trim();
    return octets?.length ? alter(answer, octets, accepted) : answer;
  });

async function* inChunks(octets: Buffer): AsyncGenerator<Buffer> {
  for (let start = 0; start < octets.length; start += 700) {
    yield octets.subarray(start, start + 700);
    await Promise.resolve();
  }
}

const CODERS: Readonly<Record<string, (octets: Buffer) => Buffer>> = {
  gzip: (octets) => gzipSync(octets, { level: 1 }),
  br: (octets) => brotliCompressSync(octets, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  deflate: (octets) => deflateRawSync(octets, { level: 1 }),
};

/** `Sunday, 06-Nov-94 08:49:37 GMT`: obsolete, but recipients must accept it (RFC 9110, 5.6.7). */
function rfc850(at: Date): string {
  const [, day, month, year, time] = at.toUTCString().split(' ');
  const weekday = at.toLocaleDateString('en', { weekday: 'long', timeZone: 'UTC' });
  return `${weekday}, ${day}-${month}-${year!.slice(2)} ${time} GMT`;
}

export const transport: Groups = {
  'behind a gateway': {
    'a path prefix before /v1 and /oauth': { pathPrefix: '/gateway/api' },
    'separate origins of the token endpoint and the API': { separateOrigins: true },
    'Connection: close': answers((answer) => withHeader(answer, 'connection', 'close')),
    'one answer in twenty takes 80 ms': counting(async (asked, request, next) => {
      if (asked % 20 === 0) await sleep(80);
      return next(request);
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
  },
  'with short pages': { 'HTTP/2 beside HTTP/1.1': { offersHttp2: true } },
  'with its own spelling': {
    'answers compressed with gzip': encoded((answer, octets) =>
      withHeader({ ...answer, body: CODERS['gzip']!(octets) }, 'content-encoding', 'gzip'),
    ),
    'header values of a connection are cached case-insensitively, as by Jetty': middleware(() => {
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
  },
  'with relative links': {
    'chunked answers': encoded((answer, octets) => ({ ...answer, body: inChunks(octets) })),
    // Caddy, if the server has answered before the whole request was read.
    'one answer in ten of the token endpoint ends without its body': counting(
      async (asked, request, next) => {
        const answer = await next(request);
        return asked % 10 === 0 ? { ...answer, body: inChunks(Buffer.alloc(0)) } : answer;
      },
      isTokenRequest,
    ),
    'parameters after application/json': answers((answer) =>
      answer.headers.some(([name, value]) => name === 'content-type' && value === 'application/json')
        ? withHeader(answer, 'Content-Type', 'application/json; charset=UTF-8')
        : answer,
    ),
  },
  'with a rate limit': {
    'a rate limit of 120 a second with an HTTP-date, or one of RFC 850, in Retry-After': {
      server: {
        rateLimit: { limit: 120, windowMs: 1_000 },
        ...answers((answer, request) => {
          const wait = answer.headers.find(([name]) => name === 'retry-after')?.[1];
          if (!isScreenings(request) || wait === undefined) return answer;
          const at = new Date(Date.now() + Number(wait) * 1_000);
          return withHeader(answer, 'Retry-After', at.getSeconds() % 2 ? at.toUTCString() : rfc850(at));
        }),
      },
      target: probing(600),
    },
  },
  'with compression': {
    'the coding that Accept-Encoding names first, deflate without a zlib header': encoded(
      (answer, octets, accepted) => {
        const coder = CODERS[accepted];
        const varying = withHeader(answer, 'vary', 'Accept-Encoding');
        return coder
          ? withHeader({ ...varying, body: coder(octets) }, 'content-encoding', accepted)
          : varying;
      },
    ),
    'a gateway sorts and encodes the query, and requires Content-Length': middleware(
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
  },
};
