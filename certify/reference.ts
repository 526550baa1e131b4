/** The reference server for certification, with every member that a target file can have. */
import { join } from 'node:path';
import {
  startReferenceServer,
  type ReferenceServer,
  type ServerOptions,
} from '../reference-server/run/start.ts';

export type { ReferenceServer };

/** Low enough for the rate-limit check to reach, high enough not to reject other requests of a run. */
const RATE_LIMIT = { limit: 160, windowMs: 500, algorithm: 'token-bucket', burst: 270 } as const;

/** @param directory folder of the events file */
export const startReference = (directory: string, options: ServerOptions = {}): Promise<ReferenceServer> =>
  startReferenceServer({
    ...options,
    eventsFile: join(directory, 'events.ndjson'),
    faultCommands: true,
    rateLimit: RATE_LIMIT,
  });
