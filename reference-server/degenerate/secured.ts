import { connect, type AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import type { Listener } from '../http/http.ts';
import { KEY, SELF_SIGNED } from '../http/certificates.ts';

/** Puts TLS in front of a listener without it, at `host`. The default certificate is for localhost. */
export async function secured<Inner extends Pick<Listener, 'port' | 'stop'>>(
  inner: Inner,
  host: string,
  port = 0,
  cert = SELF_SIGNED,
): Promise<Inner & Pick<Listener, 'origin' | 'stop'> & AsyncDisposable> {
  const server = createServer({ key: KEY, cert }, (socket) => {
    const onward = connect(inner.port, '127.0.0.1');
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
      one.pipe(other);
    }
  });
  // A client that rejects the certificate aborts the handshake.
  server.on('tlsClientError', () => {});
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', () => resolve());
  });
  const bound = (server.address() as AddressInfo).port;
  const stop = async (): Promise<void> => {
    await inner.stop();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return {
    ...inner,
    ...{ port: bound, origin: `https://${host}:${bound}`, stop },
    [Symbol.asyncDispose]: stop,
  };
}
