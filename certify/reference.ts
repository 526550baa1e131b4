/** The reference server as the kit certifies it: everything that a target file can say. */
import { join } from 'node:path';
import {
  startReferenceServer,
  type ReferenceServer,
  type ServerOptions,
} from '../reference-server/run/start.ts';

export type { ReferenceServer };

/** Low enough to be reached by the probe, high enough not to reject any other request of a run. */
const RATE_LIMIT = { limit: 160, windowMs: 500, algorithm: 'token-bucket', burst: 270 } as const;

/** `directory` holds what it writes: its events. */
export const startReference = (directory: string, options: ServerOptions = {}): Promise<ReferenceServer> =>
  startReferenceServer({
    ...options,
    eventsFile: join(directory, 'events.ndjson'),
    faultCommands: true,
    rateLimit: RATE_LIMIT,
  });
