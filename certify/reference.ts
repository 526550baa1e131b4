/** The reference server as the kit certifies it: everything that a target file can say. */
import { join } from 'node:path';
import {
  startReferenceServer,
  type ReferenceServer,
  type ServerOptions,
} from '../reference-server/run/start.ts';

export type { ReferenceServer };

/** Met when it is looked for, at little cost; in the way of nobody else: more than a run asks for on the whole. */
const RATE_LIMIT = { limit: 160, windowMs: 500, algorithm: 'token-bucket', burst: 270 } as const;

/** `directory` holds what it writes: its events. */
export const startReference = (directory: string, options: ServerOptions = {}): Promise<ReferenceServer> =>
  startReferenceServer({
    ...options,
    eventsFile: join(directory, 'events.ndjson'),
    faultCommands: true,
    rateLimit: RATE_LIMIT,
  });
