/** Comparison with an earlier run (`--baseline`), and the state of known failures (`--known-failures`). */
import { z } from 'zod';
import { REQUIREMENTS } from '../../engine/requirements.ts';
import { readJson } from '../../engine/files.ts';
import { noSuch } from '../../engine/target/usage.ts';
import { statusSchema, verdictSchema } from './report.ts';
import type { Changes, KnownFailure, Report, Status } from './report.ts';

/** Only the members used here, because another version of the kit may have written the report. */
const baselineSchema = z.object({
  startedAt: z.string(),
  target: z.object({ name: z.string(), baseUrl: z.string() }),
  verdict: verdictSchema,
  selection: z.array(z.string()).readonly().optional(),
  requirements: z.array(z.object({ id: z.string(), status: statusSchema })).readonly(),
  observations: z
    .array(z.object({ topic: z.string(), seen: z.array(z.string()).readonly() }))
    .readonly()
    .default([]),
});

export type Baseline = z.infer<typeof baselineSchema>;

const knownSchema = z.array(
  z.strictObject({ id: z.string(), reason: z.string().min(1), expires: z.iso.date() }),
);

type KnownFailures = z.infer<typeof knownSchema>;

/** Reads the report.json of an earlier run. Throws a UsageError. */
export const readBaseline = (path: string, flag = '--baseline'): Promise<Baseline> =>
  readJson(path, flag, 'report.json', baselineSchema);

/** Reads `[{ "id", "reason", "expires": "2026-12-31" }]`; the date is the last valid day. Throws a UsageError. */
export async function readKnownFailures(path: string): Promise<KnownFailures> {
  const flag = '--known-failures';
  const known = await readJson(path, flag, 'list of { id, reason, expires }', knownSchema);
  const ids: readonly string[] = REQUIREMENTS.map(({ id }) => id);
  for (const { id } of known) {
    if (!ids.includes(id)) throw noSuch(flag, 'requirement', id, ids);
  }
  return known;
}

const isBroken = (status: Status | undefined): boolean => status === 'fail' || status === 'warn';
const isExercised = (status: Status | undefined): boolean => isBroken(status) || status === 'pass';

/** The statuses of a run, without those of requirements that `--only` excluded. */
export const statusesIn = ({ requirements, selection }: Baseline): ReadonlyMap<string, Status> =>
  new Map(
    requirements.filter(({ id }) => selection?.includes(id) ?? true).map(({ id, status }) => [id, status]),
  );

/** The differences from the baseline. A requirement that `--only` excluded counts as unchanged, but its failure as new. */
export function changesSince(baseline: Baseline, report: Report): Changes {
  const { target, observations } = report;
  const before = statusesIn(baseline);
  const now = [...statusesIn(report)];
  const ids = (holds: (was: Status | undefined, is: Status) => boolean): string[] =>
    now.filter(([id, is]) => holds(before.get(id), is)).map(([id]) => id);
  return {
    since: baseline.startedAt,
    sameTarget: baseline.target.baseUrl === target.baseUrl,
    newlyFailing: ids((was, is) => isBroken(is) && !isBroken(was)),
    newlyPassing: ids((was, is) => is === 'pass' && was !== undefined && was !== 'pass'),
    noLongerExercised: ids((was, is) => isExercised(was) && !isExercised(is)),
    changedObservations: observations.flatMap(({ topic, seen }) => {
      const { seen: was = [] } = baseline.observations.find((known) => known.topic === topic) ?? {};
      // A rare behaviour may be absent by chance, so it is a change only if the two runs have none in common.
      const isOther = was.length > 0 && seen.length > 0 && !seen.some((text) => was.includes(text));
      return isOther ? [`${topic}: ${was.join(', ')} before, now ${seen.join(', ')}`] : [];
    }),
  };
}

/** The state of each known failure today: one that passes again or has expired is reported as well. */
export function statesOf(known: KnownFailures, { requirements, startedAt }: Report): KnownFailure[] {
  const today = startedAt.slice(0, 10);
  const statusOf = new Map<string, Status>(requirements.map(({ id, status }) => [id, status]));
  return known.map((entry) => {
    const status = statusOf.get(entry.id);
    if (status === 'pass') return { ...entry, stand: 'passes again' };
    if (entry.expires < today) return { ...entry, stand: 'expired' };
    return { ...entry, stand: isBroken(status) ? 'failing' : 'not exercised' };
  });
}

/**
 * The exit status of `--fail-on new`: 1 for a broken MUST that is neither in the baseline nor a valid known failure;
 * 3 if less was exercised than before or a known failure is out of date; 0 otherwise.
 */
export function exitOnNew({ requirements, changes, knownFailures = [], verdict }: Report): 0 | 1 | 3 {
  const excused = new Set(knownFailures.filter(({ stand }) => stand === 'failing').map(({ id }) => id));
  const candidates = changes ? new Set(changes.newlyFailing) : undefined;
  const isNew = requirements.some(
    ({ id, status }) => status === 'fail' && (candidates?.has(id) ?? true) && !excused.has(id),
  );
  if (isNew) return 1;
  const outOfDate = knownFailures.some(({ stand }) => stand === 'passes again' || stand === 'expired');
  return verdict === 'incomplete' || outOfDate || (changes?.noLongerExercised.length ?? 0) > 0 ? 3 : 0;
}
