/** The environment of a situation: a clock, and a network between the client and the server. */
import { systemClock, type Clock } from '../../engine/clock.ts';
import { UsageError } from '../../engine/errors.ts';
import { secured } from '../../reference-server/degenerate/secured.ts';
import { listen, type Listener } from '../../reference-server/http/http.ts';

export interface World {
  readonly clock: Clock;
  /** The same clock, used for waits of the server. */
  readonly serverClock: Clock;
  readonly fetch: typeof fetch;
  /** `port` 0: any free port. `tlsHost`: serves TLS at that host; the certificate names localhost. */
  listen(port: number, tlsHost?: string): Promise<Listener>;
}

/** Sockets and the system clock, monotonic and finer than milliseconds. */
export function realWorld(): World {
  const beganMs = Date.now() - performance.now();
  const clock: Clock = { ...systemClock, now: () => beganMs + performance.now() };
  return {
    ...{ clock, serverClock: clock, fetch },
    async listen(port, tlsHost) {
      if (tlsHost !== undefined) return secured(await listen(), tlsHost, port);
      return listen({ port }).catch((error: NodeJS.ErrnoException): never => {
        throw error.code === 'EADDRINUSE' ? new UsageError(`--listen: port ${port} is taken`) : error;
      });
    },
  };
}
