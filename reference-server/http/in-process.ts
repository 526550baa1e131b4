/** The service without sockets: passes requests to the handler in the form that node:http would give them. */
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { unlessAborted } from '../../engine/clock.ts';
import { answerTo, withLength, type Handler, type Listener, type ServiceAnswer } from './http.ts';

type Answered = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers' | 'body'>;

/** Listens on addresses that exist only in this process; replaces an undici dispatcher. */
export class InProcess {
  private readonly handlers = new Map<string, Handler>();
  /** Allows requests to be treated as if they came over HTTP/2. */
  offersHttp2 = false;

  listen(): Listener {
    const port = this.handlers.size + 1;
    const origin = `http://127.0.0.1:${port}`;
    this.handlers.set(origin, () => Promise.reject(new Error('no handler yet')));
    const stop = async (): Promise<void> => void this.handlers.delete(origin);
    return {
      ...{ port, origin, stop },
      handle: (handler) => void this.handlers.set(origin, handler),
      [Symbol.asyncDispose]: stop,
    };
  }

  /** Returns raw headers, like undici with `responseHeaders: 'raw'`. */
  async request(
    options: Dispatcher.RequestOptions & { readonly origin: string; readonly isHttp2?: boolean },
  ): Promise<Answered> {
    const { origin, path, method, body, signal, isHttp2 = false } = options;
    // Lets timers and other requests run, as they do while a socket is awaited.
    await setImmediate();
    const handler = this.handlers.get(origin);
    if (!handler) throw Object.assign(new Error(`connect ECONNREFUSED ${origin}`), { code: 'ECONNREFUSED' });
    const octets =
      body instanceof Readable ? await buffer(body) : Buffer.from((body ?? '') as string | Buffer);
    const sent = Object.entries(options.headers as Record<string, string>);
    const names = sent.map(([name]) => (isHttp2 ? name.toLowerCase() : name));
    const { host } = new URL(origin);
    const chunked: Record<string, string> = isHttp2 ? {} : { 'transfer-encoding': 'chunked' };
    const headers = {
      ...(isHttp2
        ? { ':authority': host, ':method': method, ':path': path }
        : { host, connection: 'keep-alive' }),
      ...(body === null ? {} : body instanceof Readable ? chunked : lengthOf(octets)),
      ...Object.fromEntries(sent.map(([name, value]) => [name.toLowerCase(), value.trim()])),
    };
    const answer = withLength(
      await answerTo(handler, { method, target: path, headers, names, isHttp2, body: octets }),
    );
    return {
      statusCode: answer.status,
      headers: rawHeaders(answer) as unknown as Answered['headers'],
      body: (await begun(bodyOf(answer, method, signal as AbortSignal))) as unknown as Answered['body'],
    };
  }
}

const lengthOf = (octets: Buffer): Record<string, string> => ({ 'content-length': String(octets.length) });

function rawHeaders({ headers, body }: ServiceAnswer): Buffer[] {
  const named = new Set(headers.map(([name]) => name.toLowerCase()));
  const added: (readonly [string, string])[] = [
    ['Date', new Date().toUTCString()],
    ['Connection', 'keep-alive'],
    ...(typeof body === 'string' || Buffer.isBuffer(body) ? [] : [['Transfer-Encoding', 'chunked'] as const]),
  ];
  return [...headers, ...added.filter(([name]) => !named.has(name.toLowerCase()))]
    .flat()
    .map((text) => Buffer.from(text, 'latin1'));
}

/** Like node, which sends the head with the first octets: a body that breaks before them leaves no answer. */
async function begun(body: AsyncGenerator<Buffer>): Promise<AsyncGenerator<Buffer>> {
  const { done, value } = await body.next();
  return (async function* () {
    if (!done) yield value;
    yield* body;
  })();
}

async function* bodyOf({ status, body }: ServiceAnswer, method: string, signal: AbortSignal) {
  if (method === 'HEAD' || status === 204 || status === 304) return;
  if (typeof body === 'string' || Buffer.isBuffer(body))
    return void (yield Buffer.isBuffer(body) ? body : Buffer.from(body));
  const chunks = body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await unlessAborted(signal, chunks.next());
      if (done) return;
      yield value;
    }
  } catch (error) {
    throw signal.aborted ? error : Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' });
  }
}
