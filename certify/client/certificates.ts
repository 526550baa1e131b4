/** Certificates made for one run, one of them in a name that is not the server's. */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { connect, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { promisify } from 'node:util';
import type { Listener } from '../../reference-server/http/http.ts';

export interface Certificate {
  readonly key: string;
  readonly cert: string;
  /** The certificates that the client is told to trust. */
  readonly file: string;
}

export type CertificateName = 'ours' | 'another';

/** What each certificate is for. */
const NAMES: Readonly<Record<CertificateName, string>> = {
  ours: 'IP:127.0.0.1',
  another: 'DNS:other.example',
};

/** Makes both, trusted alike. Rejects where there is no openssl. */
export async function makeCertificates(directory: string): Promise<Record<CertificateName, Certificate>> {
  const file = join(directory, 'trusted.pem');
  const made = await Promise.all(
    (['ours', 'another'] as const).map(async (name) => {
      const [keyFile, certFile] = [join(directory, `${name}.key`), join(directory, `${name}.pem`)];
      const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${NAMES[name]}`];
      const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
      const files = ['-keyout', keyFile, '-out', certFile];
      await promisify(execFile)('openssl', ['req', '-x509', ...kind, ...subject, ...files], {
        timeout: 20_000,
      });
      const [key, cert] = await Promise.all([readFile(keyFile, 'utf8'), readFile(certFile, 'utf8')]);
      return { key, cert, file };
    }),
  );
  const [ours, another] = made as [Certificate, Certificate];
  await writeFile(file, ours.cert + another.cert);
  return { ours, another };
}

/** The same listener with TLS. */
export async function secured(inner: Listener, { key, cert }: Certificate, port = 0): Promise<Listener> {
  const server = createServer({ key, cert }, (socket) => {
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
    origin: `https://127.0.0.1:${bound}`,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
