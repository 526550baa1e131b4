/** Non-implementations: none of them may ever be reported as conformant. */
import { shift } from '../../engine/data/instant.ts';
import type { Socket } from 'node:net';
import { counting, emptyPage, html, onPages, storedPages, withoutBody } from '../run/alter.ts';
import { brokenAnswer } from '../faults/rest-errors.ts';
import { screening } from '../faults/rows.ts';
import { jsonAnswer, type ServiceAnswer } from '../http/http.ts';
import type { ServerOptions } from '../run/start.ts';
import { BODIES } from './bodies.ts';
import { withTokenEndpoint, http, closedPort, page, sockets, tokenAnswer } from './tools.ts';
import type { NonImplementation } from './tools.ts';
import { WAYS, WIRE } from './wire.ts';

const EVERYTHING: Readonly<Record<string, ServiceAnswer>> = {
  '200 with an empty object': jsonAnswer(200, {}),
  '200 with a token and an empty page in one': jsonAnswer(200, {
    ...(JSON.parse(String(tokenAnswer().body)) as object),
    ...{ items: [], links: {} },
  }),
  '200 without a body': withoutBody(200),
  '401': jsonAnswer(401, { code: 'unauthenticated', error: 'invalid_client', error_description: 'x' }),
  '404': jsonAnswer(404, { code: 'not_found' }),
  '500': jsonAnswer(500, { code: 'internal_error' }),
  'a redirect to itself': withoutBody(302, [['location', '/']]),
  'a web page': html(200, 'Welcome'),
};

const PAGES: Readonly<Record<string, ServiceAnswer>> = {
  'always an empty page': jsonAnswer(200, { items: [], links: {} }),
  'a static copy of one good page': page(),
  '401 to every page': jsonAnswer(401, { code: 'unauthenticated' }),
  '500 to every page': jsonAnswer(500, { code: 'internal_error' }),
  '204 to every page': withoutBody(204),
};

const CONNECTIONS: Readonly<Record<string, (socket: Socket) => void>> = {
  'accepts the connection and never answers': () => undefined,
  'resets every connection': (socket) => socket.resetAndDestroy(),
  'closes every connection after the request': (socket) => socket.once('data', () => socket.end()),
  'answers what is no HTTP': (socket) =>
    socket.once('data', () => socket.end('220 mail.example.com ESMTP\r\n')),
};

export const NON_IMPLEMENTATIONS: readonly NonImplementation[] = [
  ...Object.entries(EVERYTHING).map(([name, answer]) => http(`${name} for everything`, async () => answer)),
  ...Object.entries(PAGES).map(([name, answer]) =>
    http(`tokens for everybody, and ${name}`, withTokenEndpoint(answer)),
  ),
  http('half an answer to everything', async () => brokenAnswer()),
  ...Object.entries(CONNECTIONS).map(([name, behave]) => ({ name, start: () => sockets(behave) })),
  { name: 'nothing listens', start: closedPort },
  ...WIRE,
  ...BODIES,
  ...WAYS,
];

/** Fails in the given way after this number of requests, like a server that dies during a run. */
export const dyingAfter = (requests: number, how: 'resets' | 'hangs' | '503' | '429'): ServerOptions =>
  counting((asked, request, next) => {
    if (asked <= requests) return next(request);
    if (how === '503') return jsonAnswer(503, { code: 'service_unavailable' });
    if (how === '429') return jsonAnswer(429, { code: 'rate_limited' }, [['retry-after', '0']]);
    return how === 'hangs' ? new Promise(() => undefined) : brokenAnswer();
  });

/** An otherwise correct server with a tenant without screenings. */
export const alwaysEmpty: ServerOptions = onPages(emptyPage);

/** An otherwise correct server with endless screenings, this many seconds apart; `to` is ignored. */
export const neverEnding = (secondsApart: bigint): ServerOptions =>
  storedPages(() => async ({ tenantId, from, fromId = 0n, pageSize }) => ({
    items: Array.from({ length: pageSize }, (_, index) => {
      const offset = BigInt(index + 1);
      return screening(tenantId, fromId + offset, shift(from, secondsApart * offset, 0));
    }),
    more: true,
  }));
