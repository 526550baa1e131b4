/** Building blocks of non-implementations. */
import { createServer as createHttp, type RequestListener } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import { bind, jsonAnswer, serve } from '../http/http.ts';
import type { Handler, ServiceAnswer, ServiceRequest } from '../http/http.ts';
import { isTokenRequest } from '../run/alter.ts';
import { freePort } from '../store/postgres-embedded.ts';

export interface Address extends AsyncDisposable {
  readonly origin: string;
  /** Requests that must not have been sent to this server; empty if there were none. */
  readonly leaked?: () => readonly string[];
}

export interface NonImplementation {
  readonly name: string;
  readonly start: () => Promise<Address>;
}

export const TENANT = '7d0c5a52-3f0e-4b61-9c55-0d8a1f2b6e01';

export const http = (name: string, handler: Handler) => ({ name, start: () => serve(handler) });

/** A well-formed, unexpired token with a meaningless signature. */
export function token(altered: object = {}): string {
  const iat = Math.floor(Date.now() / 1000);
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = {
    iss: 'http://127.0.0.1',
    aud: 'x',
    sub: 'primary-client',
    iat,
    exp: iat + 3600,
    scope: 'screenings.read',
    tenant_id: TENANT,
    ...altered,
  };
  return `${part({ alg: 'none' })}.${part(claims)}.AAAA`;
}

export const tokenAnswer = (access_token = token()): ServiceAnswer =>
  jsonAnswer(200, { access_token, token_type: 'Bearer', expires_in: 3600, scope: 'screenings.read' }, [
    ['cache-control', 'no-store'],
  ]);

export const withTokenEndpoint =
  (answer: ServiceAnswer | ((request: ServiceRequest) => ServiceAnswer | Promise<ServiceAnswer>)): Handler =>
  async (request) =>
    isTokenRequest(request) ? tokenAnswer() : typeof answer === 'function' ? answer(request) : answer;

export const ITEMS: readonly object[] = [
  { id: 1, tenantId: TENANT, testTime: '2026-03-01T10:00:00Z' },
  { id: 2, tenantId: TENANT, testTime: '2026-03-01T10:00:00Z' },
  { id: 3, tenantId: TENANT, testTime: '2026-03-01T11:00:00.5+01:00' },
];

export const page = (items: readonly unknown[] = ITEMS, next?: unknown): ServiceAnswer =>
  jsonAnswer(200, { items, links: next === undefined ? {} : { next } });

/** Answers with a token, and every other request by `answer`. */
export function raw(name: string, answer: (socket: Socket) => void): NonImplementation {
  const text = String(tokenAnswer().body);
  const listener: RequestListener = (request, response) => {
    request.resume();
    if (request.url?.endsWith('/oauth/token'))
      response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' }).end(text);
    else answer(request.socket);
  };
  return { name, start: () => listenOn(createHttp(listener)) };
}

export const sockets = (behave: (socket: Socket) => void): Promise<Address> => listenOn(createServer(behave));

/** Listens on a free port of this machine; disposing breaks open connections. */
export async function listenOn(server: Server): Promise<Address> {
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.on('error', () => socket.destroy()).on('close', () => open.delete(socket));
  });
  return {
    origin: `http://127.0.0.1:${await bind(server)}`,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export const closedPort = async (): Promise<Address> => ({
  origin: `http://127.0.0.1:${await freePort()}`,
  async [Symbol.asyncDispose]() {},
});
