/** Asks a server for pages as fast as it gives them: plain sockets, so that little of the machine goes into asking. */
import { connect, type Socket } from 'node:net';

interface Driven {
  readonly perSecond: number;
  /** Of a body, on average. */
  readonly octets: number;
}

/** One request at a time on each connection. Throws an Error for any answer but 200. */
export async function drive(
  port: number,
  request: () => string,
  { connections = 8, seconds = 1.5 } = {},
): Promise<Driven> {
  const startedAt = performance.now();
  const until = startedAt + seconds * 1_000;
  const counts = await Promise.all(Array.from({ length: connections }, () => askUntil(port, request, until)));
  const took = (performance.now() - startedAt) / 1_000;
  const answers = counts.reduce((sum, one) => sum + one.answers, 0);
  const octets = counts.reduce((sum, one) => sum + one.octets, 0);
  return { perSecond: answers / took, octets: octets / answers };
}

function askUntil(
  port: number,
  request: () => string,
  until: number,
): Promise<{ answers: number; octets: number }> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(port, '127.0.0.1', () => socket.write(request()));
    socket.setNoDelay(true);
    let answers = 0;
    let octets = 0;
    /** Of the body that is under way. */
    let missing = 0;
    let head = '';
    socket.on('data', (chunk: Buffer) => {
      if (missing === 0) {
        head += chunk.toString('latin1');
        const end = head.indexOf('\r\n\r\n');
        if (end < 0) return;
        if (!head.startsWith('HTTP/1.1 200')) return void socket.destroy(new Error(head.slice(0, 200)));
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
        octets += length;
        missing = length - (head.length - end - 4);
        head = '';
      } else missing -= chunk.length;
      if (missing > 0) return;
      answers += 1;
      if (performance.now() < until) socket.write(request());
      else socket.end(() => resolve({ answers, octets }));
    });
    socket.on('error', reject);
  });
}

/** A GET whose answer keeps the connection open. */
export const get = (path: string, token?: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${token ? `Authorization: Bearer ${token}\r\n` : ''}\r\n`;

export const post = (path: string, form: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${form.length}\r\n\r\n${form}`;
