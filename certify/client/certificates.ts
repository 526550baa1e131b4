/** TLS for situations: one certificate, for localhost, at an address that it names and at one that it does not. */
import { writeFile } from 'node:fs/promises';
import { connect, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { KEY, SELF_SIGNED } from '../../reference-server/degenerate/certificates.ts';
import type { Listener } from '../../reference-server/http/http.ts';

export interface Certificate {
  /** The host of the server's address. */
  readonly host: string;
  /** The certificates that the client is told to trust. */
  readonly file: string;
}

export type Certificates = Readonly<Record<'ours' | 'another', Certificate>>;

export async function makeCertificates(directory: string): Promise<Certificates> {
  const file = join(directory, 'trusted.pem');
  await writeFile(file, SELF_SIGNED);
  return { ours: { host: 'localhost', file }, another: { host: '127.0.0.1', file } };
}

/** The same listener with TLS. */
export async function secured(inner: Listener, { host }: Certificate, port = 0): Promise<Listener> {
  const server = createServer({ key: KEY, cert: SELF_SIGNED }, (socket) => {
    const onward = connect(inner.port, '127.0.0.1');
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
      one.pipe(other);
    }
  });
  // A client that refuses the certificate goes away in the middle of the handshake.
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
    port: bound,
    origin: `https://${host}:${bound}`,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
