/** From node:http to a service of plain values; answers malformed HTTP itself, with a 4xx instead of a reset. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, STATUS_CODES } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createSecureServer, type SecureServerOptions, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo, Server as NetServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';

export interface ServiceRequest {
  readonly method: string;
  /** Path and query as sent, except that unreserved characters of the path are percent-decoded. */
  readonly path: string;
  /** Names in lower case. The values of a repeated header are joined by commas; of Authorization the first is kept. */
  readonly headers: Readonly<Record<string, string>>;
  /** The header names as sent. */
  readonly names?: readonly string[];
  readonly isHttp2?: boolean;
  /** Identifies the connection; absent in process. */
  readonly connection?: object;
  readonly body: Buffer;
}

export type HeaderLines = readonly (readonly [name: string, value: string])[];

export interface ServiceAnswer {
  readonly status: number;
  /** Sent in this order and spelling; names may repeat. Content-Length is added for a string or Buffer. */
  readonly headers: HeaderLines;
  /** An iterable is sent chunk by chunk; if it throws, the connection breaks. */
  readonly body: string | Buffer | AsyncIterable<Buffer>;
}

export type Handler = (request: ServiceRequest) => Promise<ServiceAnswer>;

interface Outcome {
  readonly requestId: string;
  readonly method: string;
  /** Path and query as the handler gets them; not validated. */
  readonly path: string;
  readonly status: number;
  /** Length of the body; undefined if it was streamed. */
  readonly octets: number | undefined;
  readonly durationMs: number;
}

/** Called after each answer; not for CONNECT, an unknown expectation, and what is not valid HTTP. */
export type Observer = (outcome: Outcome) => void;

interface ListenOptions {
  /** Default 0: any free port. */
  readonly port?: number;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Serves TLS at localhost with HTTP/2 and HTTP/1.1. */
  readonly http2?: SecureServerOptions;
}

/** A bound port; requests wait until `handle` sets their handler. */
export interface Listener extends AsyncDisposable {
  readonly port: number;
  /** `http://host:port` */
  readonly origin: string;
  /** With an observer, the answers it is called for have an X-Request-Id: the client's own if it is short and plain. */
  handle(handler: Handler, observer?: Observer): void;
  /** Accepts no new requests and waits up to graceMs for those in flight. Default 0. */
  stop(graceMs?: number): Promise<void>;
}

interface Service {
  readonly handler: Handler;
  readonly observer: Observer | undefined;
}

// RFC 9110, 4.1 recommends support for URIs of at least 8,000 octets.
const MAX_TARGET_OCTETS = 8_000;
const MAX_HEADER_OCTETS = 32_768;
const MAX_BODY_OCTETS = 65_536;
const REQUEST_TIMEOUT_MS = 30_000;
const HEADERS_TIMEOUT_MS = 10_000;
/** How long to read and discard the rest of a rejected request. */
const LINGER_MS = 5_000;

export function jsonAnswer(status: number, body: string | object, headers: HeaderLines = []): ServiceAnswer {
  return {
    status,
    headers: [['content-type', 'application/json'], ...headers],
    body: typeof body === 'string' ? body : JSON.stringify(body),
  };
}

/** An error of the REST API: `code` as in section 7.2, and a message for people. */
export const errorAnswer = (status: number, code: string, message: string, headers?: HeaderLines) =>
  jsonAnswer(status, { code, message }, headers);

const refused = {
  body: errorAnswer(413, 'invalid_request', `the body is longer than ${MAX_BODY_OCTETS} octets`),
  target: errorAnswer(414, 'invalid_request', `the URI is longer than ${MAX_TARGET_OCTETS} octets`),
  headers: errorAnswer(431, 'invalid_request', `the headers are longer than ${MAX_HEADER_OCTETS} octets`),
  host: errorAnswer(400, 'invalid_request', 'the Host header is missing'),
  slow: errorAnswer(408, 'invalid_request', 'the request did not arrive in time'),
  malformed: errorAnswer(400, 'invalid_request', 'the request is not valid HTTP'),
  connect: errorAnswer(405, 'method_not_allowed', 'CONNECT is not served here', [['allow', 'GET, POST']]),
  expectation: errorAnswer(417, 'invalid_request', 'the only expectation served is 100-continue', [
    ['connection', 'close'],
  ]),
} as const;

const TO_PARSE_ERRORS: Readonly<Record<string, ServiceAnswer>> = {
  HPE_HEADER_OVERFLOW: refused.headers,
  ERR_HTTP_REQUEST_TIMEOUT: refused.slow,
};

export async function serve(handler: Handler, options: ListenOptions = {}): Promise<Listener> {
  const listener = await listen(options);
  listener.handle(handler);
  return listener;
}

/** Listens at the port (0: any free one), and returns it. */
export async function bind(server: NetServer, port = 0, host = '127.0.0.1'): Promise<number> {
  await once(server.listen(port, host), 'listening');
  return (server.address() as AddressInfo).port;
}

/** Binds a port before the handler exists, for handlers that need its address. */
export async function listen({ port = 0, host = '127.0.0.1', http2 }: ListenOptions = {}): Promise<Listener> {
  let provide: (service: Service) => void;
  const provided = new Promise<Service>((resolve) => (provide = resolve));

  const limits = {
    maxHeaderSize: MAX_HEADER_OCTETS,
    // Node's own 400 has no body.
    requireHostHeader: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Also closes connections that never send a request.
    headersTimeout: HEADERS_TIMEOUT_MS,
    connectionsCheckingInterval: 2_000,
    keepAliveTimeout: 30_000,
  };
  // Node gives HTTP/2 requests the interface of HTTP/1.1 ones.
  const server = http2
    ? (createSecureServer({ ...limits, ...http2, allowHTTP1: true }) as unknown as Server)
    : createServer(limits);
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session: ServerHttp2Session) => {
    sessions.add(session.once('close', () => sessions.delete(session)));
  });
  const sockets = new Set<Duplex>();
  server.on('connection', (socket: Duplex) => {
    sockets.add(socket.once('close', () => sockets.delete(socket)));
  });
  const stop = async (graceMs = 0): Promise<void> => {
    const closed = close(server, sockets, graceMs);
    for (const session of sessions) session.close();
    await closed;
  };
  server.on('request', (request, response) => {
    // The server is closing: tell the client to send nothing more on this connection.
    if (!server.listening) response.shouldKeepAlive = false;
    void exchange(request, response, provided);
  });
  // The client has not sent its body yet, so the connection can be closed cleanly.
  server.on('checkExpectation', (_request, response) => void send(response, refused.expectation));
  server.on('connect', (_request, socket: Duplex) => refuseRaw(socket, refused.connect));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    refuseRaw(socket, TO_PARSE_ERRORS[error.code ?? ''] ?? refused.malformed);
  });
  const bound = await bind(server, port, host);
  return {
    port: bound,
    origin: http2 ? `https://localhost:${bound}` : `http://${reachable(host)}:${bound}`,
    handle: (handler, observer) => provide({ handler, observer }),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** The host at which a client on this machine reaches a listening address; 0.0.0.0 and :: are not destinations. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

async function exchange(request: IncomingMessage, response: ServerResponse, provided: Promise<Service>) {
  const startedAt = performance.now();
  const { handler, observer } = await provided;
  const { method = 'GET', url: target = '/' } = request;
  if (observer) observe(observer, request, response, startedAt);
  if (isTooLong(target)) return refuse(request, response, refused.target);
  if (request.httpVersion === '1.1' && request.headers.host === undefined)
    return refuse(request, response, refused.host);
  let body: Buffer | undefined;
  try {
    body = hasBody(request) ? await readBody(request) : Buffer.alloc(0);
  } catch {
    return response.destroy(); // the client closed the connection within its request
  }
  if (!body) return refuse(request, response, refused.body);
  const { rawHeaders, httpVersionMajor, socket: connection } = request;
  const headers = request.headers as Record<string, string>;
  const names = rawHeaders.filter((_, index) => index % 2 === 0);
  const asked = { method, target, headers, names, isHttp2: httpVersionMajor === 2, connection, body };
  await send(response, await answerTo(handler, asked));
}

const REQUEST_ID = 'x-request-id';

/** Adds a request id to the answer, and calls the observer when the answer was sent. */
function observe(observer: Observer, request: IncomingMessage, response: ServerResponse, startedAt: number) {
  const { method = 'GET', url = '/', headers } = request;
  const given = headers[REQUEST_ID];
  const requestId = typeof given === 'string' && /^[\w-]{1,64}$/.test(given) ? given : randomUUID();
  response.setHeader(REQUEST_ID, requestId);
  response.once('close', () => {
    const length = response.getHeader('content-length');
    const octets = length === undefined ? undefined : Number(length);
    const durationMs = performance.now() - startedAt;
    observer({ requestId, method, path: pathOf(url), status: response.statusCode, octets, durationMs });
  });
}

const isTooLong = (target: string): boolean => Buffer.byteLength(target) > MAX_TARGET_OCTETS;

const pathOf = (target: string): string => normalized(originForm(target));

/** Returns path and query of a request target; proxies may send the absolute form (RFC 9112, 3.2.2). */
function originForm(target: string): string {
  const absolute = /^https?:\/\/[^/?#]*(.*)$/i.exec(target);
  if (!absolute) return target;
  const rest = absolute[1] ?? '';
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** A query may contain further question marks. */
export function splitTarget(target: string): [path: string, query: string] {
  const [path = '', ...rest] = target.split('?');
  return [path, rest.join('?')];
}

/** Decodes percent-encoded unreserved characters of the path (RFC 3986, 6.2.2.2), and leaves the query unchanged. */
function normalized(target: string): string {
  const [path] = splitTarget(target);
  if (!path.includes('%')) return target;
  const plain = path.replace(/%[0-9a-f]{2}/gi, (escape) => {
    const character = String.fromCharCode(parseInt(escape.slice(1), 16));
    return /[\w.~-]/.test(character) ? character : escape;
  });
  return plain + target.slice(path.length);
}

/** Answers a request that was read completely. Never rejects. */
export async function answerTo(
  handler: Handler,
  { target, ...request }: Omit<ServiceRequest, 'path'> & { readonly target: string },
): Promise<ServiceAnswer> {
  if (isTooLong(target)) return refused.target;
  if (request.body.length > MAX_BODY_OCTETS) return refused.body;
  try {
    return await handler({ ...request, path: pathOf(target) });
  } catch (error) {
    console.error('reference server:', error);
    return errorAnswer(500, 'internal_error', 'the server failed to answer this request');
  }
}

/** RFC 9112, 6.3: a request with neither header has no body. */
const hasBody = ({ headers, httpVersionMajor }: IncomingMessage): boolean =>
  httpVersionMajor === 2 ||
  headers['content-length'] !== undefined ||
  headers['transfer-encoding'] !== undefined;

/** Resolves to undefined if the body is too long; rejects if the client closes the connection within it. */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_OCTETS) return undefined;
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let octets = 0;
    request.on('data', (chunk: Buffer) => {
      octets += chunk.length;
      if (octets > MAX_BODY_OCTETS) resolve(undefined);
      else chunks.push(chunk);
    });
    request.on('end', () => resolve(Buffer.concat(chunks)));
    request.on('error', reject);
    request.on('aborted', () => reject(new Error('aborted')));
  });
}

/** Adds Content-Length for a string or Buffer, unless the answer has its own framing. */
export function withLength(answer: ServiceAnswer): ServiceAnswer {
  const { headers, body } = answer;
  if (typeof body !== 'string' && !Buffer.isBuffer(body)) return answer;
  if (headers.some(([name]) => /^(content-length|transfer-encoding)$/i.test(name))) return answer;
  // Counting the octets of a long text takes as long as encoding it, which happens then only once.
  const octets = Buffer.isBuffer(body) ? body : Buffer.from(body);
  return { ...answer, headers: [...headers, ['content-length', String(octets.length)]], body: octets };
}

async function send(response: ServerResponse, answer: ServiceAnswer): Promise<void> {
  if (response.destroyed) return;
  const { status, headers, body } = withLength(answer);
  const isHttp2 = response.req.httpVersionMajor === 2;
  // writeHead may keep only the last header of a name. HTTP/2 has no blanks around values (RFC 9113, 8.2.1).
  for (const [name, value] of headers) response.appendHeader(name, isHttp2 ? value.trim() : value);
  response.writeHead(status);
  if (typeof body === 'string' || Buffer.isBuffer(body)) response.end(body);
  else await pipeline(body, response).catch(() => response.destroy());
}

/** Answers before the request was read; the rest is discarded: a reset would lose the answer (RFC 9112, 9.6). */
function refuse(request: IncomingMessage, response: ServerResponse, answer: ServiceAnswer): void {
  const timer = setTimeout(() => request.socket.destroy(), LINGER_MS).unref();
  request.once('end', () => clearTimeout(timer)).resume();
  void send(response, answer);
}

/** The same for requests without a response object, where node could not parse the request. */
function refuseRaw(socket: Duplex, { status, headers, body }: ServiceAnswer): void {
  const text = String(body);
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    `content-length: ${Buffer.byteLength(text)}`,
    'connection: close',
  ];
  socket.on('error', () => socket.destroy());
  socket.end(`${lines.join('\r\n')}\r\n\r\n${text}`);
  socket.resume();
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

async function close(server: Server, sockets: ReadonlySet<Duplex>, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const closeAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  if (graceMs === 0) closeAll();
  // A connection becomes idle only after its last answer, so this is repeated.
  const idle = setInterval(() => server.closeIdleConnections(), 20);
  const late = setTimeout(closeAll, graceMs);
  await closed;
  clearInterval(idle);
  clearTimeout(late);
}

export const notFound = errorAnswer(404, 'not_found', 'no resource exists at this path');

/** For two origins, of which one serves the token endpoint and the other everything else. */
export const servingOnly =
  (what: 'tokens' | 'pages', handler: Handler): Handler =>
  async (request) =>
    /^[^?]*\/oauth\//.test(request.path) === (what === 'tokens') ? handler(request) : notFound;

/** Parses forms and queries. Undefined for broken percent-encoding or UTF-8, which URLSearchParams accepts. */
export function parseForm(text: string): URLSearchParams | undefined {
  try {
    decodeURIComponent(text);
  } catch {
    return undefined;
  }
  // URLSearchParams ignores a question mark at the start, and empty pairs.
  return new URLSearchParams(`&${text}`);
}
