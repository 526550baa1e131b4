/**
 * Requests over HTTP/2, if the target's TLS offers it (ALPN). Uses node:http2, because undici loses requests when a
 * session ends (GOAWAY), as at every restart.
 */
import { connect as openSession, type ClientHttp2Session } from 'node:http2';
import { isIP } from 'node:net';
import { pipeline, type Readable } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import type { Dispatcher } from 'undici';
import { proxyOf, tlsOptions, type ConnectionOptions } from './dispatchers.ts';

const MOST_FAILURES = 3;

type Answered = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers' | 'body'>;

export class Http2 implements Disposable {
  private readonly offered = new Map<string, Promise<boolean>>();
  private failures = 0;
  private readonly sessions = new Map<string, ClientHttp2Session>();

  private readonly trusted: ReturnType<typeof tlsOptions>;

  constructor(private readonly options: ConnectionOptions) {
    this.trusted = tlsOptions(options.ca);
  }

  /** Whether the origin offers HTTP/2; false through a proxy. Opens one connection on the first call, and sends no request. */
  offers(origin: string): Promise<boolean> {
    const known = this.offered.get(origin);
    if (known) return known;
    const asked =
      /^https:/i.test(origin) && proxyOf(origin) === undefined
        ? this.open(origin).then(
            () => true,
            () => false,
          )
        : Promise.resolve(false);
    this.offered.set(origin, asked);
    return asked;
  }

  /** HTTP/1.1 gave the answer that HTTP/2 did not; after a few such failures HTTP/2 is not tried again. */
  noteFailure(origin: string): void {
    if (++this.failures >= MOST_FAILURES) this.offered.set(origin, Promise.resolve(false));
  }

  /**
   * Sends over the open session, or over a new one if there is none or `fresh` is set. Returns raw headers, as
   * undici does. Rejects if there is no answer.
   */
  async request(
    { origin, path, method, ...options }: Dispatcher.RequestOptions & { readonly origin: string },
    fresh: boolean,
  ): Promise<Answered> {
    if (/[^\x21-\xff]/.test(path)) throw new TypeError('no request target');
    const session = (fresh ? undefined : this.sessions.get(origin)) ?? (await this.open(origin));
    const { host = new URL(origin).host, ...headers } = options.headers as Record<string, string>;
    const body = options.body as string | Readable | null;
    const length = typeof body === 'string' ? { 'content-length': String(Buffer.byteLength(body)) } : {};
    const pseudo = { ':method': method, ':path': path, ':scheme': 'https', ':authority': host };
    const stream = session.request(
      { ...pseudo, ...headers, ...length },
      { endStream: body === null, signal: options.signal as AbortSignal },
    );
    if (typeof body === 'string') stream.end(body);
    else if (body) pipeline(body, stream, () => {});
    return new Promise((resolve, reject) => {
      stream.on('error', reject).on('close', () => reject(new Error('the stream ended without an answer')));
      stream.on('response', ({ ':status': status }, _flags, raw: string[] = []) => {
        const isStatus = (at: number): boolean => raw[at - (at % 2)] === ':status';
        const lines = raw.filter((_, at) => !isStatus(at)).map((text) => Buffer.from(text, 'latin1'));
        resolve({
          statusCode: status!,
          headers: lines as unknown as Answered['headers'],
          body: stream as unknown as Answered['body'],
        });
      });
    });
  }

  [Symbol.dispose](): void {
    for (const session of this.sessions.values()) session.destroy();
  }

  /** A new session, which becomes the open one. Rejects if the origin does not accept HTTP/2. */
  private open(origin: string): Promise<ClientHttp2Session> {
    const { hostname, port } = new URL(origin);
    const { timeoutMs } = this.options;
    const host = hostname.replace(/^\[|\]$/g, '');
    return new Promise((resolve, reject) => {
      const socket = connectTls({
        ...{ host, port: Number(port || 443), ALPNProtocols: ['h2', 'http/1.1'], timeout: timeoutMs },
        ...(isIP(host) ? {} : { servername: host }),
        ...this.trusted,
      });
      const fail = (why: string): void => void socket.destroy(new Error(why));
      socket.on('error', reject).on('close', () => reject(new Error('the connection was closed')));
      socket.on('timeout', () => fail('no TLS connection was established in time'));
      socket.once('secureConnect', () => {
        if (socket.alpnProtocol !== 'h2') return fail('HTTP/2 is not offered');
        socket.setTimeout(0);
        const session = openSession(origin, {
          createConnection: () => socket,
          settings: { enablePush: false },
        });
        const forget = (): void => {
          if (this.sessions.get(origin) === session) this.sessions.delete(origin);
        };
        // The end of a session ends its streams, whose errors are reported.
        session.on('error', forget).on('close', forget).on('goaway', forget);
        session.unref();
        this.sessions.set(origin, session);
        session.once('connect', () => resolve(session));
      });
    });
  }
}
