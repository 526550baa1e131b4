/** The reference server for certification, with every member that a target file can have. */
import { DEFAULTS, randomSeed } from '../engine/run/state/context.ts';
import { startReference, type RunningReference } from '../reference-server/command/child.ts';
import { loadTarget } from '../engine/target/target.ts';

/** Requests of primary before the rate limit is provoked: without laws, and for one case of each law. */
const REQUESTS = { fixed: 1_100, perRun: 45 } as const;

/**
 * The rate limit is a burst that a run's other requests nearly use up without being rejected, so the rate-limit check
 * soon exceeds the rest; a slow refill keeps the rest small on a slow machine too.
 *
 * @param tell gets the lines of the server's log
 */
export const startForCertificate = (
  runs: number = DEFAULTS.runs,
  tell: (line: string) => void = () => undefined,
): Promise<RunningReference> =>
  startReference(
    [
      ...['--rate-limit', '2/1s', '--rate-algorithm', 'token-bucket'],
      ...['--rate-burst', String(REQUESTS.fixed + REQUESTS.perRun * runs)],
    ],
    { tell, hasEvents: true },
  );

// -- Playwright’s global setup: starts it unless SCREENINGS_TARGET names a target file ----------------

export default async function setUp(): Promise<() => Promise<void>> {
  process.env['SEED'] ??= String(randomSeed());
  const runs = process.env['RUNS'] ? Number(process.env['RUNS']) : undefined;
  const reference = process.env['SCREENINGS_TARGET'] ? undefined : await startForCertificate(runs);
  const file = reference?.file ?? process.env['SCREENINGS_TARGET']!;
  process.env['SCREENINGS_TARGET'] = file;
  const { name, baseUrl } = await loadTarget(file);
  console.log(`target: ${name} at ${baseUrl}, SEED=${process.env['SEED']}`);
  return async () => reference?.[Symbol.asyncDispose]();
}
