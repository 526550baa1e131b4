/** The reference server for certification, with every member that a target file can have. */
import { join } from 'node:path';
import { DEFAULTS } from '../engine/run/state/context.ts';
import {
  startReferenceServer,
  type ReferenceServer,
  type ServerOptions,
} from '../reference-server/run/start.ts';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { loadTarget } from '../engine/target/target.ts';

export type { ReferenceServer };

/** Requests of primary before the rate limit is provoked: without laws, and for one case of each law. */
const REQUESTS = { fixed: 1_100, perRun: 45 } as const;

/**
 * The rate limit is a burst that a run's other requests nearly use up without being rejected, so the rate-limit check
 * soon exceeds the rest; a slow refill keeps the rest small on a slow machine too.
 *
 * @param directory folder of the events file
 */
export const startReference = (
  directory: string,
  { runs = DEFAULTS.runs, ...options }: ServerOptions & { readonly runs?: number | undefined } = {},
): Promise<ReferenceServer> =>
  startReferenceServer({
    ...options,
    eventsFile: join(directory, 'events.ndjson'),
    faultCommands: true,
    rateLimit: {
      limit: 5,
      windowMs: 1_000,
      algorithm: 'token-bucket',
      burst: REQUESTS.fixed + REQUESTS.perRun * runs,
    },
  });

// -- Playwright’s global setup: starts it unless SCREENINGS_TARGET names a target file ----------------

export default async function setUp(): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'screenings-run-'));
  process.env['SEED'] ??= String(Math.floor(Math.random() * 2 ** 31));
  const given = process.env['SCREENINGS_TARGET'];
  const runs = process.env['RUNS'] ? Number(process.env['RUNS']) : undefined;
  const reference = given ? undefined : await startReference(directory, { runs });
  if (reference) {
    const file = join(directory, 'target.json');
    await writeFile(file, JSON.stringify(reference.target()), { mode: 0o600 });
    process.env['SCREENINGS_TARGET'] = file;
  }
  const { name, baseUrl } = await loadTarget(process.env['SCREENINGS_TARGET']!);
  console.log(`target: ${name} at ${baseUrl}, SEED=${process.env['SEED']}`);
  return async () => {
    await reference?.stop();
    await rm(directory, { recursive: true, force: true });
  };
}
