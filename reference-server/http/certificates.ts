/** A self-signed key and certificates for tests, and TLS with them. */
import { createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { createServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { bind, type Listener } from './http.ts';

/** For localhost and for tests only: one certificate is valid until 2120, the other expired in 2020. */
export const KEY = createPrivateKey({
  format: 'jwk',
  key: {
    kty: 'EC',
    crv: 'P-256',
    x: '4nlHe0w_REz1mq5S1764RvImbwtd7KJ_0_7XzH5GMWc',
    y: 'WNQNofdii1-EiWFz3oj-BhAjbbZymEgRCXop5rqlURk',
    d: 'AAW8HxGc_artdEL6MMsqnUdrLz2ZnV-XtUxBn_sHlfw',
  },
}).export({ format: 'pem', type: 'pkcs8' });
/** The file of the first one. */
export const CERTIFICATE_FILE = fileURLToPath(new URL('localhost.pem', import.meta.url));
export const SELF_SIGNED = readFileSync(CERTIFICATE_FILE, 'utf8');
export const EXPIRED = readFileSync(new URL('expired.pem', import.meta.url), 'utf8');

export interface Secured {
  /** The number of requests without TLS. */
  plainRequests(): number;
}

/** Puts TLS in front of a listener without it, at `host`. The default certificate is for localhost. */
export async function secured<Inner extends Pick<Listener, 'port' | 'stop'>>(
  inner: Inner,
  host: string,
  port = 0,
  cert = SELF_SIGNED,
): Promise<Inner & Pick<Listener, 'origin' | 'stop'> & AsyncDisposable & Secured> {
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
  let plainRequests = 0;
  // A client that rejects the certificate aborts the handshake.
  server.on('tlsClientError', ({ code }: NodeJS.ErrnoException) => {
    if (code === 'ERR_SSL_HTTP_REQUEST') plainRequests += 1;
  });
  const bound = await bind(server, port);
  const stop = async (): Promise<void> => {
    await inner.stop();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return {
    ...inner,
    ...{ port: bound, origin: `https://${host}:${bound}`, stop },
    plainRequests: () => plainRequests,
    [Symbol.asyncDispose]: stop,
  };
}
