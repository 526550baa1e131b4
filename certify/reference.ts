/** The reference server for certification, with every member that a target file can have. */
import { join } from 'node:path';
import {
  startReferenceServer,
  type ReferenceServer,
  type ServerOptions,
} from '../reference-server/run/start.ts';

export type { ReferenceServer };

/**
 * A run's other requests use most of the burst and are not rejected, so the rate-limit check soon exceeds the rest, also
 * on a slow machine.
 */
const RATE_LIMIT = { limit: 25, windowMs: 1_000, algorithm: 'token-bucket', burst: 1_600 } as const;

/** @param directory folder of the events file */
export const startReference = (directory: string, options: ServerOptions = {}): Promise<ReferenceServer> =>
  startReferenceServer({
    ...options,
    eventsFile: join(directory, 'events.ndjson'),
    faultCommands: true,
    rateLimit: RATE_LIMIT,
  });
