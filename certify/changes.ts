/** Comparison with an earlier run (`--baseline`), and the state of known failures (`--known-failures`). */
import { z } from 'zod';
import { UsageError } from '../engine/errors.ts';
import { REQUIREMENTS } from '../engine/requirements.ts';
import { noSuch, readJson } from '../engine/target/usage.ts';
import type { Changes, KnownFailure, Report, Status } from './report.ts';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { STATUS_MARK, VERDICT_STATUS } from './render/results.ts';
import { table } from './render/html.ts';
import { markup, oneLine } from './render/markup.ts';
import { page } from './render/style.ts';
import { makeFolder, writeAtomically } from './render/write.ts';

/** Only the members used here, because another version of the kit may have written the report. */
const baselineSchema = z.object({
  startedAt: z.string(),
  target: z.object({ name: z.string(), baseUrl: z.string() }),
  requirements: z
    .array(z.object({ id: z.string(), status: z.enum(['pass', 'fail', 'warn', 'untested', 'error']) }))
    .readonly(),
  observations: z
    .array(z.object({ topic: z.string(), seen: z.array(z.string()).readonly() }))
    .readonly()
    .default([]),
});

export type Baseline = z.infer<typeof baselineSchema>;

const knownSchema = z.array(
  z.strictObject({ id: z.string(), reason: z.string().min(1), expires: z.iso.date() }),
);

export type KnownFailures = z.infer<typeof knownSchema>;

/** Reads the report.json of an earlier run. Throws a UsageError. */
export const readBaseline = (path: string): Promise<Baseline> =>
  readJson(path, '--baseline', 'report.json', baselineSchema);

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

/** The differences from the baseline. Requirements excluded by `--only` count as unchanged. */
export function changesSince(
  baseline: Baseline,
  { requirements, selection, target, observations }: Report,
): Changes {
  const before = new Map<string, Status>(baseline.requirements.map(({ id, status }) => [id, status]));
  const now = requirements.filter(({ id }) => !selection || selection.includes(id));
  const ids = (holds: (was: Status | undefined, is: Status) => boolean): string[] =>
    now.filter(({ id, status }) => holds(before.get(id), status)).map(({ id }) => id);
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
export function standOf(known: KnownFailures, { requirements, startedAt }: Report): KnownFailure[] {
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

// -- --history keeps the report of every run, and draws the latest ones ----------------------------

const RUNS_SHOWN = 30;
const KEPT = /^\d{4}-\d{2}-\d{2}T[\d-]+Z\.json$/;

type HistoryEntry = Pick<Report, 'startedAt' | 'verdict'> & {
  readonly requirements: readonly { readonly id: string; readonly status: Status }[];
};

const nameOf = (startedAt: string): string => `${startedAt.replace(/[:.]/g, '-')}.json`;

async function namesIn(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new UsageError(`--history: can't read ${directory} (${error.code ?? error.message})`);
  });
  return names.filter((name) => KEPT.test(name)).sort();
}

/** The latest report kept; undefined if there is none. Throws a UsageError. */
export async function lastRun(directory: string): Promise<Baseline | undefined> {
  const last = (await namesIn(directory)).at(-1);
  return last === undefined ? undefined : readBaseline(join(directory, last));
}

export async function keep(directory: string, report: Report): Promise<void> {
  await makeFolder(directory);
  await writeAtomically(join(directory, nameOf(report.startedAt)), `${JSON.stringify(report)}\n`);
  const names = (await namesIn(directory)).slice(-RUNS_SHOWN);
  const nights = await Promise.all(
    names.map(async (name) => JSON.parse(await readFile(join(directory, name), 'utf8')) as HistoryEntry),
  );
  await writeAtomically(join(directory, 'history.html'), historyHtml(nights, report.target.name));
}

const day = (startedAt: string): string => startedAt.slice(5, 16).replace('T', ' ');

/** Draws the runs from left to right, oldest first, without requirements that passed in all of them. */
export function historyHtml(runs: readonly HistoryEntry[], name: string): string {
  const statuses = runs.map(
    ({ requirements }) => new Map<string, Status>(requirements.map(({ id, status }) => [id, status])),
  );
  const ids = [...new Set(runs.flatMap(({ requirements }) => requirements.map(({ id }) => id)))];
  const shown = ids.filter((id) => statuses.some((run) => run.get(id) !== 'pass'));
  const cellOf = (id: string, index: number): string | readonly [string, Status] => {
    const status = statuses[index]!.get(id);
    const isNew = index > 0 && status !== statuses[index - 1]!.get(id);
    return status === undefined ? '·' : [`${STATUS_MARK[status]}${isNew ? ' new' : ''}`, status];
  };
  const verdicts = runs.map(({ verdict }): [string, Status] => {
    const status = VERDICT_STATUS[verdict];
    return [STATUS_MARK[status], status];
  });
  const last = runs.at(-1);
  return page({
    title: `History: ${oneLine(name)}`,
    status: last ? VERDICT_STATUS[last.verdict] : 'untested',
    body: markup`<header><p class="overline">Screenings Retrieval Service · history</p><h1>${name}</h1></header>
<main>${table({
      title: `The last ${runs.length} runs`,
      about: `${ids.length - shown.length} requirements passed in every one of these runs and are left out. ✓ pass, ✗ fail, ! warn, ○ untested, ? error of the kit; new: changed since the run before.`,
      head: ['Requirement', ...runs.map(({ startedAt }) => day(startedAt))],
      rows: [
        ['verdict', ...verdicts],
        ...shown.map((id) => [id, ...runs.map((_, index) => cellOf(id, index))]),
      ],
    })}</main>`,
  });
}
