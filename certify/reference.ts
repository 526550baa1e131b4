/** The reference server as the kit certifies it: everything that a target file can say. */
import { join } from 'node:path';
import { startReferenceServer, type ReferenceServer } from '../reference-server/start.ts';

export type { ReferenceServer };

/** Low enough to be met in a second, high enough to be no hindrance. */
const RATE_LIMIT = { limit: 150, windowMs: 1_000, algorithm: 'fixed-window' } as const;

/** `directory` holds what it writes: its events. */
export const startReference = (directory: string): Promise<ReferenceServer> =>
  startReferenceServer({
    eventsFile: join(directory, 'events.ndjson'),
    faultCommands: true,
    rateLimit: RATE_LIMIT,
  });
