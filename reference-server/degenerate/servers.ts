/** Servers that are none: whatever answers something, or nothing, must never be called conformant. */
import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { isScreenings, middleware } from '../faults/alter.ts';
import { dying } from '../faults/rest-errors.ts';
import { type Handler, jsonAnswer, serve, type ServiceAnswer } from '../http.ts';
import type { ServerOptions } from '../start.ts';

export interface Address extends AsyncDisposable {
  readonly origin: string;
}

export interface Degenerate {
  readonly name: string;
  readonly start: () => Promise<Address>;
}

const always =
  (answer: ServiceAnswer): Handler =>
  async () =>
    answer;

const http = (name: string, handler: Handler): Degenerate => ({ name, start: () => serve(handler) });

const json = (status: number, body: object): ServiceAnswer => jsonAnswer(status, { ...body });

/** A token that looks right, and lasts; nobody signed it. */
function token(): string {
  const iat = Math.floor(Date.now() / 1000);
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = {
    iss: 'http://127.0.0.1',
    aud: 'x',
    sub: 'primary-client',
    iat,
    exp: iat + 3600,
    scope: 'screenings.read',
    tenant_id: '7d0c5a52-3f0e-4b61-9c55-0d8a1f2b6e01',
  };
  return `${part({ alg: 'none' })}.${part(claims)}.AAAA`;
}

const tokenAnswer = (): ServiceAnswer =>
  jsonAnswer(
    200,
    { access_token: token(), token_type: 'Bearer', expires_in: 3600, scope: 'screenings.read' },
    [['cache-control', 'no-store']],
  );

/** Hands out a token to everybody, and answers the same to everything else. */
const behindTokens =
  (answer: ServiceAnswer): Handler =>
  async ({ path }) =>
    path.endsWith('/oauth/token') ? tokenAnswer() : answer;

const page = json(200, {
  items: [
    { id: 1, tenantId: '7d0c5a52-3f0e-4b61-9c55-0d8a1f2b6e01', testTime: '2026-03-01T10:00:00Z' },
    { id: 2, tenantId: '7d0c5a52-3f0e-4b61-9c55-0d8a1f2b6e01', testTime: '2026-03-01T10:00:00Z' },
    { id: 3, tenantId: '7d0c5a52-3f0e-4b61-9c55-0d8a1f2b6e01', testTime: '2026-03-01T11:00:00.5+01:00' },
  ],
  links: {},
});

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
  ),
  http(
    'a web page for everything',
    always({ status: 200, headers: [['content-type', 'text/html']], body: '<html></html>' }),
  ),
  http('tokens for everybody, and always an empty page', behindTokens(json(200, { items: [], links: {} }))),
  http('tokens for everybody, and a static copy of one good page', behindTokens(page)),
  http('tokens for everybody, and 401 to every page', behindTokens(json(401, { code: 'unauthenticated' }))),
  http('tokens for everybody, and 500 to every page', behindTokens(json(500, { code: 'internal_error' }))),
  http('tokens for everybody, and 204 to every page', behindTokens({ status: 204, headers: [], body: '' })),
  http('tokens for everybody, and a page that links to itself', async ({ path, headers }) =>
    path.endsWith('/oauth/token')
      ? tokenAnswer()
      : jsonAnswer(200, { items: [], links: { next: `http://${headers['host']}${path}` } }),
  ),
  http('tokens for everybody, and another empty page behind every page', async ({ path, headers }) =>
    path.endsWith('/oauth/token')
      ? tokenAnswer()
      : jsonAnswer(200, { items: [], links: { next: `http://${headers['host']}${path}0` } }),
  ),
  http('half an answer to everything', async () => ({
    status: 200,
    headers: [['content-type', 'application/json']],
    body: dying(),
  })),
  { name: 'accepts the connection and never answers', start: () => sockets(() => undefined) },
  { name: 'resets every connection', start: () => sockets((socket) => socket.resetAndDestroy()) },
  {
    name: 'closes every connection behind the request',
    start: () => sockets((socket) => void socket.once('data', () => socket.end())),
  },
  {
    name: 'answers what is no HTTP',
    start: () =>
      sockets((socket) => void socket.once('data', () => socket.end('220 mail.example.com ESMTP\r\n'))),
  },
  { name: 'nobody listens', start: nobody },
];

/** A good server that ends in the middle of a run: from the given request on it behaves so. */
export const dyingAfter = (requests: number, how: 'resets' | 'hangs' | '503'): ServerOptions =>
  middleware(() => {
    let asked = 0;
    return async (request, next) => {
      if ((asked += 1) <= requests) return next(request);
      if (how === '503') return json(503, { code: 'service_unavailable' });
      if (how === 'hangs') return new Promise(() => undefined);
      return { status: 200, headers: [], body: dying() };
    };
  });

/** A good server whose tenant has nothing: every page is empty. */
export const alwaysEmpty: ServerOptions = middleware(() => async (request, next) => {
  const answer = await next(request);
  return isScreenings(request) && answer.status === 200 ? json(200, { items: [], links: {} }) : answer;
});

async function sockets(behave: (socket: Socket) => void): Promise<Address> {
  const open = new Set<Socket>();
  const server: Server = createServer((socket) => {
    open.add(socket);
    socket.on('error', () => socket.destroy()).on('close', () => open.delete(socket));
    behave(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** An address that was free a moment ago. */
async function nobody(): Promise<Address> {
  const { origin, ...address } = await sockets(() => undefined);
  await address[Symbol.asyncDispose]();
  return { origin, async [Symbol.asyncDispose]() {} };
}
