/** `--history` keeps the report of every run in a folder, and draws the latest ones. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, readFolder, writeAtomically } from '../../engine/files.ts';
import { readBaseline, statusesIn, type Baseline } from '../report/changes.ts';
import type { Report, Status } from '../report/report.ts';
import { table } from './html.ts';
import { markup, oneLine } from './markup.ts';
import { several, SHOWN, VERDICT } from './results.ts';
import { page } from './style.ts';

const RUNS_SHOWN = 30;
const KEPT = /^\d{4}-\d{2}-\d{2}T[\d-]+Z\.json$/;

const nameOf = (startedAt: string): string => `${startedAt.replace(/[:.]/g, '-')}.json`;

async function namesIn(directory: string): Promise<string[]> {
  const names = existsSync(directory) ? await readFolder(directory, '--history') : [];
  return names.filter((name) => KEPT.test(name)).sort();
}

/** The latest report kept; undefined if there is none. Throws a UsageError. */
export async function lastRun(directory: string): Promise<Baseline | undefined> {
  const last = (await namesIn(directory)).at(-1);
  return last === undefined ? undefined : readBaseline(join(directory, last), '--history');
}

export async function keep(directory: string, report: Report): Promise<void> {
  makeFolder(directory);
  await writeAtomically(join(directory, nameOf(report.startedAt)), `${JSON.stringify(report)}\n`);
  const names = (await namesIn(directory)).slice(-RUNS_SHOWN);
  const runs = await Promise.all(names.map((name) => readBaseline(join(directory, name), '--history')));
  await writeAtomically(join(directory, 'history.html'), historyHtml(runs, report.target.name));
}

const day = (startedAt: string): string => startedAt.slice(5, 16).replace('T', ' ');

/** Draws the runs from left to right, oldest first, without requirements that passed in all of them. */
export function historyHtml(runs: readonly Baseline[], name: string): string {
  const statuses = runs.map(statusesIn);
  const ids = [...new Set(runs.flatMap(({ requirements }) => requirements.map(({ id }) => id)))];
  const shown = ids.filter((id) => statuses.some((run) => (run.get(id) ?? 'pass') !== 'pass'));
  const cellOf = (id: string, index: number): string | readonly [string, Status] => {
    const status = statuses[index]!.get(id);
    const before = statuses[index - 1]?.get(id);
    const isNew = before !== undefined && status !== before;
    return status === undefined ? '·' : [`${SHOWN[status].mark}${isNew ? ' new' : ''}`, status];
  };
  const verdicts = runs.map(({ verdict }): [string, Status] => {
    const status = VERDICT[verdict].status;
    return [SHOWN[status].mark, status];
  });
  const last = runs.at(-1);
  return page({
    title: `History: ${oneLine(name)}`,
    status: last ? VERDICT[last.verdict].status : 'untested',
    body: markup`<header><p class="overline">Screenings Retrieval Service · history</p><h1>${name}</h1></header>
<main>${table({
      title: `The last ${several(runs.length, 'run')}`,
      about: `Requirements that only passed are left out: ${ids.length - shown.length}. ✓ pass, ✗ fail, ! warn, ○ untested, ? error of the kit, · not selected; new: changed since the run before.`,
      head: ['Requirement', ...runs.map(({ startedAt }) => day(startedAt))],
      rows: [
        ['verdict', ...verdicts],
        ...shown.map((id) => [id, ...runs.map((_, index) => cellOf(id, index))]),
      ],
    })}</main>`,
  });
}
