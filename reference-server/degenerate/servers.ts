/** Non-implementations: none of them may ever be reported as conformant. */
import { formatInstant, shift } from '../../engine/data/instant.ts';
import { isScreenings, middleware, storedPages } from '../run/alter.ts';
import { brokenBody } from '../faults/rest-errors.ts';
import { type Handler, jsonAnswer, type ServiceAnswer } from '../http/http.ts';
import type { ServerOptions } from '../run/start.ts';
import { BODIES, BULK } from './bodies.ts';
import {
  withTokenEndpoint,
  type Degenerate,
  http,
  json,
  closedPort,
  page,
  sockets,
  tokenAnswer,
} from './tools.ts';
import { WAYS, WIRE } from './wire.ts';

const always =
  (answer: ServiceAnswer): Handler =>
  async () =>
    answer;

export const DEGENERATE: readonly Degenerate[] = [
  http('200 with an empty object for everything', always(json(200, {}))),
  http('200 with a token and an empty page in one for everything', async () =>
    jsonAnswer(200, { ...(JSON.parse(String(tokenAnswer().body)) as object), items: [], links: {} }),
  ),
  http('200 without a body for everything', always({ status: 200, headers: [], body: '' })),
  http(
    '401 to everything',
    always(json(401, { code: 'unauthenticated', error: 'invalid_client', error_description: 'x' })),
  ),
  http('404 to everything', always(json(404, { code: 'not_found' }))),
  http('500 to everything', always(json(500, { code: 'internal_error' }))),
  http(
    'a redirect to itself for everything',
    always({ status: 302, headers: [['location', '/']], body: '' }),
  ),
  http(
    '429 to everything, with Retry-After 0',
    always(jsonAnswer(429, { code: 'rate_limited' }, [['retry-after', '0']])),
    { slow: true },
  ),
  http(
    'a web page for everything',
    always({ status: 200, headers: [['content-type', 'text/html']], body: '<html></html>' }),
  ),
  http(
    'tokens for everybody, and always an empty page',
    withTokenEndpoint(json(200, { items: [], links: {} })),
  ),
  http('tokens for everybody, and a static copy of one good page', withTokenEndpoint(page())),
  http(
    'tokens for everybody, and 401 to every page',
    withTokenEndpoint(json(401, { code: 'unauthenticated' })),
  ),
  http(
    'tokens for everybody, and 500 to every page',
    withTokenEndpoint(json(500, { code: 'internal_error' })),
  ),
  http(
    'tokens for everybody, and 204 to every page',
    withTokenEndpoint({ status: 204, headers: [], body: '' }),
  ),
  http('half an answer to everything', async () => ({
    status: 200,
    headers: [['content-type', 'application/json']],
    body: brokenBody(),
  })),
  { name: 'accepts the connection and never answers', start: () => sockets(() => undefined) },
  { name: 'resets every connection', start: () => sockets((socket) => socket.resetAndDestroy()) },
  {
    name: 'closes every connection after the request',
    start: () => sockets((socket) => void socket.once('data', () => socket.end())),
  },
  {
    name: 'answers what is no HTTP',
    start: () =>
      sockets((socket) => void socket.once('data', () => socket.end('220 mail.example.com ESMTP\r\n'))),
  },
  { name: 'nothing listens', start: closedPort },
  ...WIRE,
  ...BULK,
  ...BODIES,
  ...WAYS,
];

/** Fails in the given way after this number of requests, like a server that dies during a run. */
export const dyingAfter = (requests: number, how: 'resets' | 'hangs' | '503'): ServerOptions =>
  middleware(() => {
    let asked = 0;
    return async (request, next) => {
      if ((asked += 1) <= requests) return next(request);
      if (how === '503') return json(503, { code: 'service_unavailable' });
      if (how === 'hangs') return new Promise(() => undefined);
      return { status: 200, headers: [], body: brokenBody() };
    };
  });

/** An otherwise correct server with a tenant without screenings. */
export const alwaysEmpty: ServerOptions = middleware(() => async (request, next) => {
  const answer = await next(request);
  return isScreenings(request) && answer.status === 200 ? json(200, { items: [], links: {} }) : answer;
});

/** An otherwise correct server with endless screenings, this many seconds apart; `to` is ignored. */
export const neverEnding = (secondsApart: bigint): ServerOptions =>
  storedPages(() => async ({ tenantId, from, fromId = 0n, pageSize }) => ({
    items: Array.from({ length: pageSize }, (_, index) => {
      const id = fromId + BigInt(index + 1);
      const testTime = formatInstant(shift(from, secondsApart * BigInt(index + 1), 0));
      return { id, testTime, json: `{"id":${id},"tenantId":"${tenantId}","testTime":"${testTime}"}` };
    }),
    more: true,
  }));
