/** The interface of a PostgreSQL server, however it was started, and a port for it. */
import { type AddressInfo, createServer } from 'node:net';

/** Ends PostgreSQL like a crash, and starts it again with all committed data. */
export interface Outage {
  begin(): Promise<void>;
  end(): Promise<void>;
}

export interface RunningPostgres {
  readonly url: string;
  /** For log lines: its kind, and why it was chosen. */
  readonly description: string;
  /** Absent if this process did not start the server. */
  readonly outage?: Outage;
  stop(): Promise<void>;
}

/** Returns a free port of 127.0.0.1; another process may bind it before the caller does. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
