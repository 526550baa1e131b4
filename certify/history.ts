/** `--history DIR`: keeps the report of every run, and draws the latest ones with one mark per requirement and run. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError } from '../engine/errors.ts';
import { readBaseline, type Baseline } from './changes.ts';
import { STATUS_MARK, VERDICT_STATUS } from './render/results.ts';
import { markup, oneLine, type Markup } from './render/markup.ts';
import { page } from './render/style.ts';
import { makeFolder, writeAtomically } from './render/write.ts';
import type { Report, Status } from './report.ts';

const RUNS_SHOWN = 30;
const KEPT = /^\d{4}-\d{2}-\d{2}T[\d-]+Z\.json$/;

/** The members of a report that the history shows. */
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

/** Stores the report and redraws `history.html`. */
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

const STYLE = `
table.history{width:auto}
.history th,.history td{padding:.15rem .35rem;text-align:center;white-space:nowrap}
.history th[scope=row]{text-align:left;position:sticky;left:0;background:var(--page)}
.history thead th{writing-mode:vertical-rl;font-variant-numeric:tabular-nums}
.history thead th:first-child{writing-mode:horizontal-tb;text-align:left;vertical-align:bottom}
.history .new{padding:.1rem .3rem;outline:2px solid currentColor;outline-offset:-2px;border-radius:4px}
`;

/** Draws the runs from left to right, oldest first. Changes from one run to the next have a frame. */
export function historyHtml(nights: readonly HistoryEntry[], name: string): string {
  const statuses = nights.map(
    ({ requirements }) => new Map<string, Status>(requirements.map(({ id, status }) => [id, status])),
  );
  const ids = [...new Set(nights.flatMap(({ requirements }) => requirements.map(({ id }) => id)))];
  const everPassing = ids.filter((id) => statuses.every((night) => night.get(id) === 'pass'));
  const shown = ids.filter((id) => !everPassing.includes(id));
  const mark = (status: Status | undefined, changed: boolean): Markup =>
    status === undefined
      ? markup`<td><span class="muted">·</span></td>`
      : markup`<td><span class="${status}${changed && ' new'}" role="img" aria-label="${status}${changed && ', changed'}" title="${status}">${STATUS_MARK[status]}</span></td>`;
  const row = (id: string): Markup =>
    markup`<tr><th scope="row" class="id">${id}</th>${statuses.map((night, index) =>
      mark(night.get(id), index > 0 && night.get(id) !== statuses[index - 1]!.get(id)),
    )}</tr>`;
  const last = nights.at(-1);
  return page({
    title: `History: ${oneLine(name)}`,
    status: last ? VERDICT_STATUS[last.verdict] : 'untested',
    style: STYLE,
    body: markup`<header><p class="overline">Screenings Retrieval Service · history</p><h1>${name}</h1></header>
<main><h2 id="runs">The last ${nights.length} runs</h2>
<div class="scroll" role="region" tabindex="0" aria-labelledby="runs"><table class="history"><thead><tr><th scope="col">Requirement</th>${nights.map(
      ({ startedAt }) => markup`<th scope="col">${day(startedAt)}</th>`,
    )}</tr></thead><tbody><tr><th scope="row">verdict</th>${nights.map(({ verdict }) => markup`<td><span class="${VERDICT_STATUS[verdict]}" role="img" aria-label="${verdict}" title="${verdict}">${STATUS_MARK[VERDICT_STATUS[verdict]]}</span></td>`)}</tr>
${shown.map(row)}</tbody></table></div>
<p class="muted">${everPassing.length} requirements passed in every one of these runs and are left out. A framed mark changed since the run before. ✓ pass, ✗ fail, ! warn, ○ untested, ? error of the kit.</p>
</main>`,
  });
}
