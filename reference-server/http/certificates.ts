/** A self-signed key and certificates for tests, and TLS with them. */
import { createPrivateKey } from 'node:crypto';
import { connect, type AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import type { Listener } from './http.ts';

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
const pem = (lines: string): string => `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
export const SELF_SIGNED = pem(`MIIBXjCCAQSgAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOJ5R3tMP0RM9Zqu
Ute+uEbyJm8LXeyif9P+18x+RjFnWNQNofdii1+EiWFz3oj+BhAjbbZymEgRCXop
5rqlURmjRTBDMBQGA1UdEQQNMAuCCWxvY2FsaG9zdDAMBgNVHRMEBTADAQH/MB0G
A1UdDgQWBBTgx6Ej8STsAXJg50dOQ1R/szBHyTAKBggqhkjOPQQDAgNIADBFAiEA
kJgQb1n5lsFclj7A0oYDZPsDg+HfRRvNeLK1S8y++ZwCIAqorrFkt5cxfi3jpzMI
rpaFDZhyDyPnQuSvK8Rp+x4j`);
export const EXPIRED = pem(`MIIBXDCCAQKgAwIBAgIBAjAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwHhcNMjAwMTAxMDAwMDAwWhcNMjAwMTAyMDAwMDAwWjAUMRIwEAYDVQQDDAls
b2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATieUd7TD9ETPWarlLX
vrhG8iZvC13son/T/tfMfkYxZ1jUDaH3YotfhIlhc96I/gYQI222cphIEQl6Kea6
pVEZo0UwQzAUBgNVHREEDTALgglsb2NhbGhvc3QwDAYDVR0TBAUwAwEB/zAdBgNV
HQ4EFgQU4MehI/Ek7AFyYOdHTkNUf7MwR8kwCgYIKoZIzj0EAwIDSAAwRQIgTC1L
bb9ENR3BPrnmRHMebacy7/nzd9RKVGEnNLODtyQCIQC3TZk7KjGpwr0y3zJlZuKo
IIjk/omFYS8BYn3hcMNA7g==`);

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
